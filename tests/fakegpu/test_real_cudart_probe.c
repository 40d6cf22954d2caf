/* A program for the toolkit's own cudart: what its first calls answer, one line
 * each. Built twice, against the shared and the static library. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
    int version = -1, count = -1;
    void *p = (void *)(size_t)0x51;
    cudaError_t e;

    e = cudaRuntimeGetVersion(&version);
    printf("runtime version %d: %d\n", version, (int)e);
    e = cudaDriverGetVersion(&version);
    printf("driver version %d: %d\n", version, (int)e);
    e = cudaGetDeviceCount(&count);
    printf("device count %d: %d\n", count, (int)e);
    e = cudaMalloc(&p, 64);
    printf("malloc %s: %d\n", p == (void *)(size_t)0x51 ? "kept" : p ? "pointer" : "null", (int)e);
    printf("last error %s\n", cudaGetErrorName(cudaGetLastError()));
    return 0;
}
