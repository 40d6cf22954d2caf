#include "quant/quant.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

static struct {
    void *amax_history;
    void *scale;
    void *inverse_scale;
    void *rows;
    void *row_amax;
} ctx;

void quant_fp8_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t rows = sized(cfg->uses_fp8_cache, (size_t)cfg->chunk * (size_t)cfg->d_model);

    CU_CHECK(cudaMalloc(&ctx.amax_history, KIB(16)));
    buf_dev("quant/fp8_amax_history", ctx.amax_history, KIB(16));
    CU_CHECK(cudaMalloc(&ctx.scale, KIB(4))), CU_CHECK(cudaMalloc(&ctx.inverse_scale, KIB(4)));
    buf_dev("quant/fp8_scale", ctx.scale, KIB(4));
    buf_dev("quant/fp8_inverse_scale", ctx.inverse_scale, KIB(4));
    CU_CHECK(cudaMalloc(&ctx.rows, rows));
    buf_dev("quant/fp8_rows", ctx.rows, rows);
    CU_CHECK(cudaMalloc(&ctx.row_amax, KIB(8)));
    buf_dev("quant/fp8_row_amax", ctx.row_amax, KIB(8));
}

void quant_fp8_rows(void *out, const void *in, cudaStream_t stream)
{
    void *block_amax = NULL;

    CU_CHECK(cudaMallocAsync(&block_amax, KIB(24), stream));
    buf_dev_async("quant/fp8_block_amax", block_amax, KIB(24), stream);
    kernel_unary(block_amax, in, stream);
    kernel_binary(ctx.row_amax, block_amax, ctx.amax_history, stream);
    kernel_unary(ctx.amax_history, ctx.row_amax, stream);
    kernel_binary(ctx.scale, ctx.row_amax, ctx.inverse_scale, stream);
    kernel_binary(ctx.rows, in, ctx.scale, stream);
    kernel_unary(out, ctx.rows, stream);
    buf_free_async(&block_amax, stream);
}

void quant_fp8_release(void)
{
    buf_free(&ctx.row_amax);
    buf_free(&ctx.rows);
    buf_free(&ctx.inverse_scale);
    buf_free(&ctx.scale);
    buf_free(&ctx.amax_history);
}
