/* Threads that take and free packed slots which share addresses: no two ever hold the same byte, nobody gets a block whose work is not done,
 * and threads with bytes of their own never meet. A failure prints the seed. */
#include <pthread.h>
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

enum { THREADS = 4, SITES = 64, ORDINALS = 2, UNIT = 64, UNITS = 512, KEEPS = 8, LIVES = 300 };

#ifdef __SANITIZE_THREAD__
#define ROUNDS 6000 /* each step is a hundred times slower */
#else
#define ROUNDS 40000
#endif

enum layout { ANYWHERE, APART, WHOLE_BLOCKS };

static tn_host *host;
static tn_packed *packed;
static tn_packed_slot slots[SITES * ORDINALS];
static uint32_t holders[UNITS]; /* how many threads have a block with that unit */
static uint64_t pending[UNITS]; /* the last work on it: queue in the low 8 bits, tick above */
static uint64_t takes, refusals, waits;
static size_t rounds;

typedef struct held {
    char *data;
    size_t bytes;
    unsigned char fill;
} held;

typedef struct worker {
    pthread_t thread;
    uint64_t seed;
    unsigned number;
    bool apart; /* keeps to the sites of its number */
    const char *failure;
} worker;

#define claim(condition)                                         \
    do {                                                         \
        if (!(condition) && w->failure == NULL)                  \
            w->failure = #condition;                             \
    } while (0)

static size_t unit_of(const char *data)
{
    return (size_t)(data - (char *)tn_packed_region(packed).data) / UNIT;
}

static void begin_holding(worker *w, held *h, uint64_t queue)
{
    for (size_t u = unit_of(h->data); u <= unit_of(h->data + h->bytes - 1); u++) {
        claim(__atomic_fetch_add(&holders[u], 1, __ATOMIC_SEQ_CST) == 0);
        uint64_t last = __atomic_load_n(&pending[u], __ATOMIC_SEQ_CST);
        tn_work_mark mark = {last & 0xFF, last >> 8};
        claim(last == 0 || device_done(mark) || device_ordered(mark, queue));
    }
    memset(h->data, h->fill, h->bytes);
    void *base;
    size_t bytes;
    claim(tn_packed_find(packed, h->data + (uintptr_t)queue * 37 % h->bytes, &base, &bytes) == TN_MEM_OK);
    claim(base == h->data && bytes == h->bytes);
}

static void end_holding(worker *w, held *h, uint64_t queue, bool in_flight)
{
    for (size_t i = 0; i < h->bytes; i++)
        claim((unsigned char)h->data[i] == h->fill);
    tn_work_mark mark = in_flight ? device_enqueue(queue) : (tn_work_mark){0};
    tn_work_set set = device_set(mark);
    for (size_t u = unit_of(h->data); u <= unit_of(h->data + h->bytes - 1); u++) {
        if (in_flight)
            __atomic_store_n(&pending[u], mark.sequence << 8 | queue, __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(&holders[u], 1, __ATOMIC_SEQ_CST);
    }
    claim(tn_packed_free(packed, h->data, &set) == TN_MEM_OK);
    h->data = NULL;
}

/* True where the block is there, at once or after a wait. */
static bool get(worker *w, random_state *random, held *h, uint64_t queue)
{
    uint32_t site = (uint32_t)random_below(random, SITES);
    if (w->apart)
        site = site / THREADS * THREADS + w->number;
    size_t most = slots[site * ORDINALS].bytes;
    tn_stable_span span;
    tn_packed_refusal why;
    size_t bytes = most - random_below(random, most / 2 + 1);
    tn_mem_error error = tn_packed_take(packed, site, bytes, queue, &span, &why);
    if (error == TN_MEM_E_MUST_WAIT) {
        claim(why.wait_for.count > 0);
        device_finish_all();
        __atomic_fetch_add(&waits, 1, __ATOMIC_RELAXED);
        error = tn_packed_take(packed, site, bytes, queue, &span, &why);
    }
    claim(error == TN_MEM_OK || error == TN_MEM_E_DIVERGED || error == TN_MEM_E_MUST_WAIT);
    *h = (held){.data = tn_stable_data(span), .bytes = bytes, .fill = (unsigned char)(1 + random_below(random, 250))};
    return error == TN_MEM_OK;
}

static void *run(void *argument)
{
    worker *w = argument;
    random_state random = {w->seed};
    held keeps[KEEPS] = {{0}};
    uint64_t queue = 1 + w->number;
    for (size_t i = 0; i < rounds && w->failure == NULL; i++) {
        held *h = &keeps[random_below(&random, KEEPS)];
        if (h->data != NULL) {
            end_holding(w, h, queue, random_below(&random, 2) == 0);
        } else if (get(w, &random, h, random_below(&random, 2) == 0 ? queue : TN_WORK_NO_QUEUE)) {
            begin_holding(w, h, queue);
            __atomic_fetch_add(&takes, 1, __ATOMIC_RELAXED);
        } else {
            h->data = NULL;
            __atomic_fetch_add(&refusals, 1, __ATOMIC_RELAXED);
        }
        if (i % 64 == 0)
            device_finish(queue);
    }
    for (size_t i = 0; i < KEEPS; i++)
        if (keeps[i].data != NULL)
            end_holding(w, &keeps[i], queue, false);
    return NULL;
}

/* Anywhere in the whole region, or in the quarter of the thread that the site is of, or some so large that they have blocks of cells. */
static void place_slots(random_state *random, enum layout layout)
{
    for (uint32_t site = 0; site < SITES; site++) {
        size_t units = 1 + random_below(random, 24), room = layout == APART ? UNITS / THREADS : UNITS;
        size_t from = layout == APART ? site % THREADS * room : 0;
        if (layout == WHOLE_BLOCKS && site % 8 == 0)
            units = 120 + random_below(random, 60);
        size_t at = from + random_below(random, room - 2 * units - 16);
        for (uint32_t o = 0; o < ORDINALS; o++) {
            slots[site * ORDINALS + o] = (tn_packed_slot){
                .site = site, .ordinal = o, .offset = at * UNIT, .bytes = units * UNIT, .alignment = UNIT};
            at += units + random_below(random, 16);
        }
    }
}

static void begin_life(random_state *random, enum layout layout)
{
    static tn_packed_plan plan;
    plan = (tn_packed_plan){.slots = slots, .slot_count = SITES * ORDINALS, .site_count = SITES, .capacity = (size_t)UNITS * UNIT};
    place_slots(random, layout);
    memset(pending, 0, sizeof pending);
    host = fixture_host(&(tn_host_options){0});
    expect_ok(tn_packed_create(
        &(tn_packed_options){.backend = tn_host_backend(host), .tag = "packed", .plan = &plan, .work = device_begin()}, &packed));
}

static bool looks;

/* Looks at any bytes while others take and free them: what it is told is a block that the plan has. */
static void *look(void *argument)
{
    worker *w = argument;
    random_state random = {w->seed};
    tn_device_span region = tn_packed_region(packed);
    while (__atomic_load_n(&looks, __ATOMIC_RELAXED)) {
        size_t at = random_below(&random, region.bytes), bytes = 0, slot = 0;
        void *base = NULL;
        tn_mem_error error = tn_packed_find(packed, (char *)region.data + at, &base, &bytes);
        claim(error == TN_MEM_OK || error == TN_MEM_E_STALE);
        if (error != TN_MEM_OK)
            continue;
        size_t offset = (size_t)((char *)base - (char *)region.data);
        claim(offset <= at && at < offset + bytes);
        while (slot < SITES * ORDINALS && (slots[slot].offset != offset || bytes > slots[slot].bytes || bytes * 2 < slots[slot].bytes))
            slot++;
        claim(slot < SITES * ORDINALS);
    }
    return NULL;
}

static void run_threads(random_state *random, uint64_t seed, enum layout layout)
{
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] = (worker){.seed = random_next(random), .number = i, .apart = layout == APART};
        ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, run, &workers[i]), 0);
    }
    worker looker = {.seed = random_next(random)};
    looks = true;
    ck_assert_int_eq(pthread_create(&looker.thread, NULL, look, &looker), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_msg(workers[i].failure == NULL, "%s does not hold: %s", workers[i].failure, fixture_seed_line(seed, 0));
    }
    __atomic_store_n(&looks, false, __ATOMIC_RELAXED);
    pthread_join(looker.thread, NULL);
    ck_assert_msg(looker.failure == NULL, "%s does not hold: %s", looker.failure, fixture_seed_line(seed, 0));
}

static void end_life(void)
{
    /* Nothing is left claimed: every slot can be had by itself. */
    device_finish_all();
    for (uint32_t site = 0; site < SITES; site++) {
        tn_stable_span span;
        expect_ok(tn_packed_take(packed, site, 1, TN_WORK_NO_QUEUE, &span, NULL));
        expect_ok(tn_packed_free(packed, tn_stable_data(span), NULL));
    }
    expect_ok(tn_packed_destroy(&packed));
    fixture_finish(host);
}

static void stress(uint64_t seed, enum layout layout)
{
    random_state random = {seed};
    begin_life(&random, layout);
    rounds = ROUNDS;
    run_threads(&random, seed, layout);
    tn_packed_stats stats;
    tn_packed_read_stats(packed, &stats);
    ck_assert_uint_eq(stats.live_blocks, 0);
    ck_assert_uint_eq(stats.takes, takes);
    ck_assert_uint_eq(stats.bad_frees, 0);
    if (layout == APART)
        ck_assert_uint_eq(stats.races, 0);
    ck_assert_uint_gt(takes, rounds / 20);
    ck_assert_uint_gt(waits, 0);
    end_life();
}

START_TEST(no_byte_is_held_twice_where_threads_want_the_same)
{
    stress(fixture_seed(0x9AC47401 + (uint64_t)_i), ANYWHERE);
    ck_assert_uint_gt(refusals, 0);
}
END_TEST

START_TEST(no_byte_is_held_twice_where_slots_have_whole_blocks_of_cells)
{
    stress(fixture_seed(0x9AC47601 + (uint64_t)_i), WHOLE_BLOCKS);
    ck_assert_uint_gt(refusals, 0);
}
END_TEST

START_TEST(threads_with_bytes_of_their_own_do_not_disturb_each_other)
{
    stress(fixture_seed(0x9AC47501 + (uint64_t)_i), APART);
}
END_TEST

/* Bytes that nobody ever had pass on by another way than those that somebody has. */
START_TEST(no_byte_is_held_twice_when_it_is_first_taken)
{
    uint64_t seed = fixture_seed(0x9AC47701);
    random_state random = {seed};
    for (int life = 0; life < LIVES; life++) {
        begin_life(&random, ANYWHERE);
        rounds = 40;
        run_threads(&random, seed, ANYWHERE);
        end_life();
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("packed_threads");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, no_byte_is_held_twice_where_threads_want_the_same, 0, 3);
    tcase_add_loop_test(tests, no_byte_is_held_twice_where_slots_have_whole_blocks_of_cells, 0, 3);
    tcase_add_loop_test(tests, threads_with_bytes_of_their_own_do_not_disturb_each_other, 0, 2);
    tcase_add_test(tests, no_byte_is_held_twice_when_it_is_first_taken);
    return fixture_run("packed_threads", tests);
}
