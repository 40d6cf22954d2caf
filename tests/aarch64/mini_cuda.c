/* A driver of the smallest size, for the architecture that the fake GPU is not built for: one device, one context, plain
 * memory that is only numbers. Any thread may call; the counts are not protected, since the test has one thread. */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

#define TOTAL ((size_t)8 << 30)

static int initialized;
static CUcontext primary, current;
static CUdeviceptr next_address = 0x7f0000000000u;
static struct { CUdeviceptr at; size_t bytes; } live[64];
static size_t used;

CUresult cuInit(unsigned flags)
{
    initialized = 1;
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    if (!initialized) return CUDA_ERROR_NOT_INITIALIZED;
    if (ordinal) return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
    (void)device;
    strncpy(name, "mini", (size_t)room);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    memset(uuid, 0x5a + device, sizeof *uuid);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = TOTAL;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    if (!initialized || device) return CUDA_ERROR_INVALID_DEVICE;
    *context = primary = (CUcontext)&primary;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    current = context;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    if (left) *left = TOTAL - used;
    if (total) *total = TOTAL;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
    if (!current) return CUDA_ERROR_INVALID_CONTEXT;
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *at = 0;
    if (bytes > TOTAL - used) return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < sizeof live / sizeof live[0]; i++) {
        if (live[i].at) continue;
        *at = live[i].at = next_address;
        live[i].bytes = bytes;
        next_address += (bytes + 511) / 512 * 512;
        used += bytes;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
    if (!at) return CUDA_SUCCESS;
    for (unsigned i = 0; i < sizeof live / sizeof live[0]; i++) {
        if (live[i].at != at) continue;
        used -= live[i].bytes;
        live[i].at = 0;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetProcAddress_v2(const char *name, void **found, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    static const struct { const char *name; int since; void *function; } table[] = {
        {"cuInit", 2000, (void *)cuInit},
        {"cuDeviceGet", 2000, (void *)cuDeviceGet},
        {"cuDevicePrimaryCtxRetain", 7000, (void *)cuDevicePrimaryCtxRetain},
        {"cuCtxSetCurrent", 4000, (void *)cuCtxSetCurrent},
        {"cuCtxGetCurrent", 4000, (void *)cuCtxGetCurrent},
        {"cuMemGetInfo", 3020, (void *)cuMemGetInfo_v2},
        {"cuMemAlloc", 3020, (void *)cuMemAlloc_v2},
        {"cuMemFree", 3020, (void *)cuMemFree_v2},
        {"cuGetProcAddress", 12000, (void *)cuGetProcAddress_v2},
    };
    (void)flags;
    *found = NULL;
    if (status) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    for (unsigned i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (strcmp(table[i].name, name) != 0) continue;
        if (version >= table[i].since) *found = table[i].function;
        if (status) *status = *found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        break;
    }
    return CUDA_SUCCESS;
}
