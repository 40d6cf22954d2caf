/*
 * The first generation of names (32-bit device pointers and sizes). They exist so that a resolver asked for an old
 * version finds them; the card's addresses do not fit in 32 bits, so calls that would return or take one refuse.
 */
#include "fake.h"

#define OUT_OF_RANGE(name, params) FK_API(name, params, CUDA_ERROR_OUT_OF_MEMORY)
#define REFUSED(name, params) FK_API(name, params, CUDA_ERROR_INVALID_VALUE)
#pragma GCC diagnostic ignored "-Wunused-parameter"

static unsigned clamp(size_t n) { return n > UINT32_MAX ? UINT32_MAX : (unsigned)n; }

static CUresult total(unsigned *bytes, CUdevice dev)
{
    struct fk_dev *d;
    if (bytes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    *bytes = clamp(d->capacity);
    return CUDA_SUCCESS;
}
FK_API(cuDeviceTotalMem, (unsigned *bytes, CUdevice dev), total(bytes, dev))

static CUresult info(unsigned *free_out, unsigned *total_out)
{
    struct fk_ctx *c;
    size_t f, t;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(fk_write_info(&f, &t, c->device));
    if (free_out != NULL)
        *free_out = clamp(f);
    if (total_out != NULL)
        *total_out = clamp(t);
    return CUDA_SUCCESS;
}
FK_API(cuMemGetInfo, (unsigned *free_out, unsigned *total_out), info(free_out, total_out))

OUT_OF_RANGE(cuMemAlloc, (CUdeviceptr_v1 *p, unsigned n))
OUT_OF_RANGE(cuMemAllocPitch, (CUdeviceptr_v1 *p, unsigned *pitch, unsigned w, unsigned h, unsigned e))
OUT_OF_RANGE(cuMemAllocHost, (void **p, unsigned n))
OUT_OF_RANGE(cuCtxCreate, (CUcontext *out, unsigned flags, CUdevice dev))
REFUSED(cuMemFree, (CUdeviceptr_v1 p))
REFUSED(cuMemGetAddressRange, (CUdeviceptr_v1 *base, unsigned *n, CUdeviceptr_v1 p))
REFUSED(cuMemHostGetDevicePointer, (CUdeviceptr_v1 *out, void *p, unsigned flags))
REFUSED(cuModuleGetGlobal, (CUdeviceptr_v1 *p, unsigned *n, CUmodule m, const char *name))
REFUSED(cuMemcpyHtoD, (CUdeviceptr_v1 d, const void *s, unsigned n))
REFUSED(cuMemcpyDtoH, (void *d, CUdeviceptr_v1 s, unsigned n))
REFUSED(cuMemcpyDtoD, (CUdeviceptr_v1 d, CUdeviceptr_v1 s, unsigned n))
REFUSED(cuMemcpyDtoA, (CUarray d, unsigned x, CUdeviceptr_v1 s, unsigned n))
REFUSED(cuMemcpyAtoD, (CUdeviceptr_v1 d, CUarray s, unsigned x, unsigned n))
REFUSED(cuMemcpyHtoA, (CUarray d, unsigned x, const void *s, unsigned n))
REFUSED(cuMemcpyAtoH, (void *d, CUarray s, unsigned x, unsigned n))
REFUSED(cuMemcpyAtoA, (CUarray d, unsigned x, CUarray s, unsigned y, unsigned n))
REFUSED(cuMemcpyHtoAAsync, (CUarray d, unsigned x, const void *s, unsigned n, CUstream h))
REFUSED(cuMemcpyAtoHAsync, (void *d, CUarray s, unsigned x, unsigned n, CUstream h))
REFUSED(cuMemcpyHtoDAsync, (CUdeviceptr_v1 d, const void *s, unsigned n, CUstream h))
REFUSED(cuMemcpyDtoHAsync, (void *d, CUdeviceptr_v1 s, unsigned n, CUstream h))
REFUSED(cuMemcpyDtoDAsync, (CUdeviceptr_v1 d, CUdeviceptr_v1 s, unsigned n, CUstream h))
REFUSED(cuMemcpy2D, (const CUDA_MEMCPY2D_v1 *p))
REFUSED(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1 *p))
REFUSED(cuMemcpy3D, (const CUDA_MEMCPY3D_v1 *p))
REFUSED(cuMemcpy2DAsync, (const CUDA_MEMCPY2D_v1 *p, CUstream h))
REFUSED(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1 *p, CUstream h))
REFUSED(cuMemsetD8, (CUdeviceptr_v1 p, unsigned char v, unsigned n))
REFUSED(cuMemsetD16, (CUdeviceptr_v1 p, unsigned short v, unsigned n))
REFUSED(cuMemsetD32, (CUdeviceptr_v1 p, unsigned v, unsigned n))
REFUSED(cuMemsetD2D8, (CUdeviceptr_v1 p, unsigned pitch, unsigned char v, unsigned w, unsigned h))
REFUSED(cuMemsetD2D16, (CUdeviceptr_v1 p, unsigned pitch, unsigned short v, unsigned w, unsigned h))
REFUSED(cuMemsetD2D32, (CUdeviceptr_v1 p, unsigned pitch, unsigned v, unsigned w, unsigned h))
REFUSED(cuArrayCreate, (CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *p))
REFUSED(cuArrayGetDescriptor, (CUDA_ARRAY_DESCRIPTOR_v1 *out, CUarray h))
REFUSED(cuArray3DCreate, (CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *p))
REFUSED(cuArray3DGetDescriptor, (CUDA_ARRAY3D_DESCRIPTOR_v1 *out, CUarray h))
REFUSED(cuCtxDestroy, (CUcontext c))
REFUSED(cuCtxPopCurrent, (CUcontext *out))
REFUSED(cuCtxPushCurrent, (CUcontext c))
REFUSED(cuStreamDestroy, (CUstream h))
REFUSED(cuEventDestroy, (CUevent h))
