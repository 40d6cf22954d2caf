/* Inside of libfakeblas: the handle. It owns its device and pinned memory and
 * the job records that enqueued host functions point to; records live as long
 * as the handle, because a captured graph may run one again and again. */
#ifndef FAKEGPU_BLAS_INTERNAL_H
#define FAKEGPU_BLAS_INTERNAL_H

#include "fakeblas.h"

#include <cuda_runtime_api.h>

struct fakeblas_job {
    unsigned char *pinned; /* A's bytes, then B's */
    size_t bytes;
    struct fakeblas_job *next;
};

struct fakeblas {
    void *state; /* claimed at creation, as cuBLAS does */
    void *workspace;
    size_t workspace_bytes;
    int workspace_owned;
    unsigned char *pinned;
    cudaEvent_t done;   /* end of the last product, for the next on another stream */
    cudaStream_t last;  /* where that was enqueued */
    int used;
    struct fakeblas_job *jobs;
};

/** The library's code for a runtime error. */
fakeblasStatus_t fakeblas_status(cudaError_t e);

#endif
