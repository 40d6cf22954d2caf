/* Finding the driver: dlopen, one dlsym, then every name by cuGetProcAddress. */
#define _GNU_SOURCE
#include "cudart_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct cudart_driver cudart_drv;
int cudart_device_count;

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static cudaError_t init_result;
static atomic_int unloading;

/* ISO C has no conversion between object and function pointers; the resolver
 * writes through void **, so a function pointer's storage is passed as such. */
#define SLOT(field) ((void **)(void *)&(field))

static void on_exit_mark(void) { atomic_store(&unloading, 1); }

/* A miss leaves NULL in the slot, which CUDART_CALL turns into error 36. */
static void resolve(const char *name, void **slot, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;

    if (cudart_drv.GetProcAddress(name, slot, version, flags, &status) != CUDA_SUCCESS
        || status != CU_GET_PROC_ADDRESS_SUCCESS)
        *slot = NULL;
}

static void resolve_all(void)
{
#define ONE(name, version)                                                                    \
    resolve("cu" #name, SLOT(cudart_drv.name), version, CU_GET_PROC_ADDRESS_DEFAULT);
#define TWO(name, version, pver)                                                              \
    resolve("cu" #name, SLOT(cudart_drv.name[0]), version, CU_GET_PROC_ADDRESS_DEFAULT);      \
    resolve("cu" #name, SLOT(cudart_drv.name[1]), pver,                                       \
            CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
#include "cudart_driver_list.h"
#undef ONE
#undef TWO
}

static cudaError_t open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *first, *nothing = NULL;
    CUdriverProcAddressQueryResult status;
    int version = 0;

    if (!library)
        return cudaErrorInsufficientDriver;
    first = dlsym(library, "cuGetProcAddress_v2");
    if (!first)
        return cudaErrorInsufficientDriver;
    *SLOT(cudart_drv.GetProcAddress) = first;

    /* An empty name first: it only proves that the resolver answers at all. */
    if (cudart_drv.GetProcAddress("", &nothing, 0, 0, &status) != CUDA_SUCCESS)
        return cudaErrorInsufficientDriver;
    /* As under a tool that takes the driver's place: whatever the driver's names lead to, the calls go past it. */
    const char *direct = getenv("FAKEGPU_DIRECT");
    if (direct && *direct && *direct != '0') {
        first = dlsym(library, "fakegpu_resolver");
        if (first)
            *SLOT(cudart_drv.GetProcAddress) = first;
    }
    resolve("cuInit", SLOT(cudart_drv.Init), 2000, 0);
    resolve("cuGetProcAddress", SLOT(cudart_drv.GetProcAddressV1), 11030, 0);
    resolve("cuGetProcAddress", SLOT(cudart_drv.GetProcAddress), 12000, 0);
    if (!cudart_drv.Init || !cudart_drv.GetProcAddress)
        return cudaErrorInsufficientDriver;
    resolve_all();

    if (!cudart_drv.DriverGetVersion || cudart_drv.DriverGetVersion(&version) != CUDA_SUCCESS)
        return cudaErrorInsufficientDriver;
    /* Within one major version an older driver serves; across majors it does not. */
    if (version / 1000 < CUDART_VERSION / 1000)
        return cudaErrorInsufficientDriver;
    CUresult started = cudart_drv.Init(0);
    if (started == CUDA_SUCCESS)
        started = cudart_drv.DeviceGetCount(&cudart_device_count);
    return cudart_map(started);
}

static void init(void)
{
    init_result = open_driver();
    /* Registered at the first call, so handlers the program registered earlier
     * and its destructors run after this one and get error 4, as natively. */
    atexit(on_exit_mark);
}

cudaError_t cudart_driver(void)
{
    if (atomic_load_explicit(&unloading, memory_order_relaxed))
        return cudaErrorCudartUnloading;
    pthread_once(&init_once, init);
    return init_result;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    cudaError_t e = cudart_driver();

    if (!version)
        return cudart_done(cudaErrorInvalidValue);
    /* Without a driver the answer is version 0, not an error. */
    if (!cudart_drv.DriverGetVersion) {
        *version = 0;
        return e == cudaErrorCudartUnloading ? cudart_done(e) : cudaSuccess;
    }
    return cudart_done(cudart_map(cudart_drv.DriverGetVersion(version)));
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version)
        return cudart_done(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* The answer is the driver's word for word: pointer NULL and a status on a
 * miss, outputs untouched where it refuses the version. */
static cudaError_t entry_point(enum cudart_variant v, const char *symbol, void **function,
                               unsigned int version, unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status)
{
    cudaError_t e = cudart_driver();
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;

    if (e != cudaSuccess)
        return cudart_done(e);
    if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream)
        return cudart_done(cudaErrorInvalidValue);
    if (v == CUDART_PER_THREAD && flags == cudaEnableDefault)
        flags = cudaEnablePerThreadDefaultStream;
    e = CUDART_CALL(GetProcAddress, symbol, function, (int)version, flags, &found);
    if (e == cudaSuccess && status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return cudart_done(e);
}

CUDART_BOTH(cudaGetDriverEntryPointByVersion, _ptsz, entry_point,
            (const char *symbol, void **function, unsigned int version, unsigned long long flags,
             enum cudaDriverEntryPointQueryResult *status),
            symbol, function, version, flags, status)

CUDART_BOTH(cudaGetDriverEntryPoint, _ptsz, entry_point,
            (const char *symbol, void **function, unsigned long long flags,
             enum cudaDriverEntryPointQueryResult *status),
            symbol, function, CUDART_VERSION, flags, status)

cudaError_t cudaProfilerStart(void) { CUDART_PASS(ProfilerStart); }
cudaError_t cudaProfilerStop(void) { CUDART_PASS(ProfilerStop); }
