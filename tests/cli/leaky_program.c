/* A program with two faults of memory, as CASES have them: a buffer that is replaced by ever larger ones, and a pointer that is
 * overwritten at each initialisation. Between them ordinary requests. Then stream-ordered memory stands in the way of a plain
 * request. Says when it serves, sets two marks, and waits for a line on standard input before it ends. */
#include <cuda.h>
#include <stdio.h>

#include <tenure.h>

#define MIB ((size_t)1 << 20)

static CUdeviceptr scratch, workspace;
static int wrong;

static void want(const char *what, int got, int wanted)
{
    if (got != wanted) {
        printf("%s gave %d\n", what, got);
        wrong = 1;
    }
}

__attribute__((noinline)) static void grow_scratch(size_t bytes)
{
    CUdeviceptr larger;
    want("cuMemAlloc of scratch", cuMemAlloc(&larger, bytes), 0);
    if (scratch)
        want("cuMemFree of scratch", cuMemFree(scratch), 0);
    scratch = larger;
}

__attribute__((noinline)) static void initialise(void)
{
    want("cuMemAlloc of the workspace", cuMemAlloc(&workspace, 3 * MIB), 0); /* the old one is lost */
}

__attribute__((noinline)) static void request(void)
{
    CUdeviceptr block;
    want("cuMemAlloc of a request", cuMemAlloc(&block, MIB), 0);
    want("cuMemFree of a request", cuMemFree(block), 0);
}

__attribute__((noinline)) static void too_much(size_t bytes)
{
    CUdeviceptr block;
    want("cuMemAlloc behind the pool", cuMemAlloc(&block, bytes), CUDA_ERROR_OUT_OF_MEMORY);
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr pooled;
    CUstream stream;
    size_t total;
    want("cuInit", cuInit(0), 0);
    want("cuDeviceGet", cuDeviceGet(&device, 0), 0);
    want("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&context, device), 0);
    want("cuCtxSetCurrent", cuCtxSetCurrent(context), 0);
    want("cuDeviceTotalMem", cuDeviceTotalMem(&total, device), 0);
    want("cuStreamCreate", cuStreamCreate(&stream, 0), 0);
    tenure_mark("loaded");
    tenure_phase(TENURE_SERVING);
    for (size_t i = 1; i <= 24; i++) {
        initialise();
        request();
        grow_scratch(i * MIB / 2);
        request();
    }
    tenure_mark("served");
    want("cuMemAllocAsync", cuMemAllocAsync(&pooled, total / 10 * 7, stream), 0);
    want("cuMemFreeAsync", cuMemFreeAsync(pooled, stream), 0);
    too_much(total / 10 * 6);
    want("cuMemFree of scratch", cuMemFree(scratch), 0);
    puts(wrong ? "wrong" : "ready");
    fflush(stdout);
    (void)getchar();
    return wrong;
}
