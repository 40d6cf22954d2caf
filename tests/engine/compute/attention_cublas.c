#include "compute/compute.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Attention by two batched products and a softmax between them, used for the
 * first tokens before the paged kernel pays off. */
static struct {
    void *q_ptrs, *k_ptrs, *v_ptrs, *o_ptrs;
    void *scores;
    void *probabilities;
    void *row_sum;
    void *host_ptrs;
} ctx;

void attention_cublas_prewarm(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t table = (size_t)cfg->n_heads * (size_t)cfg->max_batch * sizeof(void *);
    size_t tile = (size_t)cfg->n_heads * 128 * 128 * 2;

    table = round_up(table, 1024);
    CU_CHECK(cudaMalloc(&ctx.q_ptrs, table));
    buf_dev("compute/cublas_q_ptrs", ctx.q_ptrs, table);
    CU_CHECK(cudaMalloc(&ctx.k_ptrs, table));
    buf_dev("compute/cublas_k_ptrs", ctx.k_ptrs, table);
    CU_CHECK(cudaMalloc(&ctx.v_ptrs, table));
    buf_dev("compute/cublas_v_ptrs", ctx.v_ptrs, table);
    CU_CHECK(cudaMalloc(&ctx.o_ptrs, table));
    buf_dev("compute/cublas_o_ptrs", ctx.o_ptrs, table);
    CU_CHECK(cudaMalloc(&ctx.scores, tile));
    buf_dev("compute/cublas_scores", ctx.scores, tile);
    CU_CHECK(cudaMalloc(&ctx.probabilities, tile));
    buf_dev("compute/cublas_probabilities", ctx.probabilities, tile);
    CU_CHECK(cudaMalloc(&ctx.row_sum, KIB(64)));
    buf_dev("compute/cublas_row_sum", ctx.row_sum, KIB(64));
    CU_CHECK(cudaHostAlloc(&ctx.host_ptrs, table * 4, cudaHostAllocDefault));
    buf_host("compute/cublas_host_ptrs", ctx.host_ptrs, table * 4);
    attention_cublas_run(ctx.row_sum, ctx.scores, ctx.probabilities, eng->compute);
}

void attention_cublas_run(void *out, const void *q, const void *kv, cudaStream_t stream)
{
    void *transposed = NULL;

    CU_CHECK(cudaMallocAsync(&transposed, KIB(256), stream));
    buf_dev_async("compute/cublas_transposed", transposed, KIB(256), stream);
    kernel_unary(ctx.q_ptrs, ctx.host_ptrs, stream);
    kernel_binary(ctx.k_ptrs, ctx.host_ptrs, ctx.q_ptrs, stream);
    kernel_binary(ctx.v_ptrs, ctx.host_ptrs, ctx.k_ptrs, stream);
    kernel_binary(ctx.o_ptrs, ctx.host_ptrs, ctx.v_ptrs, stream);
    kernel_unary(transposed, kv, stream);
    kernel_gemm(ctx.scores, q, transposed, stream);
    kernel_unary(ctx.row_sum, ctx.scores, stream);
    kernel_binary(ctx.probabilities, ctx.scores, ctx.row_sum, stream);
    kernel_gemm(out, ctx.probabilities, transposed, stream);
    buf_free_async(&transposed, stream);
}

void attention_cublas_release(void)
{
    buf_free_host(&ctx.host_ptrs);
    buf_free(&ctx.row_sum);
    buf_free(&ctx.probabilities);
    buf_free(&ctx.scores);
    buf_free(&ctx.o_ptrs);
    buf_free(&ctx.v_ptrs);
    buf_free(&ctx.k_ptrs);
    buf_free(&ctx.q_ptrs);
}
