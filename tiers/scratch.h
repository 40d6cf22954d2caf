/* The stack of T4, what one forward pass needs: a take bumps the top, a free of the top takes it back, a mark taken at the start of a pass
 * and rewound at its end drops all that came in between. The caller owns the stack, keeps its backend alive, and keeps one stack a stream:
 * then a block comes back in the order of the work that used it and needs no wait. No lock and no atomic: one thread at a time. */
#ifndef TENURE_TIERS_SCRATCH_H
#define TENURE_TIERS_SCRATCH_H

#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"
#include "tiers/span.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_scratch_options {
    tn_backend *backend;
    const char *tag;             /* of the region; outlives the stack */
    size_t capacity;             /* bytes, acquired at once and for good */
    size_t alignment;            /* of the region; 0: TN_ALIGNMENT_DEFAULT. Takes that ask for more waste up to that much */
    size_t blocks;               /* live at once without asking for metadata again; 0: 64 */
    const tn_metadata *metadata; /* NULL: malloc */
} tn_scratch_options;

typedef struct tn_scratch_stats {
    size_t capacity, used; /* used: below the top, with padding and tombstones */
    size_t live_bytes;     /* as asked for */
    size_t live_blocks;
    size_t tombstones;     /* freed blocks that still lie under others, or under an open mark */
    size_t open_marks;
    size_t high_water;     /* the most that was used at once since the stack was made */
    uint64_t generation;   /* how many resets there were */
    uint64_t exhausted;    /* takes that found no room */
    uint64_t out_of_order; /* frees that left a tombstone */
    uint64_t bad_marks;    /* rewinds refused: out of order, stale, or of another stack */
    uint64_t bad_frees;    /* frees of what is not a live block's first byte */
    const void *first_bad_free;
} tn_scratch_stats;

typedef struct tn_scratch tn_scratch;

/* A place to come back to. A plain value; it is good for one rewind. */
typedef struct tn_scratch_mark {
    uint64_t stack, serial;
    size_t depth;
} tn_scratch_mark;

/* Acquires the region. ARGUMENT: no backend, no tag, capacity 0, a bad alignment. HOST_MEMORY, or the backend's error. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_create(const tn_scratch_options *options, tn_scratch **scratch);

/* Drops every block, gives the region back, frees the stack and sets *scratch to NULL. Where the backend refuses, its error, and the stack
 * is there still, empty. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_destroy(tn_scratch **scratch);

/* The same where the region is gone already, or stays: the backend is not asked, and its owner sees to it. */
void tn_scratch_abandon(tn_scratch **scratch);

/* `bytes` bytes whose address is a multiple of `alignment` (0: TN_ALIGNMENT_DEFAULT), valid until freed, rewound or reset; a mark need not
 * be open. *span is empty after an error, and the stack unchanged. ARGUMENT: zero bytes, an alignment that is no power of two or above
 * TN_ALIGNMENT_MAX. EXHAUSTED: no room. HOST_MEMORY: none for one more block's record. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_take(tn_scratch *scratch, size_t bytes, size_t alignment, tn_stable_span *span) __attribute__((hot));

/* The block that begins at `address` is no longer needed. On top it is taken back with the dead ones under it, down to the innermost open
 * mark; elsewhere it stays as a tombstone until the top comes down to it. STALE: freed or dropped before. ARGUMENT: no block of this
 * stack begins there. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_free(tn_scratch *scratch, const void *address) __attribute__((hot));

/* The live block that `address`, its first or another of its bytes, lies in: where it begins and how many bytes were asked for (either may be
 * NULL). STALE: no live block lies there. ARGUMENT: it is outside the region. In a time that rises with the logarithm of the blocks. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_find(const tn_scratch *scratch, const void *address, void **base, size_t *bytes);

/* Opens a mark inside those that are open. HOST_MEMORY: none for its record; *mark is then good for nothing. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_open_mark(tn_scratch *scratch, tn_scratch_mark *mark);

/* Drops what was taken since the mark was opened, freed or not, and closes it. ORDER: a mark opened after it is open still; nothing is
 * dropped, and both marks are as good as before. STALE: rewound or reset before. ARGUMENT: another stack's. */
TN_MEM_MUST_USE tn_mem_error tn_scratch_rewind(tn_scratch *scratch, tn_scratch_mark mark);

/* Drops every block and closes every mark: the way out where a mark was lost. The generation rises. */
void tn_scratch_reset(tn_scratch *scratch);

void tn_scratch_read_stats(const tn_scratch *scratch, tn_scratch_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
