#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Fused normalisation, rotation and quantisation of a row. */
static struct {
    void *row_stats;
    void *partial_sums;
    void *inv_freq;
    void *rope_cache;
    void *quant_rows;
    void *quant_scales;
} ctx;

void norm_rope_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t rows = (size_t)cfg->chunk;
    size_t d = (size_t)cfg->d_model;
    size_t rope = (size_t)cfg->max_seq * (size_t)cfg->head_dim * 2;

    CU_CHECK(cudaMalloc(&ctx.row_stats, rows * 2 * sizeof(float)));
    buf_dev("compute/norm_row_stats", ctx.row_stats, rows * 2 * sizeof(float));
    CU_CHECK(cudaMalloc(&ctx.partial_sums, rows * 32 * sizeof(float)));
    buf_dev("compute/norm_partial_sums", ctx.partial_sums, rows * 32 * sizeof(float));
    CU_CHECK(cudaMalloc(&ctx.inv_freq, KIB(1)));
    buf_dev("compute/rope_inv_freq", ctx.inv_freq, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.rope_cache, rope));
    buf_dev("compute/rope_cache", ctx.rope_cache, rope);
    CU_CHECK(cudaMalloc(&ctx.quant_rows, rows * d));
    buf_dev("compute/norm_quant_rows", ctx.quant_rows, rows * d);
    CU_CHECK(cudaMalloc(&ctx.quant_scales, rows * d / 32));
    buf_dev("compute/norm_quant_scales", ctx.quant_scales, rows * d / 32);
}

void norm_rope_run(void *out, const void *in, cudaStream_t stream)
{
    kernel_unary(ctx.row_stats, in, stream);
    kernel_binary(ctx.partial_sums, in, ctx.row_stats, stream);
    kernel_binary(ctx.rope_cache, ctx.inv_freq, ctx.partial_sums, stream);
    kernel_binary(ctx.quant_rows, ctx.rope_cache, in, stream);
    kernel_unary(ctx.quant_scales, ctx.quant_rows, stream);
    kernel_binary(out, ctx.quant_rows, ctx.quant_scales, stream);
}

void norm_rope_release(void)
{
    buf_free(&ctx.quant_scales);
    buf_free(&ctx.quant_rows);
    buf_free(&ctx.rope_cache);
    buf_free(&ctx.inv_freq);
    buf_free(&ctx.partial_sums);
    buf_free(&ctx.row_stats);
}
