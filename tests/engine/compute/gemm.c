#include "compute/compute.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define BENCH_BYTES MIB(32)
#define MAX_BATCH_POINTERS 1024

static void *workspace;
static size_t workspace_bytes;
static void *bench_scratch;
static void *bench_a, *bench_b;
static void *ptrs_a, *ptrs_b, *ptrs_c;
static void *host_ptrs;
static void *split_counters;
static void *scale_one;

/* The library is fastest with 64 MiB and works with two. */
static void take_workspace(void)
{
    static const size_t ladder[] = { MIB(64), MIB(32), MIB(8), MIB(2) };
    size_t n = feature_on(F_WORKSPACE_LADDER) ? sizeof ladder / sizeof ladder[0] : 1;
    size_t rung = 0;

    while (rung < n && !cu_try(cudaMalloc(&workspace, ladder[rung])))
        rung++;
    if (workspace == NULL) {
        fprintf(stderr, "engine: no workspace for the matrix library after %zu sizes\n", n);
        exit(3);
    }
    workspace_bytes = ladder[rung];
    buf_dev("compute/lt_workspace", workspace, workspace_bytes);
    behaviour(F_WORKSPACE_LADDER, "rung=%zu bytes=%zu sticky=%d", rung, workspace_bytes, (int)cudaPeekAtLastError());
}

void gemm_init(struct engine *eng)
{
    size_t operand = (size_t)eng->cfg->d_model * 256;

    take_workspace();
    CU_CHECK(cudaMalloc(&bench_scratch, BENCH_BYTES));
    buf_dev("compute/algo_bench", bench_scratch, BENCH_BYTES);
    CU_CHECK(cudaMalloc(&split_counters, KIB(16)));
    buf_dev("compute/split_counters", split_counters, KIB(16));
    CU_CHECK(cudaMalloc(&scale_one, KIB(1)));
    buf_dev("compute/scale_one", scale_one, KIB(1));

    /* Pointer arrays of the batched products, and their pinned mirror. */
    size_t table = MAX_BATCH_POINTERS * sizeof(void *);
    CU_CHECK(cudaMalloc(&ptrs_a, table));
    buf_dev("compute/gemm_ptrs_a", ptrs_a, table);
    CU_CHECK(cudaMalloc(&ptrs_b, table));
    buf_dev("compute/gemm_ptrs_b", ptrs_b, table);
    CU_CHECK(cudaMalloc(&ptrs_c, table));
    buf_dev("compute/gemm_ptrs_c", ptrs_c, table);
    CU_CHECK(cudaHostAlloc(&host_ptrs, table, cudaHostAllocDefault));
    buf_host("compute/gemm_host_ptrs", host_ptrs, table);

    CU_CHECK(cudaMalloc(&bench_a, operand)), CU_CHECK(cudaMalloc(&bench_b, operand));
    buf_dev("compute/bench_a", bench_a, operand);
    buf_dev("compute/bench_b", bench_b, operand);
    gemm_bench(bench_a, bench_b, eng->compute);
    CU_CHECK(cudaStreamSynchronize(eng->compute));
    buf_free(&bench_b);
    buf_free(&bench_a);
}

void gemm_bench(const void *a, const void *b, cudaStream_t stream)
{
    for (int algo = 0; algo < 4; algo++) {
        kernel_gemm(bench_scratch, a, b, stream);
        kernel_fill(bench_scratch, algo, stream);
    }
}

void gemm_batched(void *c, const void *a, const void *b, cudaStream_t stream)
{
    kernel_unary(ptrs_a, host_ptrs, stream);
    kernel_unary(ptrs_b, host_ptrs, stream);
    kernel_unary(ptrs_c, host_ptrs, stream);
    kernel_binary(workspace, a, scale_one, stream);
    kernel_gemm(c, workspace, b, stream);
    kernel_fill(split_counters, 0, stream);
}

void gemm_release(void)
{
    buf_free_host(&host_ptrs);
    buf_free(&ptrs_c);
    buf_free(&ptrs_b);
    buf_free(&ptrs_a);
    buf_free(&scale_one);
    buf_free(&split_counters);
    buf_free(&bench_scratch);
    /* The workspace stays: the library's handle lives until the process ends. */
}
