/* T5a: host memory that only loading needs, one acquisition of the backend each, pinned as a rule. What survives the end of Loading is a mistake that
 * is named, not memory that stays. The caller owns the staging and keeps its backend alive. Any thread may call any function but create
 * and destroy, as loaders are many; no lock is held around a call of the backend. */
#ifndef TENURE_TIERS_LOAD_STAGING_H
#define TENURE_TIERS_LOAD_STAGING_H

#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is left at the end of Loading, the first that was taken. */
typedef struct tn_staging_leftover {
    const char *tag;
    const void *address;
    size_t bytes;       /* of this one, as committed */
    size_t count, total; /* of all that are left, and their bytes */
} tn_staging_leftover;

typedef struct tn_staging_stats {
    size_t live, live_bytes, high_water; /* high_water: the most bytes at once */
    uint64_t taken, given, late;         /* late: takes that were refused since Loading was over */
} tn_staging_stats;

typedef struct tn_staging tn_staging;

/* Made in Loading. ARGUMENT, HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_staging_create(tn_backend *backend, const tn_metadata *metadata, tn_staging **staging);

/* Gives back what is left, frees the staging and sets *staging to NULL. Where a release fails, its error, and the staging is there still with
 * what could not be given back. */
TN_MEM_MUST_USE tn_mem_error tn_staging_destroy(tn_staging **staging);

/* `bytes` bytes; region->base is theirs until given back. `tag`, which outlives the block, is what a leftover is named by. BUDGET: Loading is over.
 * Else HOST_MEMORY, or the backend's error. */
TN_MEM_MUST_USE tn_mem_error tn_staging_take(tn_staging *staging, size_t bytes, size_t alignment, const char *tag, tn_region *region);

/* ARGUMENT: an empty region. STALE: it was given back, in this or another copy, or is not of this staging. Else the backend's error, and it is
 * there still. */
TN_MEM_MUST_USE tn_mem_error tn_staging_give(tn_staging *staging, tn_region *region);

/* Loading is over: takes are refused from now on. LEFTOVER: something is still there; then *leftover (NULL: not asked for) names it, and
 * Loading goes on. */
TN_MEM_MUST_USE tn_mem_error tn_staging_end_loading(tn_staging *staging, tn_staging_leftover *leftover);

/* Loading again, as when a model is exchanged. No error where it never ended. */
void tn_staging_begin_loading(tn_staging *staging);

void tn_staging_read_stats(tn_staging *staging, tn_staging_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
