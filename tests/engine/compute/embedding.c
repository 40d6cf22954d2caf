#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Gather of embedding rows, with the token ids staged through pinned memory. */
static struct {
    void *token_ids;
    void *row_scale;
    void *merged;       /* text and image rows side by side */
    void *host_ids;
} ctx;

void embedding_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t ids = (size_t)cfg->chunk * sizeof(int32_t);
    size_t merged = sized(cfg->uses_vision, (size_t)cfg->chunk * (size_t)cfg->d_model * 2);

    CU_CHECK(cudaMalloc(&ctx.token_ids, ids));
    buf_dev("compute/embed_token_ids", ctx.token_ids, ids);
    CU_CHECK(cudaMalloc(&ctx.row_scale, KIB(2)));
    buf_dev("compute/embed_row_scale", ctx.row_scale, KIB(2));
    CU_CHECK(cudaMalloc(&ctx.merged, merged));
    buf_dev("compute/embed_merged", ctx.merged, merged);
    CU_CHECK(cudaHostAlloc(&ctx.host_ids, ids, cudaHostAllocDefault));
    buf_host("compute/embed_host_ids", ctx.host_ids, ids);
}

void embedding_run(void *out, const void *table, cudaStream_t stream)
{
    kernel_unary(ctx.token_ids, ctx.host_ids, stream);
    kernel_binary(ctx.merged, table, ctx.token_ids, stream);
    kernel_binary(out, ctx.merged, ctx.row_scale, stream);
}

void embedding_release(void)
{
    buf_free_host(&ctx.host_ids);
    buf_free(&ctx.merged);
    buf_free(&ctx.row_scale);
    buf_free(&ctx.token_ids);
}
