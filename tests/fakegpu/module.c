/*
 * Modules, libraries, kernels and functions. Binary images are not read: any loads, and any kernel name is found in
 * it; a PTX text has the kernels that it declares. The names in `builtins` do something; all others run and change nothing.
 *
 * A function is of one module, and so of one context. A kernel is of a library, which is of none: the first of its functions that is
 * asked for in a context loads the library there as a module, whose code is charged then. That of a module which the program
 * loaded itself is charged at the first launch of one of its functions.
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

static void unlink_function(struct fk_func *f)
{
    struct fk_func **at = &f->kernel->functions;
    while (*at != f)
        at = &(*at)->sibling;
    *at = f->sibling;
    f->kernel = f->sibling = NULL;
}

static void drop_module(struct fk_module *m)
{
    struct fk_module **at = &modules;
    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (m->loaded)
        fk_uncharge(&fk_devs[m->ctx->device], fk_cfg.module);
    fk_handle_del(m);
    for (struct fk_func *f = m->funcs, *next; f != NULL; f = next) {
        next = f->next;
        fk_handle_del(f);
        if (f->kernel != NULL)
            unlink_function(f);
        f->module = NULL; /* queued launches and graphs may still name it: kept, without a module */
    }
    free(m->ptx);
    free(m);
}

static void drop_library(struct fk_module *library)
{
    for (struct fk_module *m = modules, *next; m != NULL; m = next) {
        next = m->next;
        if (m->of == library)
            drop_module(m);
    }
    drop_module(library);
}

void fk_modules_destroy(struct fk_ctx *c)
{
    for (struct fk_module *m = modules, *next; m != NULL; m = next) {
        next = m->next;
        if (m->ctx == c)
            drop_module(m); /* of a library: it is loaded again into the next context that asks */
    }
}

CUresult fk_module_charge(struct fk_module *m)
{
    if (!m->loaded && !fk_charge(&fk_devs[m->ctx->device], fk_cfg.module))
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->loaded = true;
    return CUDA_SUCCESS;
}

/* The library's module in the context, loaded now if need be. */
static CUresult module_in(struct fk_module **out, struct fk_module *library, struct fk_ctx *c)
{
    for (*out = modules; *out != NULL; *out = (*out)->next)
        if ((*out)->of == library && (*out)->ctx == c)
            return CUDA_SUCCESS;
    struct fk_module *m = calloc(1, sizeof *m);
    if (m == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->ctx = c;
    m->of = library;
    CUresult r = fk_module_charge(m);
    if (r != CUDA_SUCCESS) {
        free(m);
        return r;
    }
    m->next = modules;
    modules = m;
    fk_handle_add(m, FK_T_MODULE);
    *out = m;
    return CUDA_SUCCESS;
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
    if (!fk_handle_is(h, type) || ((struct fk_module *)h)->of != NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (type == FK_T_LIBRARY)
        drop_library(h);
    else
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

/* ---- functions and kernels ---- */

/* A kernel, if the module is a library; else a function. */
static CUresult named(struct fk_func **out, struct fk_module *m, const char *name)
{
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
    for (int i = 0; i < FK_MAX_DEVICES; i++) {
        int *attrs = f->attrs[i];
        attrs[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
        attrs[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
        attrs[CU_FUNC_ATTRIBUTE_PTX_VERSION] = attrs[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90;
        attrs[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
        attrs[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    }
    f->next = m->funcs;
    m->funcs = f;
    fk_handle_add(f, m->library ? FK_T_KERNEL : FK_T_FUNC);
    *out = f;
    return CUDA_SUCCESS;
}

struct fk_func *fk_function_known(const struct fk_func *kernel, const struct fk_ctx *c)
{
    struct fk_func *f = kernel->functions;
    while (f != NULL && f->module->ctx != c)
        f = f->sibling;
    return f;
}

/* The kernel's function in the context. It begins with what was set for the kernel on that device. */
static CUresult function_of(struct fk_func **out, struct fk_func *kernel, struct fk_ctx *c)
{
    struct fk_module *m;
    if ((*out = fk_function_known(kernel, c)) != NULL)
        return CUDA_SUCCESS;
    FK_TRY(module_in(&m, kernel->module, c));
    struct fk_func *f = malloc(sizeof *f);
    if (f == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *f = *kernel;
    f->module = m;
    f->kernel = kernel;
    f->functions = NULL;
    f->sibling = kernel->functions;
    kernel->functions = f;
    f->next = m->funcs;
    m->funcs = f;
    fk_handle_add(f, FK_T_FUNC);
    *out = f;
    return CUDA_SUCCESS;
}

CUresult fk_function_in(struct fk_func **out, void *h, struct fk_ctx *c)
{
    *out = h;
    if (fk_handle_is(h, FK_T_KERNEL))
        return function_of(out, h, c);
    return fk_handle_is(h, FK_T_FUNC) && (*out)->module->ctx == c ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult get_func(struct fk_func **out, void *h, enum fk_type type, const char *name)
{
    struct fk_func *kernel;
    struct fk_module *m = h;
    if (out == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    if (m->of == NULL)
        return named(out, m, name);
    FK_TRY(named(&kernel, m->of, name));
    return function_of(out, kernel, m->ctx);
}
FK_API(cuModuleGetFunction, (CUfunction *out, CUmodule h, const char *name), get_func((struct fk_func **)out, h, FK_T_MODULE, name))
FK_API(cuLibraryGetKernel, (CUkernel *out, CUlibrary h, const char *name), get_func((struct fk_func **)out, h, FK_T_LIBRARY, name))

static CUresult kernel_function(CUfunction *out, CUkernel h)
{
    struct fk_ctx *c;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, FK_T_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_ctx(&c));
    return function_of((struct fk_func **)out, (struct fk_func *)h, c);
}
FK_API(cuKernelGetFunction, (CUfunction *out, CUkernel h), kernel_function(out, h))

static CUresult library_module(CUmodule *out, CUlibrary h)
{
    struct fk_ctx *c;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, FK_T_LIBRARY))
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_need_ctx(&c));
    return module_in((struct fk_module **)out, (struct fk_module *)h, c);
}
FK_API(cuLibraryGetModule, (CUmodule *out, CUlibrary h), library_module(out, h))

static CUresult owner(void **out, void *h, enum fk_type type)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(h, type))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = ((struct fk_func *)h)->module;
    return CUDA_SUCCESS;
}
FK_API(cuFuncGetModule, (CUmodule *out, CUfunction h), owner((void **)out, h, FK_T_FUNC))
FK_API(cuKernelGetLibrary, (CUlibrary *out, CUkernel h), owner((void **)out, h, FK_T_KERNEL))

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
