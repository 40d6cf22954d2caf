/* The block pool of T3: blocks of one size, each with as many owners as ask to share it, back in the pool when the last one lets go, and
 * handed out again only when the device is done with it. The pool alone owns the memory, and nothing frees a block by its number. The
 * caller owns the pool and keeps its backend and its work table alive. Any thread may call any function but create and destroy. */
#ifndef TENURE_TIERS_BLOCK_POOL_H
#define TENURE_TIERS_BLOCK_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/block.h"
#include "tiers/metadata.h"
#include "tiers/span.h"
#include "tiers/work_mark.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_BLOCK_POOL_MAX ((size_t)INT32_MAX) /* blocks, so that ids fit a kernel's table of ints; shares likewise */

/* Region mode: blocks lie side by side in one slab of the backend. Slots mode, with no backend: the pool gives out numbers, and what
 * belongs to them lies elsewhere; backend, stride, alignment and the growth fields are all zero then. */
typedef struct tn_block_pool_options {
    tn_backend *backend;
    const char *tag;             /* of the slab; outlives the pool */
    size_t blocks;               /* at most, 1..TN_BLOCK_POOL_MAX */
    size_t stride;               /* bytes of a block; a multiple of the alignment */
    size_t alignment;            /* of every block; 0: TN_ALIGNMENT_DEFAULT */
    size_t max_shares;           /* references beyond each block's first, of all blocks at once; 0: this pool's blocks are never shared */
    size_t chunk_blocks;         /* a power of two: the slab is reserved whole and committed by so many; 0: acquired whole */
    size_t initial_blocks;       /* committed from the start and never given back; rounded up to chunks */
    size_t idle_steps;           /* after how many tn_block_pool_step a chunk nobody needs is given back; 0: never by itself */
    bool whole_if_fixed;         /* where the backend cannot grow memory, the slab is acquired whole instead, and stats.whole says so */
    const tn_work *work;         /* what the device's work is known by; NULL: a released block is clean at once */
    const tn_metadata *metadata; /* NULL: malloc */
} tn_block_pool_options;

/* In blocks, but for references and calls. free + waiting + live = committed, and references = live + shares, at any time. */
typedef struct tn_block_pool_stats {
    size_t blocks, committed;
    size_t free;           /* clean */
    size_t waiting;        /* released, and not known to be clean */
    size_t live;           /* with at least one owner */
    size_t shared;         /* with more than one */
    size_t references, shares;
    size_t high_water;     /* the most that were live at once; of shares likewise */
    size_t high_shares;
    uint64_t acquires, exhausted, must_wait;
    uint64_t grown, trimmed; /* chunks */
    uint64_t resets;
    bool whole;            /* growth was asked for, and the backend has none: all blocks are committed, and stay */
    uint64_t bad_handles;  /* owners that were refused: stale, foreign, or no owner's bytes at all */
    tn_mem_error first_bad;
    uint32_t first_bad_id; /* the block it named */
} tn_block_pool_stats;

typedef struct tn_block_pool tn_block_pool;

/* Makes a pool whose blocks are all free. ARGUMENT: options outside what is said above. OUT_OF_MEMORY: sizes beyond any memory.
 * HOST_MEMORY, or the backend's error. Nothing that follows allocates on the host. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_create(const tn_block_pool_options *options, tn_block_pool **pool);

/* Gives the slab back, frees the pool and sets *pool to NULL. LEFTOVER: there are owners. MUST_WAIT: the device may still use a block. Or the
 * backend's error; after any the pool is there as before, without the chunks that the backend could neither give back whole nor keep. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_destroy(tn_block_pool **pool);

/* Gives `owner`, an empty one, a clean block. `queue` says where the block will first be used: then one whose marks are ordered
 * before that queue's next work will do as well (TN_WORK_NO_QUEUE: only one that is done with). Where there is none: the slab grows, if
 * it can; else MUST_WAIT if a released block is not clean yet, else EXHAUSTED, or the backend's error where growing failed. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_acquire(tn_block_pool *pool, uint64_t queue, tn_block *owner);

/* Gives `to`, an empty owner, another reference to the block of `from`. STALE, FOREIGN: by `from`. NOT_SHARED: the pool has no
 * shares. EXHAUSTED: all are in use. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_share(tn_block_pool *pool, const tn_block *from, tn_block *to);

/* Gives up the reference and empties `owner`. `marks` is the work that this owner had enqueued on the block (0 and NULL: none, or all
 * done); whichever owner is last, the block waits for the marks of all. ARGUMENT: an empty owner, or marks for a pool without a work
 * table. STALE: it was released, in this or another copy, or the pool was reset. FOREIGN: another pool's. Errors change nothing. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_release(tn_block_pool *pool, tn_block *owner, const tn_work_mark *marks, size_t mark_count);

/* Whether the owner still holds: OK, ARGUMENT, STALE, FOREIGN as above. `references`, unless NULL, gets how many the block has. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_look(tn_block_pool *pool, const tn_block *owner, size_t *references);

/* The bytes of the owner's block; empty after an error. Errors as of look, and ARGUMENT in slots mode. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_span(tn_block_pool *pool, const tn_block *owner, tn_stable_span *span);

/* All addresses of the slab, committed or not: block `id` begins at id * stride. Empty in slots mode. Never changes. */
tn_stable_span tn_block_pool_slab(const tn_block_pool *pool);

/* Takes every block from its owners, whose handles are stale from now on; `marks` as in a release, for all of them. Who listens at the seam
 * hears of it as one, and rightly where no other call on the pool runs meanwhile. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_reset(tn_block_pool *pool, const tn_work_mark *marks, size_t mark_count);

/* Finds out which waiting blocks are clean by now; how many there were. Acquires do so by themselves when they must. */
size_t tn_block_pool_collect(tn_block_pool *pool);

/* Blocks until a block is free, by the work table's wait and with no lock held; what MUST_WAIT asks for. EXHAUSTED: none is waiting.
 * ARGUMENT: the table cannot wait. Or the error of its wait. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_wait(tn_block_pool *pool);

/* Gives back the chunks at the slab's end whose blocks are all clean, down to the initial ones. NOT_GROWABLE, or the backend's error, and
 * then nothing has changed but that chunks are gone where the backend failed half way and could not undo it. Chunks at the front are used first, so that those at the end become free. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_trim(tn_block_pool *pool);

/* Said once per step of the program: when the last chunk was free and another chunk's worth of blocks too, for idle_steps steps on end, it
 * is given back. Giving back costs twice what growing does, so let it be many. OK where there is nothing to do. */
TN_MEM_MUST_USE tn_mem_error tn_block_pool_step(tn_block_pool *pool);

void tn_block_pool_read_stats(tn_block_pool *pool, tn_block_pool_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
