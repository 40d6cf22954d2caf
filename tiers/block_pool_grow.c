/* How the slab of a growable pool grows when no block is left and shrinks when the blocks at its end are not needed. It is committed from the
 * front, so only its end can be given back; that acquires take from the front makes that happen. */
#include "tiers/block_pool_inside.h"

void tn_pool_open_chunk(tn_block_pool *pool)
{
    uint32_t chunk = pool->chunks_committed++;
    size_t begin = tn_pool_blocks_before(pool, chunk), end = tn_pool_blocks_before(pool, chunk + 1);
    for (size_t b = end; b-- > begin;) /* so that the first is on top */
        tn_pool_put_free(pool, (uint32_t)b);
    pool->stats.committed = end;
}

tn_mem_error tn_pool_grow(tn_block_pool *pool)
{
    size_t bytes = tn_pool_blocks_before(pool, pool->chunks_committed + 1) * pool->options.stride;
    pool->moving = true;
    tn_spin_unlock(&pool->lock);
    tn_mem_error error = tn_backend_commit(pool->options.backend, &pool->region, bytes);
    tn_spin_lock(&pool->lock);
    pool->moving = false;
    if (error == TN_MEM_OK) {
        pool->stats.grown++;
        tn_pool_open_chunk(pool);
    }
    return error;
}

/* Takes the chunks from `keep` on, all free, out of use. */
static void close_chunks(tn_block_pool *pool, uint32_t keep)
{
    for (uint32_t c = keep; c < pool->chunks_committed; c++)
        pool->chunks[c] = (tn_pool_chunk){.first = TN_POOL_NONE};
    pool->chunks_committed = keep;
    pool->stats.committed = tn_pool_blocks_before(pool, keep);
    pool->open = pool->open < keep ? pool->open : keep;
}

/* Of the first `most` chunks, those that the slab still has: a call that failed may have given some back. */
static uint32_t chunks_there(const tn_block_pool *pool, uint32_t most)
{
    while (most > 0 && tn_pool_blocks_before(pool, most) * pool->options.stride > pool->region.committed)
        most--;
    return most;
}

void tn_pool_close_lost(tn_block_pool *pool)
{
    close_chunks(pool, chunks_there(pool, pool->chunks_committed));
}

static bool is_chunk_free(const tn_block_pool *pool, uint32_t chunk)
{
    return pool->chunks[chunk].free == tn_pool_blocks_before(pool, chunk + 1) - tn_pool_blocks_before(pool, chunk);
}

/* With the lock held and nobody moving the slab: gives back the chunks from `keep` on, all free, without the lock meanwhile. */
static tn_mem_error shrink(tn_block_pool *pool, uint32_t keep)
{
    uint32_t before = pool->chunks_committed;
    close_chunks(pool, keep);
    pool->moving = true;
    tn_spin_unlock(&pool->lock);
    tn_mem_error error = tn_backend_decommit(pool->options.backend, &pool->region, pool->stats.committed * pool->options.stride);
    tn_spin_lock(&pool->lock);
    pool->moving = false;
    uint32_t there = error == TN_MEM_OK ? keep : chunks_there(pool, before);
    while (pool->chunks_committed < there)
        tn_pool_open_chunk(pool);
    pool->stats.trimmed += before - there;
    return error;
}

tn_mem_error tn_block_pool_trim(tn_block_pool *pool)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    if (pool->options.chunk_blocks == 0)
        return TN_MEM_E_NOT_GROWABLE;
    tn_spin_lock(&pool->lock);
    tn_pool_settle(pool);
    tn_pool_collect(pool);
    uint32_t keep = pool->chunks_committed;
    while (keep > pool->chunks_initial && is_chunk_free(pool, keep - 1))
        keep--;
    tn_mem_error error = keep < pool->chunks_committed ? shrink(pool, keep) : TN_MEM_OK;
    pool->idle = 0;
    tn_spin_unlock(&pool->lock);
    return error;
}

tn_mem_error tn_block_pool_step(tn_block_pool *pool)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    if (pool->options.idle_steps == 0)
        return TN_MEM_OK;
    tn_mem_error error = TN_MEM_OK;
    tn_spin_lock(&pool->lock);
    tn_pool_collect(pool);
    uint32_t last = pool->chunks_committed - 1;
    bool idle = !pool->moving && pool->chunks_committed > pool->chunks_initial && is_chunk_free(pool, last) &&
                tn_pool_free(pool) - pool->chunks[last].free >= pool->options.chunk_blocks;
    pool->idle = idle ? pool->idle + 1 : 0;
    if (idle && pool->idle >= pool->options.idle_steps) {
        pool->idle = 0;
        error = shrink(pool, last);
    }
    tn_spin_unlock(&pool->lock);
    return error;
}
