/* Setting memory in one, two and three dimensions. */
#include "cudart_internal.h"

static cudaError_t set(enum cudart_variant v, void *ptr, int value, size_t n)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && n)
        e = CUDART_CALL(MemsetD8[v], cudart_dptr(ptr), (unsigned char)value, n);
    return cudart_done(e);
}

static cudaError_t set_async(enum cudart_variant v, void *ptr, int value, size_t n,
                             cudaStream_t stream)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && n)
        e = CUDART_CALL(MemsetD8Async[v], cudart_dptr(ptr), (unsigned char)value, n, stream);
    return cudart_done(e);
}

static cudaError_t set_2d(enum cudart_variant v, void *ptr, size_t pitch, int value, size_t width,
                          size_t height)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && width && height)
        e = CUDART_CALL(MemsetD2D8[v], cudart_dptr(ptr), pitch, (unsigned char)value, width,
                        height);
    return cudart_done(e);
}

static cudaError_t set_2d_async(enum cudart_variant v, void *ptr, size_t pitch, int value,
                                size_t width, size_t height, cudaStream_t stream)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && width && height)
        e = CUDART_CALL(MemsetD2D8Async[v], cudart_dptr(ptr), pitch, (unsigned char)value, width,
                        height, stream);
    return cudart_done(e);
}

/* One driver call where the slices follow each other without a gap, else one a slice. */
static cudaError_t set_3d_on(enum cudart_variant v, struct cudaPitchedPtr p, int value,
                             struct cudaExtent x, int async, cudaStream_t stream)
{
    size_t slices = x.depth, rows = x.height, step = p.pitch * p.ysize;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && x.width && p.ysize == x.height) {
        rows = x.height * x.depth;
        slices = rows ? 1 : 0;
    }
    if (!x.width || !x.height)
        slices = 0;
    for (size_t i = 0; e == cudaSuccess && i < slices; i++) {
        CUdeviceptr at = cudart_dptr(p.ptr) + i * step;

        e = async ? CUDART_CALL(MemsetD2D8Async[v], at, p.pitch, (unsigned char)value, x.width,
                                rows, stream)
                  : CUDART_CALL(MemsetD2D8[v], at, p.pitch, (unsigned char)value, x.width, rows);
    }
    return cudart_done(e);
}

static cudaError_t set_3d(enum cudart_variant v, struct cudaPitchedPtr p, int value,
                          struct cudaExtent extent)
{
    return set_3d_on(v, p, value, extent, 0, NULL);
}

static cudaError_t set_3d_async(enum cudart_variant v, struct cudaPitchedPtr p, int value,
                                struct cudaExtent extent, cudaStream_t stream)
{
    return set_3d_on(v, p, value, extent, 1, stream);
}

CUDART_BOTH(cudaMemset, _ptds, set, (void *ptr, int value, size_t n), ptr, value, n)
CUDART_BOTH(cudaMemsetAsync, _ptsz, set_async,
            (void *ptr, int value, size_t n, cudaStream_t stream), ptr, value, n, stream)
CUDART_BOTH(cudaMemset2D, _ptds, set_2d,
            (void *ptr, size_t pitch, int value, size_t width, size_t height), ptr, pitch, value,
            width, height)
CUDART_BOTH(cudaMemset2DAsync, _ptsz, set_2d_async,
            (void *ptr, size_t pitch, int value, size_t width, size_t height,
             cudaStream_t stream),
            ptr, pitch, value, width, height, stream)
CUDART_BOTH(cudaMemset3D, _ptds, set_3d,
            (struct cudaPitchedPtr p, int value, struct cudaExtent extent), p, value, extent)
CUDART_BOTH(cudaMemset3DAsync, _ptsz, set_3d_async,
            (struct cudaPitchedPtr p, int value, struct cudaExtent extent, cudaStream_t stream), p,
            value, extent, stream)
