/* Stream-ordered device memory: one allocation from the device's default pool on a stream that the caller names, given back on the same
 * stream. Such memory survives a device reset. The caller owns the backend, keeps the stream, and orders the work: a release comes after the
 * region's last use in that stream's order. Any thread may call that has the stream's context current. */
#ifndef TENURE_TIERS_BACKEND_ASYNC_H
#define TENURE_TIERS_BACKEND_ASYNC_H

#include <stdbool.h>

#include "tiers/backend.h"
#include "tiers/cuda_error.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_async_options {
    const tn_cuda *cuda;   /* free_async; default_pool with alloc_from_pool, or alloc_async */
    int device;            /* whose default pool */
    tn_cuda_stream stream; /* NULL: the legacy default stream */
    /* Whether acquire returns memory that every stream may use at once: it then waits for the stream. Else memory is the stream's own until
     * others wait for it by an event. */
    bool wait;
    bool current_pool; /* takes from the pool that is the device's at the time, by cuMemAllocAsync, instead of the default one */
    const tn_metadata *metadata; /* NULL: malloc */
} tn_async_options;

typedef struct tn_async tn_async;

/* ARGUMENT; UNSUPPORTED: the driver has no pools; HOST_MEMORY; what the look-up of the pool failed with. Regions have no limit to know. */
TN_MEM_MUST_USE tn_mem_error tn_async_create(const tn_async_options *options, tn_async **async);

/* As tn_driver_destroy. */
size_t tn_async_destroy(tn_async *async);

/* While the stream is captured an acquisition is CAPTURING, before anything is done: it would become a node of the graph. */
tn_backend *tn_async_backend(tn_async *async);

tn_cuda_failure tn_async_failure(const tn_async *async);
size_t tn_async_padding(const tn_async *async);

#ifdef __cplusplus
}
#endif

#endif
