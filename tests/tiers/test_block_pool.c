/* How a pool is made, what it hands out and where it lies, and how it ends. */
#include <string.h>

#include "pool_fixture.h"

START_TEST(bad_options_are_refused_before_anything_is_acquired)
{
    tn_backend *b = tn_host_backend(host);
    tn_work hole = {0};
    const tn_block_pool_options bad[] = {
        {.blocks = 0},
        {.blocks = TN_BLOCK_POOL_MAX + 1},
        {.blocks = SIZE_MAX},
        {.blocks = 1, .max_shares = TN_BLOCK_POOL_MAX + 1},
        {.blocks = 1, .max_shares = SIZE_MAX},
        {.blocks = 1, .work = &hole},
        {.blocks = 1, .stride = 256},
        {.blocks = 1, .alignment = 256},
        {.blocks = 1, .chunk_blocks = 1},
        {.blocks = 1, .initial_blocks = 1},
        {.blocks = 1, .idle_steps = 1},
        {.backend = b, .blocks = 1, .stride = 256},
        {.backend = b, .tag = "t", .blocks = 1},
        {.backend = b, .tag = "t", .blocks = 1, .stride = 100},
        {.backend = b, .tag = "t", .blocks = 1, .stride = 384, .alignment = 256},
        {.backend = b, .tag = "t", .blocks = 1, .stride = 300, .alignment = 3},
        {.backend = b, .tag = "t", .blocks = 1, .stride = TN_ALIGNMENT_MAX * 2, .alignment = TN_ALIGNMENT_MAX * 2},
        {.backend = b, .tag = "t", .blocks = 1, .stride = 256, .alignment = SIZE_MAX},
        {.backend = b, .tag = "t", .blocks = 9, .stride = 256, .chunk_blocks = 3},
        {.backend = b, .tag = "t", .blocks = 9, .stride = 256, .initial_blocks = 2},
        {.backend = b, .tag = "t", .blocks = 9, .stride = 256, .idle_steps = 2},
        {.backend = b, .tag = "t", .blocks = 9, .stride = 256, .chunk_blocks = 4, .initial_blocks = 10},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_mem_error error = tn_block_pool_create(&bad[i], &pool);
        ck_assert_msg(error == TN_MEM_E_ARGUMENT, "options %zu: %s", i, tn_mem_error_text(error));
    }
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_create(NULL, &pool));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_create(&bad[0], NULL));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_destroy(&pool));
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_destroy(NULL));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
}
END_TEST

START_TEST(sizes_beyond_any_memory_are_out_of_memory)
{
    tn_backend *b = tn_host_backend(host);
    const tn_block_pool_options huge[] = {
        {.backend = b, .tag = "t", .blocks = 2, .stride = SIZE_MAX, .alignment = 1},
        {.backend = b, .tag = "t", .blocks = 1, .stride = SIZE_MAX - 255},
        {.backend = b, .tag = "t", .blocks = TN_BLOCK_POOL_MAX, .stride = (size_t)1 << 33},
        {.backend = b, .tag = "t", .blocks = 3, .stride = (size_t)1 << 62},
        {.backend = b, .tag = "t", .blocks = 3, .stride = (size_t)1 << 62, .chunk_blocks = 1},
        {.backend = b, .tag = "t", .blocks = 4, .stride = (size_t)1 << 62, .chunk_blocks = (size_t)1 << 63},
    };
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        tn_mem_error error = tn_block_pool_create(&huge[i], &pool);
        ck_assert_msg(error == TN_MEM_E_OUT_OF_MEMORY, "options %zu: %s", i, tn_mem_error_text(error));
        ck_assert_ptr_null(pool);
    }
}
END_TEST

START_TEST(a_backend_that_refuses_leaves_nothing)
{
    tn_block_pool_options options = {.backend = tn_host_backend(host), .tag = "kv", .blocks = 8, .stride = 256};
    tn_host_fail(host, TN_HOST_ACQUIRE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_block_pool_create(&options, &pool));
    options.chunk_blocks = 4;
    tn_host_fail(host, TN_HOST_RESERVE, 1);
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_block_pool_create(&options, &pool));
    options.stride = 16 * MIB;
    options.chunk_blocks = 0;
    expect_error(TN_MEM_E_OUT_OF_MEMORY, tn_block_pool_create(&options, &pool));
    ck_assert_ptr_null(pool);
}
END_TEST

static size_t metadata_calls, metadata_fails_at, metadata_live;

static void *failing_resize(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    if (new_bytes != 0 && ++metadata_calls == metadata_fails_at)
        return NULL;
    metadata_live += new_bytes - old_bytes;
    if (new_bytes != 0)
        return realloc(block, new_bytes);
    free(block);
    return NULL;
}

START_TEST(host_memory_is_taken_at_create_alone)
{
    tn_metadata metadata = {.resize = failing_resize};
    tn_block_pool_options options = {.blocks = 64, .max_shares = 64, .metadata = &metadata, .work = &device_work};
    metadata_fails_at = 1;
    expect_error(TN_MEM_E_HOST_MEMORY, tn_block_pool_create(&options, &pool));
    ck_assert_uint_eq(metadata_live, 0);
    metadata_fails_at = 0;
    expect_ok(tn_block_pool_create(&options, &pool));
    size_t calls = metadata_calls;
    for (int round = 0; round < 3; round++) {
        tn_block a[64], b[64];
        for (int i = 0; i < 64; i++) {
            a[i] = take();
            b[i] = tn_block_none();
            expect_ok(tn_block_pool_share(pool, &a[i], &b[i]));
        }
        for (int i = 0; i < 64; i++) {
            give_marked(&a[i], device_enqueue(1));
            give_marked(&b[i], device_enqueue(2));
        }
        device_finish_all();
        ck_assert_uint_eq(tn_block_pool_collect(pool), 64);
    }
    ck_assert_uint_eq(metadata_calls, calls);
    expect_ok(tn_block_pool_destroy(&pool));
    ck_assert_uint_eq(metadata_live, 0);
}
END_TEST

START_TEST(every_block_is_handed_out_once_and_then_none)
{
    make_slots(100, 0, NULL);
    bool seen[100] = {false};
    tn_block blocks[100], more = tn_block_none();
    for (int i = 0; i < 100; i++) {
        blocks[i] = take();
        uint32_t id = tn_block_id(&blocks[i]);
        ck_assert_uint_lt(id, 100);
        ck_assert(!seen[id]);
        seen[id] = true;
    }
    expect_error(TN_MEM_E_EXHAUSTED, tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &more));
    ck_assert(tn_block_is_empty(&more));
    tn_block_pool_stats stats = stats_now();
    ck_assert_uint_eq(stats.live, 100);
    ck_assert_uint_eq(stats.free, 0);
    ck_assert_uint_eq(stats.exhausted, 1);
    give(&blocks[41]);
    more = take();
    ck_assert_uint_eq(stats_now().high_water, 100);
}
END_TEST

START_TEST(blocks_lie_side_by_side_at_the_stride_and_do_not_touch)
{
    make_region(16, 768);
    tn_stable_span slab = tn_block_pool_slab(pool), span;
    ck_assert_uint_eq(tn_stable_bytes(slab), 16 * 768);
    tn_block blocks[16];
    for (int i = 0; i < 16; i++) {
        blocks[i] = take();
        expect_ok(tn_block_pool_span(pool, &blocks[i], &span));
        ck_assert_uint_eq(tn_stable_bytes(span), 768);
        ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % TN_ALIGNMENT_DEFAULT, 0);
        ck_assert_ptr_eq(tn_stable_data(span), (char *)tn_stable_data(slab) + tn_block_id(&blocks[i]) * 768);
        memset(tn_stable_data(span), i + 1, 768);
    }
    for (int i = 0; i < 16; i++) {
        expect_ok(tn_block_pool_span(pool, &blocks[i], &span));
        const char *bytes = tn_stable_data(span);
        for (int j = 0; j < 768; j++)
            ck_assert(bytes[j] == i + 1);
    }
    ck_assert_uint_eq(fixture_count(host, TN_HOST_ACQUIRE, -1), 1);
}
END_TEST

START_TEST(an_alignment_above_the_granularity_holds_for_every_block)
{
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.backend = tn_host_backend(host), .tag = "kv", .blocks = 8, .stride = MIB,
                                                            .alignment = 512 * KIB, .chunk_blocks = 2},
                                   &pool));
    for (int i = 0; i < 8; i++) {
        tn_block block = take();
        tn_stable_span span;
        expect_ok(tn_block_pool_span(pool, &block, &span));
        ck_assert_uint_eq((uintptr_t)tn_stable_data(span) % (512 * KIB), 0);
    }
}
END_TEST

START_TEST(slots_have_numbers_and_no_bytes)
{
    make_slots(4, 0, NULL);
    tn_block block = take();
    tn_stable_span span;
    expect_error(TN_MEM_E_ARGUMENT, tn_block_pool_span(pool, &block, &span));
    ck_assert_ptr_null(tn_stable_data(span));
    ck_assert_uint_eq(tn_stable_bytes(tn_block_pool_slab(pool)), 0);
    expect_error(TN_MEM_E_NOT_GROWABLE, tn_block_pool_trim(pool));
    expect_ok(tn_block_pool_step(pool));
    ck_assert_uint_eq(tn_host_journal_length(host), 0);
}
END_TEST

START_TEST(a_pool_with_owners_is_not_destroyed)
{
    make_region(4, 256);
    tn_block block = take();
    expect_error(TN_MEM_E_LEFTOVER, tn_block_pool_destroy(&pool));
    expect_ok(tn_block_pool_look(pool, &block, NULL));
    give(&block);
    tn_host_fail(host, TN_HOST_RELEASE, 1);
    expect_error(TN_MEM_E_DRIVER, tn_block_pool_destroy(&pool));
    block = take();
    give(&block);
    expect_ok(tn_block_pool_destroy(&pool));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("block_pool");
    tcase_add_checked_fixture(tests, pool_begin, pool_end);
    tcase_add_test(tests, bad_options_are_refused_before_anything_is_acquired);
    tcase_add_test(tests, sizes_beyond_any_memory_are_out_of_memory);
    tcase_add_test(tests, a_backend_that_refuses_leaves_nothing);
    tcase_add_test(tests, host_memory_is_taken_at_create_alone);
    tcase_add_test(tests, every_block_is_handed_out_once_and_then_none);
    tcase_add_test(tests, blocks_lie_side_by_side_at_the_stride_and_do_not_touch);
    tcase_add_test(tests, an_alignment_above_the_granularity_holds_for_every_block);
    tcase_add_test(tests, slots_have_numbers_and_no_bytes);
    tcase_add_test(tests, a_pool_with_owners_is_not_destroyed);
    return fixture_run("block_pool", tests);
}
