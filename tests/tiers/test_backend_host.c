/* The fake: its journal, its poison, its failures, and the proofs that rest on it: V1 (conservation) and V9 (a base that stays). */
#include <pthread.h>
#include <string.h>

#include "fixture.h"

static const char *const op_tag[] = {"a", "b", "c"};

START_TEST(options_out_of_range_are_refused)
{
    tn_host *host = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_host_create(NULL, &host));
    expect_error(TN_MEM_E_ARGUMENT, tn_host_create(&(tn_host_options){0}, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_host_create(&(tn_host_options){.granularity = 6 * KIB}, &host));
    expect_error(TN_MEM_E_ARGUMENT, tn_host_create(&(tn_host_options){.granularity = 2 * KIB}, &host));
    ck_assert_ptr_null(host);
    ck_assert_uint_eq(tn_host_destroy(NULL), 0);
}
END_TEST

START_TEST(the_journal_has_every_operation)
{
    tn_host *host = fixture_host(&(tn_host_options){.capacity = 8 * MIB});
    tn_backend *b = tn_host_backend(host);
    tn_region one, two;
    tn_host_entry entry;
    expect_ok(tn_backend_acquire(b, MIB + 1, 0, "weights", &one));
    tn_host_set_phase(host, 2);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(b, 8 * MIB, 0, "late", &two));
    expect_ok(tn_backend_acquire_growable(b, 6 * MIB, 1, 0, "kv", &two));
    expect_ok(tn_backend_commit(b, &two, 3 * MIB));
    expect_ok(tn_backend_decommit(b, &two, 2 * MIB));
    expect_ok(tn_backend_release(b, &one));
    ck_assert_uint_eq(tn_host_journal_length(host), 6);
    static const tn_host_entry wanted[] = {
        {.op = TN_HOST_ACQUIRE, .phase = 0, .tag = "weights", .region = 1, .requested = MIB + 1, .after = MIB + 1},
        {.op = TN_HOST_ACQUIRE, .phase = 2, .tag = "late", .requested = 8 * MIB, .error = TN_MEM_E_OUT_OF_MEMORY},
        {.op = TN_HOST_RESERVE, .phase = 2, .tag = "kv", .region = 2, .requested = 6 * MIB, .after = 2 * MIB},
        {.op = TN_HOST_COMMIT, .phase = 2, .tag = "kv", .region = 2, .requested = 3 * MIB, .before = 2 * MIB, .after = 4 * MIB},
        {.op = TN_HOST_DECOMMIT, .phase = 2, .tag = "kv", .region = 2, .requested = 2 * MIB, .before = 4 * MIB, .after = 2 * MIB},
        {.op = TN_HOST_RELEASE, .phase = 2, .tag = "weights", .region = 1, .before = MIB + 1},
    };
    for (size_t i = 0; i < 6; i++) {
        expect_ok(tn_host_journal_entry(host, i, &entry));
        ck_assert_uint_eq(entry.sequence, i);
        ck_assert_int_eq(entry.op, wanted[i].op);
        ck_assert_int_eq(entry.error, wanted[i].error);
        ck_assert_int_eq(entry.phase, wanted[i].phase);
        ck_assert_str_eq(entry.tag, wanted[i].tag);
        ck_assert_uint_eq(entry.region, wanted[i].region);
        ck_assert_uint_eq(entry.requested, wanted[i].requested);
        ck_assert_uint_eq(entry.before, wanted[i].before);
        ck_assert_uint_eq(entry.after, wanted[i].after);
    }
    expect_error(TN_MEM_E_ARGUMENT, tn_host_journal_entry(host, 6, &entry));
    expect_ok(tn_backend_release(b, &two));
    fixture_finish(host);
}
END_TEST

START_TEST(what_is_given_back_is_poison_and_late_writes_are_found)
{
    tn_host *host = fixture_host(&(tn_host_options){.granularity = 4 * KIB, .quarantine = MIB});
    tn_backend *b = tn_host_backend(host);
    tn_region region, grown;
    expect_ok(tn_backend_acquire(b, 4 * KIB, 0, "t", &region));
    unsigned char *late = region.base;
    memset(late, 1, 4 * KIB);
    expect_ok(tn_backend_release(b, &region));
    for (size_t i = 0; i < 4 * KIB; i++)
        ck_assert_uint_eq(late[i], TN_HOST_POISON);
    ck_assert_uint_eq(tn_host_late_writes(host), 0);
    late[7] = 1;
    ck_assert_uint_eq(tn_host_late_writes(host), 1);
    late[7] = TN_HOST_POISON;

    expect_ok(tn_backend_acquire_growable(b, 64 * KIB, 16 * KIB, 0, "t", &grown));
    unsigned char *tail = grown.base;
    memset(tail, 1, 16 * KIB);
    expect_ok(tn_backend_decommit(b, &grown, 5 * KIB));
    ck_assert_uint_eq(grown.committed, 8 * KIB);
    ck_assert_uint_eq(tail[8 * KIB - 1], 1);
    ck_assert_uint_eq(tail[8 * KIB], TN_HOST_POISON);
    ck_assert_uint_eq(tail[16 * KIB - 1], TN_HOST_POISON);
    tail[9 * KIB] = 2;
    ck_assert_uint_eq(tn_host_late_writes(host), 1);
    /* It stays found when the place is committed again. */
    expect_ok(tn_backend_commit(b, &grown, 64 * KIB));
    ck_assert_uint_eq(tn_host_late_writes(host), 1);
    expect_ok(tn_backend_release(b, &grown));
    ck_assert_uint_eq(tn_host_late_writes(host), 1);
    ck_assert_uint_eq(tn_host_destroy(host), 0);
}
END_TEST

START_TEST(quarantine_lets_the_oldest_go)
{
    tn_host *host = fixture_host(&(tn_host_options){.quarantine = 8 * KIB});
    tn_backend *b = tn_host_backend(host);
    tn_region regions[3];
    unsigned char *first = NULL, *last = NULL;
    for (int i = 0; i < 3; i++) {
        expect_ok(tn_backend_acquire(b, 4 * KIB, 0, "t", &regions[i]));
        first = i == 0 ? regions[i].base : first;
        last = regions[i].base;
    }
    expect_ok(tn_backend_release(b, &regions[0]));
    first[0] = 1;
    expect_ok(tn_backend_release(b, &regions[1]));
    expect_ok(tn_backend_release(b, &regions[2])); /* the first leaves, with its late write */
    ck_assert_uint_eq(tn_host_late_writes(host), 1);
    last[0] = 1;
    ck_assert_uint_eq(tn_host_late_writes(host), 2);
    ck_assert_uint_eq(tn_host_destroy(host), 0);
}
END_TEST

START_TEST(a_region_left_behind_is_counted)
{
    tn_host *host = fixture_host(&(tn_host_options){0});
    tn_region region;
    expect_ok(tn_backend_acquire(tn_host_backend(host), 1, 0, "t", &region));
    expect_ok(tn_backend_acquire(tn_host_backend(host), 1, 0, "t", &region));
    ck_assert_uint_eq(tn_host_destroy(host), 2);
}
END_TEST

START_TEST(growth_is_refused_on_command)
{
    tn_host *host = fixture_host(&(tn_host_options){.granularity = 4 * KIB});
    tn_backend *b = tn_host_backend(host);
    tn_region region, other;
    expect_ok(tn_backend_acquire_growable(b, MIB, 0, 0, "kv", &region));
    tn_host_allow_growth(host, false);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_commit(b, &region, 1));
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire_growable(b, MIB, 0, 0, "kv", &other));
    ck_assert_uint_eq(region.committed, 0);
    tn_host_allow_growth(host, true);
    expect_ok(tn_backend_commit(b, &region, 1));
    ck_assert_uint_eq(region.committed, 4 * KIB);
    expect_ok(tn_backend_release(b, &region));
    fixture_finish(host);
}
END_TEST

/* A life with every operation in it; false where one was refused, and then nothing is left of it. */
static bool live_once(tn_backend *b)
{
    tn_region plain = {0}, grown = {0};
    bool all = tn_backend_acquire(b, 3 * KIB, 0, "a", &plain) == TN_MEM_OK &&
               tn_backend_acquire_growable(b, 40 * KIB, 4 * KIB, 0, "b", &grown) == TN_MEM_OK &&
               tn_backend_commit(b, &grown, 40 * KIB) == TN_MEM_OK && tn_backend_decommit(b, &grown, 4 * KIB) == TN_MEM_OK;
    /* A release that was refused is asked for again: the region is still ours. */
    if (grown.base != NULL && tn_backend_release(b, &grown) != TN_MEM_OK) {
        all = false;
        expect_ok(tn_backend_release(b, &grown));
    }
    if (plain.base != NULL && tn_backend_release(b, &plain) != TN_MEM_OK) {
        all = false;
        expect_ok(tn_backend_release(b, &plain));
    }
    return all;
}

START_TEST(every_operation_can_fail_and_nothing_is_lost)
{
    static const uint64_t calls[TN_HOST_OP_COUNT] = {
        [TN_HOST_ACQUIRE] = 1, [TN_HOST_RESERVE] = 1, [TN_HOST_COMMIT] = 1,
        [TN_HOST_DECOMMIT] = 1, [TN_HOST_RELEASE] = 2, [TN_HOST_ANY] = 6,
    };
    for (int op = 0; op < TN_HOST_OP_COUNT; op++) {
        uint64_t nth = 1;
        for (;; nth++) {
            tn_host *host = fixture_host(&(tn_host_options){.granularity = 4 * KIB, .quarantine = MIB});
            tn_host_fail(host, (tn_host_op)op, nth);
            bool all = live_once(tn_host_backend(host));
            fixture_finish(host);
            if (all)
                break;
        }
        ck_assert_uint_eq(nth, calls[op] + 1);
    }
}
END_TEST

START_TEST(v9_the_base_stays_across_tenfold_growth)
{
    const size_t chunk = 256 * KIB;
    tn_host *host = fixture_host(&(tn_host_options){.granularity = chunk});
    tn_backend *b = tn_host_backend(host);
    tn_region region;
    expect_ok(tn_backend_acquire_growable(b, 10 * chunk, chunk, 2 * MIB, "kv", &region));
    unsigned char *base = region.base;
    memset(base, 0x5A, chunk);
    static const size_t steps[] = {10, 2, 6, 4, 10, 1, 10};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (steps[i] * chunk > region.committed)
            expect_ok(tn_backend_commit(b, &region, steps[i] * chunk));
        else
            expect_ok(tn_backend_decommit(b, &region, steps[i] * chunk));
        ck_assert_ptr_eq(region.base, base);
        ck_assert_uint_eq(region.committed, steps[i] * chunk);
        size_t kept = 0;
        for (size_t at = 0; at < chunk; at++)
            kept += base[at] == 0x5A;
        ck_assert_uint_eq(kept, chunk);
        memset(base, 0x5A, region.committed);
        fixture_check_conservation(host);
    }
    expect_ok(tn_backend_release(b, &region));
    fixture_finish(host);
}
END_TEST

/* Random operations beside a model that knows of each region how much is committed; V1 holds after each. */
static void random_life(uint64_t seed)
{
    enum { REGIONS = 12, STEPS = 400 };
    const size_t page = 4 * KIB, capacity = 1200 * KIB;
    random_state random = {seed};
    tn_host *host = fixture_host(&(tn_host_options){.capacity = capacity, .granularity = page, .quarantine = 256 * KIB});
    tn_backend *b = tn_host_backend(host);
    tn_region regions[REGIONS] = {{0}};
    bool growable[REGIONS] = {false};
    size_t model[REGIONS] = {0}, live = 0;
    for (size_t step = 0; step < STEPS; step++) {
        const char *where = fixture_seed_line(seed, step);
        size_t i = random_below(&random, REGIONS), bytes = 1 + random_below(&random, 50 * page);
        size_t rounded = (bytes + page - 1) / page * page;
        tn_region *r = &regions[i];
        if (random_below(&random, 8) == 0)
            tn_host_fail(host, TN_HOST_ANY, 1);
        if (r->base == NULL && random_below(&random, 2) == 0) {
            if (tn_backend_acquire(b, bytes, 0, op_tag[i % 3], r) == TN_MEM_OK)
                model[i] = bytes, growable[i] = false;
        } else if (r->base == NULL) {
            if (tn_backend_acquire_growable(b, 50 * page, bytes, 0, op_tag[i % 3], r) == TN_MEM_OK)
                model[i] = rounded, growable[i] = true;
        } else if (!growable[i] || random_below(&random, 3) == 0) {
            if (tn_backend_release(b, r) == TN_MEM_OK)
                model[i] = 0;
        } else if (rounded > model[i]) {
            if (tn_backend_commit(b, r, bytes) == TN_MEM_OK)
                model[i] = rounded;
        } else if (tn_backend_decommit(b, r, bytes) == TN_MEM_OK) {
            model[i] = rounded;
        }
        tn_host_fail(host, TN_HOST_ANY, 0);
        live = 0;
        for (size_t k = 0; k < REGIONS; k++) {
            live += model[k];
            if (regions[k].committed != model[k])
                ck_abort_msg("region %zu: %s", k, where);
        }
        tn_backend_stats stats;
        tn_backend_read_stats(b, &stats);
        ck_assert_msg(stats.live == live && live <= capacity, "%zu live, %zu in the model: %s", stats.live, live, where);
        ck_assert_msg(fixture_journal_live(host, NULL) == live, "the journal differs: %s", where);
        fixture_check_conservation(host);
    }
    for (size_t k = 0; k < REGIONS; k++)
        if (regions[k].base != NULL)
            expect_ok(tn_backend_release(b, &regions[k]));
    fixture_finish(host);
}

START_TEST(v1_conservation_after_every_operation)
{
    random_life(fixture_seed(0x7E4123 + (uint64_t)_i));
}
END_TEST

enum { THREADS = 4, ROUNDS = 500 };

static void *acquire_and_release(void *backend)
{
    for (int i = 0; i < ROUNDS; i++) {
        tn_region region;
        if (tn_backend_acquire(backend, 4 * KIB, 0, "t", &region) != TN_MEM_OK)
            continue;
        *(volatile char *)region.base = 1;
        if (tn_backend_release(backend, &region) != TN_MEM_OK)
            return backend;
    }
    return NULL;
}

START_TEST(threads_share_a_backend)
{
    tn_host *host = fixture_host(&(tn_host_options){.capacity = 12 * KIB});
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, acquire_and_release, tn_host_backend(host)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    tn_backend_stats stats;
    tn_backend_read_stats(tn_host_backend(host), &stats);
    ck_assert_uint_eq(stats.acquires, stats.releases);
    ck_assert_uint_eq(stats.acquires + stats.refused, THREADS * ROUNDS);
    ck_assert_uint_le(stats.peak, 12 * KIB);
    fixture_finish(host);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("backend_host");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, options_out_of_range_are_refused);
    tcase_add_test(tests, the_journal_has_every_operation);
    tcase_add_test(tests, what_is_given_back_is_poison_and_late_writes_are_found);
    tcase_add_test(tests, quarantine_lets_the_oldest_go);
    tcase_add_test(tests, a_region_left_behind_is_counted);
    tcase_add_test(tests, growth_is_refused_on_command);
    tcase_add_test(tests, every_operation_can_fail_and_nothing_is_lost);
    tcase_add_test(tests, v9_the_base_stays_across_tenfold_growth);
    tcase_add_loop_test(tests, v1_conservation_after_every_operation, 0, 8);
    tcase_add_test(tests, threads_share_a_backend);
    return fixture_run("backend_host", tests);
}
