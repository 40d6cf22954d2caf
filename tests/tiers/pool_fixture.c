#include "pool_fixture.h"

tn_host *host;
tn_block_pool *pool;

void pool_begin(void)
{
    host = fixture_host(&(tn_host_options){.capacity = 64 * MIB, .quarantine = 64 * MIB, .granularity = 64 * KIB});
    device_reset();
}

void pool_end(void)
{
    if (pool != NULL) {
        ck_assert(tn_pool_is_sound(pool));
        expect_ok(tn_block_pool_reset(pool, NULL, 0));
        device_finish_all();
        expect_ok(tn_block_pool_destroy(&pool));
    }
    ck_assert_ptr_null(pool);
    fixture_finish(host);
}

void make_slots(size_t blocks, size_t shares, const tn_work *work)
{
    expect_ok(tn_block_pool_create(&(tn_block_pool_options){.blocks = blocks, .max_shares = shares, .work = work}, &pool));
}

void make_region(size_t blocks, size_t stride)
{
    expect_ok(tn_block_pool_create(
        &(tn_block_pool_options){.backend = tn_host_backend(host), .tag = "kv", .blocks = blocks, .stride = stride, .max_shares = 8},
        &pool));
}

tn_block_pool_stats stats_now(void)
{
    tn_block_pool_stats stats;
    tn_block_pool_read_stats(pool, &stats);
    ck_assert(tn_pool_is_sound(pool));
    ck_assert_uint_eq(stats.free + stats.waiting + stats.live, stats.committed);
    ck_assert_uint_eq(stats.references, stats.live + stats.shares);
    return stats;
}

tn_block take(void)
{
    tn_block block = tn_block_none();
    expect_ok(tn_block_pool_acquire(pool, TN_WORK_NO_QUEUE, &block));
    ck_assert(!tn_block_is_empty(&block));
    return block;
}

void give(tn_block *block)
{
    expect_ok(tn_block_pool_release(pool, block, NULL, 0));
    ck_assert(tn_block_is_empty(block));
}

void give_marked(tn_block *block, tn_work_mark mark)
{
    expect_ok(tn_block_pool_release(pool, block, &mark, 1));
}
