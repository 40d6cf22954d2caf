/* The driver as the backends see it: a table of entry points that the caller fills, with types of our own in CUDA's layout, so that nothing
 * here includes or links CUDA. The caller owns the table, fills it before use and keeps it until the last backend is gone; it is only read,
 * by any thread. An entry may be NULL where the driver has no such function: what needs it is then UNSUPPORTED. */
#ifndef TENURE_TIERS_CUDA_CALLS_H
#define TENURE_TIERS_CUDA_CALLS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long long tn_cuda_address; /* CUdeviceptr */
typedef unsigned long long tn_cuda_handle;  /* CUmemGenericAllocationHandle */
typedef void *tn_cuda_stream;               /* CUstream */
typedef void *tn_cuda_pool;                 /* CUmemoryPool */

typedef struct tn_cuda_location { /* CUmemLocation */
    int type, id;
} tn_cuda_location;

typedef struct tn_cuda_property { /* CUmemAllocationProp */
    int type, handle_types;
    tn_cuda_location location;
    void *meta_data;
    unsigned char compression, direct_rdma;
    unsigned short usage;
    unsigned char reserved[4];
} tn_cuda_property;

typedef struct tn_cuda_access { /* CUmemAccessDesc */
    tn_cuda_location location;
    int flags;
} tn_cuda_access;

enum {
    TN_CUDA_PINNED = 1,                /* CU_MEM_ALLOCATION_TYPE_PINNED */
    TN_CUDA_ON_DEVICE = 1,             /* CU_MEM_LOCATION_TYPE_DEVICE */
    TN_CUDA_ACCESS_NONE = 0,
    TN_CUDA_ACCESS_READ_WRITE = 3,
    TN_CUDA_GRANULARITY_RECOMMENDED = 1,
    TN_CUDA_ATTRIBUTE_VMM = 102,       /* CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED */
    TN_CUDA_NOT_CAPTURING = 0          /* CU_STREAM_CAPTURE_STATUS_NONE */
};

/* Each entry: call, member, the driver's name, parameters. All return a CUresult; 0 is success, and after anything else nothing has
 * changed and what an out-parameter holds means nothing. A NULL stream is the legacy default stream. */
#define TN_CUDA_CALLS(X)                                                                                                                 \
    X(ALLOC, alloc, "cuMemAlloc_v2", (tn_cuda_address *, size_t))                                                                        \
    X(FREE, free, "cuMemFree_v2", (tn_cuda_address))                                                                                     \
    X(INFO, info, "cuMemGetInfo_v2", (size_t *unused, size_t *total))                                                                    \
    X(DEFAULT_POOL, default_pool, "cuDeviceGetDefaultMemPool", (tn_cuda_pool *, int device))                                             \
    X(ALLOC_FROM_POOL, alloc_from_pool, "cuMemAllocFromPoolAsync", (tn_cuda_address *, size_t, tn_cuda_pool, tn_cuda_stream))            \
    X(ALLOC_ASYNC, alloc_async, "cuMemAllocAsync", (tn_cuda_address *, size_t, tn_cuda_stream))                                          \
    X(FREE_ASYNC, free_async, "cuMemFreeAsync", (tn_cuda_address, tn_cuda_stream))                                                       \
    X(IS_CAPTURING, is_capturing, "cuStreamIsCapturing", (tn_cuda_stream, int *))                                                        \
    X(SYNCHRONIZE, synchronize, "cuStreamSynchronize", (tn_cuda_stream))                                                                 \
    X(ATTRIBUTE, attribute, "cuDeviceGetAttribute", (int *, int attribute, int device))                                                  \
    X(GRANULARITY, granularity, "cuMemGetAllocationGranularity", (size_t *, const tn_cuda_property *, int which))                        \
    X(RESERVE, reserve, "cuMemAddressReserve", (tn_cuda_address *, size_t, size_t alignment, tn_cuda_address hint, unsigned long long))  \
    X(UNRESERVE, unreserve, "cuMemAddressFree", (tn_cuda_address, size_t))                                                               \
    X(CREATE, create, "cuMemCreate", (tn_cuda_handle *, size_t, const tn_cuda_property *, unsigned long long))                           \
    X(RELEASE, release, "cuMemRelease", (tn_cuda_handle))                                                                                \
    X(MAP, map, "cuMemMap", (tn_cuda_address, size_t, size_t offset, tn_cuda_handle, unsigned long long))                                \
    X(UNMAP, unmap, "cuMemUnmap", (tn_cuda_address, size_t))                                                                             \
    X(ACCESS, access, "cuMemSetAccess", (tn_cuda_address, size_t, const tn_cuda_access *, size_t))                                       \
    X(HOST_ALLOC, host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned flags))                                                       \
    X(HOST_FREE, host_free, "cuMemFreeHost", (void *))                                                                                   \
    X(HOST_REGISTER, host_register, "cuMemHostRegister_v2", (void *, size_t, unsigned flags))                                            \
    X(HOST_UNREGISTER, host_unregister, "cuMemHostUnregister", (void *))

typedef struct tn_cuda {
#define TN_CUDA_ENTRY(call, member, name, parameters) int(*member) parameters;
    TN_CUDA_CALLS(TN_CUDA_ENTRY)
#undef TN_CUDA_ENTRY
} tn_cuda;

typedef enum tn_cuda_call {
#define TN_CUDA_ENTRY(call, member, name, parameters) TN_CUDA_##call,
    TN_CUDA_CALLS(TN_CUDA_ENTRY)
#undef TN_CUDA_ENTRY
    TN_CUDA_CALL_COUNT
} tn_cuda_call;

#ifdef __cplusplus
}
#endif

#endif
