/* A driver small enough to know all of: no lock and no allocation, so that a signal handler may call it natively too, and no symbol
 * version above glibc 2.28, so that it loads in an old root. Any thread; memory is address space that is never reused or touched. */
#define _GNU_SOURCE
#include <cuda.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tests/shim/mini/mini.h"

static _Atomic uint64_t next_address = 0x7f0000000000u;
static _Atomic uint64_t allocations, frees;
static int started;
/* The one context's handle; nobody looks behind it. */
#define CONTEXT ((CUcontext)(uintptr_t)0xc0de00)

uint64_t mini_allocations(void) { return atomic_load(&allocations); }
uint64_t mini_frees(void) { return atomic_load(&frees); }

CUresult cuInit(unsigned flags)
{
    started = 1;
    return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = started ? CONTEXT : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    if (device != 0 || size < 5)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(name, "mini", 5);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    *bytes = (size_t)1 << 40;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* Sizes of MINI_ERRNO set errno as a driver may; MINI_SIGNAL raises SIGUSR1 from inside the call. */
CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes)
{
    if (!started)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (bytes == 0 || address == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == MINI_SIGNAL)
        raise(SIGUSR1);
    if (bytes == MINI_ERRNO)
        errno = MINI_ERRNO_VALUE;
    if (bytes > (size_t)1 << 40)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address = atomic_fetch_add(&next_address, (bytes + 511) / 512 * 512);
    atomic_fetch_add(&allocations, 1);
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
    if (address == MINI_BAD_ADDRESS) {
        errno = MINI_ERRNO_VALUE + 1;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (address != 0)
        atomic_fetch_add(&frees, 1);
    return CUDA_SUCCESS;
}
