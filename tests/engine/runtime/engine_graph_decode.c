#include "runtime/runtime.h"

#include <string.h>

#include "compute/compute.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "exec/exec.h"
#include "memory/kv_cache.h"
#include "memory/state.h"
#include "quant/quant.h"

static struct {
    void *step_state;
    void *batch_map;
    void *finished_flags;
    void *host_table, *host_banned, *host_step, *host_flags;
} gd;

void graph_decode_init(struct engine *eng)
{
    size_t table = (size_t)eng->cfg->max_batch * KV_MAX_SEQ_BLOCKS * sizeof(int32_t);

    CU_CHECK(cudaMalloc(&gd.step_state, KIB(16)));
    buf_dev("runtime/decode_step_state", gd.step_state, KIB(16));
    CU_CHECK(cudaMalloc(&gd.batch_map, KIB(4)));
    buf_dev("runtime/decode_batch_map", gd.batch_map, KIB(4));
    CU_CHECK(cudaMalloc(&gd.finished_flags, KIB(1)));
    buf_dev("runtime/decode_finished", gd.finished_flags, KIB(1));
    CU_CHECK(cudaHostAlloc(&gd.host_table, table, cudaHostAllocDefault));
    buf_host("runtime/decode_host_table", gd.host_table, table);
    CU_CHECK(cudaHostAlloc(&gd.host_banned, KIB(8), cudaHostAllocDefault));
    buf_host("runtime/decode_host_banned", gd.host_banned, KIB(8));
    CU_CHECK(cudaHostAlloc(&gd.host_step, KIB(4), cudaHostAllocDefault));
    buf_host("runtime/decode_host_step", gd.host_step, KIB(4));
    CU_CHECK(cudaHostAlloc(&gd.host_flags, KIB(1), cudaHostAllocMapped));
    buf_host("runtime/decode_host_flags", gd.host_flags, KIB(1));
}

void graph_decode_begin(struct server *srv, struct request *req)
{
    cudaStream_t s = srv->eng->compute;
    size_t table = KV_MAX_SEQ_BLOCKS * sizeof(int32_t);
    size_t banned = 512 + (size_t)(req->id % 4) * 512;

    CU_CHECK(cudaMallocAsync(&req->block_table, table, s));
    buf_dev_async("runtime/decode_block_table", req->block_table, table, s);
    CU_CHECK(cudaMallocAsync(&req->banned, banned, s));
    buf_dev_async("runtime/decode_banned", req->banned, banned, s);
    CU_CHECK(cudaMallocAsync(&req->ctx_len, 512, s));
    buf_dev_async("runtime/decode_ctx_len", req->ctx_len, 512, s);
    CU_CHECK(cudaMallocAsync(&req->positions, KIB(1), s));
    buf_dev_async("runtime/decode_positions", req->positions, KIB(1), s);
    CU_CHECK(cudaMallocAsync(&req->logit_bias, KIB(8), s));
    buf_dev_async("runtime/decode_logit_bias", req->logit_bias, KIB(8), s);
    CU_CHECK(cudaMallocAsync(&req->stop_ids, KIB(1), s));
    buf_dev_async("runtime/decode_stop_ids", req->stop_ids, KIB(1), s);

    kernel_unary(req->block_table, gd.host_table, s);
    kernel_unary(req->banned, gd.host_banned, s);
    kernel_binary(req->ctx_len, gd.host_step, req->banned, s);
    kernel_binary(req->stop_ids, req->banned, req->logit_bias, s);
}

void graph_decode_step(struct server *srv, struct request *req)
{
    struct engine *eng = srv->eng;
    cudaStream_t s = eng->compute;

    kernel_binary(gd.batch_map, req->block_table, req->ctx_len, s);
    kernel_binary(gd.step_state, gd.batch_map, gd.host_step, s);
    kernel_unary(req->positions, gd.step_state, s);
    forward_decode(eng, srv->weights, req->seq);
    attention_paged_run(eng, workspace_residual(), workspace_hidden(), req->seq, s);
    quant_q8_rows(eng, workspace_decode(), workspace_residual(), s);
    grouped_small_run(workspace_decode(), workspace_hidden(), workspace_residual(), s);
    grouped_3x_run(workspace_decode(), workspace_hidden(), workspace_residual(), s);
    gemm_batched(workspace_logits(), workspace_decode(), workspace_hidden(), s);
    if (req->produced == 0) {
        ssm_scan_run(eng, workspace_hidden(), workspace_residual(), s);
        attention_mla_run(eng, workspace_residual(), workspace_hidden(), s);
        expert_cache_touch(eng, req->id, s);
        layer_offload_stream(eng, req->id);
        stream_order(eng->copy, s);
    }
    logit_ops_run(eng, workspace_logits(), s);
    kernel_binary(workspace_logits(), workspace_logits(), req->logit_bias, s);
    reduce_softmax(eng, workspace_logits(), workspace_logits(), s);
    kernel_binary(gd.finished_flags, workspace_logits(), req->stop_ids, s);
    kernel_unary(gd.host_flags, gd.finished_flags, s);
}

/* Finished, cancelled or refused: whatever the request holds goes back. */
void graph_decode_end(struct server *srv, struct request *req)
{
    cudaStream_t s = srv->eng->compute;

    if (req->state == REQ_CANCELLED) {
        /* The client is gone: the newest first, as the error path unwinds. */
        buf_free_async(&req->stop_ids, s);
        buf_free_async(&req->logit_bias, s);
        buf_free_async(&req->positions, s);
        buf_free_async(&req->ctx_len, s);
        buf_free_async(&req->banned, s);
        buf_free_async(&req->block_table, s);
    } else {
        buf_free_async(&req->block_table, s);
        buf_free_async(&req->banned, s);
        buf_free_async(&req->ctx_len, s);
        buf_free_async(&req->positions, s);
        buf_free_async(&req->logit_bias, s);
        buf_free_async(&req->stop_ids, s);
    }
    kv_seq_free(req->seq);
}

void graph_decode_release(void)
{
    buf_free_host(&gd.host_flags);
    buf_free_host(&gd.host_step);
    buf_free_host(&gd.host_banned);
    buf_free_host(&gd.host_table);
    buf_free(&gd.finished_flags);
    buf_free(&gd.batch_map);
    buf_free(&gd.step_state);
}
