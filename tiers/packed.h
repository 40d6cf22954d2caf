/* Packed slots, T4 where frees come in no order: every block has its planned place, blocks that are not alive together share one, and each
 * hand-out is checked against what is there. The caller owns the allocator and its plan's table and keeps its backend alive.
 * Any thread may call take, free, hold and read_stats at any time; no lock decides who gets what: a slot has one atomic word, and of two threads
 * that want the same bytes the one that swaps it first gets them. None waits for another; a take that meets one half way tries again
 * some times and then says so. Whatever the number of slots, a take looks at few: of a class of many an index knows what keeps them. */
#ifndef TENURE_TIERS_PACKED_H
#define TENURE_TIERS_PACKED_H

#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"
#include "tiers/packed_plan.h"
#include "tiers/span.h"
#include "tiers/work_mark.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_packed_options {
    tn_backend *backend;
    const char *tag;             /* of the region; outlives the allocator */
    const tn_packed_plan *plan;  /* only its table outlives the allocator */
    tn_work work;                /* what the caller knows of its work; `self` outlives the allocator */
    const tn_metadata *metadata; /* NULL: malloc; not called after create */
} tn_packed_options;

typedef enum tn_packed_cause {
    TN_PACKED_NOT_REFUSED = 0,
    TN_PACKED_NO_CLASS,    /* the site has no slot that large, or none at all */
    TN_PACKED_ALL_ALIVE,   /* more blocks of the class are alive than were planned; the slot named is one of them */
    TN_PACKED_IN_THE_WAY,  /* the slot named has some of the bytes and is not freed */
    TN_PACKED_HELD,        /* it is freed, but a graph may still use it */
    TN_PACKED_RACE,        /* another thread was taking some of the bytes, again and again */
    TN_PACKED_NOT_CLEAN    /* MUST_WAIT: the slot named, perhaps others too, may still be in use by the device */
} tn_packed_cause;

/* Why a take was refused, and where it went wrong. */
typedef struct tn_packed_refusal {
    tn_packed_cause cause;
    uint32_t site;        /* that asked, and for how much */
    size_t bytes;
    uint32_t slot;        /* in the way, by its index in the table; TN_PACKED_NO_SLOT where there is none to name */
    uint32_t slot_site;   /* whose that is */
    tn_work_set wait_for; /* MUST_WAIT: what must be done before the same take can succeed */
} tn_packed_refusal;

typedef struct tn_packed_stats {
    size_t capacity, slots;
    size_t live_blocks, live_bytes; /* bytes as asked for */
    size_t freed_blocks;            /* freed, and their place not given to another yet */
    size_t held_blocks;
    uint64_t takes;                 /* that were served */
    uint64_t must_waits, diverged;
    tn_packed_refusal first_diverged;
    uint64_t races;                 /* takes that met another thread half way and tried again */
    uint64_t looks;                 /* slots, and groups of slots, that takes looked at beyond the first eight */
    uint64_t bad_frees;             /* frees of what is not a live block's first byte */
    const void *first_bad_free;
} tn_packed_stats;

typedef struct tn_packed tn_packed;

/* Checks the plan and acquires the region. ARGUMENT: no backend, tag or work table, or a plan that tn_packed_plan_check refuses. HOST_MEMORY,
 * or the backend's error. */
TN_MEM_MUST_USE tn_mem_error tn_packed_create(const tn_packed_options *options, tn_packed **packed);

/* Gives the region back, whatever is live in it, frees the allocator and sets *packed to NULL. No other call may be under way. Where the
 * backend refuses, its error, and all is there still. */
TN_MEM_MUST_USE tn_mem_error tn_packed_destroy(tn_packed **packed);

/* The same where the region is gone already, or stays: the backend is not asked, and its owner sees to it. */
void tn_packed_abandon(tn_packed **packed);

/* A block for `bytes` bytes of `site`, of the site's smallest class that holds them, at the lowest ordinal that is to be had. `queue` is where
 * it will be used first: then what was freed there, or is ordered before it, need not be done; TN_WORK_NO_QUEUE: all must be. *span is
 * empty after an error, and *why (may be NULL) filled. ARGUMENT: zero bytes. MUST_WAIT: freed blocks would do, but none is clean:
 * wait for why->wait_for, or for more, and ask again. DIVERGED: the plan has no place; serve it from elsewhere. */
TN_MEM_MUST_USE tn_mem_error tn_packed_take(tn_packed *packed, uint32_t site, size_t bytes, uint64_t queue, tn_stable_span *span,
                                            tn_packed_refusal *why);

/* The block that begins at `address` is no longer needed by its owner, and `uncovered` (NULL: nothing) is what the device may still do
 * with it. STALE: no live block begins there, but one could. ARGUMENT: no slot begins there. */
TN_MEM_MUST_USE tn_mem_error tn_packed_free(tn_packed *packed, const void *address, const tn_work_set *uncovered);

/* The live block that `address`, its first or another of its bytes, lies in: where it begins and how many bytes were asked for (either may be
 * NULL); nothing is held by that. STALE: no live block lies there now. ARGUMENT: it is outside the region. While another thread takes or frees
 * the block, an answer that was right at some moment of the call. */
TN_MEM_MUST_USE tn_mem_error tn_packed_find(const tn_packed *packed, const void *address, void **base, size_t *bytes);

/* A graph holds the block that begins at `address`, live or freed: until released as often, its bytes go to no other slot; to its own they
 * may. STALE, ARGUMENT as of free; EXHAUSTED: held 65535 times. May spin while another thread is within a call on that slot. */
TN_MEM_MUST_USE tn_mem_error tn_packed_hold(tn_packed *packed, const void *address);
TN_MEM_MUST_USE tn_mem_error tn_packed_release_hold(tn_packed *packed, const void *address);

/* All of the region, to tell by address whose a block is. It never changes. */
tn_device_span tn_packed_region(const tn_packed *packed);

/* Each figure is one that was true during the call. It looks at every slot. */
void tn_packed_read_stats(const tn_packed *packed, tn_packed_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
