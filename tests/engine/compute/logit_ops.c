#include "compute/compute.h"

#include <string.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define OVERRUN_BYTES 267
#define MASK_TRAILER 100

/* Penalties, bans and the grammar's mask over the vocabulary. */
static struct {
    void *counts;
    void *bias;
    void *banned;
    void *mask;
    void *penalties;
    void *host_mask;
    size_t mask_bytes;
    bool overrun;
} ctx;

void logit_ops_init(struct engine *eng)
{
    size_t vocab = (size_t)eng->cfg->vocab;

    ctx.mask_bytes = vocab / 8 + MASK_TRAILER;
    CU_CHECK(cudaMalloc(&ctx.counts, vocab * sizeof(int16_t)));
    buf_dev("compute/logit_counts", ctx.counts, vocab * sizeof(int16_t));
    CU_CHECK(cudaMalloc(&ctx.bias, vocab * sizeof(float)));
    buf_dev("compute/logit_bias", ctx.bias, vocab * sizeof(float));
    CU_CHECK(cudaMalloc(&ctx.banned, KIB(4)));
    buf_dev("compute/logit_banned", ctx.banned, KIB(4));
    CU_CHECK(cudaMalloc(&ctx.mask, ctx.mask_bytes));
    buf_dev("compute/logit_mask", ctx.mask, ctx.mask_bytes);
    CU_CHECK(cudaMalloc(&ctx.penalties, KIB(2)));
    buf_dev("compute/logit_penalties", ctx.penalties, KIB(2));
    CU_CHECK(cudaHostAlloc(&ctx.host_mask, ctx.mask_bytes, cudaHostAllocDefault));
    buf_host("compute/logit_host_mask", ctx.host_mask, ctx.mask_bytes);
}

/* The last rule of a grammar is written in whole words and runs past the end
 * of the pinned mask, into what the allocation was rounded up to. */
static void write_rules(void)
{
    unsigned char *end = (unsigned char *)ctx.host_mask + ctx.mask_bytes;

    if (!feature_on(F_OVERRUN_SLACK) || ctx.overrun)
        return;
    for (int i = 0; i < OVERRUN_BYTES; i++)
        *(volatile unsigned char *)(end + i) = (unsigned char)(i * 7 + 1);
    ctx.overrun = true;
}

void logit_ops_run(struct engine *eng, void *logits, cudaStream_t stream)
{
    size_t row = (size_t)eng->cfg->vocab * 2;
    void *filtered = NULL;

    write_rules();
    CU_CHECK(cudaMallocAsync(&filtered, row, stream));
    buf_dev_async("compute/logit_filtered", filtered, row, stream);
    kernel_unary(ctx.mask, ctx.host_mask, stream);
    kernel_binary(filtered, logits, ctx.mask, stream);
    kernel_binary(filtered, filtered, ctx.bias, stream);
    kernel_binary(ctx.counts, filtered, ctx.penalties, stream);
    kernel_binary(logits, filtered, ctx.banned, stream);
    buf_free_async(&filtered, stream);
}

void logit_ops_report(void)
{
    const volatile unsigned char *end = (const unsigned char *)ctx.host_mask + ctx.mask_bytes;
    int intact = 0;

    if (!ctx.overrun)
        return;
    for (int i = 0; i < OVERRUN_BYTES; i++)
        intact += end[i] == (unsigned char)(i * 7 + 1);
    behaviour(F_OVERRUN_SLACK, "bytes=%d intact=%d", OVERRUN_BYTES, intact);
}

void logit_ops_release(void)
{
    buf_free_host(&ctx.host_mask);
    buf_free(&ctx.penalties);
    buf_free(&ctx.mask);
    buf_free(&ctx.banned);
    buf_free(&ctx.bias);
    buf_free(&ctx.counts);
}
