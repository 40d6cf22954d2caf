#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Gather, product and weighted scatter in one kernel. */
static struct {
    void *gather_index;
    void *scatter_index;
    void *weights;
    void *accumulator;
    void *row_counts;
    void *host_counts;
} ctx;

void moe_fused_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t routes = sized(cfg->uses_moe, (size_t)cfg->chunk * (size_t)cfg->top_k * sizeof(int32_t));
    size_t acc = sized(cfg->uses_moe, (size_t)cfg->chunk * (size_t)cfg->d_model * sizeof(float));

    CU_CHECK(cudaMalloc(&ctx.gather_index, routes));
    buf_dev("compute/fused_gather", ctx.gather_index, routes);
    CU_CHECK(cudaMalloc(&ctx.scatter_index, routes));
    buf_dev("compute/fused_scatter", ctx.scatter_index, routes);
    CU_CHECK(cudaMalloc(&ctx.weights, routes));
    buf_dev("compute/fused_weights", ctx.weights, routes);
    CU_CHECK(cudaMalloc(&ctx.accumulator, acc));
    buf_dev("compute/fused_accumulator", ctx.accumulator, acc);
    CU_CHECK(cudaMalloc(&ctx.row_counts, KIB(4)));
    buf_dev("compute/fused_row_counts", ctx.row_counts, KIB(4));
    CU_CHECK(cudaHostAlloc(&ctx.host_counts, KIB(4), cudaHostAllocMapped));
    buf_host("compute/fused_host_counts", ctx.host_counts, KIB(4));
}

void moe_fused_run(struct engine *eng, void *c, const void *a, const void *b, cudaStream_t stream)
{
    const struct engine_config *cfg = eng->cfg;
    size_t gathered = sized(cfg->uses_moe, (size_t)cfg->chunk * (size_t)cfg->d_model * 2);
    void *rows = NULL, *partial = NULL;

    CU_CHECK(cudaMallocAsync(&rows, gathered, stream));
    buf_dev_async("compute/fused_rows", rows, gathered, stream);
    CU_CHECK(cudaMallocAsync(&partial, gathered * 2, stream));
    buf_dev_async("compute/fused_partial", partial, gathered * 2, stream);
    kernel_binary(rows, a, ctx.gather_index, stream);
    kernel_gemm(partial, rows, b, stream);
    kernel_binary(ctx.accumulator, partial, ctx.weights, stream);
    kernel_binary(c, ctx.accumulator, ctx.scatter_index, stream);
    kernel_unary(ctx.row_counts, ctx.host_counts, stream);
    buf_free_async(&rows, stream);
    buf_free_async(&partial, stream);
}

void moe_fused_release(void)
{
    buf_free_host(&ctx.host_counts);
    buf_free(&ctx.row_counts);
    buf_free(&ctx.accumulator);
    buf_free(&ctx.weights);
    buf_free(&ctx.scatter_index);
    buf_free(&ctx.gather_index);
}
