/* Stream-ordered allocation and memory pools. A size of zero goes to the driver, which minds captures even then. */
#include "cudart_internal.h"

static cudaError_t malloc_async(enum cudart_variant v, void **ptr, size_t size, cudaStream_t stream)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    e = CUDART_CALL(MemAllocAsync[v], &address, size, stream);
    *ptr = e == cudaSuccess ? cudart_hptr(address) : NULL;
    return cudart_done(e);
}

static cudaError_t malloc_from_pool(enum cudart_variant v, void **ptr, size_t size,
                                    cudaMemPool_t pool, cudaStream_t stream)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    e = CUDART_CALL(MemAllocFromPoolAsync[v], &address, size, pool, stream);
    *ptr = e == cudaSuccess ? cudart_hptr(address) : NULL;
    return cudart_done(e);
}

static cudaError_t free_async(enum cudart_variant v, void *ptr, cudaStream_t stream)
{
    CUDART_PASS(MemFreeAsync[v], cudart_dptr(ptr), stream);
}

CUDART_BOTH(cudaMallocAsync, _ptsz, malloc_async, (void **ptr, size_t size, cudaStream_t stream),
            ptr, size, stream)
CUDART_BOTH(cudaMallocFromPoolAsync, _ptsz, malloc_from_pool,
            (void **ptr, size_t size, cudaMemPool_t pool, cudaStream_t stream), ptr, size, pool,
            stream)
CUDART_BOTH(cudaFreeAsync, _ptsz, free_async, (void *ptr, cudaStream_t stream), ptr, stream)

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "pool properties differ");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "access differs");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "location differs");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
               "export data differ");

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    CUDART_PASS(MemPoolCreate, pool, (const CUmemPoolProps *)props);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { CUDART_PASS(MemPoolDestroy, pool); }

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    CUDART_PASS(MemPoolTrimTo, pool, keep);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    CUDART_PASS(MemPoolSetAttribute, pool, (CUmemPool_attribute)attr, value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    CUDART_PASS(MemPoolGetAttribute, pool, (CUmemPool_attribute)attr, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list,
                                 size_t count)
{
    CUDART_PASS(MemPoolSetAccess, pool, (const CUmemAccessDesc *)list, count);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                 struct cudaMemLocation *location)
{
    CUDART_PASS(MemPoolGetAccess, (CUmemAccess_flags *)flags, pool, (CUmemLocation *)location);
}

cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                               enum cudaMemAllocationHandleType type,
                                               unsigned int flags)
{
    CUDART_PASS(MemPoolExportToShareableHandle, handle, pool, (CUmemAllocationHandleType)type,
                flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                 enum cudaMemAllocationHandleType type,
                                                 unsigned int flags)
{
    CUDART_PASS(MemPoolImportFromShareableHandle, pool, handle, (CUmemAllocationHandleType)type,
                flags);
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *ptr)
{
    CUDART_PASS(MemPoolExportPointer, (CUmemPoolPtrExportData *)data, cudart_dptr(ptr));
}

cudaError_t cudaMemPoolImportPointer(void **ptr, cudaMemPool_t pool,
                                     struct cudaMemPoolPtrExportData *data)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(MemPoolImportPointer, &address, pool, (CUmemPoolPtrExportData *)data);
    if (e == cudaSuccess)
        *ptr = cudart_hptr(address);
    return cudart_done(e);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
                                     enum cudaMemAllocationType type)
{
    CUDART_PASS(MemGetDefaultMemPool, pool, (CUmemLocation *)location, (CUmemAllocationType)type);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
                              enum cudaMemAllocationType type)
{
    CUDART_PASS(MemGetMemPool, pool, (CUmemLocation *)location, (CUmemAllocationType)type);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                              cudaMemPool_t pool)
{
    CUDART_PASS(MemSetMemPool, (CUmemLocation *)location, (CUmemAllocationType)type, pool);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    CUDART_PASS_NO_CONTEXT(DeviceGetDefaultMemPool, pool, device);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    CUDART_PASS(DeviceGetMemPool, pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    CUDART_PASS(DeviceSetMemPool, device, pool);
}

static cudaError_t prefetch_batch(enum cudart_variant v, void **ptrs, size_t *sizes, size_t count,
                                  struct cudaMemLocation *locations, size_t *indices,
                                  size_t location_count, unsigned long long flags,
                                  cudaStream_t stream)
{
    CUDART_PASS(MemPrefetchBatchAsync[v], (CUdeviceptr *)(void *)ptrs, sizes, count,
                (CUmemLocation *)locations, indices, location_count, flags, stream);
}

static cudaError_t discard_batch(enum cudart_variant v, void **ptrs, size_t *sizes, size_t count,
                                 unsigned long long flags, cudaStream_t stream)
{
    CUDART_PASS(MemDiscardBatchAsync[v], (CUdeviceptr *)(void *)ptrs, sizes, count, flags, stream);
}

static cudaError_t discard_prefetch_batch(enum cudart_variant v, void **ptrs, size_t *sizes,
                                          size_t count, struct cudaMemLocation *locations,
                                          size_t *indices, size_t location_count,
                                          unsigned long long flags, cudaStream_t stream)
{
    CUDART_PASS(MemDiscardAndPrefetchBatchAsync[v], (CUdeviceptr *)(void *)ptrs, sizes, count,
                (CUmemLocation *)locations, indices, location_count, flags, stream);
}

CUDART_BOTH(cudaMemPrefetchBatchAsync, _ptsz, prefetch_batch,
            (void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locations,
             size_t *indices, size_t location_count, unsigned long long flags,
             cudaStream_t stream),
            ptrs, sizes, count, locations, indices, location_count, flags, stream)
CUDART_BOTH(cudaMemDiscardBatchAsync, _ptsz, discard_batch,
            (void **ptrs, size_t *sizes, size_t count, unsigned long long flags,
             cudaStream_t stream),
            ptrs, sizes, count, flags, stream)
CUDART_BOTH(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, discard_prefetch_batch,
            (void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locations,
             size_t *indices, size_t location_count, unsigned long long flags,
             cudaStream_t stream),
            ptrs, sizes, count, locations, indices, location_count, flags, stream)
