/* Allocation and release of device, managed and pinned memory, and questions
 * about pointers. Outputs follow what the real runtime was seen to do: NULL
 * when the allocation itself failed, untouched when there was no getting to it
 * (a forked child, a late destructor). */
#include "cudart_internal.h"

/* A size of zero succeeds with NULL and makes no driver call, which is why it is
 * allowed while a stream captures; the context exists afterwards all the same. */
cudaError_t cudaMalloc(void **ptr, size_t size)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    if (size)
        e = CUDART_CALL(MemAlloc, &address, size);
    *ptr = e == cudaSuccess ? cudart_hptr(address) : NULL;
    return cudart_done(e);
}

static cudaError_t pitched(void **ptr, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address = 0;
    size_t row = 0;
    cudaError_t e = cudaSuccess;

    /* Element size 4 is the smallest the driver takes; the pitch does not depend on it. */
    if (width && height)
        e = CUDART_CALL(MemAllocPitch, &address, &row, width, height, 4);
    *ptr = e == cudaSuccess ? cudart_hptr(address) : NULL;
    *pitch = row; /* known before the memory is: written for a refused request too */
    return e;
}

cudaError_t cudaMallocPitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && (!ptr || !pitch))
        e = cudaErrorInvalidValue;
    return cudart_done(e != cudaSuccess ? e : pitched(ptr, pitch, width, height));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    size_t rows;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !out)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess && __builtin_mul_overflow(extent.height, extent.depth, &rows))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess) {
        struct cudaPitchedPtr result = {NULL, 0, extent.width, extent.height};

        e = pitched(&result.ptr, &result.pitch, extent.width, rows);
        if (e == cudaSuccess)
            *out = result;
        out->ptr = result.ptr;
        out->pitch = result.pitch;
    }
    return cudart_done(e);
}

cudaError_t cudaMallocManaged(void **ptr, size_t size, unsigned int flags)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
        e = cudaErrorInvalidValue;
    else if (size)
        e = CUDART_CALL(MemAllocManaged, &address, size, flags);
    *ptr = e == cudaSuccess ? cudart_hptr(address) : NULL;
    return cudart_done(e);
}

cudaError_t cudaHostAlloc(void **ptr, size_t size, unsigned int flags)
{
    void *address = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    if (size)
        e = CUDART_CALL(MemHostAlloc, &address, size, flags);
    *ptr = e == cudaSuccess ? address : NULL;
    return cudart_done(e);
}

/* Not through cudaHostAlloc: a call between two public names could be
 * interposed, and then one request would be seen twice. */
cudaError_t cudaMallocHost(void **ptr, size_t size)
{
    void *address = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    if (size)
        e = CUDART_CALL(MemHostAlloc, &address, size, 0);
    *ptr = e == cudaSuccess ? address : NULL;
    return cudart_done(e);
}

/* NULL goes to the driver too: it is a success there, and it ends a capture
 * that forbids frees. */
cudaError_t cudaFree(void *ptr) { CUDART_PASS(MemFree, cudart_dptr(ptr)); }

cudaError_t cudaFreeHost(void *ptr) { CUDART_PASS(MemFreeHost, ptr); }

cudaError_t cudaHostRegister(void *ptr, size_t size, unsigned int flags)
{
    CUDART_PASS(MemHostRegister, ptr, size, flags);
}

cudaError_t cudaHostUnregister(void *ptr) { CUDART_PASS(MemHostUnregister, ptr); }

cudaError_t cudaHostGetDevicePointer(void **device_ptr, void *host, unsigned int flags)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !device_ptr)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(MemHostGetDevicePointer, &address, host, flags);
    if (e == cudaSuccess)
        *device_ptr = cudart_hptr(address);
    return cudart_done(e);
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    CUDART_PASS(MemHostGetFlags, flags, host);
}

/* Either output, or both, may be NULL. */
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    CUDART_PASS(MemGetInfo, free_bytes, total);
}

static enum cudaMemoryType memory_type(unsigned int driver_type, unsigned int managed)
{
    if (managed)
        return cudaMemoryTypeManaged;
    switch (driver_type) {
    case CU_MEMORYTYPE_HOST:
        return cudaMemoryTypeHost;
    case CU_MEMORYTYPE_DEVICE:
        return cudaMemoryTypeDevice;
    default:
        return cudaMemoryTypeUnregistered;
    }
}

/* Creates no context: an unknown pointer is an answer (type 0), not an error. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    unsigned int type = 0, managed = 0;
    int device = cudaInvalidDeviceId;
    CUdeviceptr device_address = 0;
    void *host_address = NULL;
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,
    };
    void *outputs[] = {&type, &managed, &device, &device_address, &host_address};
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && !attributes)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(PointerGetAttributes, sizeof names / sizeof names[0], names, outputs,
                        cudart_dptr(ptr));
    if (e == cudaSuccess) {
        *attributes = (struct cudaPointerAttributes){0};
        attributes->type = memory_type(type, managed);
        if (attributes->type == cudaMemoryTypeUnregistered) {
            attributes->device = cudaInvalidDeviceId;
        } else {
            attributes->device = device;
            attributes->devicePointer = cudart_hptr(device_address);
        }
        attributes->hostPointer = host_address;
    }
    return cudart_done(e);
}

cudaError_t cudaMemAdvise(const void *ptr, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};

    CUDART_PASS(MemAdvise, cudart_dptr(ptr), bytes, (CUmem_advise)advice, where);
}

static cudaError_t prefetch(enum cudart_variant v, const void *ptr, size_t bytes,
                            struct cudaMemLocation location, unsigned int flags,
                            cudaStream_t stream)
{
    CUmemLocation where = {.type = (CUmemLocationType)location.type, .id = location.id};

    CUDART_PASS(MemPrefetchAsync[v], cudart_dptr(ptr), bytes, where, flags, stream);
}

CUDART_BOTH(cudaMemPrefetchAsync, _ptsz, prefetch,
            (const void *ptr, size_t bytes, struct cudaMemLocation location, unsigned int flags,
             cudaStream_t stream),
            ptr, bytes, location, flags, stream)

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attribute,
                                     const void *ptr, size_t bytes)
{
    CUDART_PASS(MemRangeGetAttribute, data, size, (CUmem_range_attribute)attribute,
                cudart_dptr(ptr), bytes);
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes,
                                      enum cudaMemRangeAttribute *attributes, size_t count,
                                      const void *ptr, size_t bytes)
{
    CUDART_PASS(MemRangeGetAttributes, data, sizes, (CUmem_range_attribute *)attributes, count,
                cudart_dptr(ptr), bytes);
}
