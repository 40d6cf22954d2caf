/* Classes of many slots, where an index says what keeps them: each take answers what looking at every slot answers, in few steps, and no freed slot
 * is ever forgotten. A failure prints the seed; TENURE_SEED runs it again. */
#include <pthread.h>
#include <string.h>

#include "fixture.h"
#include "tiers/packed_state.h"

enum { QUEUES = 100, ALL = 1000, UNIT = 64, MANY = 12000, STEPS = 12000 };

#ifdef __SANITIZE_THREAD__
enum { SEEDS = 2, ROUNDS = 8000 }; /* each step is many times slower */
#else
enum { SEEDS = 10, ROUNDS = 30000 };
#endif

/* A device whose marks are ticks of one counter. */
static uint64_t now, enqueued[QUEUES + 1], finished[QUEUES + 1], joined[QUEUES + 1][QUEUES + 1];

static void device_reset(void)
{
    now = 1;
    memset(enqueued, 0, sizeof enqueued);
    memset(finished, 0, sizeof finished);
    memset(joined, 0, sizeof joined);
}

static tn_work_mark enqueue(uint64_t queue)
{
    if (enqueued[queue] <= finished[queue])
        __atomic_store_n(&finished[queue], now, __ATOMIC_RELAXED); /* it was idle until now */
    return (tn_work_mark){queue, enqueued[queue] = ++now};
}

static bool done(void *self, tn_work_mark mark)
{
    (void)self;
    bool is = true;
    for (uint64_t q = 1; mark.queue == ALL && q <= QUEUES; q++)
        is = is && (finished[q] >= mark.sequence || finished[q] >= enqueued[q]);
    return mark.queue == ALL ? is : __atomic_load_n(&finished[mark.queue], __ATOMIC_RELAXED) >= mark.sequence;
}

static bool ordered(void *self, tn_work_mark mark, uint64_t queue)
{
    (void)self;
    return mark.queue != ALL && (mark.queue == queue || joined[queue][mark.queue] >= mark.sequence);
}

static tn_work_mark all(void *self)
{
    (void)self;
    return (tn_work_mark){ALL, now};
}

static const tn_work_table table = {.done = done, .ordered = ordered, .all = all};

static tn_host *host;
static const char *where;

#define must(condition)                                              \
    do {                                                             \
        if (!(condition))                                            \
            ck_abort_msg("%s does not hold: %s", #condition, where); \
    } while (0)

static tn_packed *make(const tn_packed_slot *slots, size_t count, uint32_t sites, size_t capacity)
{
    tn_packed *packed;
    const tn_packed_plan plan = {.slots = slots, .slot_count = count, .site_count = sites, .capacity = capacity};
    expect_ok(tn_packed_create(&(tn_packed_options){.backend = tn_host_backend(host), .tag = "packed", .plan = &plan, .work = {&table, NULL}}, &packed));
    return packed;
}

static size_t offset_of(const tn_packed *packed, const void *address)
{
    return (size_t)((const char *)address - (const char *)tn_packed_region(packed).data);
}

/* ---- the same answers */

enum { FINE = 300, COARSE = 100, WIDE = 3, SLOTS = FINE + COARSE + WIDE };

/* Sites of many small slots, of fewer that lie each over three of these, and of some over a third of all. */
static void three_sites(tn_packed_slot *slots)
{
    for (uint32_t i = 0; i < FINE; i++)
        slots[i] = (tn_packed_slot){.ordinal = i, .offset = (size_t)i * UNIT, .bytes = UNIT, .alignment = UNIT};
    for (uint32_t i = 0; i < COARSE; i++)
        slots[FINE + i] = (tn_packed_slot){.site = 1, .ordinal = i, .offset = (size_t)i * 3 * UNIT, .bytes = 3 * UNIT, .alignment = UNIT};
    for (uint32_t i = 0; i < WIDE; i++)
        slots[FINE + COARSE + i] = (tn_packed_slot){.site = 2, .ordinal = i, .offset = (size_t)i * 100 * UNIT, .bytes = 100 * UNIT, .alignment = UNIT};
}

typedef struct twins {
    tn_packed *quick, *plain;
    random_state random;
    uint64_t queues; /* that have work */
    size_t live[SLOTS], live_count; /* offsets */
    size_t takes, waits, in_the_way, all_alive;
} twins;

static void take_both(twins *t)
{
    uint32_t site = random_below(&t->random, 8) > 0 ? (uint32_t)random_below(&t->random, 2) : 2;
    size_t bytes = 1 + random_below(&t->random, UNIT);
    uint64_t queue = random_below(&t->random, 3) == 0 ? TN_WORK_NO_QUEUE : 1 + random_below(&t->random, t->queues);
    tn_stable_span quick, plain;
    tn_packed_refusal why, plain_why;
    tn_mem_error error = tn_packed_take(t->quick, site, bytes, queue, &quick, &why);
    must(error == tn_packed_take(t->plain, site, bytes, queue, &plain, &plain_why));
    if (error == TN_MEM_OK) {
        size_t offset = offset_of(t->quick, tn_stable_data(quick));
        must(offset == offset_of(t->plain, tn_stable_data(plain)));
        t->live[t->live_count++] = offset;
        t->takes++;
        return;
    }
    must(why.cause == plain_why.cause && (why.wait_for.count > 0) == (plain_why.wait_for.count > 0));
    must(t->quick->slots[why.slot].site == why.slot_site);
    t->waits += error == TN_MEM_E_MUST_WAIT;
    t->in_the_way += why.cause == TN_PACKED_IN_THE_WAY || why.cause == TN_PACKED_HELD;
    t->all_alive += why.cause == TN_PACKED_ALL_ALIVE;
    if (error == TN_MEM_E_MUST_WAIT && random_below(&t->random, 4) == 0) {
        /* What it says is to be waited for is enough. */
        for (size_t i = 0; i < why.wait_for.count; i++)
            for (uint64_t q = 1; q <= QUEUES; q++)
                if (why.wait_for.marks[i].queue == ALL || why.wait_for.marks[i].queue == q)
                    finished[q] = now;
        must(tn_packed_take(t->quick, site, bytes, queue, &quick, NULL) == TN_MEM_OK);
        must(tn_packed_take(t->plain, site, bytes, queue, &plain, NULL) == TN_MEM_OK);
        must(offset_of(t->quick, tn_stable_data(quick)) == offset_of(t->plain, tn_stable_data(plain)));
        t->live[t->live_count++] = offset_of(t->quick, tn_stable_data(quick));
    }
}

static void free_both(twins *t)
{
    size_t at = random_below(&t->random, t->live_count), offset = t->live[at];
    tn_work_set set = {.count = 0};
    for (uint64_t n = random_below(&t->random, 4); n > 0; n--)
        set.marks[set.count++] = enqueue(n == 1 ? 1 + random_below(&t->random, t->queues) : 1);
    set.count = set.count > 1 && set.marks[0].queue == set.marks[1].queue ? 1 : set.count;
    must(tn_packed_free(t->quick, (char *)tn_packed_region(t->quick).data + offset, &set) == TN_MEM_OK);
    must(tn_packed_free(t->plain, (char *)tn_packed_region(t->plain).data + offset, &set) == TN_MEM_OK);
    t->live[at] = t->live[--t->live_count];
}

static void hold_both(twins *t, bool up)
{
    size_t offset = random_below(&t->random, FINE) * UNIT;
    void *quick = (char *)tn_packed_region(t->quick).data + offset, *plain = (char *)tn_packed_region(t->plain).data + offset;
    must((up ? tn_packed_hold(t->quick, quick) : tn_packed_release_hold(t->quick, quick)) ==
         (up ? tn_packed_hold(t->plain, plain) : tn_packed_release_hold(t->plain, plain)));
}

/* Now more is taken, now more freed. */
static void step_both(twins *t, size_t number)
{
    uint64_t what = random_below(&t->random, 1000), q = 1 + random_below(&t->random, t->queues), takes = number / 700 % 2 == 0 ? 640 : 300;
    if (what < takes)
        take_both(t);
    else if (what < 960)
        t->live_count > 0 ? free_both(t) : (void)0;
    else if (what < 970)
        hold_both(t, true);
    else if (what < 985)
        hold_both(t, false);
    else if (what < 992)
        finished[q] = finished[q] < enqueued[q] ? finished[q] + random_below(&t->random, now - finished[q] + 1) : finished[q];
    else if (what < 994)
        for (q = 1; q <= QUEUES; q++)
            finished[q] = now;
    else
        joined[q][1 + random_below(&t->random, t->queues)] = now;
}

static void same_answers(uint64_t seed, uint64_t queues)
{
    static tn_packed_slot slots[SLOTS];
    twins t = {.random = {seed}, .queues = queues};
    device_reset();
    three_sites(slots);
    host = fixture_host(&(tn_host_options){.quarantine = MIB});
    t.quick = make(slots, SLOTS, 3, FINE * UNIT);
    t.plain = make(slots, SLOTS, 3, FINE * UNIT);
    for (size_t i = 0; i < t.plain->class_count; i++)
        t.plain->classes[i].index = NULL;
    for (size_t i = 0; i < STEPS; i++) {
        where = fixture_seed_line(seed, i);
        step_both(&t, i);
    }
    must(t.takes > 1000 && t.waits > 50 && t.in_the_way > 10);
    must(t.quick->classes[0].index->used && t.quick->classes[1].index->used);
    expect_ok(tn_packed_destroy(&t.quick));
    expect_ok(tn_packed_destroy(&t.plain));
    fixture_finish(host);
}

START_TEST(an_index_answers_what_every_slot_looked_at_answers)
{
    same_answers(fixture_seed(0x1DE0001 + (uint64_t)_i), 4);
}
END_TEST

START_TEST(an_index_answers_the_same_with_more_queues_than_it_has_places_for)
{
    same_answers(fixture_seed(0x1DE1001 + (uint64_t)_i), QUEUES);
}
END_TEST

/* ---- in few steps */

typedef struct bill {
    tn_packed *packed;
    uint64_t looks, most, sum, calls;
} bill;

static tn_mem_error take(bill *b, uint32_t site, uint64_t queue, void **address)
{
    tn_stable_span span;
    tn_mem_error error = tn_packed_take(b->packed, site, UNIT, queue, &span, NULL);
    *address = tn_stable_data(span);
    uint64_t so_far = b->packed->looks + b->packed->classes[0].index->steps, looks = so_far - b->looks; /* what stats would add up */
    b->looks = so_far;
    b->most = looks > b->most ? looks : b->most;
    b->sum += looks;
    b->calls++;
    return error;
}

static bill begin_many(void)
{
    static tn_packed_slot slots[MANY + 1];
    for (uint32_t i = 0; i < MANY; i++)
        slots[i] = (tn_packed_slot){.ordinal = i, .offset = (size_t)i * UNIT, .bytes = UNIT, .alignment = UNIT};
    slots[MANY] = (tn_packed_slot){.site = 1, .bytes = (size_t)MANY * UNIT, .alignment = UNIT};
    device_reset();
    host = fixture_host(&(tn_host_options){0});
    return (bill){.packed = make(slots, MANY + 1, 2, (size_t)MANY * UNIT)};
}

/* One in 64 takes reads 64 slots anew; each level has 64 groups. */
static void end_many(bill *b)
{
    if (b->sum > 100 * b->calls || b->most > 800)
        ck_abort_msg("%.1f looks a take, the most %llu", (double)b->sum / (double)b->calls, (unsigned long long)b->most);
    expect_ok(tn_packed_destroy(&b->packed));
    fixture_finish(host);
}

/* A run that never waits: each block is given back with work, and what all slots are kept by is waited for once they are used up. */
static void never_waits(uint64_t queues)
{
    bill b = begin_many();
    size_t waits = 0;
    for (uint64_t i = 0; i < 4 * (uint64_t)MANY; i++) {
        void *block;
        while (take(&b, 0, QUEUES, &block) == TN_MEM_E_MUST_WAIT) {
            waits++;
            for (uint64_t q = 1; q <= QUEUES; q++)
                finished[q] = now;
        }
        const tn_work_set set = {.marks = {enqueue(1 + i % queues)}, .count = 1};
        expect_ok(tn_packed_free(b.packed, block, &set));
    }
    ck_assert_uint_eq(waits, 3);
    end_many(&b);
}

START_TEST(a_take_looks_at_few_of_twelve_thousand_slots_that_work_keeps)
{
    never_waits(1);
}
END_TEST

START_TEST(a_take_looks_at_few_of_twelve_thousand_slots_that_fifty_queues_keep)
{
    never_waits(50);
}
END_TEST

START_TEST(a_take_that_is_refused_looks_at_few)
{
    bill b = begin_many();
    static void *blocks[MANY];
    void *none;
    tn_stable_span wide;
    for (size_t i = 0; i < MANY; i++)
        expect_ok(take(&b, 0, TN_WORK_NO_QUEUE, &blocks[i]));
    ck_assert_int_eq(take(&b, 0, TN_WORK_NO_QUEUE, &none), TN_MEM_E_DIVERGED);
    b.most = 0; /* that looked at all of them once */
    for (size_t i = 0; i < 100; i++)
        ck_assert_int_eq(take(&b, 0, TN_WORK_NO_QUEUE, &none), TN_MEM_E_DIVERGED);
    for (size_t i = 0; i < MANY; i++)
        expect_ok(tn_packed_free(b.packed, blocks[i], NULL));
    expect_ok(tn_packed_take(b.packed, 1, (size_t)MANY * UNIT, TN_WORK_NO_QUEUE, &wide, NULL));
    ck_assert_int_eq(take(&b, 0, TN_WORK_NO_QUEUE, &none), TN_MEM_E_DIVERGED);
    b.most = 0; /* that looked at all of them once */
    for (size_t i = 0; i < 100; i++)
        ck_assert_int_eq(take(&b, 0, TN_WORK_NO_QUEUE, &none), TN_MEM_E_DIVERGED);
    expect_ok(tn_packed_free(b.packed, tn_stable_data(wide), NULL));
    expect_ok(take(&b, 0, TN_WORK_NO_QUEUE, &none));
    end_many(&b);
}
END_TEST

/* ---- and with several threads */

enum { THREADS = 4, SHARED = 200, KEEPS = 30 };

static tn_packed *shared;
static uint32_t holders[SHARED];
static uint32_t broken;

static void *worker(void *given)
{
    random_state random = {(uint64_t)(uintptr_t)given};
    uint64_t queue = 1 + (uint64_t)(uintptr_t)given % THREADS;
    char *kept[KEEPS] = {0};
    for (size_t i = 0; i < ROUNDS + KEEPS; i++) {
        char **at = &kept[i < ROUNDS ? random_below(&random, KEEPS) : i - ROUNDS];
        if (*at != NULL) {
            /* The tick of a mark is its thread's alone. */
            tn_work_set set = {.marks = {{queue, i + 1}}, .count = random_below(&random, 3) > 0};
            __atomic_fetch_sub(&holders[offset_of(shared, *at) / UNIT], 1, __ATOMIC_SEQ_CST);
            if (tn_packed_free(shared, *at, &set) != TN_MEM_OK)
                __atomic_store_n(&broken, 1, __ATOMIC_SEQ_CST);
            *at = NULL;
        } else if (i < ROUNDS) {
            tn_stable_span span;
            if (tn_packed_take(shared, 0, UNIT, random_below(&random, 4) == 0 ? queue : TN_WORK_NO_QUEUE, &span, NULL) == TN_MEM_OK) {
                *at = tn_stable_data(span);
                if (__atomic_fetch_add(&holders[offset_of(shared, *at) / UNIT], 1, __ATOMIC_SEQ_CST) != 0)
                    __atomic_store_n(&broken, 2, __ATOMIC_SEQ_CST);
            }
        }
        if (i % 64 == 0)
            __atomic_store_n(&finished[queue], i, __ATOMIC_RELAXED);
    }
    return NULL;
}

START_TEST(no_slot_is_forgotten_or_given_out_twice_where_threads_want_the_same_class)
{
    static tn_packed_slot slots[SHARED];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < SHARED; i++)
        slots[i] = (tn_packed_slot){.ordinal = i, .offset = (size_t)i * UNIT, .bytes = UNIT, .alignment = UNIT};
    device_reset();
    host = fixture_host(&(tn_host_options){0});
    shared = make(slots, SHARED, 1, SHARED * UNIT);
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, worker, (void *)(fixture_seed(77) * THREADS + (uintptr_t)_i * 64 + i)), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(broken, 0);
    for (uint64_t q = 1; q <= QUEUES; q++)
        finished[q] = UINT64_MAX;
    tn_stable_span span;
    for (size_t i = 0; i < SHARED; i++)
        expect_ok(tn_packed_take(shared, 0, UNIT, TN_WORK_NO_QUEUE, &span, NULL));
    ck_assert_int_eq(tn_packed_take(shared, 0, UNIT, TN_WORK_NO_QUEUE, &span, NULL), TN_MEM_E_DIVERGED);
    expect_ok(tn_packed_destroy(&shared));
    fixture_finish(host);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("packed_index");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, an_index_answers_what_every_slot_looked_at_answers, 0, 2 * SEEDS);
    tcase_add_loop_test(tests, an_index_answers_the_same_with_more_queues_than_it_has_places_for, 0, SEEDS);
    tcase_add_test(tests, a_take_looks_at_few_of_twelve_thousand_slots_that_work_keeps);
    tcase_add_test(tests, a_take_looks_at_few_of_twelve_thousand_slots_that_fifty_queues_keep);
    tcase_add_test(tests, a_take_that_is_refused_looks_at_few);
    tcase_add_loop_test(tests, no_slot_is_forgotten_or_given_out_twice_where_threads_want_the_same_class, 0, 3);
    return fixture_run("packed_index", tests);
}
