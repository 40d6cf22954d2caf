/* Where memory comes from: one interface over every source. A backend is a table of functions with the contract written once, here; the
 * functions below check that contract, ask the guard and keep the figures, so that each table does the physical work and nothing
 * else. The caller owns the backend and every region, and releases the regions first. Any thread may call any function; calls
 * on one region must not overlap. */
#ifndef TENURE_TIERS_BACKEND_H
#define TENURE_TIERS_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "tiers/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_ALIGNMENT_DEFAULT ((size_t)256)    /* what an alignment of 0 means: that of the driver's own allocations */
#define TN_ALIGNMENT_MAX ((size_t)1 << 30)
#define TN_BYTES_MAX ((size_t)PTRDIFF_MAX)    /* more is out of memory, whatever the backend */

/* One acquisition. Not to be copied: release empties the one it is given, and a second release of that is an error. */
typedef struct tn_region {
    void *base;       /* never changes while the region lives; NULL of an empty one */
    size_t committed; /* bytes that may be used */
    size_t reserved;  /* bytes of addresses, >= committed; equal where the region does not grow */
    const char *tag;  /* whose it is: a string that outlives the region */
    uint64_t id;      /* the backend's own mark, never given twice */
} tn_region;

/* What a backend does. `self` is the backend's. Called with checked arguments alone: bytes in 1..TN_BYTES_MAX, alignment a power of two
 * up to TN_ALIGNMENT_MAX, tag not NULL, regions that are not empty.
 * After TN_MEM_OK: acquire and reserve have filled *region, its base aligned as asked, its committed and reserved bytes at least
 * what was asked; commit has committed at least `bytes`, decommit no less than `bytes` and no more than before, both with base and
 * reserved unchanged and the bytes that stay committed intact; release has given everything back.
 * After an error: nothing has changed, and the region still is the caller's. But where the driver fails so that decommit or release can
 * neither go on nor undo what it did, region->committed is less than before, and the bytes up to it are intact. */
typedef struct tn_backend_table {
    tn_mem_error (*acquire)(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region);
    tn_mem_error (*reserve)(void *self, size_t reserve, size_t initial, size_t alignment, const char *tag, tn_region *region);
    tn_mem_error (*commit)(void *self, tn_region *region, size_t bytes);
    tn_mem_error (*decommit)(void *self, tn_region *region, size_t bytes);
    tn_mem_error (*release)(void *self, tn_region *region);
    size_t (*capacity)(void *self); /* bytes in all; SIZE_MAX where there is no limit to know */
    /* These two may be NULL. How many bytes will be committed where `bytes` are asked for, of a region of `reserve` bytes (0: one that does not
     * grow): that is what the guard is asked about, and the seam. NULL: as many as are asked for. */
    size_t (*rounded)(void *self, size_t reserve, size_t bytes);
    /* A commit asked for no more than there is; region->committed is not changed by that. NULL: nobody cares. */
    tn_mem_error (*needed)(void *self, const tn_region *region, size_t bytes);
} tn_backend_table;             /* reserve, commit, decommit are all NULL of a backend that never grows */

/* Asked before memory is acquired or committed, after the arguments were found good: TN_MEM_OK, or the error to return. */
typedef struct tn_backend_guard {
    tn_mem_error (*may_acquire)(void *self, const char *tag, size_t bytes);
    void *self;
} tn_backend_guard;

/* Figures in bytes and calls; a call that failed counts in `refused` and nowhere else. */
typedef struct tn_backend_stats {
    size_t live;     /* committed now */
    size_t peak;     /* the most that was committed at once */
    size_t reserved; /* bytes of addresses now */
    size_t capacity; /* SIZE_MAX: not limited */
    uint64_t acquires, releases, commits, decommits, refused;
} tn_backend_stats;

typedef struct tn_backend {
    const tn_backend_table *table;
    void *self;
    tn_backend_guard guard; /* may_acquire NULL: all is allowed */
    tn_backend_stats stats; /* ours; read it by tn_backend_read_stats */
} tn_backend;

/* Makes *backend ready; `guard` NULL allows everything. ARGUMENT: a table with a hole. */
TN_MEM_MUST_USE tn_mem_error tn_backend_init(tn_backend *backend, const tn_backend_table *table, void *self,
                                             const tn_backend_guard *guard);

/* At least `bytes` bytes at a multiple of `alignment` (0: the default). *region is empty after an error. Errors: ARGUMENT (zero bytes,
 * an alignment that is no power of two or above TN_ALIGNMENT_MAX, no tag), OUT_OF_MEMORY, BUDGET, HOST_MEMORY, DRIVER. */
TN_MEM_MUST_USE tn_mem_error tn_backend_acquire(tn_backend *backend, size_t bytes, size_t alignment, const char *tag,
                                                tn_region *region);

/* The same with `reserve` bytes of addresses, `initial` of them committed; 0 is a good `initial`. Also NOT_GROWABLE. */
TN_MEM_MUST_USE tn_mem_error tn_backend_acquire_growable(tn_backend *backend, size_t reserve, size_t initial, size_t alignment,
                                                         const char *tag, tn_region *region);

/* Grows the committed part to at least `bytes`, which is no error where it is that large: then it says that they are needed, which a backend
 * that waits before it gives memory back takes into account. ARGUMENT: more than was reserved. STALE: another copy was released. */
TN_MEM_MUST_USE tn_mem_error tn_backend_commit(tn_backend *backend, tn_region *region, size_t bytes);

/* Shrinks the committed part to `bytes` or, by the backend's granularity, a little more. ARGUMENT: more than is committed. */
TN_MEM_MUST_USE tn_mem_error tn_backend_decommit(tn_backend *backend, tn_region *region, size_t bytes);

/* Gives it all back and empties *region. ARGUMENT: it is empty. STALE: another copy of it was released. */
TN_MEM_MUST_USE tn_mem_error tn_backend_release(tn_backend *backend, tn_region *region);

/* One consistent copy where no other thread is within a call; else each figure is one that was true during this one. */
void tn_backend_read_stats(const tn_backend *backend, tn_backend_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
