#include "exec/exec.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Buffers of the expert layers: routing, permutation, dequantised experts and
 * the expanded activations. */
static struct {
    void *router_logits;
    void *top_k_ids, *top_k_weights;
    void *permutation;
    void *expert_offsets;
    void *dequant;
    void *expanded;
    void *combine;
    void *shared_gate, *shared_out;
    void *host_counts;
} ws;

void moe_workspace_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    bool used = cfg->uses_moe;
    size_t chunk = (size_t)cfg->chunk;
    size_t expanded = chunk * (size_t)cfg->top_k;
    size_t logits = sized(used, chunk * (size_t)cfg->n_experts * sizeof(float));
    size_t routes = sized(used, expanded * sizeof(int32_t));
    size_t expert_raw = sized(used, (size_t)cfg->d_model * (size_t)cfg->expert_ff * 2 * 16);
    size_t act = sized(used, expanded * (size_t)cfg->d_model * 2);
    size_t combined = sized(used, expanded * (size_t)cfg->expert_ff * 2);

    CU_CHECK(cudaMalloc(&ws.router_logits, logits));
    buf_dev("exec/moe_router_logits", ws.router_logits, logits);
    CU_CHECK(cudaMalloc(&ws.top_k_ids, routes)), CU_CHECK(cudaMalloc(&ws.top_k_weights, routes));
    buf_dev("exec/moe_top_k_ids", ws.top_k_ids, routes);
    buf_dev("exec/moe_top_k_weights", ws.top_k_weights, routes);
    CU_CHECK(cudaMalloc(&ws.permutation, routes));
    buf_dev("exec/moe_permutation", ws.permutation, routes);
    CU_CHECK(cudaMalloc(&ws.expert_offsets, KIB(4)));
    buf_dev("exec/moe_expert_offsets", ws.expert_offsets, KIB(4));
    CU_CHECK(cudaMalloc(&ws.dequant, expert_raw));
    buf_dev("exec/moe_dequant", ws.dequant, expert_raw);
    CU_CHECK(cudaMalloc(&ws.expanded, act));
    buf_dev("exec/moe_expanded", ws.expanded, act);
    CU_CHECK(cudaMalloc(&ws.combine, combined));
    buf_dev("exec/moe_combine", ws.combine, combined);
    /* The shared expert runs beside the routed ones. */
    CU_CHECK(cudaMalloc(&ws.shared_gate, KIB(64))), CU_CHECK(cudaMalloc(&ws.shared_out, KIB(64)));
    buf_dev("exec/moe_shared_gate", ws.shared_gate, KIB(64));
    buf_dev("exec/moe_shared_out", ws.shared_out, KIB(64));
    CU_CHECK(cudaHostAlloc(&ws.host_counts, KIB(4), cudaHostAllocMapped));
    buf_host("exec/moe_host_counts", ws.host_counts, KIB(4));
}

void moe_workspace_forward(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t stream)
{
    const struct engine_config *cfg = eng->cfg;
    size_t sort = sized(cfg->uses_moe, (size_t)cfg->chunk * (size_t)cfg->top_k * 16);
    const void *gate = w->expert_gate[layer] != NULL ? w->expert_gate[layer] : w->expert_gate[0];
    const void *down = w->expert_down[layer] != NULL ? w->expert_down[layer] : w->expert_down[0];
    void *sort_keys = NULL, *sort_tmp = NULL;

    CU_CHECK(cudaMallocAsync(&sort_keys, sort, stream));
    buf_dev_async("exec/moe_sort_keys", sort_keys, sort, stream);
    CU_CHECK(cudaMallocAsync(&sort_tmp, sort / 2, stream));
    buf_dev_async("exec/moe_sort_tmp", sort_tmp, sort / 2, stream);

    kernel_gemm(ws.router_logits, workspace_hidden(), w->router, stream);
    kernel_unary(sort_keys, ws.router_logits, stream);
    kernel_binary(sort_tmp, sort_keys, ws.expert_offsets, stream);
    kernel_unary(ws.top_k_ids, sort_tmp, stream);
    kernel_unary(ws.top_k_weights, sort_keys, stream);
    kernel_binary(ws.permutation, ws.top_k_ids, ws.top_k_weights, stream);
    kernel_binary(ws.dequant, gate, ws.permutation, stream);
    kernel_gemm(ws.expanded, ws.dequant, workspace_hidden(), stream);
    kernel_gemm(ws.combine, ws.expanded, down, stream);
    kernel_binary(ws.shared_out, workspace_hidden(), ws.shared_gate, stream);
    kernel_unary(ws.host_counts, ws.expert_offsets, stream);
    kernel_binary(workspace_residual(), workspace_residual(), ws.combine, stream);

    buf_free_async(&sort_tmp, stream);
    buf_free_async(&sort_keys, stream);
}

void moe_workspace_release(void)
{
    buf_free_host(&ws.host_counts);
    buf_free(&ws.shared_out);
    buf_free(&ws.shared_gate);
    buf_free(&ws.combine);
    buf_free(&ws.expanded);
    buf_free(&ws.dequant);
    buf_free(&ws.expert_offsets);
    buf_free(&ws.permutation);
    buf_free(&ws.top_k_weights);
    buf_free(&ws.top_k_ids);
    buf_free(&ws.router_logits);
}
