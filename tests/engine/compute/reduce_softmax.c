#include "compute/compute.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Two-pass reductions over the vocabulary. */
static struct {
    void *block_max, *block_sum;
    void *histogram;
    void *ticket;
    void *row_argmax;
    void *temperature;
} ctx;

static int stacked;

void reduce_init(struct engine *eng)
{
    size_t blocks = (size_t)eng->cfg->max_batch * 512 * sizeof(float);

    CU_CHECK(cudaMalloc(&ctx.block_max, blocks)), CU_CHECK(cudaMalloc(&ctx.block_sum, blocks));
    buf_dev("compute/reduce_block_max", ctx.block_max, blocks);
    buf_dev("compute/reduce_block_sum", ctx.block_sum, blocks);
    CU_CHECK(cudaMalloc(&ctx.histogram, KIB(64)));
    buf_dev("compute/reduce_histogram", ctx.histogram, KIB(64));
    CU_CHECK(cudaMalloc(&ctx.ticket, KIB(1)));
    buf_dev("compute/reduce_ticket", ctx.ticket, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.row_argmax, KIB(1)));
    buf_dev("compute/reduce_argmax", ctx.row_argmax, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.temperature, KIB(1)));
    buf_dev("compute/reduce_temperature", ctx.temperature, KIB(1));
}

/* The scratch of the two passes is nested, so it goes last in, first out. */
void reduce_softmax(struct engine *eng, void *out, const void *logits, cudaStream_t stream)
{
    size_t row = (size_t)eng->cfg->vocab * sizeof(float);
    void *first = NULL, *second = NULL;

    CU_CHECK(cudaMallocAsync(&first, row, stream));
    buf_dev_async("compute/softmax_pass1", first, row, stream);
    kernel_binary(first, logits, ctx.temperature, stream);
    kernel_unary(ctx.block_max, first, stream);
    CU_CHECK(cudaMallocAsync(&second, row / 2, stream));
    buf_dev_async("compute/softmax_pass2", second, row / 2, stream);
    kernel_binary(second, first, ctx.block_max, stream);
    kernel_unary(ctx.block_sum, second, stream);
    kernel_binary(ctx.histogram, ctx.block_sum, ctx.row_argmax, stream);
    kernel_binary(out, second, ctx.block_sum, stream);
    kernel_fill(ctx.ticket, 0, stream);
    if (feature_on(F_LIFO_SCRATCH)) {
        buf_free_async(&second, stream);
        buf_free_async(&first, stream);
        stacked++;
    } else {
        buf_free_async(&first, stream);
        buf_free_async(&second, stream);
    }
}

void reduce_report(void)
{
    if (stacked > 0)
        behaviour(F_LIFO_SCRATCH, "groups=%d", stacked);
}

void reduce_release(void)
{
    buf_free(&ctx.temperature);
    buf_free(&ctx.row_argmax);
    buf_free(&ctx.ticket);
    buf_free(&ctx.histogram);
    buf_free(&ctx.block_sum);
    buf_free(&ctx.block_max);
}
