/* Plain device memory: one cuMemAlloc an acquisition, one cuMemFree a release, which waits for the device. Regions do not grow. The caller
 * owns it and destroys it after the last release; any thread may call that has the device's context current (a release needs none). While
 * a stream is captured in another than relaxed mode either call fails and ends that capture, so keep acquisitions out of captures. */
#ifndef TENURE_TIERS_BACKEND_DRIVER_H
#define TENURE_TIERS_BACKEND_DRIVER_H

#include "tiers/backend.h"
#include "tiers/cuda_error.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_driver_options {
    const tn_cuda *cuda;         /* alloc and free at least */
    const tn_metadata *metadata; /* NULL: malloc */
} tn_driver_options;

typedef struct tn_driver tn_driver;

/* Asks the device of the current context for its size, as the capacity. ARGUMENT: no table; UNSUPPORTED: an entry is missing; HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_driver_create(const tn_driver_options *options, tn_driver **driver);

/* Gives back what is still live, as far as the driver takes it, frees the rest, and returns how many regions that were: 0 is a clean
 * end. NULL is allowed. */
size_t tn_driver_destroy(tn_driver *driver);

tn_backend *tn_driver_backend(tn_driver *driver);

/* The last CUresult that was not 0, and of which call. */
tn_cuda_failure tn_driver_failure(const tn_driver *driver);

/* Bytes held beyond what regions have: for an alignment that the driver does not give by itself, or since it would not take them back. */
size_t tn_driver_padding(const tn_driver *driver);

#ifdef __cplusplus
}
#endif

#endif
