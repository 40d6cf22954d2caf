/* T5b: pinned host memory that the engine keeps. Pinning takes milliseconds, so slabs are pinned and blocks are cut from them; the flags are part of
 * a slab's identity, and a block never comes from a slab of others. The caller owns the slabs, keeps their backends alive, and holds each block
 * in one place. Any thread may call any function but create and destroy; no lock is held around a call of a backend. */
#ifndef TENURE_TIERS_PINNED_SLABS_H
#define TENURE_TIERS_PINNED_SLABS_H

#include <stdint.h>

#include "tiers/backend_pinned.h"
#include "tiers/metadata.h"
#include "tiers/work_mark.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_pinned_slabs_options {
    tn_backend *backends[TN_PINNED_SETS]; /* by flags (tn_pinned_flags); NULL: no memory of these flags */
    const char *tag;                      /* of the slabs; outlives them */
    size_t slab_bytes;                    /* of a slab; a larger block gets one of its own size */
    size_t max_slabs;                     /* at once, of all flags together */
    const tn_work *work;                  /* NULL: a block that is given back is clean at once */
    const tn_metadata *metadata;          /* NULL: malloc */
} tn_pinned_slabs_options;

/* A block's one owner. Not to be copied: giving it back empties the one it is given. */
typedef struct tn_pinned_block {
    void *data; /* the host's address; NULL of an empty one */
    size_t bytes;
    unsigned flags;
    uint64_t serial; /* never given twice */
    const void *owner;
} tn_pinned_block;

typedef struct tn_pinned_slabs_stats {
    size_t slabs, capacity;          /* capacity: bytes of all slabs */
    size_t live, live_bytes;         /* blocks with an owner, bytes as asked */
    size_t waiting, waiting_bytes;   /* given back, and not known to be clean */
    size_t high_water;               /* the most live bytes at once */
    uint64_t takes, gives, exhausted, must_wait, bad_blocks;
    size_t capacity_of[TN_PINNED_SETS]; /* bytes of slabs by flags */
} tn_pinned_slabs_stats;

typedef struct tn_pinned_slabs tn_pinned_slabs;

/* Pins nothing yet. ARGUMENT: no backend at all, no tag, sizes of 0, a work table with a hole. HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_slabs_create(const tn_pinned_slabs_options *options, tn_pinned_slabs **slabs);

/* Unpins all, frees the slabs and sets *slabs to NULL. LEFTOVER: a block has an owner. MUST_WAIT: the device may still use one that was given
 * back. Or a backend's error; after any what is still pinned is there as before. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_slabs_destroy(tn_pinned_slabs **slabs);

/* `bytes` clean bytes at a multiple of `alignment` (0: TN_ALIGNMENT_DEFAULT), of exactly these flags: from the first slab that has room, else from
 * a new one. *block is empty after an error. ARGUMENT: bytes, alignment, a flag that is none. UNSUPPORTED: no backend for these flags.
 * MUST_WAIT: no room for another slab, but enough was given back that is not clean. EXHAUSTED: not even that. Else HOST_MEMORY, or the
 * backend's error. Takes a time that rises with the number of pieces of the slabs. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_slabs_take(tn_pinned_slabs *slabs, unsigned flags, size_t bytes, size_t alignment,
                                                  tn_pinned_block *block);

/* Gives a block back and empties it. `marks` is the work that may still touch it, of every context (0 and NULL: none). Slabs stay pinned. ARGUMENT:
 * empty, or marks without a work table. STALE: given back before, by another copy. FOREIGN: of other slabs. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_slabs_give(tn_pinned_slabs *slabs, tn_pinned_block *block, const tn_work_mark *marks, size_t count);

/* Unpins slabs in which no block is live and all is clean, as at the end of a phase: it waits for the device, and new slabs cost as much as the
 * first. The first error of a backend; what it refused is there still. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_slabs_trim(tn_pinned_slabs *slabs);

/* The flags of the slab that holds `address`. STALE: no slab does. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_slabs_identity(tn_pinned_slabs *slabs, const void *address, unsigned *flags);

void tn_pinned_slabs_read_stats(tn_pinned_slabs *slabs, tn_pinned_slabs_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
