/* For block_pool*.c alone: how a pool looks inside. All of it is read and written under `lock`, but for what never changes after create
 * and for the slab, which belongs to whoever has set `moving`: the backend is called without the lock. */
#ifndef TENURE_TIERS_BLOCK_POOL_INSIDE_H
#define TENURE_TIERS_BLOCK_POOL_INSIDE_H

#include "tiers/block_pool.h"
#include "tiers/spin.h"

#define TN_POOL_NONE UINT32_MAX

/* A block is free (in its chunk's list), waiting (in the pool's queue), live (references > 0), or not committed: in no list. */
typedef struct tn_pool_block {
    uint32_t references;
    uint32_t next;
} tn_pool_block;

/* One reference. There are as many as blocks and shares together: who may have a block or a share always finds one. */
typedef struct tn_pool_hold {
    uint64_t generation; /* odd while it is given out; 64 bits never come round */
    uint32_t block;
    uint32_t next; /* of those not given out */
} tn_pool_hold;

typedef struct tn_pool_chunk {
    uint32_t first; /* free block */
    uint32_t free;
} tn_pool_chunk;

struct tn_block_pool {
    tn_spin lock;
    bool moving;              /* someone grows or shrinks the slab */
    uint32_t open;            /* no chunk before it has a free block */
    uint32_t chunks_committed;
    uint32_t first_hold;      /* not given out */
    uint32_t wait_first, wait_last;
    uint32_t chunk_shift;
    uint64_t identity;
    tn_pool_block *blocks;
    tn_pool_hold *holds;
    tn_pool_chunk *chunks;
    tn_work_set *sets; /* by block; NULL: work is not tracked */
    tn_block_pool_stats stats; /* but for `free` and `references`, which the others add up to */
    uint32_t chunk_count, chunks_initial;
    size_t hold_count;
    size_t idle; /* steps */
    tn_work work;
    tn_region region;
    tn_block_pool_options options;
    tn_metadata metadata;
    size_t metadata_bytes;
};

static inline uint32_t tn_pool_chunk_of(const tn_block_pool *pool, uint32_t block)
{
    return block >> pool->chunk_shift;
}

static inline size_t tn_pool_free(const tn_block_pool *pool)
{
    return pool->stats.committed - pool->stats.waiting - pool->stats.live;
}

/* The blocks of the chunks before this one; of the last, whatever is left. */
size_t tn_pool_blocks_before(const tn_block_pool *pool, uint32_t chunk);

void tn_pool_put_free(tn_block_pool *pool, uint32_t block);
void tn_pool_put_waiting(tn_block_pool *pool, uint32_t block);

/* Moves every clean block from the queue to the free ones. */
size_t tn_pool_collect(tn_block_pool *pool);

/* Waits, letting go of the lock meanwhile, until nobody grows or shrinks the slab; the lock is held after it. */
void tn_pool_settle(tn_block_pool *pool);

/* Adds the chunk at the end to those in use, all its blocks free. */
void tn_pool_open_chunk(tn_block_pool *pool);

/* With the lock held, nobody moving the slab and a chunk left: commits it, without the lock meanwhile. The backend's error. */
tn_mem_error tn_pool_grow(tn_block_pool *pool);

/* After a release that failed, all blocks free: takes out of use the chunks that went all the same. */
void tn_pool_close_lost(tn_block_pool *pool);

/* Walks through all lists; whether each block is where its state says and the figures agree. For tests. */
bool tn_pool_is_sound(tn_block_pool *pool);

#endif
