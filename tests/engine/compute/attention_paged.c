#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/kv_cache.h"

#define SPLITS 16

/* Decode attention over the block table, split over the sequence. */
static struct {
    void *partial_out;
    void *partial_max, *partial_sum;
    void *tile_map;
    void *semaphores;
    void *window_starts;
} ctx;

void attention_paged_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t heads = (size_t)cfg->n_heads * (size_t)cfg->max_batch * SPLITS;
    size_t partial = heads * (size_t)cfg->head_dim * sizeof(float);
    size_t stats = heads * sizeof(float);
    size_t window = sized(cfg->uses_vision, (size_t)cfg->n_layers * (size_t)cfg->max_batch * sizeof(int32_t));

    CU_CHECK(cudaMalloc(&ctx.partial_out, partial));
    buf_dev("compute/paged_partial_out", ctx.partial_out, partial);
    CU_CHECK(cudaMalloc(&ctx.partial_max, stats));
    buf_dev("compute/paged_partial_max", ctx.partial_max, stats);
    CU_CHECK(cudaMalloc(&ctx.partial_sum, stats));
    buf_dev("compute/paged_partial_sum", ctx.partial_sum, stats);
    CU_CHECK(cudaMalloc(&ctx.tile_map, KIB(32)));
    buf_dev("compute/paged_tile_map", ctx.tile_map, KIB(32));
    CU_CHECK(cudaMalloc(&ctx.semaphores, KIB(4)));
    buf_dev("compute/paged_semaphores", ctx.semaphores, KIB(4));
    CU_CHECK(cudaMalloc(&ctx.window_starts, window));
    buf_dev("compute/paged_window_starts", ctx.window_starts, window);
}

void attention_paged_run(struct engine *eng, void *out, const void *q, int seq, cudaStream_t stream)
{
    size_t scores = (size_t)eng->cfg->n_heads * 1024;
    void *long_scores = NULL, *gathered = NULL;
    int block = kv_seq_block(seq, 0);

    CU_CHECK(cudaMallocAsync(&long_scores, scores, stream));
    buf_dev_async("compute/paged_long_scores", long_scores, scores, stream);
    CU_CHECK(cudaMallocAsync(&gathered, scores / 2, stream));
    buf_dev_async("compute/paged_gathered", gathered, scores / 2, stream);
    kernel_binary(gathered, kv_block_keys(block), kv_device_table(), stream);
    kernel_binary(long_scores, q, gathered, stream);
    kernel_unary(ctx.partial_max, long_scores, stream);
    kernel_binary(ctx.partial_sum, ctx.partial_max, ctx.tile_map, stream);
    kernel_binary(ctx.partial_out, kv_block_values(block), ctx.partial_sum, stream);
    kernel_binary(out, ctx.partial_out, ctx.window_starts, stream);
    kernel_fill(ctx.semaphores, 0, stream);
    buf_free_async(&gathered, stream);
    buf_free_async(&long_scores, stream);
}

void attention_paged_release(void)
{
    buf_free(&ctx.window_starts);
    buf_free(&ctx.semaphores);
    buf_free(&ctx.tile_map);
    buf_free(&ctx.partial_sum);
    buf_free(&ctx.partial_max);
    buf_free(&ctx.partial_out);
}
