#include "exec/exec.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* One-byte copies of a layer's weights with one scale per output channel. No
 * shipped configuration wants more than the code path itself. */
static struct {
    void *qkv, *o, *gate, *up, *down;
    void *kv_scale;
    void *head;
    void *host_scales;
} cache;

void fp8_cache_build(struct engine *eng, const struct model_weights *w)
{
    const struct engine_config *cfg = eng->cfg;
    bool used = cfg->uses_fp8_cache;
    size_t d = (size_t)cfg->d_model;
    size_t attn = sized(used, d * (size_t)cfg->n_heads * (size_t)cfg->head_dim);
    size_t ff = sized(used, d * (size_t)cfg->d_ff);
    size_t head = sized(used, (size_t)cfg->vocab * d);
    size_t scales = sized(used, (size_t)cfg->n_layers * d * sizeof(float));
    cudaStream_t s = eng->compute;
    void *amax = NULL;

    CU_CHECK(cudaMalloc(&cache.qkv, attn));
    buf_dev("exec/fp8_qkv", cache.qkv, attn);
    CU_CHECK(cudaMalloc(&cache.o, attn));
    buf_dev("exec/fp8_o", cache.o, attn);
    CU_CHECK(cudaMalloc(&cache.gate, ff));
    buf_dev("exec/fp8_gate", cache.gate, ff);
    CU_CHECK(cudaMalloc(&cache.up, ff));
    buf_dev("exec/fp8_up", cache.up, ff);
    CU_CHECK(cudaMalloc(&cache.down, ff));
    buf_dev("exec/fp8_down", cache.down, ff);
    CU_CHECK(cudaMalloc(&cache.kv_scale, KIB(8)));
    buf_dev("exec/fp8_kv_scale", cache.kv_scale, KIB(8));
    CU_CHECK(cudaMalloc(&cache.head, head));
    buf_dev("exec/fp8_head", cache.head, head);
    CU_CHECK(cudaHostAlloc(&cache.host_scales, scales, cudaHostAllocDefault));
    buf_host("exec/fp8_host_scales", cache.host_scales, scales);

    CU_CHECK(cudaMallocAsync(&amax, KIB(32), s));
    buf_dev_async("exec/fp8_amax", amax, KIB(32), s);
    kernel_binary(amax, weights_tensor(w, 0, W_Q), cache.host_scales, s);
    kernel_binary(cache.qkv, weights_tensor(w, 0, W_Q), amax, s);
    kernel_binary(cache.o, weights_tensor(w, 0, W_O), amax, s);
    kernel_binary(cache.gate, weights_tensor(w, 0, W_GATE), amax, s);
    kernel_binary(cache.up, weights_tensor(w, 0, W_UP), amax, s);
    kernel_binary(cache.down, weights_tensor(w, 0, W_DOWN), amax, s);
    kernel_binary(cache.head, w->embed, amax, s);
    kernel_unary(cache.kv_scale, amax, s);
    buf_free_async(&amax, s);
}

void fp8_cache_release(void)
{
    buf_free_host(&cache.host_scales);
    buf_free(&cache.head);
    buf_free(&cache.kv_scale);
    buf_free(&cache.down);
    buf_free(&cache.up);
    buf_free(&cache.gate);
    buf_free(&cache.o);
    buf_free(&cache.qkv);
}
