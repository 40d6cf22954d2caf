/* A slab that is committed as the blocks run out and given back from its end: V9, the guard, failures, and how long it waits before it
 * gives back. */
#include <string.h>

#include "pool_fixture.h"

enum { CHUNK = 4, STRIDE = 16 * 1024 }; /* a chunk is the granularity of pool_fixture's host */

static void make_growing(size_t blocks, size_t initial, size_t idle_steps)
{
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = tn_host_backend(host), .tag = "kv", .blocks = blocks, .stride = STRIDE,
                                                            .chunk_blocks = CHUNK, .initial_blocks = initial,
                                                            .idle_steps = idle_steps, .work = &device_work},
                                   &pool));
}

static size_t committed_bytes(void)
{
    tn_backend_stats stats;
    tn_backend_read_stats(tn_host_backend(host), &stats);
    return stats.live;
}

static void fill(const tn_block *block, int value)
{
    tn_stable_span span;
    expect_ok(tn_block_pool_span(pool, block, &span));
    memset(tn_stable_data(span), value, tn_stable_bytes(span));
}

static bool is_filled(const tn_block *block, int value)
{
    tn_stable_span span;
    expect_ok(tn_block_pool_span(pool, block, &span));
    const unsigned char *bytes = tn_stable_data(span);
    for (size_t i = 0; i < tn_stable_bytes(span); i++)
        if (bytes[i] != value)
            return false;
    return true;
}

START_TEST(memory_comes_as_blocks_run_out)
{
    make_growing(12, 0, 0);
    ck_assert_uint_eq(committed_bytes(), 0);
    ck_assert_uint_eq(stats_now().committed, 0);
    for (size_t i = 0; i < 12; i++) {
        take();
        ck_assert_uint_eq(stats_now().committed, (i / CHUNK + 1) * CHUNK);
        ck_assert_uint_eq(committed_bytes(), (i / CHUNK + 1) * CHUNK * STRIDE);
    }
    tn_block none = tn_block_none();
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &none));
    ck_assert_uint_eq(stats_now().grown, 3);
}
END_TEST

START_TEST(the_initial_blocks_are_there_from_the_start_and_stay)
{
    make_growing(12, 5, 0);
    ck_assert_uint_eq(committed_bytes(), 2 * CHUNK * STRIDE);
    tn_block blocks[9];
    for (int i = 0; i < 9; i++)
        blocks[i] = take();
    ck_assert_uint_eq(stats_now().grown, 1);
    for (int i = 0; i < 9; i++)
        give(&blocks[i]);
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(committed_bytes(), 2 * CHUNK * STRIDE);
    ck_assert_uint_eq(stats_now().free, 2 * CHUNK);
}
END_TEST

START_TEST(a_last_chunk_may_be_short)
{
    make_growing(10, 0, 0);
    tn_block blocks[10], none = tn_block_none();
    for (int i = 0; i < 10; i++) {
        blocks[i] = take();
        fill(&blocks[i], i);
    }
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &none));
    ck_assert_uint_eq(stats_now().committed, 10);
    for (int i = 0; i < 10; i++) {
        ck_assert(is_filled(&blocks[i], i));
        give(&blocks[i]);
    }
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, 0);
    ck_assert_uint_eq(committed_bytes(), 0);
    take();
}
END_TEST

START_TEST(v9_base_and_contents_stay_through_tenfold_growth_and_shrink)
{
    make_growing(10 * CHUNK, 0, 0);
    void *base = tn_stable_data(tn_block_pool_slab(pool));
    tn_block blocks[10 * CHUNK];
    for (int round = 0; round < 3; round++) {
        for (int i = round == 0 ? 0 : CHUNK; i < 10 * CHUNK; i++) {
            blocks[i] = take();
            fill(&blocks[i], i + 1);
            ck_assert_ptr_eq(tn_stable_data(tn_block_pool_slab(pool)), base);
        }
        for (int i = CHUNK; i < 10 * CHUNK; i++)
            give(&blocks[i]);
        expect_ok(tn_block_pool_trim(pool));
        ck_assert_uint_eq(committed_bytes(), CHUNK * STRIDE);
        ck_assert_ptr_eq(tn_stable_data(tn_block_pool_slab(pool)), base);
        for (int i = 0; i < CHUNK; i++)
            ck_assert(is_filled(&blocks[i], i + 1));
    }
    ck_assert_uint_eq(stats_now().trimmed, 27);
    ck_assert_uint_eq(tn_host_late_writes(host), 0);
}
END_TEST

START_TEST(a_backend_that_cannot_grow_is_refused_at_create)
{
    tn_host *plain = fixture_host(&(tn_host_options){.not_growable = true});
    tn_block_pool_options options = {.backend = tn_host_backend(plain), .tag = "kv", .blocks = 8, .stride = 256, .chunk_blocks = 4};
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_block_pool_create(&options, &pool));
    fixture_finish(plain);
}
END_TEST

START_TEST(growth_that_fails_is_the_backends_error_and_may_succeed_later)
{
    make_growing(8, 4, 0);
    tn_block blocks[5];
    for (int i = 0; i < 4; i++)
        blocks[i] = take();
    blocks[4] = tn_block_none();
    tn_host_allow_growth(host, false);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &blocks[4]));
    ck_assert_uint_eq(stats_now().exhausted, 1);
    /* A freed block that is not clean is worth more to the caller than the backend's reason. */
    give_marked(&blocks[0], device_enqueue(1));
    expect_error(TN_MEM_E_MUST_WAIT, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &blocks[4]));
    device_finish(1, 1);
    blocks[4] = take();
    ck_assert_uint_eq(stats_now().grown, 0);
    tn_host_allow_growth(host, true);
    blocks[0] = take();
    ck_assert_uint_eq(stats_now().grown, 1);
}
END_TEST

START_TEST(growing_comes_before_waiting)
{
    make_growing(8, 4, 0);
    tn_block blocks[4];
    for (int i = 0; i < 4; i++)
        blocks[i] = take();
    give_marked(&blocks[0], device_enqueue(1));
    take();
    ck_assert_uint_eq(stats_now().committed, 8);
    ck_assert_uint_eq(stats_now().waiting, 1);
    ck_assert_uint_eq(device_waits(), 0);
}
END_TEST

static tn_mem_error serving(void *self, const char *tag, size_t bytes)
{
    (void)tag;
    (void)bytes;
    return *(bool *)self ? TN_MEM_E_BUDGET : TN_MEM_OK;
}

START_TEST(the_guard_is_asked_before_the_slab_grows)
{
    bool is_serving = false;
    tn_backend guarded;
    expect_ok(tn_backend_init(&guarded, &tn_host_table, host, &(tn_backend_guard){.may_acquire = serving, .self = &is_serving}));
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = &guarded, .tag = "kv", .blocks = 8, .stride = STRIDE,
                                                            .chunk_blocks = CHUNK, .initial_blocks = CHUNK},
                                   &pool));
    is_serving = true;
    tn_block blocks[CHUNK], none = tn_block_none();
    size_t before = tn_host_journal_length(host);
    for (int round = 0; round < 100; round++) { /* V2: within what there is, serving asks the backend for nothing */
        for (int i = 0; i < CHUNK; i++)
            blocks[i] = take();
        expect_error(TN_MEM_E_BUDGET, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &none));
        for (int i = 0; i < CHUNK; i++)
            give(&blocks[i]);
    }
    ck_assert_uint_eq(tn_host_journal_length(host), before);
    expect_ok(tn_block_pool_destroy(&pool));
}
END_TEST

START_TEST(acquires_prefer_the_front_so_that_the_end_becomes_free)
{
    make_growing(12, 0, 0);
    tn_block blocks[12];
    for (int i = 0; i < 12; i++)
        blocks[i] = take();
    for (int i = 11; i >= 0; i--)
        give(&blocks[i]);
    for (int i = 0; i < 12; i += 3) /* the freed ones of the front come again, whichever was freed last */
        blocks[i] = take();
    for (int i = 0; i < 12; i += 3)
        ck_assert_uint_lt(tn_block_id(&blocks[i]), CHUNK);
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, CHUNK);
}
END_TEST

START_TEST(a_chunk_with_a_live_or_unclean_block_is_not_given_back)
{
    make_growing(12, 0, 0);
    tn_block blocks[12];
    for (int i = 0; i < 12; i++)
        blocks[i] = take();
    uint32_t last = tn_block_id(&blocks[11]);
    for (int i = 0; i < 11; i++)
        give(&blocks[i]);
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, 12);
    ck_assert_uint_eq(tn_block_id(&blocks[11]), last);
    give_marked(&blocks[11], device_enqueue(1));
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, 12);
    device_finish(1, 1);
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, 0);
}
END_TEST

START_TEST(a_decommit_that_fails_changes_nothing)
{
    make_growing(12, 0, 1);
    tn_block blocks[12];
    for (int i = 0; i < 12; i++)
        blocks[i] = take();
    for (int i = 1; i < 12; i++)
        give(&blocks[i]);
    tn_host_fail(host, TN_HOST_DECOMMIT, 1);
    expect_error(TN_MEM_E_DRIVER, tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, 12);
    ck_assert_uint_eq(stats_now().free, 11);
    tn_host_fail(host, TN_HOST_DECOMMIT, 1);
    expect_error(TN_MEM_E_DRIVER, tn_block_pool_step(pool));
    ck_assert_uint_eq(stats_now().committed, 12);
    for (int i = 1; i < 12; i++)
        blocks[i] = take();
    ck_assert_uint_eq(stats_now().trimmed, 0);
    ck_assert_uint_eq(stats_now().grown, 3);
}
END_TEST

/* As a driver that unmapped some of it and could not map that again: half of what was to go is gone, and the call has failed. */
static bool breaks;

static tn_mem_error half_decommit(void *self, tn_region *region, size_t bytes)
{
    if (!breaks)
        return tn_host_table.decommit(self, region, bytes);
    expect_ok(tn_host_table.decommit(self, region, bytes + (region->committed - bytes) / 2));
    return TN_MEM_E_DRIVER;
}

static tn_mem_error half_release(void *self, tn_region *region)
{
    return breaks ? half_decommit(self, region, 0) : tn_host_table.release(self, region);
}

START_TEST(a_block_whose_memory_went_in_a_call_that_failed_is_not_handed_out)
{
    tn_backend_table table = tn_host_table;
    tn_backend backend;
    table.decommit = half_decommit;
    table.release = half_release;
    expect_ok(tn_backend_init(&backend, &table, host, NULL));
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = &backend, .tag = "kv", .blocks = 16, .stride = STRIDE,
                                                            .chunk_blocks = CHUNK, .initial_blocks = 16},
                                   &pool));
    expect_ok(tn_block_pool_destroy(&pool));
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = &backend, .tag = "kv", .blocks = 16, .stride = STRIDE,
                                                            .chunk_blocks = CHUNK},
                                   &pool));
    tn_block blocks[16];
    for (int i = 0; i < 16; i++)
        blocks[i] = take();
    for (int i = 0; i < 16; i++)
        give(&blocks[i]);
    breaks = true;
    expect_error(TN_MEM_E_DRIVER, tn_block_pool_trim(pool));
    ck_assert_uint_eq(pool->region.committed, 2 * CHUNK * STRIDE);
    ck_assert_uint_eq(stats_now().committed, 2 * CHUNK);
    ck_assert_uint_eq(stats_now().trimmed, 2);
    expect_error(TN_MEM_E_DRIVER, tn_block_pool_destroy(&pool));
    ck_assert_uint_eq(pool->region.committed, CHUNK * STRIDE);
    ck_assert_uint_eq(stats_now().committed, CHUNK);
    breaks = false;
    for (int i = 0; i < 16; i++) { /* committed anew before it is handed out */
        blocks[i] = take();
        ck_assert_uint_le((tn_block_id(&blocks[i]) + 1) * (size_t)STRIDE, pool->region.committed);
    }
    for (int i = 0; i < 16; i++)
        give(&blocks[i]);
    expect_ok(tn_block_pool_destroy(&pool));
}
END_TEST

START_TEST(a_chunk_goes_after_so_many_idle_steps_on_end)
{
    make_growing(16, 0, 5);
    tn_block blocks[16];
    for (int i = 0; i < 16; i++)
        blocks[i] = take();
    for (int i = 0; i < 16; i++)
        give(&blocks[i]);
    for (int steps = 0; steps < 4; steps++) {
        expect_ok(tn_block_pool_step(pool));
        ck_assert_uint_eq(stats_now().committed, 16);
    }
    for (int i = 0; i < 10; i++) /* a step that needs the last chunk begins the count anew */
        blocks[i] = take();
    expect_ok(tn_block_pool_step(pool));
    for (int i = 0; i < 10; i++)
        give(&blocks[i]);
    for (int steps = 0; steps < 4; steps++)
        expect_ok(tn_block_pool_step(pool));
    ck_assert_uint_eq(stats_now().committed, 16);
    expect_ok(tn_block_pool_step(pool));
    ck_assert_uint_eq(stats_now().committed, 12); /* one chunk a time */
    for (int steps = 0; steps < 5; steps++)
        expect_ok(tn_block_pool_step(pool));
    ck_assert_uint_eq(stats_now().committed, 8);
    for (int steps = 0; steps < 50; steps++)
        expect_ok(tn_block_pool_step(pool));
    ck_assert_uint_eq(stats_now().committed, CHUNK); /* the spare: the next request must not grow at once */
    ck_assert_uint_eq(stats_now().trimmed, 3);
}
END_TEST

START_TEST(a_load_that_swings_within_the_spare_never_moves_the_slab)
{
    make_growing(16, 0, 3);
    tn_block blocks[16];
    for (int i = 0; i < 16; i++)
        blocks[i] = take();
    for (int i = 0; i < 16; i++)
        give(&blocks[i]);
    for (int steps = 0; steps < 100; steps++)
        expect_ok(tn_block_pool_step(pool));
    size_t before = tn_host_journal_length(host);
    for (int steps = 0; steps < 200; steps++) {
        for (int i = 0; i < CHUNK; i++)
            blocks[i] = take();
        expect_ok(tn_block_pool_step(pool));
        for (int i = 0; i < CHUNK; i++)
            give(&blocks[i]);
        expect_ok(tn_block_pool_step(pool));
    }
    ck_assert_uint_eq(tn_host_journal_length(host), before);
}
END_TEST

static size_t asked;

static tn_mem_error at_most_ten(void *self, const char *tag, size_t bytes)
{
    (void)self, (void)tag;
    asked = bytes;
    return bytes <= 10 * STRIDE ? TN_MEM_OK : TN_MEM_E_BUDGET;
}

/* The guard that allowed the first chunk has not allowed the rest: it is asked again, for all. */
START_TEST(where_memory_cannot_grow_the_slab_may_be_acquired_whole)
{
    tn_host *fixed = fixture_host(&(tn_host_options){.not_growable = true});
    tn_block_pool_options options = {.backend = tn_host_backend(fixed), .tag = "kv", .blocks = 10, .stride = STRIDE, .chunk_blocks = CHUNK,
                                     .initial_blocks = 1, .idle_steps = 1};
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_block_pool_create(&options, &pool));
    options.whole_if_fixed = true;
    tn_host_backend(fixed)->guard = (tn_backend_guard){at_most_ten, NULL};
    expect_ok(tn_block_pool_create(&options, &pool));
    ck_assert_uint_eq(asked, 10 * STRIDE);
    ck_assert(stats_now().whole && stats_now().committed == 10 && stats_now().free == 10);
    tn_block blocks[10];
    for (int i = 0; i < 10; i++)
        blocks[i] = take();
    for (int i = 0; i < 10; i++)
        give(&blocks[i]);
    for (int i = 0; i < 5; i++)
        expect_ok(tn_block_pool_step(pool));
    expect_ok(tn_block_pool_trim(pool));
    ck_assert_uint_eq(stats_now().committed, 10);
    expect_ok(tn_block_pool_destroy(&pool));
    options.blocks = 11;
    expect_error(TN_MEM_E_BUDGET, tn_block_pool_create(&options, &pool));
    options.blocks = 10;
    tn_host_fail(fixed, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_block_pool_create(&options, &pool));
    options.backend = tn_host_backend(host); /* where it can it grows */
    expect_ok(tn_block_pool_create(&options, &pool));
    ck_assert(!stats_now().whole && stats_now().committed == CHUNK);
    expect_ok(tn_block_pool_destroy(&pool));
    options.chunk_blocks = options.initial_blocks = options.idle_steps = 0;
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_create(&options, &pool));
    options = (tn_block_pool_options){.blocks = 4, .whole_if_fixed = true};
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_create(&options, &pool));
    fixture_finish(fixed);
}
END_TEST

START_TEST(bad_calls_are_refused)
{
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_trim(NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_step(NULL));
    make_region(4, 256);
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_block_pool_trim(pool));
    expect_ok(tn_block_pool_step(pool));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool_grow");
    tcase_add_checked_fixture(tests, pool_begin, pool_end);
    tcase_add_test(tests, memory_comes_as_blocks_run_out);
    tcase_add_test(tests, the_initial_blocks_are_there_from_the_start_and_stay);
    tcase_add_test(tests, a_last_chunk_may_be_short);
    tcase_add_test(tests, v9_base_and_contents_stay_through_tenfold_growth_and_shrink);
    tcase_add_test(tests, a_backend_that_cannot_grow_is_refused_at_create);
    tcase_add_test(tests, growth_that_fails_is_the_backends_error_and_may_succeed_later);
    tcase_add_test(tests, growing_comes_before_waiting);
    tcase_add_test(tests, the_guard_is_asked_before_the_slab_grows);
    tcase_add_test(tests, acquires_prefer_the_front_so_that_the_end_becomes_free);
    tcase_add_test(tests, a_chunk_with_a_live_or_unclean_block_is_not_given_back);
    tcase_add_test(tests, a_decommit_that_fails_changes_nothing);
    tcase_add_test(tests, a_block_whose_memory_went_in_a_call_that_failed_is_not_handed_out);
    tcase_add_test(tests, a_chunk_goes_after_so_many_idle_steps_on_end);
    tcase_add_test(tests, a_load_that_swings_within_the_spare_never_moves_the_slab);
    tcase_add_test(tests, where_memory_cannot_grow_the_slab_may_be_acquired_whole);
    tcase_add_test(tests, bad_calls_are_refused);
    return fixture_run("block_pool_grow", tests);
}
