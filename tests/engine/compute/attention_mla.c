#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Attention over a compressed latent. */
static struct {
    void *absorbed_q;
    void *latent_tile;
    void *rope_tile;
    void *partial;
    void *up_projection;
} ctx;

void attention_mla_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t q = sized(cfg->uses_mla, (size_t)cfg->max_batch * (size_t)cfg->n_heads * 576 * 2);
    size_t tile = sized(cfg->uses_mla, MIB(4));

    CU_CHECK(cudaMalloc(&ctx.absorbed_q, q));
    buf_dev("compute/mla_absorbed_q", ctx.absorbed_q, q);
    CU_CHECK(cudaMalloc(&ctx.latent_tile, tile));
    buf_dev("compute/mla_latent_tile", ctx.latent_tile, tile);
    CU_CHECK(cudaMalloc(&ctx.rope_tile, tile));
    buf_dev("compute/mla_rope_tile", ctx.rope_tile, tile);
    CU_CHECK(cudaMalloc(&ctx.partial, q));
    buf_dev("compute/mla_partial", ctx.partial, q);
    CU_CHECK(cudaMalloc(&ctx.up_projection, tile));
    buf_dev("compute/mla_up_projection", ctx.up_projection, tile);
}

void attention_mla_run(struct engine *eng, void *out, const void *latent, cudaStream_t stream)
{
    size_t n = sized(eng->cfg->uses_mla, MIB(1));
    void *scores = NULL, *stats = NULL;

    CU_CHECK(cudaMallocAsync(&scores, n, stream));
    buf_dev_async("compute/mla_scores", scores, n, stream);
    CU_CHECK(cudaMallocAsync(&stats, KIB(4), stream));
    buf_dev_async("compute/mla_stats", stats, KIB(4), stream);
    kernel_binary(ctx.latent_tile, latent, ctx.rope_tile, stream);
    kernel_gemm(scores, ctx.absorbed_q, ctx.latent_tile, stream);
    kernel_unary(stats, scores, stream);
    kernel_binary(ctx.partial, scores, stats, stream);
    kernel_gemm(out, ctx.partial, ctx.up_projection, stream);
    buf_free_async(&stats, stream);
    buf_free_async(&scores, stream);
}

void attention_mla_release(void)
{
    buf_free(&ctx.up_projection);
    buf_free(&ctx.partial);
    buf_free(&ctx.rope_tile);
    buf_free(&ctx.latent_tile);
    buf_free(&ctx.absorbed_q);
}
