/* The blocks of a pool that were released and are not known to be clean: in a queue, the first released first. */
#include "tiers/block_pool_inside.h"

void tn_pool_put_waiting(tn_block_pool *pool, uint32_t block)
{
    pool->blocks[block].next = TN_POOL_NONE;
    if (pool->wait_first == TN_POOL_NONE)
        pool->wait_first = block;
    else
        pool->blocks[pool->wait_last].next = block;
    pool->wait_last = block;
    pool->stats.waiting++;
}

/* `before` is the one before it in the queue, TN_POOL_NONE of the first. */
static void take_out_of_waiting(tn_block_pool *pool, uint32_t block, uint32_t before)
{
    uint32_t next = pool->blocks[block].next;
    if (before == TN_POOL_NONE)
        pool->wait_first = next;
    else
        pool->blocks[before].next = next;
    if (pool->wait_last == block)
        pool->wait_last = before;
    pool->stats.waiting--;
}

size_t tn_pool_collect(tn_block_pool *pool)
{
    size_t found = 0;
    for (uint32_t before = TN_POOL_NONE, b = pool->wait_first, next; b != TN_POOL_NONE; b = next) {
        next = pool->blocks[b].next;
        if (!tn_work_set_is_clean(&pool->sets[b], &pool->work)) {
            before = b;
            continue;
        }
        take_out_of_waiting(pool, b, before);
        tn_pool_put_free(pool, b);
        found++;
    }
    return found;
}

uint32_t tn_pool_take_ready(tn_block_pool *pool, uint64_t queue)
{
    for (uint32_t before = TN_POOL_NONE, b = pool->wait_first; b != TN_POOL_NONE; before = b, b = pool->blocks[b].next)
        if (tn_work_set_is_ready(&pool->sets[b], &pool->work, queue)) {
            take_out_of_waiting(pool, b, before);
            return b;
        }
    return TN_POOL_NONE;
}

size_t tn_block_pool_collect(tn_block_pool *pool)
{
    if (pool == NULL)
        return 0;
    tn_spin_lock(&pool->lock);
    size_t found = tn_pool_collect(pool);
    tn_spin_unlock(&pool->lock);
    return found;
}

tn_mem_error tn_block_pool_wait(tn_block_pool *pool)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_pool_collect(pool);
    bool has_free = tn_pool_free(pool) > 0, has_waiting = pool->stats.waiting > 0;
    tn_work_set set = {.count = 0};
    if (has_waiting)
        set = pool->sets[pool->wait_first];
    tn_spin_unlock(&pool->lock);
    if (has_free)
        return TN_MEM_OK;
    if (!has_waiting)
        return TN_MEM_E_EXHAUSTED;
    tn_mem_error error = tn_work_set_wait(&set, &pool->work);
    if (error == TN_MEM_OK)
        tn_block_pool_collect(pool);
    return error;
}
