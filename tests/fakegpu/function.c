/*
 * What is asked of and set for kernels and functions: names, attributes, parameters, whether their code is there, occupancy. Where code
 * is loaded, and for occupancy, a kernel serves as well, cast to a function, but not for names, attributes and parameters; where a kernel is asked for a function does not.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <string.h>

static bool launchable(const void *h) { return fk_handle_is(h, FK_T_FUNC) || fk_handle_is(h, FK_T_KERNEL); }

static CUresult name_of(const char **out, void *h, bool valid)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = ((struct fk_func *)h)->name;
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetName, (const char **out, CUfunction h), name_of(out, h, fk_handle_is(h, FK_T_FUNC)))
FK_API(cuKernelGetName, (const char **out, CUkernel h), name_of(out, h, fk_handle_is(h, FK_T_KERNEL)))

/* ---- attributes: a kernel's are of a device, and go to the functions that it has there; a function's are its own ---- */

static CUresult kernel_attr(struct fk_func *k, CUfunction_attribute a, int *out, int value, CUdevice dev)
{
    struct fk_dev *d;
    if (!fk_handle_is(k, FK_T_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_device(dev, &d));
    if ((unsigned)a >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (out != NULL) {
        *out = k->attrs[dev][a];
        return CUDA_SUCCESS;
    }
    k->attrs[dev][a] = value;
    for (struct fk_func *f = k->functions; f != NULL; f = f->sibling)
        if (f->module->ctx->device == dev)
            f->attrs[dev][a] = value;
    return CUDA_SUCCESS;
}

static CUresult func_attr(void *h, CUfunction_attribute a, int *out, int value)
{
    struct fk_func *f = h;
    if (!fk_handle_is(h, FK_T_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    if ((unsigned)a >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    int *at = &f->attrs[f->module->ctx->device][a];
    if (out != NULL)
        *out = *at;
    else
        *at = value;
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetAttribute, (int *out, CUfunction_attribute a, CUfunction h),
       (out == NULL ? CUDA_ERROR_INVALID_VALUE : func_attr(h, a, out, 0)))
FK_API(cuFuncSetAttribute, (CUfunction h, CUfunction_attribute a, int v), func_attr(h, a, NULL, v))
FK_API(cuKernelGetAttribute, (int *out, CUfunction_attribute a, CUkernel h, CUdevice dev),
       (out == NULL ? CUDA_ERROR_INVALID_VALUE : kernel_attr((struct fk_func *)h, a, out, 0, dev)))
FK_API(cuKernelSetAttribute, (CUfunction_attribute a, int v, CUkernel h, CUdevice dev),
       kernel_attr((struct fk_func *)h, a, NULL, v, dev))
FK_API(cuFuncSetCacheConfig, (CUfunction h, CUfunc_cache c), ((void)c, launchable(h) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE))
FK_API(cuFuncSetSharedMemConfig, (CUfunction h, CUsharedconfig c), ((void)c, launchable(h) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE))
FK_API(cuKernelSetCacheConfig, (CUkernel h, CUfunc_cache c, CUdevice dev),
       ((void)c, kernel_attr((struct fk_func *)h, 0, &(int){0}, 0, dev)))

/* ---- parameters ---- */

static CUresult param_info(void *h, size_t index, size_t *offset, size_t *size, bool valid)
{
    struct fk_func *f = h;
    if (!valid)
        return CUDA_ERROR_INVALID_HANDLE;
    if (offset != NULL && index < f->params.count) {
        *offset = f->params.offset[index];
        if (size != NULL)
            *size = f->params.size[index];
        return CUDA_SUCCESS;
    }
    if (offset == NULL || f->builtin == NULL || index >= (size_t)f->builtin->nargs)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = f->builtin->offset[index];
    if (size != NULL)
        *size = f->builtin->size[index];
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetParamInfo, (CUfunction h, size_t i, size_t *offset, size_t *size), param_info(h, i, offset, size, fk_handle_is(h, FK_T_FUNC)))
FK_API(cuKernelGetParamInfo, (CUkernel h, size_t i, size_t *offset, size_t *size),
       param_info(h, i, offset, size, fk_handle_is(h, FK_T_KERNEL)))

/* ---- code ---- */

/* A kernel is meant in the current context, a function in its own. */
static CUresult func_load(void *h)
{
    struct fk_func *f = h;
    struct fk_ctx *c;
    if (!launchable(h))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_ctx(&c));
    if (fk_handle_is(h, FK_T_KERNEL))
        FK_TRY(fk_function_in(&f, h, c));
    return fk_kernel_charge(f, c);
}
FK_API(cuFuncLoad, (CUfunction h), func_load(h))

static CUresult is_loaded(CUfunctionLoadingState *out, void *h)
{
    const struct fk_func *f = h;
    struct fk_ctx *c;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!launchable(h))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_ctx(&c));
    if (fk_handle_is(h, FK_T_KERNEL))
        f = fk_function_known(h, c);
    *out = f != NULL && f->module->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}
FK_API(cuFuncIsLoaded, (CUfunctionLoadingState *out, CUfunction h), is_loaded(out, h))

/* ---- occupancy ---- */

static CUresult occupancy(int *out, void *h, int threads)
{
    if (out == NULL || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!launchable(h))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = threads > 1024 ? 0 : 2048 / (threads < 64 ? 64 : threads);
    return CUDA_SUCCESS;
}
FK_API(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *out, CUfunction h, int threads, size_t smem),
       ((void)smem, occupancy(out, h, threads)))
FK_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int *out, CUfunction h, int threads, size_t smem, unsigned flags),
       ((void)smem, (void)flags, occupancy(out, h, threads)))

static CUresult potential(int *grid, int *block, void *h, int limit)
{
    if (grid == NULL || block == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!launchable(h))
        return CUDA_ERROR_INVALID_HANDLE;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 132 * 2;
    return CUDA_SUCCESS;
}
FK_API(cuOccupancyMaxPotentialBlockSize, (int *g, int *b, CUfunction h, CUoccupancyB2DSize fn, size_t smem, int limit),
       ((void)fn, (void)smem, potential(g, b, h, limit)))
FK_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
       (int *g, int *b, CUfunction h, CUoccupancyB2DSize fn, size_t smem, int limit, unsigned flags),
       ((void)fn, (void)smem, (void)flags, potential(g, b, h, limit)))
FK_API(cuOccupancyAvailableDynamicSMemPerBlock, (size_t *out, CUfunction h, int blocks, int threads),
       ((void)h, (void)threads, out == NULL || blocks <= 0 ? CUDA_ERROR_INVALID_VALUE : (*out = 233472u / (unsigned)blocks, CUDA_SUCCESS)))
