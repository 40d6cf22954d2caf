/* Sizes its pool as engines do: weights, then three quarters of what a memory query says is free, in two equal buffers; then scratch. Prints what each of its
 * queries said, in MiB, and checks that what it said fell by what was taken. "unplanned": it takes 96 MiB more before the scratch. "hold": it takes
 * 4 GiB, says so, and keeps them until its input ends. "late": it waits with a context until its input ends. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenure.h"

#define MIB ((size_t)1 << 20)

static __attribute__((noinline)) size_t free_now(const char *when)
{
    size_t unused = 0, total = 0;
    if (cudaMemGetInfo(&unused, &total) != cudaSuccess)
        exit(1);
    printf("%s=%zu of %zu\n", when, unused / MIB, total / MIB);
    return unused;
}

static __attribute__((noinline)) void *take(size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes) != cudaSuccess)
        exit(2);
    return p;
}

static __attribute__((noinline)) size_t query_for_pool(void)
{
    size_t unused = 0, total = 0;
    if (cudaMemGetInfo(&unused, &total) != cudaSuccess)
        exit(1);
    printf("pool_query=%zu\n", unused / MIB);
    return unused;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "hold") == 0) {
        take(4096 * MIB);
        printf("held\n");
        fflush(stdout);
        return getchar() == EOF ? 0 : 6;
    }
    if (argc > 1 && strcmp(argv[1], "late") == 0) {
        if (cudaFree(NULL) != cudaSuccess)
            return 7;
        printf("here\n");
        fflush(stdout);
        while (getchar() != EOF)
            continue;
    }
    size_t before = free_now("start"), after;
    void *weights = take(512 * MIB), *more = take(256 * MIB), *unplanned = NULL;
    after = free_now("loaded");
    printf("weights_fell=%zu\n", (before - after) / MIB);
    before = query_for_pool();
    size_t pool = before / 8 * 3 / (16 * MIB) * (16 * MIB);
    printf("pool_MiB=%zu\n", pool / MIB);
    void *k, *v;
    if (cudaMalloc(&k, pool) != cudaSuccess || cudaMalloc(&v, pool) != cudaSuccess)
        return 3;
    after = free_now("pooled");
    printf("pool_fell=%d\n", before - after == 2 * pool);
    tenure_phase(TENURE_SERVING);
    if (argc > 1 && strcmp(argv[1], "unplanned") == 0) {
        before = free_now("before_unplanned");
        if (cudaMalloc(&unplanned, 96 * MIB) != cudaSuccess)
            return 4;
        after = free_now("with_unplanned");
        printf("unplanned_fell=%zu\n", (before - after) / MIB);
        cudaFree(unplanned);
    }
    for (int i = 0; i < 4; i++) {
        void *scratch = NULL;
        if (cudaMalloc(&scratch, 64 * MIB) != cudaSuccess)
            return 5;
        cudaFree(scratch);
    }
    free_now("served");
    cudaFree(k);
    cudaFree(v);
    cudaFree(weights);
    cudaFree(more);
    return 0;
}
