#include "exec/exec.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/state.h"

/* What the first forward pass claims, after every plan was made: overlays of
 * weights in half precision for prefill, as many as the device still gives up
 * to a cap. Every one is best-effort; without it the layer is dequantised on
 * the fly. */
static struct {
    bool claimed;
    void *whole;
    void *gate_up[MODEL_MAX_LAYERS];
    void *down[MODEL_MAX_LAYERS];
    void *qkv_bias;
    void *stage_in, *stage_out;
    void *head_tile;
    void *host_flags;
    int n_layers;
    size_t bytes;
} first;

/* One buffer for all layers, which no card holds twice over. */
static void claim_whole(void)
{
    size_t free_bytes, total;

    if (!feature_on(F_BEST_EFFORT))
        return;
    CU_CHECK(cudaMemGetInfo(&free_bytes, &total));
    size_t ask = total * 2;
    for (int attempt = 0; attempt < 2; attempt++) {
        if (cu_try(cudaMalloc(&first.whole, ask))) {
            buf_dev("exec/overlay_whole", first.whole, ask);
            break;
        }
        ask = MIB(1);
    }
    behaviour(F_BEST_EFFORT, "refused=%zu fallback=%zu sticky=%d", total * 2, ask, (int)cudaPeekAtLastError());
}

static void claim_layers(struct engine *eng, const struct model_weights *w)
{
    const struct engine_config *cfg = eng->cfg;
    size_t gu = (size_t)cfg->d_model * (size_t)cfg->d_ff * 2 * 2;
    size_t down = gu / 2;
    size_t cap = cfg->first_forward_cap;

    if (gu + down > cap) {
        gu = cap / 4;
        down = cap / 4;
    }
    while (first.n_layers < cfg->n_layers && first.bytes + gu + down <= cap) {
        int l = first.n_layers;
        if (!cu_try(cudaMalloc(&first.gate_up[l], gu)))
            break;
        buf_dev("exec/overlay_gate_up", first.gate_up[l], gu);
        if (!cu_try(cudaMalloc(&first.down[l], down))) {
            buf_free(&first.gate_up[l]);
            break;
        }
        buf_dev("exec/overlay_down", first.down[l], down);
        kernel_binary(first.gate_up[l], weights_tensor(w, l, W_GATE), weights_tensor(w, l, W_UP), eng->compute);
        kernel_unary(first.down[l], weights_tensor(w, l, W_DOWN), eng->compute);
        first.bytes += gu + down;
        first.n_layers++;
    }
}

static void first_forward(struct engine *eng, const struct model_weights *w)
{
    size_t tile = (size_t)eng->cfg->chunk * 4096 * 2;

    first.claimed = true;
    claim_whole();
    claim_layers(eng, w);
    CU_CHECK(cudaMalloc(&first.qkv_bias, KIB(64)));
    buf_dev("exec/qkv_bias", first.qkv_bias, KIB(64));
    CU_CHECK(cudaMalloc(&first.stage_in, tile));
    buf_dev("exec/stage_in", first.stage_in, tile);
    CU_CHECK(cudaMalloc(&first.stage_out, tile));
    buf_dev("exec/stage_out", first.stage_out, tile);
    CU_CHECK(cudaMalloc(&first.head_tile, MIB(8)));
    buf_dev("exec/head_tile", first.head_tile, MIB(8));
    CU_CHECK(cudaMallocHost(&first.host_flags, KIB(8)));
    buf_host("exec/host_flags", first.host_flags, KIB(8));
    behaviour(F_FIRST_FORWARD, "layers=%d bytes=%zu", first.n_layers, first.bytes);
}

static void layer_pass(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t s)
{
    workspace_buffers_attention(eng, w, layer, s);
    kernel_binary(first.stage_in, workspace_residual(), first.qkv_bias, s);
    if (eng->cfg->uses_moe || layer == 0)
        moe_workspace_forward(eng, w, layer, s);
    workspace_buffers_ffn(eng, w, layer, s);
    if (first.n_layers > 0)
        kernel_binary(first.stage_out, first.gate_up[layer % first.n_layers], first.down[layer % first.n_layers], s);
    kernel_binary(workspace_hidden(), workspace_hidden(), first.stage_out, s);
}

void forward_prefill(struct engine *eng, const struct model_weights *w, int seq, int n_tokens)
{
    /* A few layers stand for all: they touch the same shared buffers. */
    int step = eng->cfg->n_layers / 4;

    if (!first.claimed && feature_on(F_FIRST_FORWARD))
        first_forward(eng, w);
    kernel_gemm(workspace_hidden(), w->embed, w->norms, eng->prefill);
    for (int l = 0; l < eng->cfg->n_layers; l += step) {
        attention_prefill(eng, w, l, n_tokens);
        layer_pass(eng, w, l, eng->prefill);
        kv_write(eng, seq, l, eng->prefill);
    }
    ssm_state_step(eng, seq, eng->prefill);
    stream_order(eng->prefill, eng->compute);
}

void forward_decode(struct engine *eng, const struct model_weights *w, int seq)
{
    int step = eng->cfg->n_layers / 2;
    cudaStream_t s = eng->compute;

    for (int l = 0; l < eng->cfg->n_layers; l += step) {
        kernel_gemm(workspace_decode(), workspace_hidden(), weights_tensor(w, l, W_Q), s);
        kernel_binary(workspace_decode(), workspace_decode(), nvfp4_cache_layer(l), s);
        kernel_gemm(workspace_hidden(), workspace_decode(), weights_tensor(w, l, W_DOWN), s);
        kv_write(eng, seq, l, s);
    }
    kernel_binary(first.head_tile, workspace_hidden(), first.host_flags, s);
    kernel_gemm(workspace_logits(), workspace_hidden(), w->embed, s);
}

void forward_release(void)
{
    if (!first.claimed)
        return;
    buf_free_host(&first.host_flags);
    buf_free(&first.head_tile);
    buf_free(&first.stage_out);
    buf_free(&first.stage_in);
    buf_free(&first.qkv_bias);
    while (first.n_layers > 0) {
        int l = --first.n_layers;
        buf_free(&first.down[l]);
        buf_free(&first.gate_up[l]);
    }
    buf_free(&first.whole);
    first.claimed = false;
    first.bytes = 0;
}
