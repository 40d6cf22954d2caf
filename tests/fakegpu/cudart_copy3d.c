/* Three-dimensional copies and copies to, from and between arrays.
 *
 * The runtime counts an array's columns in elements and everything else in
 * bytes; the driver counts bytes throughout. All conversions are here. */
#include "cudart_internal.h"

static cudaError_t array_element(cudaArray_t array, size_t *bytes)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t e = CUDART_CALL(Array3DGetDescriptor, &d, (CUarray)array);

    if (e == cudaSuccess)
        *bytes = cudart_element_size(d.Format, d.NumChannels);
    return e;
}

cudaError_t cudart_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
    size_t src_element = 1, dst_element = 1, width_element;
    cudaError_t e = cudaSuccess;

    *out = (CUDA_MEMCPY3D){0};
    if (!p || (!p->srcArray && !p->srcPtr.ptr) || (!p->dstArray && !p->dstPtr.ptr))
        return cudaErrorInvalidValue;
    if (!cudart_kind(p->kind, &out->dstMemoryType, &out->srcMemoryType))
        return cudaErrorInvalidMemcpyDirection;
    if (p->srcArray)
        e = array_element(p->srcArray, &src_element);
    if (e == cudaSuccess && p->dstArray)
        e = array_element(p->dstArray, &dst_element);
    if (e != cudaSuccess)
        return e;
    /* With an array on either side the width counts that array's elements. */
    width_element = p->srcArray ? src_element : dst_element;

    out->srcXInBytes = p->srcPos.x * src_element;
    out->srcY = p->srcPos.y;
    out->srcZ = p->srcPos.z;
    out->dstXInBytes = p->dstPos.x * dst_element;
    out->dstY = p->dstPos.y;
    out->dstZ = p->dstPos.z;
    if (p->srcArray) {
        out->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        out->srcArray = (CUarray)p->srcArray;
    } else {
        out->srcHost = p->srcPtr.ptr;
        out->srcDevice = cudart_dptr(p->srcPtr.ptr);
        out->srcPitch = p->srcPtr.pitch;
        out->srcHeight = p->srcPtr.ysize;
    }
    if (p->dstArray) {
        out->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        out->dstArray = (CUarray)p->dstArray;
    } else {
        out->dstHost = p->dstPtr.ptr;
        out->dstDevice = cudart_dptr(p->dstPtr.ptr);
        out->dstPitch = p->dstPtr.pitch;
        out->dstHeight = p->dstPtr.ysize;
    }
    out->WidthInBytes = p->extent.width * width_element;
    out->Height = p->extent.height;
    out->Depth = p->extent.depth;
    return cudaSuccess;
}

static enum cudaMemcpyKind kind_of(CUmemorytype dst, CUmemorytype src)
{
    int to_host = dst == CU_MEMORYTYPE_HOST, from_host = src == CU_MEMORYTYPE_HOST;

    if (dst == CU_MEMORYTYPE_UNIFIED || src == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (to_host)
        return from_host ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
    return from_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

cudaError_t cudart_copy3d_back(const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *out)
{
    size_t src_element = 1, dst_element = 1;
    cudaError_t e = cudaSuccess;

    *out = (struct cudaMemcpy3DParms){0};
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY) {
        out->srcArray = (cudaArray_t)c->srcArray;
        e = array_element(out->srcArray, &src_element);
    } else {
        out->srcPtr.ptr = c->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(size_t)c->srcHost
                                                                 : cudart_hptr(c->srcDevice);
        out->srcPtr.pitch = c->srcPitch;
        out->srcPtr.ysize = c->srcHeight;
    }
    if (e == cudaSuccess && c->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        out->dstArray = (cudaArray_t)c->dstArray;
        e = array_element(out->dstArray, &dst_element);
    } else {
        out->dstPtr.ptr = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost
                                                                 : cudart_hptr(c->dstDevice);
        out->dstPtr.pitch = c->dstPitch;
        out->dstPtr.ysize = c->dstHeight;
    }
    if (e != cudaSuccess || !src_element || !dst_element)
        return e != cudaSuccess ? e : cudaErrorInvalidValue;
    out->srcPos = (struct cudaPos){c->srcXInBytes / src_element, c->srcY, c->srcZ};
    out->dstPos = (struct cudaPos){c->dstXInBytes / dst_element, c->dstY, c->dstZ};
    out->extent.width = c->WidthInBytes / (out->srcArray ? src_element : dst_element);
    out->extent.height = c->Height;
    out->extent.depth = c->Depth;
    out->kind = kind_of(c->dstMemoryType, c->srcMemoryType);
    return cudaSuccess;
}

void cudart_copy1d(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                   CUDA_MEMCPY3D *out)
{
    *out = (CUDA_MEMCPY3D){0};
    (void)cudart_kind(kind, &out->dstMemoryType, &out->srcMemoryType);
    out->srcHost = src;
    out->srcDevice = cudart_dptr(src);
    out->dstHost = dst;
    out->dstDevice = cudart_dptr(dst);
    out->srcPitch = out->dstPitch = bytes;
    out->srcHeight = out->dstHeight = 1;
    out->WidthInBytes = bytes;
    out->Height = 1;
    out->Depth = 1;
}

static cudaError_t copy_3d(enum cudart_variant v, const struct cudaMemcpy3DParms *p)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_copy3d(p, &c);
    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(Memcpy3D[v], &c));
}

static cudaError_t copy_3d_async(enum cudart_variant v, const struct cudaMemcpy3DParms *p,
                                 cudaStream_t stream)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_copy3d(p, &c);
    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(Memcpy3DAsync[v], &c, stream));
}

CUDART_BOTH(cudaMemcpy3D, _ptds, copy_3d, (const struct cudaMemcpy3DParms *p), p)
CUDART_BOTH(cudaMemcpy3DAsync, _ptsz, copy_3d_async,
            (const struct cudaMemcpy3DParms *p, cudaStream_t stream), p, stream)

static cudaError_t describe_peer(const struct cudaMemcpy3DPeerParms *p, CUDA_MEMCPY3D_PEER *out)
{
    struct cudaMemcpy3DParms plain;
    CUDA_MEMCPY3D c;
    cudaError_t e;

    if (!p)
        return cudaErrorInvalidValue;
    plain = (struct cudaMemcpy3DParms){
        .srcArray = p->srcArray,
        .srcPos = p->srcPos,
        .srcPtr = p->srcPtr,
        .dstArray = p->dstArray,
        .dstPos = p->dstPos,
        .dstPtr = p->dstPtr,
        .extent = p->extent,
        .kind = cudaMemcpyDeviceToDevice,
    };
    e = cudart_copy3d(&plain, &c);
    if (e != cudaSuccess)
        return e;
    *out = (CUDA_MEMCPY3D_PEER){
        .srcXInBytes = c.srcXInBytes,
        .srcY = c.srcY,
        .srcZ = c.srcZ,
        .srcMemoryType = c.srcMemoryType,
        .srcDevice = c.srcDevice,
        .srcArray = c.srcArray,
        .srcPitch = c.srcPitch,
        .srcHeight = c.srcHeight,
        .dstXInBytes = c.dstXInBytes,
        .dstY = c.dstY,
        .dstZ = c.dstZ,
        .dstMemoryType = c.dstMemoryType,
        .dstDevice = c.dstDevice,
        .dstArray = c.dstArray,
        .dstPitch = c.dstPitch,
        .dstHeight = c.dstHeight,
        .WidthInBytes = c.WidthInBytes,
        .Height = c.Height,
        .Depth = c.Depth,
    };
    e = cudart_primary(p->srcDevice, &out->srcContext);
    return e != cudaSuccess ? e : cudart_primary(p->dstDevice, &out->dstContext);
}

static cudaError_t copy_3d_peer(enum cudart_variant v, const struct cudaMemcpy3DPeerParms *p)
{
    CUDA_MEMCPY3D_PEER c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = describe_peer(p, &c);
    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(Memcpy3DPeer[v], &c));
}

static cudaError_t copy_3d_peer_async(enum cudart_variant v, const struct cudaMemcpy3DPeerParms *p,
                                      cudaStream_t stream)
{
    CUDA_MEMCPY3D_PEER c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = describe_peer(p, &c);
    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(Memcpy3DPeerAsync[v], &c, stream));
}

CUDART_BOTH(cudaMemcpy3DPeer, _ptds, copy_3d_peer, (const struct cudaMemcpy3DPeerParms *p), p)
CUDART_BOTH(cudaMemcpy3DPeerAsync, _ptsz, copy_3d_peer_async,
            (const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream), p, stream)

/* Two-dimensional copies with an array count bytes in every column already. */
static cudaError_t side(CUDA_MEMCPY2D *c, enum cudaMemcpyKind kind)
{
    return cudart_kind(kind, &c->dstMemoryType, &c->srcMemoryType)
               ? cudaSuccess
               : cudaErrorInvalidMemcpyDirection;
}

static cudaError_t run_2d(enum cudart_variant v, const CUDA_MEMCPY2D *c, int async,
                          cudaStream_t stream)
{
    return async ? CUDART_CALL(Memcpy2DAsync[v], c, stream)
                 : CUDART_CALL(Memcpy2DUnaligned[v], c);
}

static cudaError_t to_array(enum cudart_variant v, cudaArray_t dst, size_t x, size_t y,
                            const void *src, size_t pitch, size_t width, size_t height,
                            enum cudaMemcpyKind kind, int async, cudaStream_t stream)
{
    CUDA_MEMCPY2D c = {.srcHost = src,
                       .srcDevice = cudart_dptr(src),
                       .srcPitch = pitch,
                       .dstXInBytes = x,
                       .dstY = y,
                       .dstArray = (CUarray)dst,
                       .WidthInBytes = width,
                       .Height = height};
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = side(&c, kind);
    c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    return cudart_done(e != cudaSuccess ? e : run_2d(v, &c, async, stream));
}

static cudaError_t from_array(enum cudart_variant v, void *dst, size_t pitch, cudaArray_const_t src,
                              size_t x, size_t y, size_t width, size_t height,
                              enum cudaMemcpyKind kind, int async, cudaStream_t stream)
{
    CUDA_MEMCPY2D c = {.srcXInBytes = x,
                       .srcY = y,
                       .srcArray = (CUarray)(size_t)src,
                       .dstHost = dst,
                       .dstDevice = cudart_dptr(dst),
                       .dstPitch = pitch,
                       .WidthInBytes = width,
                       .Height = height};
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = side(&c, kind);
    c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    return cudart_done(e != cudaSuccess ? e : run_2d(v, &c, async, stream));
}

static cudaError_t array_to_array(enum cudart_variant v, cudaArray_t dst, size_t dst_x,
                                  size_t dst_y, cudaArray_const_t src, size_t src_x, size_t src_y,
                                  size_t width, size_t height, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D c = {.srcXInBytes = src_x,
                       .srcY = src_y,
                       .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                       .srcArray = (CUarray)(size_t)src,
                       .dstXInBytes = dst_x,
                       .dstY = dst_y,
                       .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                       .dstArray = (CUarray)dst,
                       .WidthInBytes = width,
                       .Height = height};
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        e = cudaErrorInvalidMemcpyDirection;
    return cudart_done(e != cudaSuccess ? e : run_2d(v, &c, 0, NULL));
}

CUDART_BOTH(cudaMemcpy2DToArray, _ptds, to_array,
            (cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width,
             size_t height, enum cudaMemcpyKind kind),
            dst, x, y, src, pitch, width, height, kind, 0, NULL)
CUDART_BOTH(cudaMemcpy2DToArrayAsync, _ptsz, to_array,
            (cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width,
             size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
            dst, x, y, src, pitch, width, height, kind, 1, stream)
CUDART_BOTH(cudaMemcpy2DFromArray, _ptds, from_array,
            (void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
             size_t height, enum cudaMemcpyKind kind),
            dst, pitch, src, x, y, width, height, kind, 0, NULL)
CUDART_BOTH(cudaMemcpy2DFromArrayAsync, _ptsz, from_array,
            (void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
             size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
            dst, pitch, src, x, y, width, height, kind, 1, stream)
CUDART_BOTH(cudaMemcpy2DArrayToArray, _ptds, array_to_array,
            (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,
             size_t src_y, size_t width, size_t height, enum cudaMemcpyKind kind),
            dst, dst_x, dst_y, src, src_x, src_y, width, height, kind)
