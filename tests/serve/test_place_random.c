/* The planner's replay of a plan and the place that serves from it agree: random plans, and random requests, frees, work, waits, joins and phases
 * for both. What one serves the other serves, what one spills the other spills for the same reason, and for what one waits the other waits. */
#include <stdio.h>
#include <string.h>

#include "planner/serve.h"
#include "tests/serve/place_fixture.h"

enum { SEEDS = 200, STEPS = 500, STREAMS = 4, LIVES = STEPS, ROWS_MAX = 14, WAITING_MAX = 12 };

typedef struct block {
    tn_life life;
    uint32_t row;
    char *address;
    tn_work_mark marks[STREAMS]; /* after the free: what must be done before it is clean */
    size_t mark_count;
    int served, freed, clean;
} block;

static random_state r;
static block blocks[LIVES];
static uint32_t block_count, position;
static tn_serve *replay;
static tn_work_mark last[STREAMS + 1]; /* of each stream; a sequence of 0: none */
static char step_text[200];

static uint64_t below(uint64_t limit)
{
    return random_below(&r, limit);
}

/* An assertion of Check's is a write to a pipe. */
static void must(int ok, const char *what)
{
    if (!ok)
        ck_abort_msg("%s: %s", step_text, what);
}

/* ---- the plan */

static uint64_t random_bytes(void)
{
    return below(12) == 0 ? (1 << 20) + 512 + below(4) * 512 : 512 * (1 + below(16));
}

/* Slots of one class, at random offsets that do not overlap each other. How many there were. */
static size_t random_offsets(uint64_t bytes, uint64_t alignment, uint64_t capacity, uint64_t *offsets)
{
    size_t wanted = 1 + below(4), count = 0;
    for (int tries = 0; tries < 40 && count < wanted; tries++) {
        uint64_t at = below((capacity - bytes) / alignment + 1) * alignment;
        size_t k = 0;
        while (k < count && (offsets[k] >= at + bytes || at >= offsets[k] + bytes))
            k++;
        if (k == count)
            offsets[count++] = at;
    }
    return count;
}

static uint64_t random_classes(tn_family family, uint64_t capacity)
{
    uint64_t bytes = 0, largest = 0, offsets[8];
    for (size_t n = 1 + below(3); n > 0; n--) {
        bytes += largest == 0 ? 512 * (1 + below(16)) : random_bytes();
        if (bytes > capacity)
            break;
        size_t count = random_offsets(bytes, tn_native_alignment(family, bytes), capacity, offsets);
        plan_class(bytes, count, offsets);
        largest = bytes;
    }
    return largest;
}

static void slots_row(tn_family family, uint64_t capacity)
{
    uint32_t row = family == TN_FAMILY_PINNED ? plan_pinned_row(0, 1) : plan_row(TN_D_PACKED, family, 1, 0);
    section.rows[row].largest = random_classes(family, capacity);
}

/* Some rows of each tier, or none. */
static void random_plan(void)
{
    uint64_t capacity[TN_FAMILY_COUNT];
    size_t n;
    for (unsigned f = 0; f < TN_FAMILY_HANDLE; f++) {
        capacity[f] = below(6) == 0 ? 4 << 20 : 16384 + 4096 * below(8);
        n = below(4);
        for (size_t i = 0; i < n; i++)
            slots_row((tn_family)f, capacity[f]);
        if (n)
            plan_tier(f == TN_FAMILY_PINNED ? TN_D_T5B : TN_D_PACKED, (tn_family)f, 0, capacity[f], 0);
    }
    for (unsigned f = 0; f < TN_FAMILY_PINNED; f++) {
        if (below(2)) {
            plan_row(TN_D_T2, (tn_family)f, 8192, 0);
            plan_tier(TN_D_T2, (tn_family)f, 0, below(8) == 0 ? (2 << 20) + (1 << 20) : 4096 + below(65536), 0);
        }
        if (below(2)) {
            uint64_t bytes = random_bytes() - below(512);
            uint64_t block_bytes = tn_round_up(bytes, tn_native_alignment((tn_family)f, bytes));
            plan_row(TN_D_T3, (tn_family)f, bytes, block_bytes * (1 + below(3)));
        }
    }
    if (below(2)) {
        plan_row(TN_D_T4, TN_FAMILY_ASYNC, 4096, 0);
        plan_tier(TN_D_T4, TN_FAMILY_ASYNC, 0, 2048 + below(32768), 1 + below(STREAMS));
    }
    n = below(3);
    for (size_t i = 0; i < n; i++) {
        uint32_t row = plan_row(TN_D_T1, TN_FAMILY_DEVICE, 8192, 0);
        uint64_t first = 0;
        for (size_t k = below(3); k > 0; k--) {
            first += 512 * (1 + below(8));
            plan_region(row, first, first + below(3) * below(20000) + (below(16) == 0 ? 3 << 20 : 0), 1 + below(8), 1000);
        }
    }
    if (n)
        plan_tier(TN_D_T1, TN_FAMILY_DEVICE, 0, 1 << 20, 0);
    if (section.row_count == 0)
        plan_row(TN_D_T3, TN_FAMILY_DEVICE, 512, 1024);
}

static uint64_t random_request(uint32_t row)
{
    const tn_plan_row *p = &section.rows[row];
    if (below(40) == 0)
        return p->largest + 1 + below(2 << 20);
    if (p->class_count) {
        uint64_t bytes = p->classes[below(p->class_count)].bytes;
        return below(2) ? bytes : 1 + below(bytes);
    }
    if (p->discipline == TN_D_T1 && section.region_count && below(2))
        return section.regions[below(section.region_count)].first_bytes;
    return 1 + below(p->largest);
}

/* ---- steps */

static void note_clean(void)
{
    for (uint32_t i = 0; i < block_count; i++) {
        block *b = &blocks[i];
        if (!b->freed || b->clean)
            continue;
        size_t left = 0;
        while (left < b->mark_count && device_done(b->marks[left]))
            left++;
        if (left < b->mark_count)
            continue;
        b->clean = 1;
        tn_serve_clean(replay, i);
    }
}

/* The last work of a stream that another has joined, or nothing. */
static tn_work_mark joined[STREAMS + 1][STREAMS + 1];

static void join(uint32_t to, uint32_t from)
{
    tn_trace_join j = {.at = ++position, .to = to, .from = from, .upto = position};
    if (to == from)
        return;
    device_join(to, from);
    joined[to][from] = last[from];
    must(tn_serve_join(replay, &j) == TN_OK, "the replay failed");
}

/* What the other stream has joined before, this one joins as well. */
static void join_all(uint32_t to, uint32_t from)
{
    join(to, from);
    for (uint32_t s = 1; s <= STREAMS; s++)
        if (joined[from][s].sequence)
            join(to, s);
}

/* What a stream finishes comes after what it has joined. */
static void finish(uint32_t stream)
{
    for (uint32_t s = 1; s <= STREAMS; s++)
        if (joined[stream][s].sequence)
            device_finish_up_to(joined[stream][s]);
    device_finish(stream);
    note_clean();
}

static void check_overlap(const block *fresh)
{
    for (uint32_t i = 0; i < block_count; i++) {
        const block *b = &blocks[i];
        if (b != fresh && b->served && !b->freed && b->address < fresh->address + fresh->life.bytes && fresh->address < b->address + b->life.bytes)
            ck_abort_msg("%s: two live blocks overlap", step_text);
    }
}

static const tn_place_spill spill_of[] = {[TN_SPILL_NONE] = TN_PLACE_SERVED, [TN_SPILL_TOO_LARGE] = TN_PLACE_TOO_LARGE, [TN_SPILL_TOO_MANY] = TN_PLACE_TOO_MANY,
                                          [TN_SPILL_IN_THE_WAY] = TN_PLACE_IN_THE_WAY, [TN_SPILL_NO_ROOM] = TN_PLACE_NO_ROOM};

/* A row of several classes can be in its own way and in another's: which of the two is named first is nobody's rule. */
static int is_same(uint32_t row, tn_place_spill real, tn_place_spill expected)
{
    int both = (real == TN_PLACE_TOO_MANY || real == TN_PLACE_IN_THE_WAY) && (expected == TN_PLACE_TOO_MANY || expected == TN_PLACE_IN_THE_WAY);
    return real == expected || (both && section.rows[row].class_count > 1);
}

static void step_take(void)
{
    block *b = &blocks[block_count];
    tn_serve_answer expected;
    uint32_t row = (uint32_t)below(section.row_count);
    const tn_plan_row *p = &section.rows[row];
    *b = (block){.row = row};
    b->life = (tn_life){.bytes = random_request(row), .stream = p->family == TN_FAMILY_ASYNC ? 1 + (uint32_t)below(STREAMS) : 0, .phase = *phase(),
                        .begin = ++position};
    block_count++;
    tn_place_answer real = ask(row, b->life.bytes, b->life.stream, 1);
    must(tn_serve_take(replay, row, &b->life, block_count - 1, &expected) == TN_OK, "the replay failed");
    if ((real.address == NULL) != (expected.spill != TN_SPILL_NONE) || !is_same(row, real.spill, spill_of[expected.spill]))
        ck_abort_msg("%s: %s of %s memory, %llu bytes, stream %u: the place says %d, the replay %d", step_text, tn_discipline_name(p->discipline),
                     tn_family_name(p->family), (unsigned long long)b->life.bytes, b->life.stream, (int)real.spill, (int)spill_of[expected.spill]);
    if (real.waits != (uint64_t)(expected.waited != 0))
        ck_abort_msg("%s: %s of %s memory: %llu waits, the replay %d", step_text, tn_discipline_name(p->discipline), tn_family_name(p->family),
                     (unsigned long long)real.waits, expected.waited);
    b->served = real.address != NULL;
    b->address = real.address;
    if (b->served)
        check_overlap(b);
    note_clean(); /* it may have waited */
}

/* Blocks of T2 that wait are looked at some at a time; where there are more, the place may know later than the replay. */
static int engine_waits(void)
{
    int count = 0;
    for (uint32_t i = 0; i < block_count; i++)
        count += blocks[i].served && blocks[i].freed && !blocks[i].clean && section.rows[blocks[i].row].discipline == TN_D_T2;
    return count >= WAITING_MAX;
}

static void step_free(void)
{
    uint32_t i = block_count ? (uint32_t)below(block_count) : 0;
    for (uint32_t tries = 0; tries < block_count && (blocks[i].freed || !blocks[i].served); tries++)
        i = (i + 1) % block_count;
    block *b = &blocks[i];
    if (block_count == 0 || b->freed || !b->served || (section.rows[b->row].discipline == TN_D_T2 && engine_waits()))
        return;
    tn_work_set set = {.count = 0};
    if (b->life.stream) {
        /* The replay knows no stack whose blocks another stream frees. */
        uint32_t stream = section.rows[b->row].discipline == TN_D_T4 || below(3) ? b->life.stream : 1 + (uint32_t)below(STREAMS);
        b->life.free_stream = stream;
        join_all(stream, b->life.stream); /* as a program must that frees it there */
        last[stream] = device_enqueue(stream);
        set.marks[set.count++] = last[stream];
    } else {
        for (uint32_t s = 1; s <= STREAMS; s++)
            if (last[s].sequence && !device_done(last[s]))
                set.marks[set.count++] = last[s];
    }
    for (size_t k = 0; k < set.count; k++)
        b->marks[b->mark_count++] = set.marks[k];
    b->life.freed = ++position;
    b->freed = 1;
    must(tn_place_give(place, b->row, b->address, b->life.stream, &set) == TN_MEM_OK, "a free was refused");
    tn_serve_give(replay, &b->life, i);
    note_clean();
}

static void step(void)
{
    uint64_t what = below(100);
    if (what < 45) {
        step_take();
    } else if (what < 82) {
        step_free();
    } else if (what < 90) {
        uint32_t stream = 1 + (uint32_t)below(STREAMS);
        last[stream] = device_enqueue(stream);
    } else if (what < 94) {
        finish(1 + (uint32_t)below(STREAMS));
    } else if (what < 95) {
        device_finish_all();
        note_clean();
    } else if (what < 99) {
        join_all(1 + (uint32_t)below(STREAMS), 1 + (uint32_t)below(STREAMS));
    } else {
        *phase() = (uint8_t)below(3);
    }
}

START_TEST(the_place_and_the_planners_replay_give_the_same_answers)
{
    uint64_t seed = fixture_seed((uint64_t)_i + 1);
    r.state = seed;
    block_count = position = 0;
    memset(last, 0, sizeof last);
    memset(joined, 0, sizeof joined);
    fixture_begin();
    random_plan();
    place_begin();
    replay = tn_serve_new(&section, LIVES);
    ck_assert_ptr_nonnull(replay);
    for (size_t i = 0; i < STEPS && block_count < LIVES; i++) {
        snprintf(step_text, sizeof step_text, "%s", fixture_seed_line(seed, i));
        step();
    }
    tn_serve_free(replay);
    fixture_end();
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("random");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, the_place_and_the_planners_replay_give_the_same_answers, 0, getenv("TENURE_SEED") ? 1 : SEEDS);
    return fixture_run("place_random", tests);
}
