#include "exec/exec.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

static void *host_window;
static int in_order;

/* Scratch of one layer's prefill attention, taken and given back in the order
 * of use: first in, first out. */
void attention_prefill(struct engine *eng, const struct model_weights *w, int layer, int n_tokens)
{
    const struct engine_config *cfg = eng->cfg;
    size_t tokens = (size_t)n_tokens;
    size_t q = tokens * (size_t)cfg->n_heads * (size_t)cfg->head_dim * 2;
    size_t kv = tokens * (size_t)cfg->kv_heads * (size_t)cfg->head_dim * 2;
    cudaStream_t s = eng->prefill;
    void *q_tile = NULL, *k_gather = NULL, *v_gather = NULL, *mask = NULL, *row_max = NULL;

    if (host_window == NULL) {
        CU_CHECK(cudaHostAlloc(&host_window, KIB(16), cudaHostAllocDefault));
        buf_host("exec/prefill_window", host_window, KIB(16));
    }
    CU_CHECK(cudaMallocAsync(&q_tile, q, s));
    buf_dev_async("exec/prefill_q_tile", q_tile, q, s);
    CU_CHECK(cudaMallocAsync(&k_gather, kv, s));
    buf_dev_async("exec/prefill_k_gather", k_gather, kv, s);
    CU_CHECK(cudaMallocAsync(&v_gather, kv, s));
    buf_dev_async("exec/prefill_v_gather", v_gather, kv, s);
    CU_CHECK(cudaMallocAsync(&mask, tokens * 128, s));
    buf_dev_async("exec/prefill_mask", mask, tokens * 128, s);
    CU_CHECK(cudaMallocAsync(&row_max, tokens * 64, s));
    buf_dev_async("exec/prefill_row_max", row_max, tokens * 64, s);

    kernel_gemm(q_tile, workspace_hidden(), weights_tensor(w, layer, W_Q), s);
    kernel_unary(k_gather, weights_tensor(w, layer, W_K), s);
    kernel_unary(v_gather, weights_tensor(w, layer, W_V), s);
    kernel_unary(mask, host_window, s);
    kernel_binary(row_max, q_tile, mask, s);
    kernel_binary(workspace_shared(), row_max, v_gather, s);
    kernel_binary(workspace_residual(), workspace_shared(), k_gather, s);

    if (feature_on(F_FIFO_SCRATCH)) {
        buf_free_async(&q_tile, s);
        buf_free_async(&k_gather, s);
        buf_free_async(&v_gather, s);
        buf_free_async(&mask, s);
        buf_free_async(&row_max, s);
        in_order++;
    } else {
        buf_free_async(&row_max, s);
        buf_free_async(&mask, s);
        buf_free_async(&v_gather, s);
        buf_free_async(&k_gather, s);
        buf_free_async(&q_tile, s);
    }
}

void attention_prefill_report(void)
{
    if (in_order > 0)
        behaviour(F_FIFO_SCRATCH, "groups=%d", in_order);
}

void attention_prefill_release(void)
{
    buf_free_host(&host_window);
}
