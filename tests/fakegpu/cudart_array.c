/* CUDA arrays and mipmapped arrays: creation, release, questions. */
#include "cudart_internal.h"

size_t cudart_element_size(CUarray_format format, unsigned channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2u * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4u * channels;
    default:
        return 0;
    }
}

/* The plain formats only; channels must be equally wide and without gaps. */
static cudaError_t to_format(const struct cudaChannelFormatDesc *d, CUarray_format *format,
                             unsigned *channels)
{
    int bits[4] = {d->x, d->y, d->z, d->w};
    unsigned n = 0;

    while (n < 4 && bits[n])
        n++;
    for (unsigned i = 0; i < 4; i++)
        if (bits[i] != (i < n ? d->x : 0))
            return cudaErrorInvalidChannelDescriptor;
    if (n == 0 || n == 3)
        return cudaErrorInvalidChannelDescriptor;
    *channels = n;
    if (d->f == cudaChannelFormatKindUnsigned && d->x == 8)
        *format = CU_AD_FORMAT_UNSIGNED_INT8;
    else if (d->f == cudaChannelFormatKindUnsigned && d->x == 16)
        *format = CU_AD_FORMAT_UNSIGNED_INT16;
    else if (d->f == cudaChannelFormatKindUnsigned && d->x == 32)
        *format = CU_AD_FORMAT_UNSIGNED_INT32;
    else if (d->f == cudaChannelFormatKindSigned && d->x == 8)
        *format = CU_AD_FORMAT_SIGNED_INT8;
    else if (d->f == cudaChannelFormatKindSigned && d->x == 16)
        *format = CU_AD_FORMAT_SIGNED_INT16;
    else if (d->f == cudaChannelFormatKindSigned && d->x == 32)
        *format = CU_AD_FORMAT_SIGNED_INT32;
    else if (d->f == cudaChannelFormatKindFloat && d->x == 16)
        *format = CU_AD_FORMAT_HALF;
    else if (d->f == cudaChannelFormatKindFloat && d->x == 32)
        *format = CU_AD_FORMAT_FLOAT;
    else
        return cudaErrorInvalidChannelDescriptor;
    return cudaSuccess;
}

static struct cudaChannelFormatDesc from_format(CUarray_format format, unsigned channels)
{
    struct cudaChannelFormatDesc d = {0, 0, 0, 0, cudaChannelFormatKindUnsigned};
    int bits = (int)(8 * cudart_element_size(format, 1));

    if (format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT)
        d.f = cudaChannelFormatKindFloat;
    else if (format == CU_AD_FORMAT_SIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT16
             || format == CU_AD_FORMAT_SIGNED_INT32)
        d.f = cudaChannelFormatKindSigned;
    d.x = bits;
    d.y = channels > 1 ? bits : 0;
    d.z = channels > 2 ? bits : 0;
    d.w = channels > 3 ? bits : 0;
    return d;
}

static cudaError_t describe(const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                            unsigned int flags, CUDA_ARRAY3D_DESCRIPTOR *d)
{
    if (!format)
        return cudaErrorInvalidValue;
    *d = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width,
        .Height = extent.height,
        .Depth = extent.depth,
        .Flags = flags,
    };
    return to_format(format, &d->Format, &d->NumChannels);
}

static cudaError_t create(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                          struct cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUarray made = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !array)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return e;
    e = describe(format, extent, flags, &d);
    if (e == cudaSuccess)
        e = CUDART_CALL(Array3DCreate, &made, &d);
    *array = e == cudaSuccess ? (cudaArray_t)made : NULL;
    return e;
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                            size_t width, size_t height, unsigned int flags)
{
    return cudart_done(create(array, format, (struct cudaExtent){width, height, 0}, flags));
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *format,
                              struct cudaExtent extent, unsigned int flags)
{
    return cudart_done(create(array, format, extent, flags));
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array,
                                     const struct cudaChannelFormatDesc *format,
                                     struct cudaExtent extent, unsigned int levels,
                                     unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    CUmipmappedArray made = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !array)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    e = describe(format, extent, flags, &d);
    if (e == cudaSuccess)
        e = CUDART_CALL(MipmappedArrayCreate, &made, &d, levels);
    *array = e == cudaSuccess ? (cudaMipmappedArray_t)made : NULL;
    return cudart_done(e);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && array)
        e = CUDART_CALL(ArrayDestroy, (CUarray)array);
    return cudart_done(e);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && array)
        e = CUDART_CALL(MipmappedArrayDestroy, (CUmipmappedArray)array);
    return cudart_done(e);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level_array, cudaMipmappedArray_const_t array,
                                       unsigned int level)
{
    CUDART_PASS(MipmappedArrayGetLevel, (CUarray *)level_array, (CUmipmappedArray)(size_t)array,
                level);
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *format, struct cudaExtent *extent,
                             unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = CUDART_CALL(Array3DGetDescriptor, &d, (CUarray)array);
    if (e == cudaSuccess) {
        if (format)
            *format = from_format(d.Format, d.NumChannels);
        if (extent)
            *extent = (struct cudaExtent){d.Width, d.Height, d.Depth};
        if (flags)
            *flags = d.Flags;
    }
    return cudart_done(e);
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *format, cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !format)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(Array3DGetDescriptor, &d, (CUarray)(size_t)array);
    if (e == cudaSuccess)
        *format = from_format(d.Format, d.NumChannels);
    return cudart_done(e);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind f)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, f};
}

cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned int index)
{
    CUDART_PASS(ArrayGetPlane, (CUarray *)plane, (CUarray)array, index);
}

_Static_assert(sizeof(struct cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
               "memory requirements differ");
_Static_assert(sizeof(struct cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES),
               "sparse properties differ");

cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *out,
                                           cudaArray_t array, int device)
{
    CUDART_PASS(ArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)(void *)out,
                (CUarray)array, device);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *out,
                                                    cudaMipmappedArray_t array, int device)
{
    CUDART_PASS(MipmappedArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)(void *)out,
                (CUmipmappedArray)array, device);
}

cudaError_t cudaArrayGetSparseProperties(struct cudaArraySparseProperties *out, cudaArray_t array)
{
    CUDART_PASS(ArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *)(void *)out,
                (CUarray)array);
}

cudaError_t cudaMipmappedArrayGetSparseProperties(struct cudaArraySparseProperties *out,
                                                  cudaMipmappedArray_t array)
{
    CUDART_PASS(MipmappedArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES *)(void *)out,
                (CUmipmappedArray)array);
}
