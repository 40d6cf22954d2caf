/* Kernels: registration by compiler-made constructors, lookup, launch.
 *
 * nvcc's host code registers one fat binary per translation unit and each
 * kernel under the address of its host stub. Nothing is loaded then: a binary
 * is loaded at the first use of one of its kernels or variables, which is what
 * makes the first launch claim device memory. Registration happens in
 * constructors and may race with dlopen in other threads: one lock for all. */
#define _GNU_SOURCE
#include "cudart_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct binary {
    const void *image;
    CUlibrary library; /* NULL until first used */
    struct binary *next;
};

struct symbol {
    struct binary *binary;
    const void *host; /* stub or shadow variable in the program */
    char *name;       /* on the device */
    CUkernel kernel;  /* NULL for a variable, or until first used */
    struct symbol *next;
};

/* A function that was handed to the driver for a kernel: the driver does not
 * tell the way back. */
struct handed {
    CUfunction function;
    CUkernel kernel;
    struct handed *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct binary *binaries;
static struct symbol *kernels, *variables;
static struct handed *handed;

struct call_configuration {
    dim3 grid, block;
    size_t shared;
    void *stream;
};
static _Thread_local struct call_configuration configurations[8];
static _Thread_local unsigned configuration_count;

void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device_fun, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);

void **__cudaRegisterFatBinary(void *image)
{
    struct binary *b = calloc(1, sizeof *b);

    if (!b)
        return NULL;
    b->image = image;
    pthread_mutex_lock(&lock);
    b->next = binaries;
    binaries = b;
    pthread_mutex_unlock(&lock);
    return (void **)(void *)b;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
char __cudaInitModule(void **handle) { return handle != NULL; }

static void drop_symbols(struct symbol **list, const struct binary *of)
{
    while (*list) {
        struct symbol *s = *list;

        if (s->binary != of) {
            list = &s->next;
            continue;
        }
        *list = s->next;
        free(s->name);
        free(s);
    }
}

/* Runs from atexit or dlclose; late in the exit the driver is not called. */
void __cudaUnregisterFatBinary(void **handle)
{
    struct binary *gone = (struct binary *)(void *)handle;
    CUlibrary library = NULL;

    pthread_mutex_lock(&lock);
    for (struct binary **p = &binaries; *p; p = &(*p)->next)
        if (*p == gone) {
            *p = gone->next;
            library = gone->library;
            drop_symbols(&kernels, gone);
            drop_symbols(&variables, gone);
            free(gone);
            break;
        }
    pthread_mutex_unlock(&lock);
    if (library && cudart_driver() == cudaSuccess)
        (void)CUDART_CALL(LibraryUnload, library);
}

static void register_symbol(struct symbol **list, void **handle, const void *host,
                            const char *name)
{
    struct symbol *s = calloc(1, sizeof *s);

    if (!s)
        return;
    s->binary = (struct binary *)(void *)handle;
    s->host = host;
    s->name = strdup(name);
    pthread_mutex_lock(&lock);
    s->next = *list;
    *list = s;
    pthread_mutex_unlock(&lock);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device_fun, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    (void)device_fun, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
    register_symbol(&kernels, handle, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext,
                       size_t size, int constant, int global)
{
    (void)device, (void)ext, (void)size, (void)constant, (void)global;
    register_symbol(&variables, handle, host, name);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext,
                              size_t size, int constant, int global)
{
    (void)device, (void)ext, (void)size, (void)constant, (void)global;
    register_symbol(&variables, handle, (const void *)host, name);
}

/* Under the lock. */
static struct symbol *find(struct symbol *list, const void *host)
{
    while (list && list->host != host)
        list = list->next;
    return list;
}

static cudaError_t load(struct binary *b)
{
    if (b->library)
        return cudaSuccess;
    return CUDART_CALL(LibraryLoadData, &b->library, b->image, NULL, NULL, 0, NULL, NULL, 0);
}

/* The kernel of a host stub, its binary loaded now if need be. */
static cudaError_t kernel_of(const void *host, CUkernel *kernel)
{
    struct symbol *s;
    cudaError_t e = cudaErrorInvalidDeviceFunction;

    pthread_mutex_lock(&lock);
    s = find(kernels, host);
    if (s) {
        e = s->kernel ? cudaSuccess : load(s->binary);
        if (e == cudaSuccess && !s->kernel)
            e = CUDART_CALL(LibraryGetKernel, &s->kernel, s->binary->library, s->name);
        if (e == cudaSuccess)
            *kernel = s->kernel;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

static cudaError_t hand(CUfunction function, CUkernel kernel)
{
    struct handed *h;

    pthread_mutex_lock(&lock);
    for (h = handed; h && h->function != function; h = h->next)
        ;
    if (h)
        h->kernel = kernel;
    else if ((h = calloc(1, sizeof *h)) != NULL) {
        *h = (struct handed){function, kernel, handed};
        handed = h;
    }
    pthread_mutex_unlock(&lock);
    return h ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* Kernel handles are accepted wherever stubs are: what is not registered as a
 * stub is taken for one, and the driver says if it is not. */
cudaError_t cudart_function(const void *symbol, CUfunction *function)
{
    CUkernel kernel = NULL;
    int known;
    cudaError_t e;

    if (!symbol)
        return cudaErrorInvalidDeviceFunction;
    pthread_mutex_lock(&lock);
    known = find(kernels, symbol) != NULL;
    for (struct symbol *s = kernels; s && !known && !kernel; s = s->next)
        if (s->kernel && (const void *)s->kernel == symbol)
            kernel = s->kernel;
    pthread_mutex_unlock(&lock);
    if (known) {
        e = kernel_of(symbol, &kernel);
        if (e != cudaSuccess)
            return e;
    } else if (!kernel) {
        kernel = (CUkernel)(size_t)symbol;
    }
    e = CUDART_CALL(KernelGetFunction, function, kernel);
    return e == cudaSuccess ? hand(*function, kernel) : e;
}

const void *cudart_symbol_of(CUfunction function)
{
    const void *symbol = (const void *)function;

    pthread_mutex_lock(&lock);
    for (struct handed *h = handed; h; h = h->next)
        if (h->function == function) {
            symbol = (const void *)h->kernel;
            break;
        }
    for (struct symbol *s = kernels; s; s = s->next)
        if (s->kernel && (const void *)s->kernel == symbol) {
            symbol = s->host;
            break;
        }
    pthread_mutex_unlock(&lock);
    return symbol;
}

cudaError_t cudart_variable(const void *host, CUdeviceptr *address, size_t *bytes)
{
    struct symbol *s;
    cudaError_t e = cudaErrorInvalidSymbol;

    pthread_mutex_lock(&lock);
    s = find(variables, host);
    if (s) {
        e = load(s->binary);
        if (e == cudaSuccess)
            e = CUDART_CALL(LibraryGetGlobal, address, bytes, s->binary->library, s->name);
    }
    pthread_mutex_unlock(&lock);
    return e;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    cudaError_t e = cudart_context();

    return cudart_done(e != cudaSuccess ? e : kernel_of(host, kernel));
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    cudaError_t e = cudart_context();

    return cudart_done(e != cudaSuccess ? e : kernel_of(host, kernel));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    cudaError_t e = cudart_context();

    return cudart_done(e != cudaSuccess ? e : cudart_function(symbol, function));
}

/* The <<<...>>> syntax: pushed by the caller, popped by the stub. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream)
{
    if (configuration_count >= sizeof configurations / sizeof configurations[0])
        return cudaErrorInvalidConfiguration;
    configurations[configuration_count++] = (struct call_configuration){grid, block, shared,
                                                                        stream};
    return cudaSuccess;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    struct call_configuration *top;

    if (!configuration_count)
        return cudart_done(cudaErrorMissingConfiguration);
    top = &configurations[--configuration_count];
    *grid = top->grid;
    *block = top->block;
    *shared = top->shared;
    *(void **)stream = top->stream;
    return cudaSuccess;
}

static cudaError_t launch(enum cudart_variant v, const void *symbol, dim3 grid, dim3 block,
                          void **args, size_t shared, cudaStream_t stream)
{
    CUfunction f = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_function(symbol, &f);
    if (e == cudaSuccess)
        e = CUDART_CALL(LaunchKernel[v], f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                        (unsigned)shared, stream, args, NULL);
    return cudart_done(e);
}

static cudaError_t launch_cooperative(enum cudart_variant v, const void *symbol, dim3 grid,
                                      dim3 block, void **args, size_t shared, cudaStream_t stream)
{
    CUfunction f = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_function(symbol, &f);
    if (e == cudaSuccess)
        e = CUDART_CALL(LaunchCooperativeKernel[v], f, grid.x, grid.y, grid.z, block.x, block.y,
                        block.z, (unsigned)shared, stream, args);
    return cudart_done(e);
}

static cudaError_t launch_ex(enum cudart_variant v, const cudaLaunchConfig_t *config,
                             const void *symbol, void **args)
{
    CUfunction f = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !config)
        e = cudaErrorInvalidConfiguration;
    if (e == cudaSuccess)
        e = cudart_function(symbol, &f);
    if (e == cudaSuccess) {
        CUlaunchConfig c = {
            .gridDimX = config->gridDim.x,
            .gridDimY = config->gridDim.y,
            .gridDimZ = config->gridDim.z,
            .blockDimX = config->blockDim.x,
            .blockDimY = config->blockDim.y,
            .blockDimZ = config->blockDim.z,
            .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
            .hStream = config->stream,
            .attrs = (CUlaunchAttribute *)(void *)config->attrs,
            .numAttrs = config->numAttrs,
        };

        e = CUDART_CALL(LaunchKernelEx[v], &c, f, args, NULL);
    }
    return cudart_done(e);
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "attributes differ");

CUDART_BOTH(cudaLaunchKernel, _ptsz, launch,
            (const void *symbol, dim3 grid, dim3 block, void **args, size_t shared,
             cudaStream_t stream),
            symbol, grid, block, args, shared, stream)
CUDART_BOTH(cudaLaunchCooperativeKernel, _ptsz, launch_cooperative,
            (const void *symbol, dim3 grid, dim3 block, void **args, size_t shared,
             cudaStream_t stream),
            symbol, grid, block, args, shared, stream)
CUDART_BOTH(cudaLaunchKernelExC, _ptsz, launch_ex,
            (const cudaLaunchConfig_t *config, const void *symbol, void **args), config, symbol,
            args)

/* What nvcc-built stubs call, with the kernel handle they fetched before. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
                               size_t shared, cudaStream_t stream);
CUDART_BOTH(__cudaLaunchKernel, _ptsz, launch,
            (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
             cudaStream_t stream),
            (const void *)kernel, grid, block, args, shared, stream)
