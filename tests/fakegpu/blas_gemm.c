/* The product: lazy claims, then a few stream-ordered steps that depend on
 * every buffer involved. All of it goes through the private runtime copy. */
#include "blas_internal.h"

#include <stdlib.h>

/* The code image that nvcc would have embedded. Its contents mean nothing to
 * the fake driver, which takes kernels by name. */
static const unsigned int image[4] = {0xba55ed50u, 0x00100001u, 0, 0};
static const struct {
    int magic, version;
    const void *data;
    void *unused;
} wrapper = {0x466243b1, 1, image, NULL};

static void **binary;

void **__cudaRegisterFatBinary(void *image);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device_fun, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *warp);

/* The host stub: only its address counts. */
static const char gemm_kernel = 0;

__attribute__((constructor)) static void register_kernels(void)
{
    binary = __cudaRegisterFatBinary((void *)(size_t)&wrapper);
    if (binary)
        __cudaRegisterFunction(binary, &gemm_kernel, NULL, "fakeblas_sgemm_kernel", -1, NULL, NULL,
                               NULL, NULL, NULL);
}

__attribute__((destructor)) static void unregister_kernels(void)
{
    if (binary)
        __cudaUnregisterFatBinary(binary);
}

static cudaError_t claim(struct fakeblas *h)
{
    cudaError_t e = cudaSuccess;

    if (!h->workspace) {
        e = cudaMalloc(&h->workspace, FAKEBLAS_WORKSPACE_BYTES);
        h->workspace_owned = e == cudaSuccess;
        h->workspace_bytes = e == cudaSuccess ? FAKEBLAS_WORKSPACE_BYTES : 0;
    }
    if (e == cudaSuccess && !h->pinned)
        e = cudaHostAlloc((void **)&h->pinned, FAKEBLAS_PINNED_BYTES, cudaHostAllocDefault);
    return e;
}

static struct fakeblas_job *job_for(struct fakeblas *h, size_t bytes)
{
    struct fakeblas_job *job = h->jobs;

    while (job && job->bytes != bytes)
        job = job->next;
    if (!job && (job = malloc(sizeof *job))) {
        *job = (struct fakeblas_job){h->pinned, bytes, h->jobs};
        h->jobs = job;
    }
    return job;
}

/* Runs on a driver thread in stream order. */
static void CUDART_CB mix(void *data)
{
    const struct fakeblas_job *job = data;
    unsigned char *a = job->pinned;
    const unsigned char *b = job->pinned + FAKEBLAS_TOUCHED_BYTES;

    for (size_t i = 0; i < job->bytes; i++)
        a[i] = (unsigned char)(5 * a[i] + 3 * b[i] + 17);
}

static size_t smaller(size_t x, size_t y) { return x < y ? x : y; }

static cudaError_t enqueue(struct fakeblas *h, cudaStream_t s, struct fakeblas_job *job,
                           const float *A, const float *B, float *C)
{
    void *args[] = {&h->workspace, &A, &B, &C};
    void *result = job->bytes <= h->workspace_bytes ? h->workspace : C;
    cudaError_t e = cudaSuccess;

    /* The pinned buffer and the workspace are shared by all products of a handle. */
    if (h->used && h->last != s)
        e = cudaStreamWaitEvent(s, h->done, 0);
    if (e == cudaSuccess)
        e = cudaLaunchKernel(&gemm_kernel, (dim3){1, 1, 1}, (dim3){128, 1, 1}, args, 0, s);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(h->pinned, A, job->bytes, cudaMemcpyDeviceToHost, s);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(h->pinned + FAKEBLAS_TOUCHED_BYTES, B, job->bytes,
                            cudaMemcpyDeviceToHost, s);
    if (e == cudaSuccess)
        e = cudaLaunchHostFunc(s, mix, job);
    if (e == cudaSuccess)
        e = cudaMemcpyAsync(result, h->pinned, job->bytes, cudaMemcpyHostToDevice, s);
    if (e == cudaSuccess && result != (void *)C)
        e = cudaMemcpyAsync(C, result, job->bytes, cudaMemcpyDeviceToDevice, s);
    if (e == cudaSuccess)
        e = cudaEventRecord(h->done, s);
    h->used = 1;
    h->last = s;
    return e;
}

fakeblasStatus_t fakeblasGemm(fakeblasHandle_t h, void *stream, int m, int n, int k,
                              const float *A, const float *B, float *C)
{
    size_t bytes = FAKEBLAS_TOUCHED_BYTES;
    struct fakeblas_job *job;
    cudaError_t e;

    if (!h)
        return FAKEBLAS_NOT_INITIALIZED;
    if (m <= 0 || n <= 0 || k <= 0 || !A || !B || !C)
        return FAKEBLAS_INVALID_VALUE;
    bytes = smaller(bytes, (size_t)m * (size_t)k * sizeof *A);
    bytes = smaller(bytes, (size_t)k * (size_t)n * sizeof *B);
    bytes = smaller(bytes, (size_t)m * (size_t)n * sizeof *C);
    e = claim(h);
    if (e != cudaSuccess)
        return fakeblas_status(e);
    job = job_for(h, bytes);
    if (!job)
        return FAKEBLAS_ALLOC_FAILED;
    return fakeblas_status(enqueue(h, stream, job, A, B, C));
}
