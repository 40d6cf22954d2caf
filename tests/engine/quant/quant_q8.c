#include "quant/quant.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

static struct {
    void *row_blocks;
    void *row_sums;
    void *min_max;
    void *repack;
} ctx;

void quant_q8_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t blocks = (size_t)cfg->max_batch * ((size_t)cfg->d_model / 32) * 36;

    CU_CHECK(cudaMalloc(&ctx.row_blocks, blocks));
    buf_dev("quant/q8_row_blocks", ctx.row_blocks, blocks);
    CU_CHECK(cudaMalloc(&ctx.row_sums, KIB(16)));
    buf_dev("quant/q8_row_sums", ctx.row_sums, KIB(16));
    CU_CHECK(cudaMalloc(&ctx.min_max, KIB(2)));
    buf_dev("quant/q8_min_max", ctx.min_max, KIB(2));
    CU_CHECK(cudaMalloc(&ctx.repack, MIB(1)));
    buf_dev("quant/q8_repack", ctx.repack, MIB(1));
}

void quant_q8_rows(struct engine *eng, void *out, const void *in, cudaStream_t stream)
{
    size_t n = (size_t)eng->cfg->d_model * 8;
    void *sums = NULL;

    CU_CHECK(cudaMallocAsync(&sums, n, stream));
    buf_dev_async("quant/q8_sums", sums, n, stream);
    kernel_unary(sums, in, stream);
    kernel_binary(ctx.row_sums, sums, ctx.min_max, stream);
    kernel_binary(ctx.row_blocks, in, ctx.row_sums, stream);
    kernel_unary(ctx.repack, ctx.row_blocks, stream);
    kernel_unary(out, ctx.repack, stream);
    buf_free_async(&sums, stream);
}

void quant_q8_release(void)
{
    buf_free(&ctx.repack);
    buf_free(&ctx.min_max);
    buf_free(&ctx.row_sums);
    buf_free(&ctx.row_blocks);
}
