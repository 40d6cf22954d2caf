/* Handles and ranges that several threads end and are given again at once, and captures and streams that end in odd ways. The
 * journal is read by check_journal.c; the marks it looks for are the sizes below. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>

/* What a program built for per-thread default streams calls; the headers show the names to such programs only. */
cudaError_t cudaMallocAsync_ptsz(void **p, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync_ptsz(void *p, cudaStream_t stream);

#define THREADS 4
#define ROUNDS 400
#define MIB ((size_t)1 << 20)

static CUcontext context;
static int failures;

static void must(const char *what, int code)
{
    if (code == 0) return;
    printf("%s=%d\n", what, code);
    failures++;
}

static void *churn(void *arg)
{
    (void)arg;
    must("set", (int)cuCtxSetCurrent(context));
    for (int i = 0; i < ROUNDS; i++) {
        CUstream s;
        CUevent e;
        CUgraph g;
        CUgraphExec x;
        CUdeviceptr p;
        must("stream", (int)cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
        must("event", (int)cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
        must("record", (int)cuEventRecord(e, s));
        must("graph", (int)cuGraphCreate(&g, 0));
        must("exec", (int)cuGraphInstantiateWithFlags(&x, g, 0));
        must("exec destroy", (int)cuGraphExecDestroy(x));
        must("graph destroy", (int)cuGraphDestroy(g));
        must("reserve", (int)cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
        must("address free", (int)cuMemAddressFree(p, 2 * MIB));
        must("event destroy", (int)cuEventDestroy(e));
        must("stream destroy", (int)cuStreamDestroy(s));
    }
    return NULL;
}

/* Per-thread default streams: of threads that come and go, and one that is captured under its short name. */
static void *own_stream(void *arg)
{
    void *p = NULL;
    CUgraph g = NULL;
    must("set", (int)cuCtxSetCurrent(context));
    must("own memset", (int)cudaMemsetAsync(arg, 1, 64, cudaStreamPerThread));
    must("own synchronize", (int)cudaStreamSynchronize(cudaStreamPerThread));
    must("begin", (int)cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed));
    must("captured", (int)cudaMallocAsync_ptsz(&p, 34567, NULL));
    must("captured free", (int)cudaFreeAsync_ptsz(p, NULL));
    must("end", (int)cudaStreamEndCapture(cudaStreamPerThread, (cudaGraph_t *)&g));
    must("graph destroy", (int)cuGraphDestroy(g));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    CUstream s;
    void *block;
    int word;
    must("init", (int)cudaFree(NULL));
    must("current", (int)cuCtxGetCurrent(&context));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);

    must("malloc", (int)cudaMalloc(&block, 12345));
    for (int i = 0; i < 3; i++) {
        pthread_create(&threads[0], NULL, own_stream, block);
        pthread_join(threads[0], NULL);
    }

    /* A capture that ends with its stream: after it, work is work again. */
    must("stream", (int)cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    must("begin", (int)cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    printf("destroyed while captured=%d\n", (int)cuStreamDestroy(s));
    must("copy of nothing", (int)cuMemcpyDtoH(&word, (CUdeviceptr)block, 0));
    must("copy", (int)cuMemcpyDtoH(&word, (CUdeviceptr)block, sizeof word));
    must("copy within", (int)cuMemcpy((CUdeviceptr)block, (CUdeviceptr)block + 4096, 64));
    must("last memset", (int)cuMemsetD8((CUdeviceptr)block, 2, 12345));
    must("free", (int)cudaFree(block));
    printf("failures=%d\n", failures);
    return 0;
}
