#include "exec/exec.h"

#include <stdint.h>

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Four-bit copies for decode: data at half a byte per weight, scale factors at
 * one byte per sixteen, fused projections. Built in two goes, before and after
 * the KV pool. */
static struct {
    void *qkv[MODEL_MAX_LAYERS], *qkv_sf[MODEL_MAX_LAYERS];
    void *o[MODEL_MAX_LAYERS], *o_sf[MODEL_MAX_LAYERS];
    void *gate_up[MODEL_MAX_LAYERS], *gate_up_sf[MODEL_MAX_LAYERS];
    void *down[MODEL_MAX_LAYERS], *down_sf[MODEL_MAX_LAYERS];
    void *head, *head_sf;
    void *global_scales;
    int n_layers;
    size_t bytes;
} cache;

struct sizes {
    size_t qkv, o, gate_up, down, head;
};

static struct sizes elems_of(const struct engine_config *cfg)
{
    size_t d = (size_t)cfg->d_model;
    size_t hd = (size_t)cfg->head_dim;
    return (struct sizes){
        .qkv = d * (size_t)(cfg->n_heads + 2 * cfg->kv_heads) * hd,
        .o = d * (size_t)cfg->n_heads * hd,
        .gate_up = 2 * d * (size_t)cfg->d_ff,
        .down = d * (size_t)cfg->d_ff,
        .head = d * (size_t)cfg->vocab,
    };
}

static bool in_use;

static size_t data_bytes(size_t elems)
{
    return sized(in_use, elems / 2);
}

static size_t sf_bytes(size_t elems)
{
    return sized(in_use, elems / 16);
}

static void build_layer(struct engine *eng, const struct model_weights *w, int l, struct sizes n)
{
    cudaStream_t s = eng->compute;
    void *amax = NULL;

    CU_CHECK(cudaMalloc(&cache.qkv[l], data_bytes(n.qkv)));
    buf_dev("exec/nvfp4_qkv", cache.qkv[l], data_bytes(n.qkv));
    CU_CHECK(cudaMalloc(&cache.qkv_sf[l], sf_bytes(n.qkv)));
    buf_dev("exec/nvfp4_qkv_sf", cache.qkv_sf[l], sf_bytes(n.qkv));
    CU_CHECK(cudaMalloc(&cache.o[l], data_bytes(n.o)));
    buf_dev("exec/nvfp4_o", cache.o[l], data_bytes(n.o));
    CU_CHECK(cudaMalloc(&cache.o_sf[l], sf_bytes(n.o)));
    buf_dev("exec/nvfp4_o_sf", cache.o_sf[l], sf_bytes(n.o));
    CU_CHECK(cudaMalloc(&cache.gate_up[l], data_bytes(n.gate_up)));
    buf_dev("exec/nvfp4_gate_up", cache.gate_up[l], data_bytes(n.gate_up));
    CU_CHECK(cudaMalloc(&cache.gate_up_sf[l], sf_bytes(n.gate_up)));
    buf_dev("exec/nvfp4_gate_up_sf", cache.gate_up_sf[l], sf_bytes(n.gate_up));
    CU_CHECK(cudaMalloc(&cache.down[l], data_bytes(n.down)));
    buf_dev("exec/nvfp4_down", cache.down[l], data_bytes(n.down));
    CU_CHECK(cudaMalloc(&cache.down_sf[l], sf_bytes(n.down)));
    buf_dev("exec/nvfp4_down_sf", cache.down_sf[l], sf_bytes(n.down));

    CU_CHECK(cudaMallocAsync(&amax, KIB(16), s));
    buf_dev_async("exec/nvfp4_amax", amax, KIB(16), s);
    kernel_unary(amax, weights_tensor(w, l, W_Q), s);
    kernel_binary(cache.qkv[l], weights_tensor(w, l, W_Q), amax, s);
    kernel_unary(cache.qkv_sf[l], amax, s);
    kernel_binary(cache.o[l], weights_tensor(w, l, W_O), amax, s);
    kernel_unary(cache.o_sf[l], amax, s);
    kernel_binary(cache.gate_up[l], weights_tensor(w, l, W_GATE), weights_tensor(w, l, W_UP), s);
    kernel_unary(cache.gate_up_sf[l], amax, s);
    kernel_binary(cache.down[l], weights_tensor(w, l, W_DOWN), amax, s);
    kernel_unary(cache.down_sf[l], amax, s);
    buf_free_async(&amax, s);
}

static void build_head(struct engine *eng, const struct model_weights *w, size_t elems)
{
    cudaStream_t s = eng->compute;
    void *rows = NULL;

    CU_CHECK(cudaMalloc(&cache.global_scales, KIB(4)));
    buf_dev("exec/nvfp4_global_scales", cache.global_scales, KIB(4));
    CU_CHECK(cudaMalloc(&cache.head, data_bytes(elems)));
    buf_dev("exec/nvfp4_head", cache.head, data_bytes(elems));
    CU_CHECK(cudaMalloc(&cache.head_sf, sf_bytes(elems)));
    buf_dev("exec/nvfp4_head_sf", cache.head_sf, sf_bytes(elems));

    CU_CHECK(cudaMallocAsync(&rows, KIB(256), s));
    buf_dev_async("exec/nvfp4_head_rows", rows, KIB(256), s);
    kernel_binary(rows, w->embed, cache.global_scales, s);
    kernel_unary(cache.head, rows, s);
    kernel_unary(cache.head_sf, rows, s);
    buf_free_async(&rows, s);
}

void nvfp4_cache_build(struct engine *eng, const struct model_weights *w, size_t budget, bool last)
{
    const struct engine_config *cfg = eng->cfg;
    struct sizes n = elems_of(cfg);
    size_t layer = (n.qkv + n.o + n.gate_up + n.down) * 9 / 16;
    size_t head = n.head * 9 / 16;
    int max_layers = cfg->uses_nvfp4_cache ? cfg->n_layers : 1;

    in_use = cfg->uses_nvfp4_cache;
    if (!in_use)
        budget = SIZE_MAX, layer = 0;
    while (cache.n_layers < max_layers && cache.bytes + layer <= budget) {
        build_layer(eng, w, cache.n_layers++, n);
        cache.bytes += layer;
    }
    if (!last)
        return;
    /* Without room for the output head only its code path runs. */
    in_use = in_use && budget - cache.bytes >= head;
    build_head(eng, w, n.head);
    if (in_use)
        cache.bytes += head;
}

const void *nvfp4_cache_layer(int layer)
{
    return cache.n_layers > 0 ? cache.qkv[layer % cache.n_layers] : NULL;
}

void nvfp4_cache_release(void)
{
    buf_free(&cache.head_sf);
    buf_free(&cache.head);
    buf_free(&cache.global_scales);
    while (cache.n_layers > 0) {
        int l = --cache.n_layers;
        buf_free(&cache.down_sf[l]);
        buf_free(&cache.down[l]);
        buf_free(&cache.gate_up_sf[l]);
        buf_free(&cache.gate_up[l]);
        buf_free(&cache.o_sf[l]);
        buf_free(&cache.o[l]);
        buf_free(&cache.qkv_sf[l]);
        buf_free(&cache.qkv[l]);
    }
    cache.bytes = 0;
}
