/* A block pool for callers who know a block by its address alone: it keeps each block's owner for them, with the bytes that were asked for. The
 * caller owns it and keeps the backend and the work table alive; the pool behind it is its own. Any thread may call any function but create
 * and destroy; a free takes the owner out by one atomic swap, so of two frees of an address one is an error, and a look-up takes no lock. */
#ifndef TENURE_TIERS_FIXED_H
#define TENURE_TIERS_FIXED_H

#include "tiers/block_pool.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_fixed tn_fixed;

typedef struct tn_fixed_stats {
    tn_block_pool_stats pool;
    size_t live_bytes;     /* as asked for, of pool.live blocks */
    uint64_t too_large;    /* takes of more than a block */
    uint64_t bad_frees;    /* frees of what is not a live block's first byte */
    const void *first_bad_free;
} tn_fixed_stats;

/* Makes the pool, in region mode, and a record of 32 bytes for each of its blocks. Errors as of tn_block_pool_create; ARGUMENT: no backend. */
TN_MEM_MUST_USE tn_mem_error tn_fixed_create(const tn_block_pool_options *options, tn_fixed **fixed);

/* Takes back every block, gives the slab back, frees all and sets *fixed to NULL. MUST_WAIT: the device may still use a block that was freed;
 * or the backend's error. After either it is there still, without a live block. */
TN_MEM_MUST_USE tn_mem_error tn_fixed_destroy(tn_fixed **fixed);

/* A clean block, for `bytes` of it. `queue` and errors as of tn_block_pool_acquire. *span is empty after an error. ARGUMENT: zero bytes.
 * EXHAUSTED: also for more bytes than a block has. */
TN_MEM_MUST_USE tn_mem_error tn_fixed_take(tn_fixed *fixed, size_t bytes, uint64_t queue, tn_stable_span *span);

/* The block that begins at `address` is no longer needed, and `uncovered` (NULL: nothing) is what the device may still do with it. STALE: a block
 * begins there, but not a live one. ARGUMENT: none begins there; or marks where there is no work table. */
TN_MEM_MUST_USE tn_mem_error tn_fixed_free(tn_fixed *fixed, const void *address, const tn_work_set *uncovered);

/* The live block that `address`, its first or another of its bytes, lies in: where it begins and how many bytes were asked for (either may be
 * NULL). STALE: no live block lies there. ARGUMENT: it is outside the slab. In constant time. While another thread takes or frees the block, an
 * answer that was right at some moment of the call. */
TN_MEM_MUST_USE tn_mem_error tn_fixed_find(const tn_fixed *fixed, const void *address, void **base, size_t *bytes);

/* For its wait, collect, step, trim and slab. Owners are not to be had from it, nor is it to be reset. */
tn_block_pool *tn_fixed_pool(const tn_fixed *fixed);

/* Looks at every block. */
void tn_fixed_read_stats(tn_fixed *fixed, tn_fixed_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
