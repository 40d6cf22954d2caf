/* An ordinary program: it allocates in every family at runtime level, some at driver level by the ways that programs use,
 * and lets a matrix library, opened by path, allocate by itself. It knows nothing of Tenure and prints what it saw.
 * Usage: program LIBFAKEBLAS */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fakegpu/fakeblas.h"
#include "tests/wrap/names.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

static int failures;

/* Prints and counts what should have succeeded. */
static void ok(cudaError_t e, const char *what)
{
    if (e == cudaSuccess) return;
    printf("%s: %d\n", what, (int)e);
    failures++;
}
#define OK(...) ok(__VA_ARGS__, #__VA_ARGS__)

static void plain(void)
{
    void *p[8];
    for (int i = 0; i < 8; i++) OK(cudaMalloc(&p[i], KIB(300) * (size_t)(i + 1) + 7));
    for (int i = 0; i < 6; i++) OK(cudaFree(p[i])); /* two stay for good */
    void *none = p;
    OK(cudaMalloc(&none, 0));
    printf("size 0: %d\n", none == NULL);
    OK(cudaFree(NULL));
}

static void refused(void)
{
    void *p = NULL;
    cudaStream_t s;
    printf("4 TiB: %d\n", (int)cudaMalloc(&p, (size_t)4 << 40));
    printf("4 TiB managed: %d\n", (int)cudaMallocManaged(&p, (size_t)4 << 40, cudaMemAttachGlobal));
    OK(cudaStreamCreate(&s));
    printf("4 TiB async: %d\n", (int)cudaMallocAsync(&p, (size_t)4 << 40, s));
    OK(cudaStreamDestroy(s));
    OK(cudaMalloc(&p, MIB(3)));
    OK(cudaFree(p));
    printf("second free: %d\n", (int)cudaFree(p));
    printf("left over: %d\n", (int)cudaGetLastError());
}

static void pitched(void)
{
    void *p;
    size_t pitch;
    struct cudaPitchedPtr box;
    OK(cudaMallocPitch(&p, &pitch, 1000, 37));
    OK(cudaMalloc3D(&box, (struct cudaExtent){700, 30, 11}));
    printf("pitch: %zu %zu\n", pitch, box.pitch);
    OK(cudaFree(p));
    OK(cudaMalloc3D(&box, (struct cudaExtent){3000, 300, 3})); /* stays */
}

static void arrays(void)
{
    struct cudaChannelFormatDesc rgba = cudaCreateChannelDesc(8, 8, 8, 8, cudaChannelFormatKindUnsigned);
    struct cudaChannelFormatDesc half = cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat);
    struct cudaChannelFormatDesc pair = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t a, b, c, stays;
    cudaMipmappedArray_t m;
    OK(cudaMallocArray(&a, &rgba, 640, 480, cudaArrayDefault));
    OK(cudaMallocArray(&b, &half, 1000, 0, cudaArrayDefault));
    OK(cudaMalloc3DArray(&c, &pair, (struct cudaExtent){64, 32, 16}, cudaArrayDefault));
    OK(cudaMalloc3DArray(&stays, &rgba, (struct cudaExtent){128, 128, 6}, cudaArrayLayered));
    OK(cudaMallocMipmappedArray(&m, &rgba, (struct cudaExtent){256, 128, 0}, 5, cudaArrayDefault));
    OK(cudaFreeArray(a));
    OK(cudaFreeArray(b));
    OK(cudaFreeArray(c));
    OK(cudaFreeMipmappedArray(m));
}

static void host(void)
{
    void *p, *q, *managed, *stays;
    char *own = aligned_alloc(4096, KIB(64));
    OK(cudaMallocHost(&p, KIB(5)));
    OK(cudaHostAlloc(&q, MIB(1) + 1, cudaHostAllocPortable | cudaHostAllocMapped));
    OK(cudaHostAlloc(&stays, KIB(12), cudaHostAllocWriteCombined));
    OK(cudaHostRegister(own, KIB(63), cudaHostRegisterPortable));
    printf("registered twice: %d\n", (int)cudaHostRegister(own, KIB(63), cudaHostRegisterPortable));
    OK(cudaMallocManaged(&managed, MIB(2) + 5, cudaMemAttachGlobal));
    OK(cudaHostUnregister(own));
    free(own);
    OK(cudaFreeHost(p));
    OK(cudaFreeHost(q));
    OK(cudaFree(managed));
}

static void ordered(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned, .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool;
    cudaStream_t s;
    void *p, *q, *plain_block, *by_plain_free;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaMemPoolCreate(&pool, &props));
    OK(cudaMallocAsync(&p, MIB(5) + 3, s));
    OK(cudaMallocFromPoolAsync(&q, KIB(900), pool, s));
    OK(cudaMallocAsync(&by_plain_free, 100, s));
    OK(cudaMalloc(&plain_block, KIB(8)));
    OK(cudaFreeAsync(plain_block, s)); /* another family's free, as some programs do */
    OK(cudaFreeAsync(q, s));
    OK(cudaFreeAsync(p, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaFree(by_plain_free));
    OK(cudaMallocAsync(&p, KIB(77), 0)); /* stays */
    OK(cudaMemPoolDestroy(pool));
    OK(cudaStreamDestroy(s));
}

static void captured(void)
{
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *inside;
    OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    OK(cudaMallocAsync(&inside, KIB(40), s));
    OK(cudaMemsetAsync(inside, 1, KIB(40), s));
    OK(cudaFreeAsync(inside, s));
    OK(cudaStreamEndCapture(s, &graph));
    OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, s));
    OK(cudaStreamSynchronize(s));
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamDestroy(s));
}

static void graph_nodes(void)
{
    struct cudaMemAllocNodeParams params = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned, .location = {cudaMemLocationTypeDevice, 0}}, .bytesize = KIB(50)};
    cudaGraph_t graph;
    cudaGraphNode_t made, freed;
    OK(cudaGraphCreate(&graph, 0));
    OK(cudaGraphAddMemAllocNode(&made, graph, NULL, 0, &params));
    OK(cudaGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
    params.bytesize = KIB(30);
    OK(cudaGraphAddMemAllocNode(&made, graph, &freed, 1, &params)); /* nothing in the graph frees this one */
    OK(cudaGraphDestroy(graph));
}

/* What a reset ends and what survives it. */
static void reset(void)
{
    void *p;
    OK(cudaMallocAsync(&p, KIB(9), 0));
    OK(cudaDeviceReset());
    OK(cudaFreeAsync(p, 0));
    OK(cudaMalloc(&p, KIB(11)));
}

static void *churn(void *arg)
{
    size_t step = (size_t)arg;
    for (size_t i = 1; i <= 200; i++) {
        void *p, *q;
        OK(cudaMalloc(&p, step * i));
        OK(cudaMallocHost(&q, i));
        OK(cudaFree(p));
        OK(cudaFreeHost(q));
    }
    return NULL;
}

static void threads(void)
{
    /* One after the other: which peak two of them reach together is chance. */
    for (size_t i = 1; i <= 3; i++) {
        pthread_t t;
        pthread_create(&t, NULL, churn, (void *)(i * 1000));
        pthread_join(t, NULL);
    }
}

typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*free_fn)(CUdeviceptr);

static void by_driver(void)
{
    CUdeviceptr p = 0, q = 0;
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found;
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, cudaEnableDefault, &found));
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    alloc_fn alloc = driver ? (alloc_fn)dlsym(driver, "cuMemAlloc_v2") : NULL;
    free_fn release = driver ? (free_fn)dlsym(driver, "cuMemFree_v2") : NULL;
    if (!alloc || !release || !entry) {
        failures++;
        return;
    }
    printf("driver: %d", (int)alloc(&p, KIB(123)));
    printf(" %d", (int)((alloc_fn)entry)(&q, KIB(321)));
    printf(" %d\n", (int)release(p));
    dlclose(driver);
}

static void blas(const char *path)
{
    fakeblasHandle_t h;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL), *m;
    if (!lib) {
        printf("%s\n", dlerror());
        failures++;
        return;
    }
    __typeof__(&fakeblasCreate) create = (__typeof__(create))dlsym(lib, "fakeblasCreate");
    __typeof__(&fakeblasGemm) gemm = (__typeof__(gemm))dlsym(lib, "fakeblasGemm");
    __typeof__(&fakeblasDestroy) destroy = (__typeof__(destroy))dlsym(lib, "fakeblasDestroy");
    OK(cudaMalloc(&m, 3 * KIB(256)));
    float *a = m;
    printf("blas: %d", (int)create(&h));
    printf(" %d", (int)gemm(h, NULL, 256, 256, 256, a, a + KIB(64), a + KIB(128)));
    OK(cudaDeviceSynchronize());
    printf(" %d\n", (int)destroy(h));
    printf("blas again: %d", (int)create(&h)); /* this one's memory stays */
    printf(" %d\n", (int)gemm(h, NULL, 256, 256, 256, a, a + KIB(64), a + KIB(128)));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(m));
}

int main(int argc, char **argv)
{
    size_t left, total;
    if (argc < 2) return 2;
    printf("own names: %d\n", names_sum());
    plain();
    refused();
    pitched();
    arrays();
    host();
    ordered();
    captured();
    graph_nodes();
    threads();
    by_driver();
    blas(argv[1]);
    OK(cudaMemGetInfo(&left, &total));
    printf("used: %zu\n", total - left);
    reset();
    printf("failures: %d\n", failures);
    return failures != 0;
}
