/* The deprecated one-dimensional array copies: a count of bytes that runs over
 * the ends of rows. Each stretch within a row is one driver copy. */
#include "cudart_internal.h"

/* One side of such a copy: an array position, or plain memory (array NULL). */
struct side {
    CUarray array;
    CUmemorytype type;
    size_t x, y, row; /* row: bytes of an array row */
    char *plain;
};

static cudaError_t array_side(struct side *s, cudaArray_const_t array, size_t x, size_t y)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t e;

    *s = (struct side){.array = (CUarray)(size_t)array, .type = CU_MEMORYTYPE_ARRAY, .x = x, .y = y};
    e = CUDART_CALL(Array3DGetDescriptor, &d, s->array);
    if (e == cudaSuccess) {
        s->row = d.Width * cudart_element_size(d.Format, d.NumChannels);
        if (x >= s->row)
            e = cudaErrorInvalidValue;
    }
    return e;
}

static size_t stretch(const struct side *s, size_t left)
{
    return s->array && s->row - s->x < left ? s->row - s->x : left;
}

static void advance(struct side *s, size_t n)
{
    if (!s->array) {
        s->plain += n;
        return;
    }
    s->x += n;
    if (s->x == s->row) {
        s->x = 0;
        s->y++;
    }
}

static cudaError_t run(enum cudart_variant v, struct side dst, struct side src, size_t count,
                       int async, cudaStream_t stream)
{
    cudaError_t e = cudaSuccess;

    while (e == cudaSuccess && count) {
        size_t n = stretch(&src, stretch(&dst, count));
        CUDA_MEMCPY2D c = {
            .srcXInBytes = src.x,
            .srcY = src.y,
            .srcMemoryType = src.type,
            .srcHost = src.plain,
            .srcDevice = cudart_dptr(src.plain),
            .srcArray = src.array,
            .srcPitch = n,
            .dstXInBytes = dst.x,
            .dstY = dst.y,
            .dstMemoryType = dst.type,
            .dstHost = dst.plain,
            .dstDevice = cudart_dptr(dst.plain),
            .dstArray = dst.array,
            .dstPitch = n,
            .WidthInBytes = n,
            .Height = 1,
        };

        e = async ? CUDART_CALL(Memcpy2DAsync[v], &c, stream)
                  : CUDART_CALL(Memcpy2DUnaligned[v], &c);
        advance(&src, n);
        advance(&dst, n);
        count -= n;
    }
    return e;
}

static cudaError_t to_array(enum cudart_variant v, cudaArray_t array, size_t x, size_t y,
                            const void *from, size_t count, enum cudaMemcpyKind kind, int async,
                            cudaStream_t stream)
{
    struct side dst, src = {.plain = (char *)(size_t)from};
    CUmemorytype unused;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !cudart_kind(kind, &unused, &src.type))
        e = cudaErrorInvalidMemcpyDirection;
    if (e == cudaSuccess)
        e = array_side(&dst, array, x, y);
    return cudart_done(e != cudaSuccess ? e : run(v, dst, src, count, async, stream));
}

static cudaError_t from_array(enum cudart_variant v, void *to, cudaArray_const_t array, size_t x,
                              size_t y, size_t count, enum cudaMemcpyKind kind, int async,
                              cudaStream_t stream)
{
    struct side src, dst = {.plain = to};
    CUmemorytype unused;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !cudart_kind(kind, &dst.type, &unused))
        e = cudaErrorInvalidMemcpyDirection;
    if (e == cudaSuccess)
        e = array_side(&src, array, x, y);
    return cudart_done(e != cudaSuccess ? e : run(v, dst, src, count, async, stream));
}

static cudaError_t array_to_array(enum cudart_variant v, cudaArray_t to, size_t dst_x,
                                  size_t dst_y, cudaArray_const_t from, size_t src_x, size_t src_y,
                                  size_t count, enum cudaMemcpyKind kind)
{
    struct side src, dst;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        e = cudaErrorInvalidMemcpyDirection;
    if (e == cudaSuccess)
        e = array_side(&dst, to, dst_x, dst_y);
    if (e == cudaSuccess)
        e = array_side(&src, from, src_x, src_y);
    return cudart_done(e != cudaSuccess ? e : run(v, dst, src, count, 0, NULL));
}

/* Defining a deprecated function is no use of it, so nothing warns here. */
CUDART_BOTH(cudaMemcpyToArray, _ptds, to_array,
            (cudaArray_t dst, size_t x, size_t y, const void *src, size_t count,
             enum cudaMemcpyKind kind),
            dst, x, y, src, count, kind, 0, NULL)
CUDART_BOTH(cudaMemcpyToArrayAsync, _ptsz, to_array,
            (cudaArray_t dst, size_t x, size_t y, const void *src, size_t count,
             enum cudaMemcpyKind kind, cudaStream_t stream),
            dst, x, y, src, count, kind, 1, stream)
CUDART_BOTH(cudaMemcpyFromArray, _ptds, from_array,
            (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
             enum cudaMemcpyKind kind),
            dst, src, x, y, count, kind, 0, NULL)
CUDART_BOTH(cudaMemcpyFromArrayAsync, _ptsz, from_array,
            (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t count,
             enum cudaMemcpyKind kind, cudaStream_t stream),
            dst, src, x, y, count, kind, 1, stream)
CUDART_BOTH(cudaMemcpyArrayToArray, _ptds, array_to_array,
            (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,
             size_t src_y, size_t count, enum cudaMemcpyKind kind),
            dst, dst_x, dst_y, src, src_x, src_y, count, kind)
