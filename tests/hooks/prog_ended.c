/* Begins and ends everything that a recorder may remember by the runtime, and asks the driver itself between, which makes a recorder take
 * readings. Under FAKEGPU_DIRECT the runtime's own driver calls pass by, and whoever then uses what has ended is ended too. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 5
#define MIB ((size_t)1 << 20)

static int failures;

static void ok(int r) { failures += r != 0; }

/* Pinned memory by the driver: a reading before it and one after it, of pools too. */
static void reading(void)
{
    void *p;
    ok(cuMemHostAlloc(&p, 4096, 0));
    ok(cuMemFreeHost(p));
}

static void pools(cudaStream_t s)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct cudaMemPoolProps props;
        cudaMemPool_t pool;
        void *p, *q = NULL;
        memset(&props, 0, sizeof props);
        props.allocType = cudaMemAllocationTypePinned;
        props.location.type = cudaMemLocationTypeDevice;
        ok(cudaMemPoolCreate(&pool, &props));
        if (i % 2) ok(cudaDeviceSetMemPool(0, pool));
        ok(cudaMallocFromPoolAsync(&p, MIB, pool, s));
        if (i % 2) ok(cudaMallocAsync(&q, MIB, s));
        reading();
        ok(cudaFreeAsync(p, s));
        if (q) ok(cudaFreeAsync(q, s));
        ok(cudaStreamSynchronize(s));
        ok(cudaMemPoolDestroy(pool));
        reading();
        failures += cudaMemPoolDestroy(NULL) == cudaSuccess;
    }
}

/* A handle that is given again is another stream's. */
static void streams(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        cudaStream_t s;
        void *p;
        ok(cudaStreamCreate(&s));
        ok(cudaMallocAsync(&p, MIB, s));
        ok(cudaFreeAsync(p, s));
        ok(cudaStreamDestroy(s));
    }
}

static void capture(void)
{
    cudaStream_t s;
    cudaGraph_t graph;
    CUdeviceptr p;
    ok(cudaStreamCreate(&s));
    ok(cuMemAlloc(&p, 4096));
    ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(cuMemsetD8Async(p, 1, 4096, s));
    ok(cudaStreamEndCapture(s, &graph));
    ok(cuMemsetD8Async(p, 2, 4096, s));
    ok(cudaGraphDestroy(graph));
    ok(cudaStreamSynchronize(s));
    ok(cudaStreamDestroy(s));
    ok(cuMemFree(p));
}

/* No context is current here, so a reading is taken by one that is known. */
static void *elsewhere(void *arg)
{
    CUcontext c;
    (void)arg;
    ok(cuDevicePrimaryCtxRetain(&c, 0));
    ok(cuDevicePrimaryCtxRelease(0));
    return NULL;
}

static void resets(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t t;
        void *p, *managed, *host;
        ok(cudaMalloc(&p, MIB));
        ok(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal));
        ok(cudaMallocHost(&host, 4096));
        reading();
        ok(cudaDeviceReset());
        ok(pthread_create(&t, NULL, elsewhere, NULL));
        ok(pthread_join(t, NULL));
    }
}

int main(void)
{
    cudaStream_t s;
    ok(cudaStreamCreate(&s));
    pools(s);
    ok(cudaStreamDestroy(s));
    streams();
    capture();
    resets();
    printf("failures=%d\n", failures);
    return failures != 0;
}
