// Host code as nvcc makes it: constructors that register a binary and its
// kernels, stubs for the launch syntax. Linked once with the shared fake runtime
// and once with the static one. The kernels' names are those that the fake driver
// executes; what they do is written here too, so that the program runs on a card.
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

__global__ void fake_fill(unsigned char *dst, unsigned char value, unsigned long long bytes)
{
    for (unsigned long long i = threadIdx.x; i < bytes; i += blockDim.x)
        dst[i] = value;
}

__global__ void fake_add(unsigned *dst, unsigned value, unsigned long long words)
{
    for (unsigned long long i = threadIdx.x; i < words; i += blockDim.x)
        dst[i] += value;
}

static int failed;

static void check(const char *name, bool good)
{
    printf("%s %s\n", good ? "ok" : "not ok", name);
    failed |= !good;
}

int main()
{
    const unsigned long long words = 1000;
    unsigned host[words], *device = NULL;
    cudaStream_t stream;
    cudaFuncAttributes attributes;

    check("allocate", cudaMalloc((void **)&device, sizeof host) == cudaSuccess);
    check("stream", cudaStreamCreate(&stream) == cudaSuccess);
    fake_fill<<<1, 64, 0, stream>>>((unsigned char *)device, 1, sizeof host);
    check("launch", cudaGetLastError() == cudaSuccess);
    fake_add<<<1, 64, 0, stream>>>(device, 41, words);
    check("launch_of_a_second_kernel", cudaGetLastError() == cudaSuccess);
    check("synchronise", cudaStreamSynchronize(stream) == cudaSuccess);
    memset(host, 0, sizeof host);
    check("copy", cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost) == cudaSuccess);
    check("result", host[0] == 0x01010101u + 41 && host[words - 1] == 0x01010101u + 41);
    check("attributes", cudaFuncGetAttributes(&attributes, fake_add) == cudaSuccess
                            && attributes.maxThreadsPerBlock > 0);
    check("free", cudaFree(device) == cudaSuccess);
    check("destroy", cudaStreamDestroy(stream) == cudaSuccess);
    return failed;
}
