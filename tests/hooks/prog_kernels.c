/* Looks two kernels up again and again, as cuBLAS does before every product, in two contexts; `few` a few times, else for as long as several
 * readings' time. The fake card's statistics tell how often it was asked what is free, which is to be the same, and whose the current context is.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MUST(call) failures += (call) != CUDA_SUCCESS
#define FEW 40 /* more than the first calls of a row around which readings were taken */
#define LONG_MS 100
#define LAUNCHES 1000 /* test_hooks.sh knows it */

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n"
                          ".visible .entry other()\n{\n  ret;\n}\n";
static CUkernel kernels[2];
static int failures;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void look_up(void)
{
    CUfunction f[2];
    for (int k = 0; k < 2; k++) MUST(cuKernelGetFunction(&f[k], kernels[k]));
    if (!failures && f[0] == f[1]) failures++;
}

static void load(CUlibrary *library)
{
    static const char *const names[2] = {"nothing", "other"};
    MUST(cuLibraryLoadData(library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    for (int k = 0; k < 2; k++) MUST(cuLibraryGetKernel(&kernels[k], *library, names[k]));
}

int main(int argc, char **argv)
{
    int few = argc > 1 && strcmp(argv[1], "few") == 0;
    CUdevice device;
    CUcontext first, second;
    CUlibrary library;
    CUfunction f;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuCtxCreate(&first, NULL, 0, device));
    load(&library);
    for (int i = 0; i < LAUNCHES; i++) MUST(cuLaunchKernel((CUfunction)kernels[i % 2], 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    int rounds = 0;
    for (double end = now_ms() + LONG_MS; few ? rounds < FEW : now_ms() < end || rounds < FEW; rounds++) {
        look_up();
        if (!few) usleep(100);
    }
    MUST(cuCtxCreate(&second, NULL, 0, device));
    for (int i = 0; i < FEW; i++) look_up(); /* its module is loaded there as well */
    for (CUcontext popped; cuCtxPopCurrent(&popped) == CUDA_SUCCESS;) {}
    int refused = cuKernelGetFunction(&f, kernels[0]) != CUDA_SUCCESS;
    MUST(cuCtxSetCurrent(first));
    refused += cuKernelGetFunction(NULL, kernels[0]) != CUDA_SUCCESS;
    MUST(cuLibraryUnload(library));
    load(&library); /* its kernels are first ones, also under the old handles */
    look_up();
    MUST(cuCtxDestroy(first));
    MUST(cuCtxCreate(&first, NULL, 0, device)); /* as is this context, also under the old handle */
    look_up();
    printf("failures=%d refused=%d\n", failures, refused);
    return 0;
}
