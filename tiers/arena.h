/* The arena of T1 (a model: load to unload) and T2 (the engine's own): takes bump a mark through regions, one acquisition of the backend
 * each, and all goes at once by a reset. A single free is a mark; it returns memory only by the rules of the discipline, below. The caller
 * owns the arena and keeps its backend alive; calls on one arena must not overlap, different arenas are independent. */
#ifndef TENURE_TIERS_ARENA_H
#define TENURE_TIERS_ARENA_H

#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"
#include "tiers/span.h"

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

typedef struct tn_arena_options {
    tn_backend *backend;
    const char *tag;             /* of the regions; outlives the arena */
    tn_arena_discipline discipline;
    size_t first_bytes;          /* capacity of a region opened when there is none */
    size_t growth_bytes;         /* of one opened beside others; 0: as the first */
    size_t max_regions;          /* at once, at least 1 */
    size_t planned_blocks;       /* of a region: records made when it is opened, 16 bytes each; 0: as they come. No limit */
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

/* `bytes` bytes whose address is a multiple of `alignment` (0: TN_ALIGNMENT_DEFAULT), valid until freed or reset. *span is empty after an
 * error. ARGUMENT: zero bytes, an alignment that is no power of two or above TN_ALIGNMENT_MAX. EXHAUSTED: neither the open region nor
 * a new one of planned capacity holds it. Else the backend's error; none changes the arena. */
TN_MEM_MUST_USE tn_mem_error tn_arena_take(tn_arena *arena, size_t bytes, size_t alignment, tn_stable_span *span);

/* The block that begins at `address` is no longer needed. STALE: it was freed before, or lies above the mark. ARGUMENT: no block of this
 * arena begins there. A region that the backend would not take back is kept, counted, and tried again by the next free or trim. */
TN_MEM_MUST_USE tn_mem_error tn_arena_free(tn_arena *arena, const void *address);

/* Every block is gone and every region goes back to the backend; the generation rises. Where releases fail, the first error; the blocks are
 * gone all the same, and tn_arena_trim tries again. */
TN_MEM_MUST_USE tn_mem_error tn_arena_reset(tn_arena *arena);

/* Releases what has no live block, in either discipline. */
TN_MEM_MUST_USE tn_mem_error tn_arena_trim(tn_arena *arena);

/* Opens a region of `capacity` bytes (0: as planned) now, so that no take has to later; takes go there. EXHAUSTED: max_regions. */
TN_MEM_MUST_USE tn_mem_error tn_arena_open_region(tn_arena *arena, size_t capacity);

/* The next take opens a region, as at the end of a phase. One that is empty is released by the next free or trim. */
void tn_arena_close_region(tn_arena *arena);

void tn_arena_read_stats(const tn_arena *arena, tn_arena_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
