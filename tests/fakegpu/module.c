/*
 * Modules, libraries, kernels and launches. Binary images are not read: any loads, and any kernel name is found in
 * it; a PTX text has the kernels that it declares. The names in `builtins` do something; all others run and change nothing. A module's code is charged at the first
 * launch of one of its kernels.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct fk_builtin builtins[] = {
    {"fake_fill", 3, {8, 1, 8}, {0, 8, 16}},          /* (dst, value, bytes) */
    {"fake_copy", 3, {8, 8, 8}, {0, 8, 16}},          /* (dst, src, bytes) */
    {"fake_spin", 1, {4}, {0}},                       /* (ms) */
    {"fake_slow_fill", 4, {8, 1, 8, 4}, {0, 8, 16, 24}}, /* (dst, value, bytes, ms): waits, then fills */
    {"fake_slow_copy", 4, {8, 8, 8, 4}, {0, 8, 16, 24}}, /* (dst, src, bytes, ms) */
    {"fake_add", 3, {8, 4, 8}, {0, 8, 16}},           /* (dst, value, words): adds to 32-bit words */
    {"spin", 1, {8}, {0}},                            /* (u64 nanoseconds); only from PTX that declares it so */
    {"poke", 1, {8}, {0}},                            /* (u64 address): stores the word 7; likewise */
};
static struct fk_module *modules;

/* The table's name, plain or as a C++ compiler mangles a function of that name. */
static const struct fk_builtin *find_builtin(const char *name)
{
    if (name[0] == '_' && name[1] == 'Z') {
        char *end;
        size_t len = strtoul(name + 2, &end, 10);
        for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
            if (strlen(builtins[i].name) == len && strncmp(end, builtins[i].name, len) == 0)
                return &builtins[i];
    }
    for (size_t i = 0; i < sizeof builtins / sizeof builtins[0]; i++)
        if (strcmp(builtins[i].name, name) == 0)
            return &builtins[i];
    return NULL;
}

/* The built-in meaning of a function; a plain English name also needs PTX with the parameters that it has here. */
static const struct fk_builtin *meaning(const struct fk_func *f)
{
    const struct fk_builtin *b = find_builtin(f->name);
    if (b != NULL && strncmp(b->name, "fake_", 5) != 0 && (f->params.count != 1 || f->params.size[0] != b->size[0]))
        return NULL;
    return b;
}

/* ---- modules ---- */

static CUresult new_module(struct fk_module **out, const void *image, bool text, bool library)
{
    struct fk_ctx *c = NULL;
    if (out == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!library)
        FK_TRY(fk_need_ctx(&c));
    struct fk_module *m = calloc(1, sizeof *m);
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->ctx = c;
    m->library = library;
    m->ptx = text ? fk_ptx_copy(image) : NULL;
    m->next = modules;
    modules = m;
    fk_handle_add(m, library ? FK_T_LIBRARY : FK_T_MODULE);
    *out = m;
    return CUDA_SUCCESS;
}

static void drop_module(struct fk_module *m)
{
    struct fk_module **at = &modules;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    for (int i = 0; i < fk_cfg.devices; i++)
        if (m->loaded >> i & 1)
            fk_uncharge(&fk_devs[i], fk_cfg.module);
    fk_handle_del(m);
    for (struct fk_func *f = m->funcs, *next; f != NULL; f = next) {
        next = f->next;
        fk_handle_del(f);
        f->module = NULL; /* queued launches and graphs may still name it: kept, without a module */
    }
    free(m->ptx);
    free(m);
}

void fk_modules_destroy(struct fk_ctx *c)
{
    for (struct fk_module *m = modules, *next; m != NULL; m = next) {
        next = m->next;
        if (m->ctx == c)
            drop_module(m);
        else if (m->library && m->loaded >> c->device & 1) {
            m->loaded &= ~(1u << c->device); /* a library loads again into the next context */
            fk_uncharge(&fk_devs[c->device], fk_cfg.module);
        }
    }
}

static CUresult load_file(CUmodule *out, const char *name)
{
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : new_module((struct fk_module **)out, name, false, false);
}
FK_API(cuModuleLoad, (CUmodule *out, const char *name), load_file(out, name))
FK_API(cuModuleLoadData, (CUmodule *out, const void *image), new_module((struct fk_module **)out, image, true, false))
FK_API(cuModuleLoadDataEx, (CUmodule *out, const void *image, unsigned n, CUjit_option *o, void **v),
       ((void)n, (void)o, (void)v, new_module((struct fk_module **)out, image, true, false)))
FK_API(cuModuleLoadFatBinary, (CUmodule *out, const void *image), new_module((struct fk_module **)out, image, true, false))
FK_API(cuLibraryLoadData,
       (CUlibrary *out, const void *code, CUjit_option *o, void **ov, unsigned n, CUlibraryOption *lo, void **lov, unsigned ln),
       ((void)o, (void)ov, (void)n, (void)lo, (void)lov, (void)ln, new_module((struct fk_module **)out, code, true, true)))
FK_API(cuLibraryLoadFromFile,
       (CUlibrary *out, const char *name, CUjit_option *o, void **ov, unsigned n, CUlibraryOption *lo, void **lov, unsigned ln),
       ((void)o, (void)ov, (void)n, (void)lo, (void)lov, (void)ln, new_module((struct fk_module **)out, name, false, true)))

static CUresult unload(void *h, enum fk_type type)
{
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    drop_module(h);
    return CUDA_SUCCESS;
}
FK_API(cuModuleUnload, (CUmodule h), unload(h, FK_T_MODULE))
FK_API(cuLibraryUnload, (CUlibrary h), unload(h, FK_T_LIBRARY))

static CUresult loading_mode(CUmoduleLoadingMode *mode)
{
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
FK_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode *mode), loading_mode(mode))

/* ---- functions and kernels: one object serves as both ---- */

static CUresult get_func(struct fk_func **out, void *h, enum fk_type type, const char *name)
{
    if (out == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    struct fk_module *m = h;
    for (struct fk_func *f = m->funcs; f != NULL; f = f->next)
        if (strcmp(f->name, name) == 0) {
            *out = f;
            return CUDA_SUCCESS;
        }
    struct fk_params params = {0};
    if (m->ptx != NULL && !fk_ptx_params(m->ptx, name, &params))
        return CUDA_ERROR_NOT_FOUND;
    struct fk_func *f = calloc(1, sizeof *f);
    if (f == NULL || (f->name = strdup(name)) == NULL) {
        free(f);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    f->module = m;
    f->params = params;
    f->builtin = meaning(f);
    f->attrs[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    f->attrs[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
    f->attrs[CU_FUNC_ATTRIBUTE_PTX_VERSION] = f->attrs[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90;
    f->attrs[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    f->attrs[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    f->next = m->funcs;
    m->funcs = f;
    fk_handle_add(f, FK_T_FUNC);
    *out = f;
    return CUDA_SUCCESS;
}
FK_API(cuModuleGetFunction, (CUfunction *out, CUmodule h, const char *name), get_func((struct fk_func **)out, h, FK_T_MODULE, name))
FK_API(cuLibraryGetKernel, (CUkernel *out, CUlibrary h, const char *name), get_func((struct fk_func **)out, h, FK_T_LIBRARY, name))

static CUresult same(void **out, void *h, enum fk_type type, bool need)
{
    struct fk_ctx *c;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    if (need)
        FK_TRY(fk_need_ctx(&c));
    *out = h;
    return CUDA_SUCCESS;
}
FK_API(cuKernelGetFunction, (CUfunction *out, CUkernel h), same((void **)out, h, FK_T_FUNC, true))
FK_API(cuLibraryGetModule, (CUmodule *out, CUlibrary h), same((void **)out, h, FK_T_LIBRARY, true))

static CUresult owner(void **out, void *h)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, FK_T_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = ((struct fk_func *)h)->module;
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetModule, (CUmodule *out, CUfunction h), owner((void **)out, h))
FK_API(cuKernelGetLibrary, (CUlibrary *out, CUkernel h), owner((void **)out, h))

static CUresult name_of(const char **out, void *h)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, FK_T_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = ((struct fk_func *)h)->name;
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetName, (const char **out, CUfunction h), name_of(out, h))
FK_API(cuKernelGetName, (const char **out, CUkernel h), name_of(out, h))

/* Images are not read, so no device variable is ever found. */
static CUresult get_global(CUdeviceptr *p, size_t *bytes, void *h, enum fk_type type, const char *name)
{
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    (void)p;
    (void)bytes;
    return CUDA_ERROR_NOT_FOUND;
}
FK_API(cuModuleGetGlobal_v2, (CUdeviceptr *p, size_t *n, CUmodule h, const char *name), get_global(p, n, h, FK_T_MODULE, name))
FK_API(cuLibraryGetGlobal, (CUdeviceptr *p, size_t *n, CUlibrary h, const char *name), get_global(p, n, h, FK_T_LIBRARY, name))
FK_API(cuLibraryGetManaged, (CUdeviceptr *p, size_t *n, CUlibrary h, const char *name), get_global(p, n, h, FK_T_LIBRARY, name))
FK_API(cuLibraryGetUnifiedFunction, (void **out, CUlibrary h, const char *name),
       ((void)out, get_global(NULL, NULL, h, FK_T_LIBRARY, name)))

static CUresult count_funcs(unsigned *out, void *h, enum fk_type type)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = 0;
    for (struct fk_func *f = ((struct fk_module *)h)->funcs; f != NULL; f = f->next)
        ++*out;
    return CUDA_SUCCESS;
}
FK_API(cuModuleGetFunctionCount, (unsigned *out, CUmodule h), count_funcs(out, h, FK_T_MODULE))
FK_API(cuLibraryGetKernelCount, (unsigned *out, CUlibrary h), count_funcs(out, h, FK_T_LIBRARY))

static CUresult enumerate(void **out, unsigned n, void *h, enum fk_type type)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    unsigned i = 0;
    for (struct fk_func *f = ((struct fk_module *)h)->funcs; f != NULL && i < n; f = f->next)
        out[i++] = f;
    return CUDA_SUCCESS;
}
FK_API(cuModuleEnumerateFunctions, (CUfunction *out, unsigned n, CUmodule h), enumerate((void **)out, n, h, FK_T_MODULE))
FK_API(cuLibraryEnumerateKernels, (CUkernel *out, unsigned n, CUlibrary h), enumerate((void **)out, n, h, FK_T_LIBRARY))

static CUresult func_attr(void *h, CUfunction_attribute a, int *out, int value)
{
    struct fk_func *f = h;
    if (!fk_handle_is(h, FK_T_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    if ((unsigned)a >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (out != NULL)
        *out = f->attrs[a];
    else
        f->attrs[a] = value;
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetAttribute, (int *out, CUfunction_attribute a, CUfunction h),
       (out == NULL ? CUDA_ERROR_INVALID_VALUE : func_attr(h, a, out, 0)))
FK_API(cuFuncSetAttribute, (CUfunction h, CUfunction_attribute a, int v), func_attr(h, a, NULL, v))
FK_API(cuKernelGetAttribute, (int *out, CUfunction_attribute a, CUkernel h, CUdevice dev),
       ((void)dev, out == NULL ? CUDA_ERROR_INVALID_VALUE : func_attr(h, a, out, 0)))
FK_API(cuKernelSetAttribute, (CUfunction_attribute a, int v, CUkernel h, CUdevice dev), ((void)dev, func_attr(h, a, NULL, v)))
FK_API(cuFuncSetCacheConfig, (CUfunction h, CUfunc_cache c), ((void)c, func_attr(h, 0, &(int){0}, 0)))
FK_API(cuFuncSetSharedMemConfig, (CUfunction h, CUsharedconfig c), ((void)c, func_attr(h, 0, &(int){0}, 0)))
FK_API(cuKernelSetCacheConfig, (CUkernel h, CUfunc_cache c, CUdevice dev), ((void)c, (void)dev, func_attr(h, 0, &(int){0}, 0)))

static CUresult param_info(void *h, size_t index, size_t *offset, size_t *size)
{
    struct fk_func *f = h;
    if (!fk_handle_is(h, FK_T_FUNC))
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
FK_API(cuFuncGetParamInfo, (CUfunction h, size_t i, size_t *offset, size_t *size), param_info(h, i, offset, size))
FK_API(cuKernelGetParamInfo, (CUkernel h, size_t i, size_t *offset, size_t *size), param_info(h, i, offset, size))

static CUresult func_load(void *h)
{
    struct fk_ctx *c;
    if (!fk_handle_is(h, FK_T_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_ctx(&c));
    return fk_kernel_charge(h, c);
}
FK_API(cuFuncLoad, (CUfunction h), func_load(h))

static CUresult is_loaded(CUfunctionLoadingState *out, void *h)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, FK_T_FUNC))
        return CUDA_ERROR_INVALID_HANDLE;
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    *out = ((struct fk_func *)h)->module->loaded >> c->device & 1 ? CU_FUNCTION_LOADING_STATE_LOADED
                                                                 : CU_FUNCTION_LOADING_STATE_UNLOADED;
    return CUDA_SUCCESS;
}
FK_API(cuFuncIsLoaded, (CUfunctionLoadingState *out, CUfunction h), is_loaded(out, h))

static CUresult occupancy(int *out, void *h, int threads)
{
    if (out == NULL || threads <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, FK_T_FUNC))
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
    if (!fk_handle_is(h, FK_T_FUNC))
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
