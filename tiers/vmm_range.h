/* For backend_vmm alone: one reserved range of device addresses, committed from its start in chunks, each one physical handle that is kept for
 * as long as it is mapped (who counts memory by handles then counts right). The caller owns the range and lets calls on it not overlap;
 * a step that fails is undone, and what the driver will not even undo stays noted in the range, counted, and is tried again. */
#ifndef TENURE_TIERS_VMM_RANGE_H
#define TENURE_TIERS_VMM_RANGE_H

#include <stdbool.h>

#include "tiers/cuda_error.h"
#include "tiers/metadata.h"

/* What ranges of one device share; read only while a call runs, but for the log. */
typedef struct tn_vmm_device {
    const tn_cuda *cuda;
    tn_cuda_log *log;
    tn_metadata metadata;
    tn_cuda_property property;
    const tn_cuda_access *access; /* the device itself, then its peers */
    size_t access_count;
    size_t granularity;
    size_t *held; /* what all ranges hold beyond what they have committed, kept atomically */
} tn_vmm_device;

typedef struct tn_vmm_chunk {
    tn_cuda_handle handle;
    bool held;   /* the handle is ours to release */
    bool mapped;
} tn_vmm_chunk;

typedef struct tn_vmm_range {
    tn_cuda_address reservation; /* 0: none */
    size_t reservation_bytes;
    tn_cuda_address base;
    size_t bytes;                /* from base: a multiple of the granularity */
    size_t chunk;                /* bytes of each chunk but the last, which ends where the range does */
    tn_vmm_chunk *chunks;
    size_t chunk_room;
    size_t committed;            /* chunks from the start that may be used */
    size_t touched;              /* chunks at and above it are nothing; between `committed` and it lies what would not go */
    size_t held;                 /* physical bytes of that, as last added to the device's figure */
} tn_vmm_range;

/* Reserves addresses and commits nothing. `bytes` and `chunk` are multiples of the granularity. OUT_OF_MEMORY, UNSUPPORTED, DRIVER. */
TN_MEM_MUST_USE tn_mem_error tn_vmm_range_make(const tn_vmm_device *device, size_t bytes, size_t alignment, size_t chunk,
                                               tn_vmm_range *range);

/* Bytes in `chunks` chunks from the start; chunks that hold `bytes`. */
size_t tn_vmm_range_bytes(const tn_vmm_range *range, size_t chunks);
size_t tn_vmm_range_chunks(const tn_vmm_range *range, size_t bytes);

/* Commits up to `chunks` chunks, or changes nothing. */
TN_MEM_MUST_USE tn_mem_error tn_vmm_range_grow(const tn_vmm_device *device, tn_vmm_range *range, size_t chunks);

/* Decommits down to `chunks` chunks. An error: nothing could be unmapped, and what is committed is mapped as it was, its bytes intact (less at
 * its end where even mapping again failed; range->committed says). */
TN_MEM_MUST_USE tn_mem_error tn_vmm_range_shrink(const tn_vmm_device *device, tn_vmm_range *range, size_t chunks);

/* Decommits all and gives the addresses back. An error as of shrink, and the range is still one. OK: it is over; where the driver did not take
 * all (`touched` or `reservation` is not 0), keep it and call settle. */
TN_MEM_MUST_USE tn_mem_error tn_vmm_range_end(const tn_vmm_device *device, tn_vmm_range *range);

/* Sets what one more device may do with the committed chunks. */
TN_MEM_MUST_USE tn_mem_error tn_vmm_range_access(const tn_vmm_device *device, const tn_vmm_range *range, tn_cuda_access access);

/* Tries again to get rid of what would not go; with `all` of the reservation too. True: nothing of that is left. */
bool tn_vmm_range_settle(const tn_vmm_device *device, tn_vmm_range *range, bool all);

/* Frees the range's own structures alone. */
void tn_vmm_range_forget(const tn_vmm_device *device, tn_vmm_range *range);

#endif
