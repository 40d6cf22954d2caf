/* The arena of T1 (a model: load to unload) and T2 (the engine's own): takes bump a mark through regions, one acquisition of the backend
 * each, and all goes at once by a reset. A single free is a mark; it returns memory only by the rules of the discipline, below. The caller
 * owns the arena and keeps its backend alive; calls on one arena must not overlap, different arenas are independent. */
#ifndef TENURE_TIERS_ARENA_H
#define TENURE_TIERS_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"
#include "tiers/span.h"
#include "tiers/work_mark.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tn_arena_discipline {
    /* T1. A free closes the open region, for what comes after it belongs to another load; the next take opens one. A region whose
     * blocks are all freed is released. */
    TN_ARENA_MODEL,
    /* T2. A freed block on top of its region is taken back, with the freed ones below it. A region whose blocks are all freed is released,
     * but for the oldest, which stays; takes go to the newest region there is. Released ones make way for older ones. */
    TN_ARENA_ENGINE
} tn_arena_discipline;

/* A region that a plan lists, known by the first take that goes into it. */
typedef struct tn_arena_listed {
    uint32_t site;
    size_t first_bytes; /* of that take */
    size_t capacity;    /* bytes */
    size_t takes;       /* after so many it is closed; 0: by the caller alone */
} tn_arena_listed;

typedef struct tn_arena_options {
    tn_backend *backend;
    const char *tag;             /* of the regions; outlives the arena */
    tn_arena_discipline discipline;
    size_t first_bytes;          /* capacity of a region opened when there is none; 0 with a list alone: plain takes open none */
    size_t growth_bytes;         /* of one opened beside others; 0: as the first */
    size_t max_regions;          /* at once, at least 1 */
    size_t planned_blocks;       /* of a region: records made when it is opened, 16 bytes each; 0: as they come. No limit */
    const tn_arena_listed *list; /* for tn_arena_take_of, by rising site, then first_bytes; outlives the arena */
    size_t list_count;           /* 0: none */
    size_t region_alignment;     /* of every region at least; 0: TN_ALIGNMENT_DEFAULT */
    bool keeps_empty;            /* frees release no region: the caller does, by tn_arena_pop_empty or tn_arena_trim */
    const tn_work *work;         /* what the device's work is known by; NULL: freed bytes are clean at once */
    const tn_metadata *metadata; /* NULL: malloc */
} tn_arena_options;

typedef struct tn_arena_stats {
    size_t regions;          /* held, empty ones too */
    size_t capacity;         /* of these, in bytes */
    size_t used;             /* below the marks: live blocks, freed ones that lie under others, padding */
    size_t live_bytes;       /* as asked for */
    size_t live_blocks;
    size_t high_water;       /* the most that was used at once since the arena was made */
    uint64_t generation;     /* how many resets there were */
    uint64_t exhausted;      /* takes that the plan had no room for */
    uint64_t unreleased;     /* releases that the backend refused, to be tried again */
    uint64_t bad_frees;      /* frees of what is not a live block's first byte */
    const void *first_bad_free;
} tn_arena_stats;

typedef struct tn_arena tn_arena;

/* Makes an arena that holds no region yet. ARGUMENT, HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_arena_create(const tn_arena_options *options, tn_arena **arena);

/* Resets, frees the arena with its records, which it keeps from one region to the next, and sets *arena to NULL. Where a release fails, its error, and the arena is there still, empty. */
TN_MEM_MUST_USE tn_mem_error tn_arena_destroy(tn_arena **arena);

/* The same where the regions are gone already, or stay: the backend is not asked, and its owner sees to them. */
void tn_arena_abandon(tn_arena **arena);

/* `bytes` bytes whose address is a multiple of `alignment` (0: TN_ALIGNMENT_DEFAULT), valid until freed or reset. *span is empty after an
 * error. ARGUMENT: zero bytes, an alignment that is no power of two or above TN_ALIGNMENT_MAX. EXHAUSTED: neither the open region nor
 * a new one of planned capacity holds it. Else the backend's error; none changes the arena. */
TN_MEM_MUST_USE tn_mem_error tn_arena_take(tn_arena *arena, size_t bytes, size_t alignment, tn_stable_span *span);

/* As tn_arena_take, with the regions of the list: where none is open, or the open one has had its takes, one opens with the capacity listed for
 * this site and these bytes, else with the largest listed for the site. What does not fit the open region leaves it open and counts as one
 * of its takes. EXHAUSTED: that, a site with nothing listed, or max_regions. */
TN_MEM_MUST_USE tn_mem_error tn_arena_take_of(tn_arena *arena, uint32_t site, size_t bytes, size_t alignment, tn_stable_span *span);

/* Opens the region now that such a first take would open. EXHAUSTED as there. */
TN_MEM_MUST_USE tn_mem_error tn_arena_open_listed(tn_arena *arena, uint32_t site, size_t bytes);

/* The block that begins at `address` is no longer needed. STALE: it was freed before, or lies above the mark. ARGUMENT: no block of this
 * arena begins there. A region that the backend would not take back is kept, counted, and tried again by the next free or trim. */
TN_MEM_MUST_USE tn_mem_error tn_arena_free(tn_arena *arena, const void *address);

/* The same where the device may still use the block: `uncovered` (NULL: nothing) is how. Its bytes are taken back, to be handed out again, only
 * when that is done: a later free in its region, or a take that needs room, finds out. A region that is released before relies on the backend's release
 * to wait, as a driver's free does; pop_empty hands the marks on. ARGUMENT also for marks where there is no work table. */
TN_MEM_MUST_USE tn_mem_error tn_arena_free_used(tn_arena *arena, const void *address, const tn_work_set *uncovered);

/* Takes one region out of the arena that is to be released, so that the caller can do so when and where it may wait: its own from then on.
 * `uncovered` (may be NULL) gets what the device may still do in it. False, and an empty region, where there is none. */
bool tn_arena_pop_empty(tn_arena *arena, tn_region *region, tn_work_set *uncovered);

/* The live block that `address`, its first or another of its bytes, lies in: where it begins and how many bytes were asked for (either may be
 * NULL). STALE: no live block lies there. ARGUMENT: it is in no region. Its time rises with the number of regions, and with the logarithm of the
 * blocks. A call on the arena like any other: it must not overlap with one. */
TN_MEM_MUST_USE tn_mem_error tn_arena_find(const tn_arena *arena, const void *address, void **base, size_t *bytes);

/* Every block is gone and every region goes back to the backend; the generation rises. Where releases fail, the first error; the blocks are
 * gone all the same, and tn_arena_trim tries again. */
TN_MEM_MUST_USE tn_mem_error tn_arena_reset(tn_arena *arena);

/* Releases what has no live block, in either discipline and however it is kept. */
TN_MEM_MUST_USE tn_mem_error tn_arena_trim(tn_arena *arena);

/* Opens a region of `capacity` bytes (0: as planned) now, so that no take has to later; takes go there. EXHAUSTED: max_regions. ARGUMENT: 0
 * where only a list says how large. */
TN_MEM_MUST_USE tn_mem_error tn_arena_open_region(tn_arena *arena, size_t capacity);

/* The next take opens a region, as at the end of a phase. One that is empty is released by the next free or trim. */
void tn_arena_close_region(tn_arena *arena);

void tn_arena_read_stats(const tn_arena *arena, tn_arena_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
