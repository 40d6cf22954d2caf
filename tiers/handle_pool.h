/* A pool of equal physical-memory handles for programs that map memory themselves: created ahead of time, handed out and taken back whole.
 * A handle is a number that only the caller's table understands; one that was exported, or of which the program keeps another reference,
 * leaves the pool. The caller owns the pool and keeps table and work alive. Any thread may call any function but create and
 * destroy; the table is called with no lock held. */
#ifndef TENURE_TIERS_HANDLE_POOL_H
#define TENURE_TIERS_HANDLE_POOL_H

#include <stdint.h>

#include "tiers/error.h"
#include "tiers/metadata.h"
#include "tiers/work_mark.h"

#ifdef __cplusplus
extern "C" {
#endif

/* create: one more handle of `bytes`, all with the properties that `self` stands for; after an error there is none. destroy: gives it back;
 * after an error it is there still. Both may block. */
typedef struct tn_handle_table {
    tn_mem_error (*create)(void *self, size_t bytes, uint64_t *handle);
    tn_mem_error (*destroy)(void *self, uint64_t handle);
} tn_handle_table;

typedef struct tn_handle_pool_options {
    const tn_handle_table *table;
    void *self;
    size_t bytes;                /* of each */
    size_t handles;              /* how many it is to have: created at once */
    const tn_work *work;         /* what the device's work is known by; NULL: a returned handle is clean at once */
    const tn_metadata *metadata; /* NULL: malloc; not called after create */
} tn_handle_pool_options;

typedef struct tn_handle_pool_stats {
    size_t bytes;          /* of one */
    size_t handles;        /* in the pool: free + taken */
    size_t free, taken;
    size_t high_water;     /* the most that were taken at once */
    uint64_t created, destroyed;
    uint64_t left;         /* that left the pool */
    uint64_t exhausted, must_waits;
    uint64_t bad_handles;  /* returns and leaves of what is not taken from this pool */
} tn_handle_pool_stats;

typedef struct tn_handle_pool tn_handle_pool;

/* Makes a pool and creates its handles. ARGUMENT: a table with a hole, bytes or handles 0, a bad work table. HOST_MEMORY, or the error of
 * `create`, and then those already created are destroyed again; one that this does not succeed for is lost to the caller's table. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_create(const tn_handle_pool_options *options, tn_handle_pool **pool);

/* Drains the pool, frees it and sets *pool to NULL. LEFTOVER: handles are taken; nothing is done. Or the first error of `destroy`: the pool is
 * there still, with the handles that were not destroyed. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_destroy(tn_handle_pool **pool);

/* A clean handle; of `queue` as for a packed take. ARGUMENT: `bytes` are not the pool's. MUST_WAIT: none of the free ones is clean.
 * EXHAUSTED: none is free. *handle is untouched after an error. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_take(tn_handle_pool *pool, size_t bytes, uint64_t queue, uint64_t *handle);

/* The handle is free again; `uncovered` (NULL: nothing) is what the device may still do with its memory. STALE: it was returned before.
 * FOREIGN: it is not in this pool, or left it. ARGUMENT: marks where there is no work table. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_return(tn_handle_pool *pool, uint64_t handle, const tn_work_set *uncovered);

/* A taken handle is the program's alone from now on, which gives it back to the driver itself. STALE, FOREIGN as of return. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_leave(tn_handle_pool *pool, uint64_t handle);

/* Destroys the free handles, clean or not, for the driver knows itself when memory can go. The first error of `destroy`; that handle and
 * those after it stay. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_drain(tn_handle_pool *pool);

/* Creates handles until the pool has as many as it is to have. The error of `create`; those created before it stay. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_refill(tn_handle_pool *pool);

/* The same, and `most` at most. */
TN_MEM_MUST_USE tn_mem_error tn_handle_pool_refill_some(tn_handle_pool *pool, size_t most);

void tn_handle_pool_read_stats(tn_handle_pool *pool, tn_handle_pool_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
