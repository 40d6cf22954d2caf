#include "runtime/runtime.h"

#include <string.h>

#include "compute/compute.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "exec/exec.h"
#include "memory/kv_cache.h"
#include "quant/quant.h"
#include "vision/vision.h"

#define POOLED_TOKENS 64
#define POOL_ROW KIB(4)
#define TILE_TOKENS 8 /* the kernels work on whole tiles, however few tokens a prompt has left behind its shared prefix */

/* Staging for one prefill chunk. Short chunks use the pooled rows, longer ones
 * take stream-ordered blocks. */
static struct {
    void *pool;
    void *state;
    void *host_tokens, *host_positions, *host_table, *host_slots, *host_lens, *host_params;
} sched;

struct prefill_meta {
    bool pooled;
    void *tokens, *positions, *table, *ctx_lens, *cu_seqlens, *slots, *image_mask, *lora_ids, *params;
};

void scheduler_init(struct engine *eng)
{
    size_t chunk = (size_t)eng->cfg->chunk * sizeof(int32_t);
    size_t table = KV_MAX_SEQ_BLOCKS * sizeof(int32_t);

    CU_CHECK(cudaMalloc(&sched.pool, POOL_ROW * 9));
    buf_dev("runtime/prefill_pool", sched.pool, POOL_ROW * 9);
    CU_CHECK(cudaMalloc(&sched.state, KIB(64)));
    buf_dev("runtime/scheduler_state", sched.state, KIB(64));
    CU_CHECK(cudaHostAlloc(&sched.host_tokens, chunk, cudaHostAllocDefault));
    buf_host("runtime/prefill_host_tokens", sched.host_tokens, chunk);
    CU_CHECK(cudaHostAlloc(&sched.host_positions, chunk, cudaHostAllocDefault));
    buf_host("runtime/prefill_host_positions", sched.host_positions, chunk);
    CU_CHECK(cudaHostAlloc(&sched.host_table, table, cudaHostAllocDefault));
    buf_host("runtime/prefill_host_table", sched.host_table, table);
    CU_CHECK(cudaHostAlloc(&sched.host_slots, chunk, cudaHostAllocDefault));
    buf_host("runtime/prefill_host_slots", sched.host_slots, chunk);
    CU_CHECK(cudaHostAlloc(&sched.host_lens, KIB(2), cudaHostAllocDefault));
    buf_host("runtime/prefill_host_lens", sched.host_lens, KIB(2));
    CU_CHECK(cudaHostAlloc(&sched.host_params, KIB(4), cudaHostAllocMapped));
    buf_host("runtime/prefill_host_params", sched.host_params, KIB(4));
}

static void meta_from_pool(struct prefill_meta *m)
{
    char *row = sched.pool;
    void **fields[] = {
        &m->tokens, &m->positions, &m->table, &m->ctx_lens, &m->cu_seqlens,
        &m->slots, &m->image_mask, &m->lora_ids, &m->params,
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        *fields[i] = row + i * POOL_ROW;
    m->pooled = true;
}

static void meta_take(struct prefill_meta *m, size_t n_tokens, cudaStream_t s)
{
    size_t ids = (n_tokens + 127) / 128 * 128 * sizeof(int32_t); /* kernels read whole tiles of 128 tokens */
    size_t table = KV_MAX_SEQ_BLOCKS * sizeof(int32_t);

    CU_CHECK(cudaMallocAsync(&m->tokens, ids, s));
    buf_dev_async("runtime/prefill_tokens", m->tokens, ids, s);
    CU_CHECK(cudaMallocAsync(&m->positions, ids, s));
    buf_dev_async("runtime/prefill_positions", m->positions, ids, s);
    CU_CHECK(cudaMallocAsync(&m->table, table, s));
    buf_dev_async("runtime/prefill_table", m->table, table, s);
    CU_CHECK(cudaMallocAsync(&m->ctx_lens, KIB(1), s));
    buf_dev_async("runtime/prefill_ctx_lens", m->ctx_lens, KIB(1), s);
    CU_CHECK(cudaMallocAsync(&m->cu_seqlens, KIB(1), s));
    buf_dev_async("runtime/prefill_cu_seqlens", m->cu_seqlens, KIB(1), s);
    CU_CHECK(cudaMallocAsync(&m->slots, ids * 2, s));
    buf_dev_async("runtime/prefill_slots", m->slots, ids * 2, s);
    CU_CHECK(cudaMallocAsync(&m->image_mask, ids, s));
    buf_dev_async("runtime/prefill_image_mask", m->image_mask, ids, s);
    CU_CHECK(cudaMallocAsync(&m->lora_ids, ids, s));
    buf_dev_async("runtime/prefill_lora_ids", m->lora_ids, ids, s);
    CU_CHECK(cudaMallocAsync(&m->params, KIB(2), s));
    buf_dev_async("runtime/prefill_params", m->params, KIB(2), s);
}

static void meta_upload(struct prefill_meta *m, cudaStream_t s)
{
    kernel_unary(m->tokens, sched.host_tokens, s);
    kernel_unary(m->positions, sched.host_positions, s);
    kernel_unary(m->table, sched.host_table, s);
    kernel_unary(m->slots, sched.host_slots, s);
    kernel_unary(m->ctx_lens, sched.host_lens, s);
    kernel_unary(m->params, sched.host_params, s);
    kernel_binary(m->cu_seqlens, m->ctx_lens, m->tokens, s);
    kernel_binary(m->image_mask, m->tokens, m->positions, s);
    kernel_binary(m->lora_ids, m->image_mask, m->slots, s);
    kernel_binary(sched.state, m->params, m->lora_ids, s);
}

/* In the order of their use, so not in the reverse order of their taking. */
static void meta_give(struct prefill_meta *m, cudaStream_t s)
{
    if (m->pooled)
        return;
    buf_free_async(&m->tokens, s);
    buf_free_async(&m->positions, s);
    buf_free_async(&m->image_mask, s);
    buf_free_async(&m->table, s);
    buf_free_async(&m->slots, s);
    buf_free_async(&m->ctx_lens, s);
    buf_free_async(&m->cu_seqlens, s);
    buf_free_async(&m->params, s);
    buf_free_async(&m->lora_ids, s);
}

static void prefill_chunk(struct server *srv, struct request *req, int n_tokens)
{
    struct engine *eng = srv->eng;
    struct prefill_meta meta = { 0 };
    cudaStream_t s = eng->prefill;
    int rows = n_tokens < TILE_TOKENS ? TILE_TOKENS : n_tokens;

    /* The workspaces are shared with decode and warm-up. */
    stream_order(eng->compute, s);
    if (n_tokens <= POOLED_TOKENS)
        meta_from_pool(&meta);
    else
        meta_take(&meta, (size_t)n_tokens, s);
    ((uint32_t *)sched.host_tokens)[0] = (uint32_t)req->id * 2654435761u + (uint32_t)n_tokens;
    meta_upload(&meta, s);

    embedding_run(workspace_hidden(), meta.tokens, s);
    if (req->has_image)
        kernel_binary(workspace_hidden(), workspace_hidden(), vision_encode(eng, req->id), s);
    norm_rope_run(workspace_residual(), workspace_hidden(), s);
    quant_fp8_rows(workspace_shared(), workspace_residual(), s);
    forward_prefill(eng, srv->weights, req->seq, rows);
    cutlass_gemm(eng, workspace_shared(), workspace_hidden(), workspace_residual(), (size_t)rows, s);
    attention_cublas_run(workspace_residual(), workspace_hidden(), meta.slots, s);
    moe_fused_run(eng, workspace_residual(), workspace_hidden(), workspace_shared(), s);
    lora_apply(srv->lora, workspace_hidden(), s);
    /* The host row is written again by the next chunk. */
    CU_CHECK(cudaStreamSynchronize(s));
    meta_give(&meta, s);
    stream_order(s, eng->compute);
}

void scheduler_prefill(struct server *srv, struct request *req)
{
    int chunk = srv->eng->cfg->chunk;
    int done = kv_seq_reuse_prefix(req->seq, req->prefix_hash, req->prompt_tokens);

    /* The pool keeps freed blocks to their stream until the stream has passed the
     * free; waiting where the streams change over keeps its size independent of timing. */
    CU_CHECK(cudaStreamSynchronize(srv->eng->compute));
    while (done < req->prompt_tokens) {
        int n = req->prompt_tokens - done < chunk ? req->prompt_tokens - done : chunk;
        if (!kv_seq_grow(req->seq, n, srv->eng->prefill)) {
            req->state = REQ_REFUSED;
            return;
        }
        prefill_chunk(srv, req, n);
        done += n;
    }
    if (req->prefix_blocks > 0)
        kv_seq_cache_prefix(req->seq, req->prefix_hash, req->prefix_blocks);
    if (req->pinned_prefix)
        kv_prefix_pin(req->prefix_hash);
    CU_CHECK(cudaStreamSynchronize(srv->eng->prefill));
    req->state = REQ_DECODE;
}

void scheduler_release(void)
{
    buf_free_host(&sched.host_params);
    buf_free_host(&sched.host_lens);
    buf_free_host(&sched.host_slots);
    buf_free_host(&sched.host_table);
    buf_free_host(&sched.host_positions);
    buf_free_host(&sched.host_tokens);
    buf_free(&sched.state);
    buf_free(&sched.pool);
}
