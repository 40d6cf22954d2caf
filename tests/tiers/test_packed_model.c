/* The packed slots under random plans, beside two judges. A model of slots and sets works out anew what each take must answer, and where. A map
 * of bytes knows nothing of slots: of each it keeps whether it is handed out, and what work last used it on each queue; no take may
 * ever give out a byte that is handed out or that work may still use. A failure prints the seed; TENURE_SEED runs it again. */
#include <string.h>

#include "fixture.h"
#include "tick_device.h"

/* One queue fewer than a set has room for marks, so that the model's sets, which have room for all, are the same. */
enum { QUEUES = TN_WORK_SET_MARKS - 1, UNIT = 64, UNITS = 256, SLOTS = 200, STEPS = 3000 };

typedef enum status { FREE, LIVE, FREED } status;

typedef struct model_slot {
    status status;
    size_t bytes, first, end; /* units; of a live one what was asked for */
    unsigned holds;
    unsigned char fill;
    uint64_t queue;              /* where it may be used; 0: anywhere */
    uint64_t set[QUEUES + 1];    /* what may still use its bytes */
    uint64_t worked[QUEUES + 1]; /* its own work since it was taken */
} model_slot;

typedef struct model {
    tn_packed_slot table[SLOTS];
    tn_packed_plan plan;
    model_slot slots[SLOTS];
    int owner[UNITS]; /* -1: no slot's yet */
    bool handed_out[UNITS];
    uint64_t pending[UNITS][QUEUES + 1];
    uint64_t takes, must_waits, diverged, bad_frees;
} model;

static tn_host *host;
static tn_packed *packed;
static const char *where;

#define must(condition)                                              \
    do {                                                             \
        if (!(condition))                                            \
            ck_abort_msg("%s does not hold: %s", #condition, where); \
    } while (0)

/* Sites of one to three classes of one to four ordinals, anywhere, as long as the ordinals of a class lie apart. */
static void random_plan(model *m, random_state *random)
{
    size_t count = 0;
    uint32_t site = 0;
    while (count < SLOTS - 12) {
        size_t bytes = 0;
        for (uint32_t class = 0, classes = 1 + (uint32_t)random_below(random, 3); class < classes; class++) {
            uint64_t kind = random_below(random, 16);
            bytes += 1 + random_below(random, kind == 0 ? 200 * UNIT : kind < 4 ? 30 * UNIT : 4 * UNIT);
            size_t units = (bytes + UNIT - 1) / UNIT, ordinals = 1 + random_below(random, 4), at = random_below(random, UNITS - 8);
            at = units >= UNITS / 2 ? random_below(random, 8) : at;
            for (uint32_t o = 0; o < ordinals && at + units <= UNITS; o++) {
                m->table[count++] = (tn_packed_slot){
                    .site = site, .size_class = class, .ordinal = o, .offset = at * UNIT, .bytes = bytes, .alignment = UNIT};
                at += units + random_below(random, 24);
            }
        }
        site++;
    }
    m->plan = (tn_packed_plan){.slots = m->table, .slot_count = count, .site_count = site, .capacity = (size_t)UNITS * UNIT};
    for (size_t i = 0; i < count; i++)
        m->slots[i] = (model_slot){.first = m->table[i].offset / UNIT,
                                   .end = (m->table[i].offset + m->table[i].bytes + UNIT - 1) / UNIT};
    for (size_t u = 0; u < UNITS; u++)
        m->owner[u] = -1;
}

static bool may_follow(uint64_t q, uint64_t tick, uint64_t queue)
{
    tn_work_mark mark = {q, tick};
    return tick == 0 || device_done(mark) || (queue != TN_WORK_NO_QUEUE && device_ordered(mark, queue));
}

static bool ready(const uint64_t *ticks, uint64_t queue)
{
    for (uint64_t q = 1; q <= QUEUES; q++)
        if (!may_follow(q, ticks[q], queue))
            return false;
    return true;
}

typedef enum answer { ALIVE, IN_THE_WAY, WAITS, TAKEN } answer; /* by rising weight */

static answer judge(const model *m, size_t slot, uint64_t queue)
{
    const model_slot *s = &m->slots[slot];
    if (s->status == LIVE)
        return ALIVE;
    bool clean = ready(s->set, queue);
    for (size_t u = s->first; s->status == FREE && u < s->end; u++) {
        const model_slot *other = m->owner[u] >= 0 ? &m->slots[m->owner[u]] : s;
        if (other->status == LIVE || (other != s && other->holds > 0))
            return IN_THE_WAY;
        clean = clean && ready(other->set, queue);
    }
    return clean ? TAKEN : WAITS;
}

static void hand_out(model *m, size_t slot, size_t bytes, uint64_t queue, unsigned char fill)
{
    model_slot *s = &m->slots[slot];
    for (size_t u = s->first; s->status == FREE && u < s->end; u++) {
        model_slot *other = m->owner[u] >= 0 ? &m->slots[m->owner[u]] : s;
        if (other != s)
            other->status = FREE;
        for (uint64_t q = 1; q <= QUEUES; q++)
            s->set[q] = other->set[q] > s->set[q] ? other->set[q] : s->set[q];
        m->owner[u] = (int)slot;
    }
    s->status = LIVE;
    s->bytes = bytes;
    s->queue = queue;
    s->fill = fill;
    memset(s->worked, 0, sizeof s->worked);
    m->takes++;
}

/* The judge that knows bytes alone. */
static void check_bytes(model *m, size_t offset, size_t bytes, uint64_t queue)
{
    for (size_t u = offset / UNIT; u < (offset + bytes + UNIT - 1) / UNIT; u++) {
        must(!m->handed_out[u]);
        must(ready(m->pending[u], queue));
        m->handed_out[u] = true;
    }
}

static void check_take(model *m, uint32_t site, size_t bytes, uint64_t queue, unsigned char fill)
{
    answer best = ALIVE;
    size_t chosen = 0, class = SIZE_MAX;
    for (size_t i = 0; i < m->plan.slot_count && best != TAKEN; i++) {
        if (m->table[i].site != site || m->table[i].bytes < bytes || (class != SIZE_MAX && m->table[i].size_class != class))
            continue;
        class = m->table[i].size_class;
        answer got = judge(m, i, queue);
        chosen = got > best ? i : chosen;
        best = got > best ? got : best;
    }
    tn_stable_span span;
    tn_packed_refusal why;
    tn_mem_error error = tn_packed_take(packed, site, bytes, queue, &span, &why);
    if (best != TAKEN) {
        must(error == (best == WAITS ? TN_MEM_E_MUST_WAIT : TN_MEM_E_DIVERGED));
        must(tn_stable_data(span) == NULL && why.site == site && why.bytes == bytes);
        must((why.wait_for.count > 0) == (best == WAITS));
        if (class == SIZE_MAX)
            must(why.cause == TN_PACKED_NO_CLASS && why.slot == TN_PACKED_NO_SLOT);
        else if (best == ALIVE)
            must(why.cause == TN_PACKED_ALL_ALIVE && m->slots[why.slot].status == LIVE && why.slot_site == site);
        else if (best == IN_THE_WAY)
            must(m->slots[why.slot].status == LIVE ? why.cause == TN_PACKED_IN_THE_WAY : why.cause == TN_PACKED_HELD);
        m->must_waits += best == WAITS;
        m->diverged += best != WAITS;
        return;
    }
    must(error == TN_MEM_OK && tn_stable_bytes(span) == bytes);
    size_t offset = (size_t)((char *)tn_stable_data(span) - (char *)tn_packed_region(packed).data);
    check_bytes(m, offset, bytes, queue);
    must(offset == m->table[chosen].offset);
    hand_out(m, chosen, bytes, queue, fill);
    memset(tn_stable_data(span), fill, bytes);
}

static unsigned char *data_of(const model *m, size_t slot)
{
    return (unsigned char *)tn_packed_region(packed).data + m->table[slot].offset;
}

static void do_work(model *m, size_t slot, uint64_t queue)
{
    model_slot *s = &m->slots[slot];
    queue = s->queue != TN_WORK_NO_QUEUE ? s->queue : queue;
    s->worked[queue] = device_enqueue(queue).sequence;
    for (size_t u = s->first; u < s->first + (s->bytes + UNIT - 1) / UNIT; u++)
        m->pending[u][queue] = s->worked[queue];
}

static void check_free(model *m, size_t slot)
{
    model_slot *s = &m->slots[slot];
    for (size_t i = 0; i < s->bytes; i++)
        must(data_of(m, slot)[i] == s->fill);
    tn_work_set uncovered = {.count = 0};
    for (uint64_t q = 1; q <= QUEUES; q++) {
        if (s->worked[q] == 0 || device_done((tn_work_mark){q, s->worked[q]}))
            continue;
        uncovered.marks[uncovered.count++] = (tn_work_mark){q, s->worked[q]};
        s->set[q] = s->worked[q];
    }
    must(tn_packed_free(packed, data_of(m, slot), uncovered.count > 0 ? &uncovered : NULL) == TN_MEM_OK);
    s->status = FREED;
    for (size_t u = s->first; u < s->end; u++)
        m->handed_out[u] = false;
}

static void check_bad_free(model *m, size_t slot)
{
    for (size_t i = 0; i < m->plan.slot_count; i++)
        if (m->slots[i].status == LIVE && m->slots[i].first == m->slots[slot].first)
            return;
    must(tn_packed_free(packed, data_of(m, slot), NULL) == TN_MEM_E_STALE);
    must(tn_packed_free(packed, data_of(m, slot) + 1, NULL) == TN_MEM_E_ARGUMENT);
    m->bad_frees += 2;
}

static void check_hold(model *m, size_t slot, bool up)
{
    model_slot *s = &m->slots[slot];
    if (m->owner[s->first] != (int)slot)
        return; /* the hold would be another's */
    tn_mem_error error = up ? tn_packed_hold(packed, data_of(m, slot)) : tn_packed_release_hold(packed, data_of(m, slot));
    bool can = s->status != FREE && (up || s->holds > 0);
    must(error == (can ? TN_MEM_OK : TN_MEM_E_STALE));
    s->holds += can ? (up ? 1 : -1u) : 0;
}

static void check_figures(const model *m)
{
    tn_packed_stats stats;
    tn_packed_read_stats(packed, &stats);
    size_t live = 0, bytes = 0, freed = 0, held = 0;
    for (size_t i = 0; i < m->plan.slot_count; i++) {
        live += m->slots[i].status == LIVE;
        bytes += m->slots[i].status == LIVE ? m->slots[i].bytes : 0;
        freed += m->slots[i].status == FREED;
        held += m->slots[i].holds > 0;
    }
    must(stats.live_blocks == live && stats.live_bytes == bytes);
    must(stats.freed_blocks == freed && stats.held_blocks == held);
    must(stats.takes == m->takes && stats.must_waits == m->must_waits && stats.diverged == m->diverged);
    must(stats.bad_frees == m->bad_frees);
    must(stats.races == 0);
}

static void step(model *m, random_state *random, size_t number)
{
    uint64_t what = random_below(random, 1000), queue = 1 + random_below(random, QUEUES);
    size_t slot = random_below(random, m->plan.slot_count);
    model_slot *s = &m->slots[slot];
    if (what < 400)
        check_take(m, m->table[slot].site, m->table[slot].bytes - random_below(random, m->table[slot].bytes),
                   what % 2 == 0 ? queue : TN_WORK_NO_QUEUE, (unsigned char)(1 + number % 200));
    else if (what < 410)
        check_take(m, (uint32_t)random_below(random, m->plan.site_count + 2), 1 + random_below(random, UNITS * UNIT), queue, 1);
    else if (what < 600 && s->status == LIVE)
        do_work(m, slot, queue);
    else if (what < 920 && s->status == LIVE)
        check_free(m, slot);
    else if (what < 920)
        check_bad_free(m, slot);
    else if (what < 935)
        check_hold(m, slot, true);
    else if (what < 960)
        check_hold(m, slot, false);
    else if (what < 975)
        device_finish(queue);
    else if (what < 980)
        device_finish_all();
    else
        device_join(queue, 1 + random_below(random, QUEUES));
}

static void random_life(uint64_t seed)
{
    random_state random = {seed};
    model *m = calloc(1, sizeof *m);
    where = fixture_seed_line(seed, 0);
    random_plan(m, &random);
    host = fixture_host(&(tn_host_options){.quarantine = MIB});
    expect_ok(tn_packed_create(
        &(tn_packed_options){.backend = tn_host_backend(host), .tag = "packed", .plan = &m->plan, .work = device_begin()}, &packed));
    for (size_t i = 0; i < STEPS; i++) {
        where = fixture_seed_line(seed, i);
        step(m, &random, i);
        check_figures(m);
    }
    /* A life in which nothing was refused, or nothing served, would show little. */
    must(m->takes > STEPS / 50 && m->must_waits > 0 && m->diverged > STEPS / 200);
    ck_assert_uint_eq(tn_host_journal_length(host), 1);
    expect_ok(tn_packed_destroy(&packed));
    fixture_finish(host);
    free(m);
}

START_TEST(random_plans_agree_with_the_model_and_no_byte_is_given_out_early)
{
    random_life(fixture_seed(0x9AC4ED01 + (uint64_t)_i));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("packed_model");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, random_plans_agree_with_the_model_and_no_byte_is_given_out_early, 0, 40);
    return fixture_run("packed_model", tests);
}
