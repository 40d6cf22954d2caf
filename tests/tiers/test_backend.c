/* The contract that every backend has: arguments first, then the guard, then the work; figures that count what there is. */
#include "fixture.h"

static tn_host *host;
static tn_backend *backend;

static void begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 64 * MIB});
    backend = tn_host_backend(host);
}

static void end(void)
{
    fixture_finish(host);
}

static tn_backend_stats stats_now(void)
{
    tn_backend_stats stats;
    tn_backend_read_stats(backend, &stats);
    return stats;
}

START_TEST(a_table_with_a_hole_is_refused)
{
    tn_backend made;
    tn_backend_table table = tn_host_table;
    expect_ok(tn_backend_init(&made, &table, host, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_init(NULL, &table, host, NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_init(&made, NULL, host, NULL));
    table.commit = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_init(&made, &table, host, NULL));
    table = tn_host_table;
    table.decommit = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_init(&made, &table, host, NULL));
    table = tn_host_table;
    table.release = NULL;
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_init(&made, &table, host, NULL));
}
END_TEST

START_TEST(bad_arguments_never_reach_the_backend)
{
    tn_region region = {.base = &region};
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(NULL, 1, 0, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 1, 0, "t", NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 0, 0, "t", &region));
    ck_assert_ptr_null(region.base);
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 1, 3, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 1, TN_ALIGNMENT_MAX * 2, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 1, (size_t)1 << 63, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(backend, 1, 0, NULL, &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire_growable(backend, 1, 2, 0, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire_growable(backend, 0, 0, 0, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_commit(backend, &region, 0));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_decommit(backend, &region, 0));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_release(backend, &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_release(backend, NULL));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
    ck_assert_uint_eq(stats_now().acquires, 0);
}
END_TEST

START_TEST(sizes_beyond_all_memory_are_out_of_memory)
{
    tn_region region;
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 255, TN_BYTES_MAX + 1, TN_BYTES_MAX, (size_t)1 << 60};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(backend, sizes[i], TN_ALIGNMENT_MAX, "t", &region));
        expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire_growable(backend, sizes[i], sizes[i], 0, "t", &region));
    }
    ck_assert_uint_eq(stats_now().live, 0);
    ck_assert_uint_eq(stats_now().peak, 0);
    ck_assert_uint_eq(stats_now().refused, 10);
}
END_TEST

START_TEST(bases_are_aligned_as_asked)
{
    for (size_t alignment = 1; alignment <= TN_ALIGNMENT_MAX; alignment *= 2) {
        tn_region region;
        expect_ok(tn_backend_acquire(backend, 3, alignment, "t", &region));
        ck_assert_uint_eq((uintptr_t)region.base % alignment, 0);
        ck_assert_uint_ge(region.committed, 3);
        expect_ok(tn_backend_release(backend, &region));
        expect_ok(tn_backend_acquire_growable(backend, 3, 1, alignment, "t", &region));
        ck_assert_uint_eq((uintptr_t)region.base % alignment, 0);
        expect_ok(tn_backend_release(backend, &region));
    }
}
END_TEST

START_TEST(a_region_is_released_once)
{
    tn_region region;
    expect_ok(tn_backend_acquire(backend, 4 * KIB, 0, "t", &region));
    tn_region copy = region;
    expect_ok(tn_backend_release(backend, &region));
    ck_assert_ptr_null(region.base);
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_release(backend, &region));
    expect_error(TN_MEM_E_STALE, tn_backend_release(backend, &copy));
    ck_assert_uint_eq(stats_now().releases, 1);
    ck_assert_uint_eq(stats_now().live, 0);
    ck_assert_uint_eq(stats_now().reserved, 0);
}
END_TEST

typedef struct budget {
    size_t limit, used;
    int asked;
} budget;

static tn_mem_error within_budget(void *self, const char *tag, size_t bytes)
{
    budget *b = self;
    ck_assert_str_eq(tag, "kv");
    b->asked++;
    if (bytes > b->limit - b->used)
        return TN_MEM_E_BUDGET;
    b->used += bytes;
    return TN_MEM_OK;
}

START_TEST(the_guard_is_asked_after_the_arguments)
{
    budget b = {.limit = 6 * MIB};
    tn_backend guarded;
    tn_region region, other;
    expect_ok(tn_backend_init(&guarded, &tn_host_table, host, &(tn_backend_guard){within_budget, &b}));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_acquire(&guarded, 0, 0, "kv", &region));
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(&guarded, SIZE_MAX, 0, "kv", &region));
    ck_assert_int_eq(b.asked, 0);
    expect_ok(tn_backend_acquire_growable(&guarded, 32 * MIB, 4 * MIB, 0, "kv", &region));
    ck_assert_int_eq(b.asked, 1);
    expect_error(TN_MEM_E_BUDGET, tn_backend_acquire(&guarded, 4 * MIB, 0, "kv", &other));
    ck_assert_ptr_null(other.base);
    expect_error(TN_MEM_E_BUDGET, tn_backend_commit(&guarded, &region, 8 * MIB));
    expect_ok(tn_backend_commit(&guarded, &region, 6 * MIB));
    expect_ok(tn_backend_commit(&guarded, &region, 1)); /* has that much: nothing to ask for */
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_commit(&guarded, &region, 33 * MIB));
    ck_assert_int_eq(b.asked, 4);
    ck_assert_uint_eq(guarded.stats.live, 6 * MIB);
    ck_assert_uint_eq(fixture_journal_live(host, "kv"), 6 * MIB);
    expect_ok(tn_backend_release(&guarded, &region));
    ck_assert_uint_eq(guarded.stats.live, 0);
}
END_TEST

START_TEST(what_failed_is_no_memory)
{
    tn_region region, other;
    expect_ok(tn_backend_acquire(backend, 40 * MIB, 0, "a", &region));
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(backend, 25 * MIB, 0, "b", &other));
    tn_backend_stats stats = stats_now();
    ck_assert_uint_eq(stats.live, 40 * MIB);
    ck_assert_uint_eq(stats.peak, 40 * MIB);
    ck_assert_uint_eq(stats.capacity, 64 * MIB);
    ck_assert_uint_eq(stats.acquires, 1);
    ck_assert_uint_eq(stats.refused, 1);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_backend_release(backend, &region));
    ck_assert_ptr_nonnull(region.base);
    ck_assert_uint_eq(stats_now().live, 40 * MIB);
    ck_assert_uint_eq(stats_now().reserved, 40 * MIB);
    expect_ok(tn_backend_release(backend, &region));
    ck_assert_uint_eq(stats_now().peak, 40 * MIB);
}
END_TEST

static tn_backend *meanwhile;

/* While a release is under way another thread acquires. */
static tn_mem_error release_beside_another(void *self, tn_region *region)
{
    tn_region other;
    expect_ok(tn_backend_acquire(meanwhile, MIB, 0, "t", &other));
    tn_mem_error error = tn_host_table.release(self, region);
    expect_ok(tn_host_table.release(self, &other));
    return error;
}

START_TEST(a_second_release_beside_an_acquisition_does_not_raise_the_peak)
{
    tn_backend_table table = tn_host_table;
    tn_backend made;
    expect_ok(tn_backend_init(&made, &table, host, NULL));
    tn_region region, copy;
    expect_ok(tn_backend_acquire(&made, 8 * MIB, 0, "t", &region));
    copy = region;
    expect_ok(tn_backend_release(&made, &region));
    meanwhile = &made;
    table.release = release_beside_another;
    expect_error(TN_MEM_E_STALE, tn_backend_release(&made, &copy));
    tn_backend_stats stats;
    tn_backend_read_stats(&made, &stats);
    ck_assert_uint_eq(stats.peak, 8 * MIB);
}
END_TEST

START_TEST(a_plain_backend_does_not_grow)
{
    tn_host *plain = fixture_host(&(tn_host_options){.not_growable = true});
    tn_backend *b = tn_host_backend(plain);
    tn_region region;
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_backend_acquire_growable(b, 2 * MIB, MIB, 0, "t", &region));
    expect_ok(tn_backend_acquire(b, MIB, 0, "t", &region));
    expect_ok(tn_backend_commit(b, &region, MIB));
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_backend_decommit(b, &region, 0));
    ck_assert_uint_eq(region.committed, MIB);
    expect_ok(tn_backend_release(b, &region));
    fixture_finish(plain);
    /* One acquired without room to grow does not, either, where others do. */
    expect_ok(tn_backend_acquire(backend, MIB, 0, "t", &region));
    expect_error(TN_MEM_E_ARGUMENT, tn_backend_commit(backend, &region, 2 * MIB));
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_backend_decommit(backend, &region, 0));
    expect_ok(tn_backend_release(backend, &region));
}
END_TEST

static size_t last_bytes;

static tn_mem_error remember_bytes(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    (void)self, (void)alignment, (void)tag, (void)region;
    last_bytes = bytes;
    return TN_MEM_E_OUT_OF_MEMORY;
}

START_TEST(the_largest_size_is_the_backends_to_refuse)
{
    tn_backend_table table = tn_host_table;
    tn_backend made;
    tn_region region;
    table.acquire = remember_bytes;
    expect_ok(tn_backend_init(&made, &table, host, NULL));
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(&made, TN_BYTES_MAX, 0, "t", &region));
    ck_assert_uint_eq(last_bytes, TN_BYTES_MAX);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_backend_acquire(&made, TN_BYTES_MAX + 1, 0, "t", &region));
    ck_assert_uint_eq(last_bytes, TN_BYTES_MAX);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("backend");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_table_with_a_hole_is_refused);
    tcase_add_test(tests, bad_arguments_never_reach_the_backend);
    tcase_add_test(tests, sizes_beyond_all_memory_are_out_of_memory);
    tcase_add_test(tests, bases_are_aligned_as_asked);
    tcase_add_test(tests, a_region_is_released_once);
    tcase_add_test(tests, the_guard_is_asked_after_the_arguments);
    tcase_add_test(tests, what_failed_is_no_memory);
    tcase_add_test(tests, a_second_release_beside_an_acquisition_does_not_raise_the_peak);
    tcase_add_test(tests, a_plain_backend_does_not_grow);
    tcase_add_test(tests, the_largest_size_is_the_backends_to_refuse);
    return fixture_run("backend", tests);
}
