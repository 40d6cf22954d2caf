#include "exec/exec.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Half-precision copies of quantised layers, as many as the budget holds, for
 * prefill products that have no quantised kernel. */
static struct {
    void *qkv[MODEL_MAX_LAYERS];
    void *o[MODEL_MAX_LAYERS];
    void *gate[MODEL_MAX_LAYERS];
    void *up[MODEL_MAX_LAYERS];
    void *down[MODEL_MAX_LAYERS];
    void *head;
    int n_layers;
} cache;

struct layer_sizes {
    size_t qkv, o, ff;
};

static struct layer_sizes sizes_of(const struct engine_config *cfg)
{
    size_t d = (size_t)cfg->d_model;
    size_t hd = (size_t)cfg->head_dim;
    bool used = cfg->uses_fp16_cache;
    return (struct layer_sizes){
        .qkv = sized(used, d * (size_t)(cfg->n_heads + 2 * cfg->kv_heads) * hd * 2),
        .o = sized(used, d * (size_t)cfg->n_heads * hd * 2),
        .ff = sized(used, d * (size_t)cfg->d_ff * 2),
    };
}

static void build_layer(struct engine *eng, const struct model_weights *w, int l, struct layer_sizes n)
{
    void *tile = NULL, *scales = NULL;
    cudaStream_t s = eng->compute;

    CU_CHECK(cudaMalloc(&cache.qkv[l], n.qkv));
    buf_dev("exec/fp16_qkv", cache.qkv[l], n.qkv);
    CU_CHECK(cudaMalloc(&cache.o[l], n.o));
    buf_dev("exec/fp16_o", cache.o[l], n.o);
    CU_CHECK(cudaMalloc(&cache.gate[l], n.ff));
    buf_dev("exec/fp16_gate", cache.gate[l], n.ff);
    CU_CHECK(cudaMalloc(&cache.up[l], n.ff));
    buf_dev("exec/fp16_up", cache.up[l], n.ff);
    CU_CHECK(cudaMalloc(&cache.down[l], n.ff));
    buf_dev("exec/fp16_down", cache.down[l], n.ff);

    CU_CHECK(cudaMallocAsync(&tile, KIB(512), s));
    buf_dev_async("exec/fp16_tile", tile, KIB(512), s);
    CU_CHECK(cudaMallocAsync(&scales, KIB(64), s));
    buf_dev_async("exec/fp16_scales", scales, KIB(64), s);
    kernel_binary(tile, weights_tensor(w, l, W_Q), scales, s);
    kernel_binary(cache.qkv[l], tile, weights_tensor(w, l, W_K), s);
    kernel_unary(cache.o[l], weights_tensor(w, l, W_O), s);
    kernel_unary(cache.gate[l], weights_tensor(w, l, W_GATE), s);
    kernel_unary(cache.up[l], weights_tensor(w, l, W_UP), s);
    kernel_unary(cache.down[l], weights_tensor(w, l, W_DOWN), s);
    buf_free_async(&tile, s);
    buf_free_async(&scales, s);
}

void fp16_cache_build(struct engine *eng, const struct model_weights *w)
{
    const struct engine_config *cfg = eng->cfg;
    struct layer_sizes n = sizes_of(cfg);
    size_t layer = n.qkv + n.o + 3 * n.ff;
    size_t head = (size_t)cfg->vocab * (size_t)cfg->d_model * 2;
    size_t left = cfg->uses_fp16_cache ? cfg->fp16_cache_budget : layer;
    int max_layers = cfg->uses_fp16_cache ? cfg->n_layers : 1;

    while (cache.n_layers < max_layers && left >= layer) {
        build_layer(eng, w, cache.n_layers++, n);
        left -= layer;
    }
    head = sized(cfg->uses_fp16_cache && left >= head, head);
    CU_CHECK(cudaMalloc(&cache.head, head));
    buf_dev("exec/fp16_head", cache.head, head);
    kernel_unary(cache.head, w->embed, eng->compute);
}

void fp16_cache_release(void)
{
    buf_free(&cache.head);
    while (cache.n_layers > 0) {
        int l = --cache.n_layers;
        buf_free(&cache.down[l]);
        buf_free(&cache.up[l]);
        buf_free(&cache.gate[l]);
        buf_free(&cache.o[l]);
        buf_free(&cache.qkv[l]);
    }
}
