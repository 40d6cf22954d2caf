/* Handles of the small matrix library: what is claimed when, and its release. */
#include "blas_internal.h"

#include <stdlib.h>

fakeblasStatus_t fakeblas_status(cudaError_t e)
{
    switch (e) {
    case cudaSuccess:
        return FAKEBLAS_SUCCESS;
    case cudaErrorMemoryAllocation:
        return FAKEBLAS_ALLOC_FAILED;
    case cudaErrorInitializationError:
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
    case cudaErrorCudartUnloading:
        return FAKEBLAS_NOT_INITIALIZED;
    case cudaErrorInvalidValue:
        return FAKEBLAS_INVALID_VALUE;
    default:
        return FAKEBLAS_EXECUTION_FAILED;
    }
}

fakeblasStatus_t fakeblasCreate(fakeblasHandle_t *out)
{
    struct fakeblas *h;
    cudaError_t e;

    if (!out)
        return FAKEBLAS_INVALID_VALUE;
    h = calloc(1, sizeof *h);
    if (!h)
        return FAKEBLAS_ALLOC_FAILED;
    e = cudaMalloc(&h->state, FAKEBLAS_HANDLE_BYTES);
    if (e == cudaSuccess)
        e = cudaEventCreateWithFlags(&h->done, cudaEventDisableTiming);
    if (e != cudaSuccess) {
        (void)fakeblasDestroy(h);
        return fakeblas_status(e);
    }
    *out = h;
    return FAKEBLAS_SUCCESS;
}

fakeblasStatus_t fakeblasDestroy(fakeblasHandle_t h)
{
    cudaError_t first = cudaSuccess, e;

    if (!h)
        return FAKEBLAS_NOT_INITIALIZED;
    if (h->workspace_owned)
        first = cudaFree(h->workspace);
    if (h->pinned && (e = cudaFreeHost(h->pinned)) != cudaSuccess && first == cudaSuccess)
        first = e;
    if (h->done && (e = cudaEventDestroy(h->done)) != cudaSuccess && first == cudaSuccess)
        first = e;
    if (h->state && (e = cudaFree(h->state)) != cudaSuccess && first == cudaSuccess)
        first = e;
    while (h->jobs) {
        struct fakeblas_job *job = h->jobs;

        h->jobs = job->next;
        free(job);
    }
    free(h);
    return fakeblas_status(first);
}

fakeblasStatus_t fakeblasSetWorkspace(fakeblasHandle_t h, void *workspace, size_t bytes)
{
    if (!h)
        return FAKEBLAS_NOT_INITIALIZED;
    if (bytes && !workspace)
        return FAKEBLAS_INVALID_VALUE;
    if (h->workspace_owned) {
        cudaError_t e = cudaFree(h->workspace);

        if (e != cudaSuccess)
            return fakeblas_status(e);
    }
    h->workspace_owned = 0;
    h->workspace = bytes ? workspace : NULL;
    h->workspace_bytes = bytes;
    return FAKEBLAS_SUCCESS;
}
