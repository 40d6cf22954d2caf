#include "runtime/runtime.h"

#include <stdio.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define BUCKETS 4
#define FIRST_CTX_BYTES KIB(64)

/* Everything a captured step reads or writes; the graphs hold these addresses. */
static struct {
    void *tokens, *positions, *block_table;
    void *hidden;
    void *seeds, *params;
    void *loop_counter;
    void *logits;
    void *ctx;              /* grows with the context, which makes every graph stale */
    size_t ctx_bytes;
    unsigned generation;
    void *host_tokens, *host_params, *host_out, *host_counter, *host_table;
} io;

struct bucket_graph {
    cudaGraphExec_t exec;
    unsigned generation;
};

static struct bucket_graph graphs[BUCKETS];
static int captures, replays, growths, updates;

void cuda_graph_init(struct engine *eng)
{
    size_t batch = (size_t)eng->cfg->max_batch;
    size_t hidden = batch * (size_t)eng->cfg->d_model * 2;
    size_t logits = batch * (size_t)eng->cfg->vocab * 2;
    size_t table = batch * 2048;

    CU_CHECK(cudaMalloc(&io.tokens, KIB(4)));
    buf_dev("runtime/graph_tokens", io.tokens, KIB(4));
    CU_CHECK(cudaMalloc(&io.positions, KIB(4)));
    buf_dev("runtime/graph_positions", io.positions, KIB(4));
    CU_CHECK(cudaMalloc(&io.block_table, table));
    buf_dev("runtime/graph_block_table", io.block_table, table);
    CU_CHECK(cudaMalloc(&io.hidden, hidden));
    buf_dev("runtime/graph_hidden", io.hidden, hidden);
    CU_CHECK(cudaMalloc(&io.seeds, KIB(2))), CU_CHECK(cudaMalloc(&io.params, KIB(2)));
    buf_dev("runtime/graph_seeds", io.seeds, KIB(2));
    buf_dev("runtime/graph_params", io.params, KIB(2));
    CU_CHECK(cudaMalloc(&io.loop_counter, KIB(1)));
    buf_dev("runtime/graph_loop_counter", io.loop_counter, KIB(1));
    CU_CHECK(cudaMalloc(&io.logits, logits));
    buf_dev("runtime/graph_logits", io.logits, logits);

    CU_CHECK(cudaHostAlloc(&io.host_tokens, KIB(4), cudaHostAllocDefault));
    buf_host("runtime/graph_host_tokens", io.host_tokens, KIB(4));
    CU_CHECK(cudaHostAlloc(&io.host_params, KIB(2), cudaHostAllocDefault));
    buf_host("runtime/graph_host_params", io.host_params, KIB(2));
    CU_CHECK(cudaHostAlloc(&io.host_out, KIB(4), cudaHostAllocMapped));
    buf_host("runtime/graph_host_out", io.host_out, KIB(4));
    CU_CHECK(cudaHostAlloc(&io.host_counter, KIB(1), cudaHostAllocMapped));
    buf_host("runtime/graph_host_counter", io.host_counter, KIB(1));
    CU_CHECK(cudaHostAlloc(&io.host_table, table, cudaHostAllocDefault));
    buf_host("runtime/graph_host_table", io.host_table, table);
}

/* Makes room for a longer context. The old block goes although instantiated
 * graphs still hold its address; they are brought up to date before their next
 * launch, which the generation counter sees to. */
static void ensure_ctx(size_t need)
{
    if (io.ctx != NULL && (need <= io.ctx_bytes || !feature_on(F_GRAPH_GROW)))
        return;
    if (io.ctx != NULL) {
        buf_free(&io.ctx);
        growths++;
    }
    io.ctx_bytes = round_up(need, FIRST_CTX_BYTES);
    CU_CHECK(cudaMalloc(&io.ctx, io.ctx_bytes));
    buf_dev("runtime/graph_ctx", io.ctx, io.ctx_bytes);
    io.generation++;
}

/* The work of one step; `scratch` is what the kernels need beside the buffers. */
static void enqueue_step(void *scratch, cudaStream_t s)
{
    kernel_unary(io.tokens, io.host_tokens, s);
    kernel_unary(io.params, io.host_params, s);
    kernel_unary(io.block_table, io.host_table, s);
    kernel_binary(io.positions, io.tokens, io.params, s);
    kernel_binary(io.hidden, io.tokens, io.block_table, s);
    kernel_binary(io.ctx, io.hidden, io.positions, s);
    kernel_device(scratch, io.ctx, s);
    kernel_binary(io.logits, io.ctx, io.seeds, s);
    kernel_device(io.logits, scratch, s);
    kernel_fill(io.loop_counter, 3, s);
    kernel_unary(io.host_out, io.logits, s);
    kernel_unary(io.host_counter, io.loop_counter, s);
}

static void eager_step(cudaStream_t s)
{
    void *scratch = NULL, *spare = NULL;

    CU_CHECK(cudaMallocAsync(&scratch, KIB(64), s));
    buf_dev_async("runtime/graph_warm_scratch", scratch, KIB(64), s);
    CU_CHECK(cudaMallocAsync(&spare, KIB(32), s));
    buf_dev_async("runtime/graph_warm_spare", spare, KIB(32), s);
    kernel_unary(spare, io.seeds, s);
    enqueue_step(scratch, s);
    buf_free_async(&spare, s);
    buf_free_async(&scratch, s);
}

static cudaGraph_t capture_step(cudaStream_t s)
{
    cudaGraph_t graph = NULL;
    void *scratch = NULL, *reduce = NULL;

    CU_CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    /* Allocations of a capture belong to its graph; both are given back inside. */
    CU_CHECK(cudaMallocAsync(&scratch, KIB(64), s));
    CU_CHECK(cudaMallocAsync(&reduce, KIB(16), s));
    enqueue_step(scratch, s);
    kernel_device(reduce, scratch, s);
    CU_CHECK(cudaFreeAsync(reduce, s));
    CU_CHECK(cudaFreeAsync(scratch, s));
    CU_CHECK(cudaStreamEndCapture(s, &graph));
    captures++;
    return graph;
}

/* A stale graph is updated in place where the driver can, else made anew. */
static void refresh(struct bucket_graph *g, cudaStream_t s)
{
    cudaGraph_t graph = capture_step(s);
    cudaGraphExecUpdateResultInfo info;

    if (g->exec != NULL && cu_try(cudaGraphExecUpdate(g->exec, graph, &info))) {
        updates++;
    } else {
        if (g->exec != NULL)
            CU_CHECK(cudaGraphExecDestroy(g->exec));
        CU_CHECK(cudaGraphInstantiate(&g->exec, graph, 0));
    }
    CU_CHECK(cudaGraphDestroy(graph));
    g->generation = io.generation;
}

void cuda_graph_replay(struct engine *eng, int bucket, size_t ctx_tokens)
{
    struct bucket_graph *g = &graphs[bucket % BUCKETS];

    ensure_ctx(ctx_tokens * 64);
    if (captures == 0 || !feature_on(F_GRAPH_CAPTURE))
        eager_step(eng->compute);
    if (!feature_on(F_GRAPH_CAPTURE))
        return;
    if (g->exec == NULL || g->generation != io.generation)
        refresh(g, eng->compute);
    CU_CHECK(cudaGraphLaunch(g->exec, eng->compute));
    replays++;
}

void cuda_graph_report(void)
{
    if (captures > 0)
        behaviour(F_GRAPH_CAPTURE, "captures=%d replays=%d", captures, replays);
    if (growths > 0)
        behaviour(F_GRAPH_GROW, "growths=%d bytes=%zu", growths, io.ctx_bytes);
}

void cuda_graph_release(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        if (graphs[i].exec != NULL)
            CU_CHECK(cudaGraphExecDestroy(graphs[i].exec));
        graphs[i].exec = NULL;
    }
    buf_free_host(&io.host_table);
    buf_free_host(&io.host_counter);
    buf_free_host(&io.host_out);
    buf_free_host(&io.host_params);
    buf_free_host(&io.host_tokens);
    buf_free(&io.ctx);
    buf_free(&io.logits);
    buf_free(&io.loop_counter);
    buf_free(&io.params);
    buf_free(&io.seeds);
    buf_free(&io.hidden);
    buf_free(&io.block_table);
    buf_free(&io.positions);
    buf_free(&io.tokens);
}
