/* For block_pool*.c alone: how a pool looks inside. All of it is read and written under `lock`, but for what never changes after create
 * and for the slab, which belongs to whoever has set `moving`: the backend is called without the lock. */
#ifndef TENURE_TIERS_BLOCK_POOL_INSIDE_H
#define TENURE_TIERS_BLOCK_POOL_INSIDE_H

#include "tiers/block_pool.h"
#include "tiers/spin.h"

#define TN_POOL_NONE UINT32_MAX

/* A block is free (in its chunk's list), waiting (in the pool's queue), live, or not committed: in no list. The reference that an acquire
 * gives is kept with the block, those of shares by themselves. */
typedef struct tn_pool_block {
    uint64_t generation; /* of the acquire's reference */
    uint32_t others;     /* references beyond one */
    uint32_t next;
} tn_pool_block;

/* The reference of a share. It may outlive the acquire's, so there are as many as blocks and shares together: who may have one finds one. */
typedef struct tn_pool_hold {
    uint64_t generation;
    uint32_t block;
    uint32_t next; /* of those not given out */
} tn_pool_hold;

#define TN_POOL_NOT_GIVEN 0 /* the generation of a reference that nobody has */
#define TN_POOL_OWN 0       /* what an owner by acquire has as its hold; those of shares are counted from 1 */

typedef struct tn_pool_chunk {
    uint32_t first; /* free block */
    uint32_t free;
} tn_pool_chunk;

struct tn_block_pool {
    /* Never changed after create, and read before the lock is taken: on other lines than what the lock guards. */
    tn_pool_block *blocks;
    tn_pool_chunk *chunks; /* one more than there are, always empty */
    tn_pool_hold *holds;
    tn_work_set *sets; /* by block; NULL: work is not tracked */
    uint64_t identity;
    uint32_t block_count, chunk_count;
    size_t hold_count;
    uint32_t chunk_shift, chunks_initial;

    tn_spin lock __attribute__((aligned(64)));
    uint32_t open;            /* no chunk before it has a free block */
    uint32_t chunks_committed;
    uint32_t first_hold;      /* not given out */
    uint32_t wait_first, wait_last;
    bool moving;              /* someone grows or shrinks the slab */
    size_t live, high_water;
    uint64_t generations;     /* given out, to acquires and shares: each is another, and 64 bits never come round */
    uint64_t shares_given;
    tn_block_pool_stats stats; /* but for what follows from these, and for `free` and `references`, which the others add up to */
    size_t idle; /* steps */

    tn_region region __attribute__((aligned(64)));
    tn_work work;
    tn_block_pool_options options;
    tn_metadata metadata;
    void *metadata_block;
    size_t metadata_bytes;
};

static inline uint32_t tn_pool_chunk_of(const tn_block_pool *pool, uint32_t block)
{
    return block >> pool->chunk_shift;
}

static inline size_t tn_pool_free(const tn_block_pool *pool)
{
    return pool->stats.committed - pool->stats.waiting - pool->live;
}

/* The blocks of the chunks before this one; of the last, whatever is left. */
size_t tn_pool_blocks_before(const tn_block_pool *pool, uint32_t chunk);

void tn_pool_put_free(tn_block_pool *pool, uint32_t block);
void tn_pool_put_waiting(tn_block_pool *pool, uint32_t block);

/* The one that was released first of those that `queue` may use, out of the queue. Marks that are ordered before its work but not done stay in
 * the set: another queue may be the next to have the block. */
uint32_t tn_pool_take_ready(tn_block_pool *pool, uint64_t queue);

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
