/* A runtime as small as the driver beside it, which it is linked to: no lock, no state, and nothing done before it is needed. */
#include <cuda.h>
#include <cuda_runtime_api.h>

static cudaError_t said(CUresult r) { return (cudaError_t)r; }

/* A real one begins with the driver here; that this one does not leaves the driver's first call to the program. */
cudaError_t cudaFree(void *p) { return p == NULL ? cudaSuccess : said(cuMemFree((CUdeviceptr)(uintptr_t)p)); }

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    CUdeviceptr address = 0;
    CUresult r = cuInit(0);
    if (r == CUDA_SUCCESS)
        r = cuMemAlloc(&address, bytes);
    *p = (void *)(uintptr_t)address;
    return said(r);
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}
