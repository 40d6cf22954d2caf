/* One- and two-dimensional copies, copies between devices, batches, symbols. */
#include "cudart_internal.h"

int cudart_kind(enum cudaMemcpyKind kind, CUmemorytype *dst, CUmemorytype *src)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        *dst = CU_MEMORYTYPE_HOST, *src = CU_MEMORYTYPE_HOST;
        return 1;
    case cudaMemcpyHostToDevice:
        *dst = CU_MEMORYTYPE_DEVICE, *src = CU_MEMORYTYPE_HOST;
        return 1;
    case cudaMemcpyDeviceToHost:
        *dst = CU_MEMORYTYPE_HOST, *src = CU_MEMORYTYPE_DEVICE;
        return 1;
    case cudaMemcpyDeviceToDevice:
        *dst = CU_MEMORYTYPE_DEVICE, *src = CU_MEMORYTYPE_DEVICE;
        return 1;
    case cudaMemcpyDefault:
        *dst = CU_MEMORYTYPE_UNIFIED, *src = CU_MEMORYTYPE_UNIFIED;
        return 1;
    default:
        return 0;
    }
}

/* The kind chooses the driver's function; Default and host-to-host leave the
 * direction to the driver, which knows every address. */
static cudaError_t copy_now(enum cudart_variant v, void *dst, const void *src, size_t n,
                            enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CUDART_CALL(MemcpyHtoD[v], cudart_dptr(dst), src, n);
    case cudaMemcpyDeviceToHost:
        return CUDART_CALL(MemcpyDtoH[v], dst, cudart_dptr(src), n);
    case cudaMemcpyDeviceToDevice:
        return CUDART_CALL(MemcpyDtoD[v], cudart_dptr(dst), cudart_dptr(src), n);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return CUDART_CALL(Memcpy[v], cudart_dptr(dst), cudart_dptr(src), n);
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

static cudaError_t copy_later(enum cudart_variant v, void *dst, const void *src, size_t n,
                              enum cudaMemcpyKind kind, cudaStream_t s)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return CUDART_CALL(MemcpyHtoDAsync[v], cudart_dptr(dst), src, n, s);
    case cudaMemcpyDeviceToHost:
        return CUDART_CALL(MemcpyDtoHAsync[v], dst, cudart_dptr(src), n, s);
    case cudaMemcpyDeviceToDevice:
        return CUDART_CALL(MemcpyDtoDAsync[v], cudart_dptr(dst), cudart_dptr(src), n, s);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return CUDART_CALL(MemcpyAsync[v], cudart_dptr(dst), cudart_dptr(src), n, s);
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

static cudaError_t copy(enum cudart_variant v, void *dst, const void *src, size_t n,
                        enum cudaMemcpyKind kind)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && n)
        e = copy_now(v, dst, src, n, kind);
    return cudart_done(e);
}

static cudaError_t copy_async(enum cudart_variant v, void *dst, const void *src, size_t n,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && n)
        e = copy_later(v, dst, src, n, kind, stream);
    return cudart_done(e);
}

CUDART_BOTH(cudaMemcpy, _ptds, copy,
            (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind), dst, src, n, kind)
CUDART_BOTH(cudaMemcpyAsync, _ptsz, copy_async,
            (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t stream),
            dst, src, n, kind, stream)

static cudaError_t describe_2d(void *dst, size_t dpitch, const void *src, size_t spitch,
                               size_t width, size_t height, enum cudaMemcpyKind kind,
                               CUDA_MEMCPY2D *c)
{
    *c = (CUDA_MEMCPY2D){0};
    if (!cudart_kind(kind, &c->dstMemoryType, &c->srcMemoryType))
        return cudaErrorInvalidMemcpyDirection;
    if (width > dpitch || width > spitch)
        return cudaErrorInvalidPitchValue;
    c->srcHost = src;
    c->srcDevice = cudart_dptr(src);
    c->srcPitch = spitch;
    c->dstHost = dst;
    c->dstDevice = cudart_dptr(dst);
    c->dstPitch = dpitch;
    c->WidthInBytes = width;
    c->Height = height;
    return cudaSuccess;
}

static cudaError_t copy_2d(enum cudart_variant v, void *dst, size_t dpitch, const void *src,
                           size_t spitch, size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = describe_2d(dst, dpitch, src, spitch, width, height, kind, &c);
    if (e == cudaSuccess && width && height)
        e = CUDART_CALL(Memcpy2DUnaligned[v], &c);
    return cudart_done(e);
}

static cudaError_t copy_2d_async(enum cudart_variant v, void *dst, size_t dpitch, const void *src,
                                 size_t spitch, size_t width, size_t height,
                                 enum cudaMemcpyKind kind, cudaStream_t stream)
{
    CUDA_MEMCPY2D c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = describe_2d(dst, dpitch, src, spitch, width, height, kind, &c);
    if (e == cudaSuccess && width && height)
        e = CUDART_CALL(Memcpy2DAsync[v], &c, stream);
    return cudart_done(e);
}

CUDART_BOTH(cudaMemcpy2D, _ptds, copy_2d,
            (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
             size_t height, enum cudaMemcpyKind kind),
            dst, dpitch, src, spitch, width, height, kind)
CUDART_BOTH(cudaMemcpy2DAsync, _ptsz, copy_2d_async,
            (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
             size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
            dst, dpitch, src, spitch, width, height, kind, stream)

/* Between devices: ordinals become primary contexts. */
static cudaError_t peers(int dst_device, CUcontext *to, int src_device, CUcontext *from)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_primary(dst_device, to);
    if (e == cudaSuccess)
        e = cudart_primary(src_device, from);
    return e;
}

/* The real library has no per-thread twins of these two either. */
cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t n)
{
    CUcontext to = NULL, from = NULL;
    cudaError_t e = peers(dst_device, &to, src_device, &from);

    if (e == cudaSuccess && n)
        e = CUDART_CALL(MemcpyPeer[CUDART_LEGACY], cudart_dptr(dst), to, cudart_dptr(src), from,
                        n);
    return cudart_done(e);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                size_t n, cudaStream_t stream)
{
    CUcontext to = NULL, from = NULL;
    cudaError_t e = peers(dst_device, &to, src_device, &from);

    if (e == cudaSuccess && n)
        e = CUDART_CALL(MemcpyPeerAsync[CUDART_LEGACY], cudart_dptr(dst), to, cudart_dptr(src),
                        from, n, stream);
    return cudart_done(e);
}

_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes),
               "copy attributes differ");
_Static_assert(sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP),
               "batch operations differ");

static cudaError_t copy_batch(enum cudart_variant v, void *const *dsts, const void *const *srcs,
                              const size_t *sizes, size_t count,
                              struct cudaMemcpyAttributes *attrs, size_t *indices,
                              size_t attr_count, cudaStream_t stream)
{
    CUDART_PASS(MemcpyBatchAsync[v], (CUdeviceptr *)(size_t)dsts, (CUdeviceptr *)(size_t)srcs,
                (size_t *)(size_t)sizes, count, (CUmemcpyAttributes *)attrs, indices, attr_count,
                stream);
}

static cudaError_t copy_3d_batch(enum cudart_variant v, size_t count,
                                 struct cudaMemcpy3DBatchOp *ops, unsigned long long flags,
                                 cudaStream_t stream)
{
    CUDART_PASS(Memcpy3DBatchAsync[v], count, (CUDA_MEMCPY3D_BATCH_OP *)(void *)ops, flags,
                stream);
}

CUDART_BOTH(cudaMemcpyBatchAsync, _ptsz, copy_batch,
            (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
             struct cudaMemcpyAttributes *attrs, size_t *indices, size_t attr_count,
             cudaStream_t stream),
            dsts, srcs, sizes, count, attrs, indices, attr_count, stream)
CUDART_BOTH(cudaMemcpy3DBatchAsync, _ptsz, copy_3d_batch,
            (size_t count, struct cudaMemcpy3DBatchOp *ops, unsigned long long flags,
             cudaStream_t stream),
            count, ops, flags, stream)

/* To and from device variables: offset and count must stay inside the variable. */
static cudaError_t symbol_range(const void *symbol, size_t count, size_t offset, void **address)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_variable(symbol, &base, &bytes);
    if (e == cudaSuccess && (offset > bytes || count > bytes - offset))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        *address = cudart_hptr(base + offset);
    return e;
}

static cudaError_t to_symbol(enum cudart_variant v, const void *symbol, const void *src, size_t n,
                             size_t offset, enum cudaMemcpyKind kind)
{
    void *dst = NULL;
    cudaError_t e = symbol_range(symbol, n, offset, &dst);

    return cudart_done(e != cudaSuccess ? e : copy_now(v, dst, src, n, kind));
}

static cudaError_t from_symbol(enum cudart_variant v, void *dst, const void *symbol, size_t n,
                               size_t offset, enum cudaMemcpyKind kind)
{
    void *src = NULL;
    cudaError_t e = symbol_range(symbol, n, offset, &src);

    return cudart_done(e != cudaSuccess ? e : copy_now(v, dst, src, n, kind));
}

static cudaError_t to_symbol_async(enum cudart_variant v, const void *symbol, const void *src,
                                   size_t n, size_t offset, enum cudaMemcpyKind kind,
                                   cudaStream_t stream)
{
    void *dst = NULL;
    cudaError_t e = symbol_range(symbol, n, offset, &dst);

    return cudart_done(e != cudaSuccess ? e : copy_later(v, dst, src, n, kind, stream));
}

static cudaError_t from_symbol_async(enum cudart_variant v, void *dst, const void *symbol,
                                     size_t n, size_t offset, enum cudaMemcpyKind kind,
                                     cudaStream_t stream)
{
    void *src = NULL;
    cudaError_t e = symbol_range(symbol, n, offset, &src);

    return cudart_done(e != cudaSuccess ? e : copy_later(v, dst, src, n, kind, stream));
}

CUDART_BOTH(cudaMemcpyToSymbol, _ptds, to_symbol,
            (const void *symbol, const void *src, size_t n, size_t offset,
             enum cudaMemcpyKind kind),
            symbol, src, n, offset, kind)
CUDART_BOTH(cudaMemcpyFromSymbol, _ptds, from_symbol,
            (void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind),
            dst, symbol, n, offset, kind)
CUDART_BOTH(cudaMemcpyToSymbolAsync, _ptsz, to_symbol_async,
            (const void *symbol, const void *src, size_t n, size_t offset,
             enum cudaMemcpyKind kind, cudaStream_t stream),
            symbol, src, n, offset, kind, stream)
CUDART_BOTH(cudaMemcpyFromSymbolAsync, _ptsz, from_symbol_async,
            (void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind,
             cudaStream_t stream),
            dst, symbol, n, offset, kind, stream)

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_variable(symbol, &base, &bytes);
    if (e == cudaSuccess)
        *address = cudart_hptr(base);
    return cudart_done(e);
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr base = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_variable(symbol, &base, size);
    return cudart_done(e);
}
