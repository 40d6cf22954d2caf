/* Pinned host memory: one cuMemHostAlloc an acquisition, one cuMemFreeHost a release, which waits for the device. The flags are the backend's
 * identity: memory of one set of flags never stands in for another, so there is a backend for each set. Regions do not grow; the host may
 * touch them. The caller owns the backend; any thread may call that has a context current. */
#ifndef TENURE_TIERS_BACKEND_PINNED_H
#define TENURE_TIERS_BACKEND_PINNED_H

#include "tiers/backend.h"
#include "tiers/cuda_error.h"
#include "tiers/metadata.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's own values. */
typedef enum tn_pinned_flags {
    TN_PINNED_PORTABLE = 1,       /* pinned for every context, not the current one alone */
    TN_PINNED_MAPPED = 2,         /* has a device address */
    TN_PINNED_WRITE_COMBINED = 4, /* fast for the host to write and the device to read, slow for the host to read */
    TN_PINNED_FLAGS = 7,          /* all there are */
    TN_PINNED_SETS = 8            /* how many sets of them */
} tn_pinned_flags;

typedef struct tn_pinned_options {
    const tn_cuda *cuda;         /* host_alloc, host_free */
    unsigned flags;              /* a set of the above */
    const tn_metadata *metadata; /* NULL: malloc */
} tn_pinned_options;

typedef struct tn_pinned tn_pinned;

/* ARGUMENT: a flag that is none; UNSUPPORTED: an entry is missing; HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_pinned_create(const tn_pinned_options *options, tn_pinned **pinned);

/* As tn_driver_destroy. */
size_t tn_pinned_destroy(tn_pinned *pinned);

tn_backend *tn_pinned_backend(tn_pinned *pinned);
unsigned tn_pinned_identity(const tn_pinned *pinned);
tn_cuda_failure tn_pinned_failure(const tn_pinned *pinned);
size_t tn_pinned_padding(const tn_pinned *pinned);

#ifdef __cplusplus
}
#endif

#endif
