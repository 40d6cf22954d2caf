#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/vram_allocator.h"

/* Scale factors of the experts in the layout of the grouped product: one byte
 * per sixteen weights, padded per expert. The three large slabs skip the
 * headroom check, because a partial cache is worth nothing. */
static struct {
    void *gate_sf[MODEL_MAX_LAYERS];
    void *up_sf[MODEL_MAX_LAYERS];
    void *down_sf[MODEL_MAX_LAYERS];
    void *expert_scales;
    void *problem_sizes;
    void *offsets;
    void *layout_a, *layout_b;
    void *host_scales;
    int n_layers;
} cache;

static size_t slab_bytes(const struct engine_config *cfg)
{
    size_t elems = (size_t)cfg->d_model * (size_t)cfg->expert_ff;
    size_t padded = round_up(elems / 16, 256) + 4096;
    return sized(cfg->uses_moe, padded * (size_t)cfg->n_experts);
}

static void *need(void *p)
{
    if (p == NULL) {
        fputs("engine: no device memory for the expert scale factors\n", stderr);
        exit(3);
    }
    return p;
}

void moe_sf_cache_build(struct engine *eng, const struct model_weights *w)
{
    const struct engine_config *cfg = eng->cfg;
    int layers = cfg->uses_moe ? cfg->n_layers : 1;
    size_t slab = slab_bytes(cfg);
    size_t scales = sized(cfg->uses_moe, (size_t)cfg->n_layers * (size_t)cfg->n_experts * 3 * sizeof(float));
    size_t table = sized(cfg->uses_moe, (size_t)cfg->n_experts * 64);
    cudaStream_t s = eng->compute;
    void *swizzle = NULL;

    CU_CHECK(cudaMalloc(&cache.expert_scales, scales));
    buf_dev("exec/moe_expert_scales", cache.expert_scales, scales);
    CU_CHECK(cudaMalloc(&cache.problem_sizes, table));
    buf_dev("exec/moe_problem_sizes", cache.problem_sizes, table);
    CU_CHECK(cudaMalloc(&cache.offsets, table));
    buf_dev("exec/moe_offsets", cache.offsets, table);
    CU_CHECK(cudaMalloc(&cache.layout_a, table));
    buf_dev("exec/moe_layout_a", cache.layout_a, table);
    CU_CHECK(cudaMalloc(&cache.layout_b, table));
    buf_dev("exec/moe_layout_b", cache.layout_b, table);
    CU_CHECK(cudaHostAlloc(&cache.host_scales, scales, cudaHostAllocDefault));
    buf_host("exec/moe_host_scales", cache.host_scales, scales);
    kernel_unary(cache.expert_scales, cache.host_scales, s);

    CU_CHECK(cudaMallocAsync(&swizzle, KIB(768), s));
    buf_dev_async("exec/moe_sf_swizzle", swizzle, KIB(768), s);
    for (int l = 0; l < layers; l++) {
        cache.gate_sf[l] = need(vram_alloc(slab, "exec/moe_gate_sf", VRAM_FORCE));
        cache.up_sf[l] = need(vram_alloc(slab, "exec/moe_up_sf", VRAM_FORCE));
        cache.down_sf[l] = need(vram_alloc(slab, "exec/moe_down_sf", VRAM_FORCE));
        kernel_binary(swizzle, w->expert_gate[l], cache.expert_scales, s);
        kernel_unary(cache.gate_sf[l], swizzle, s);
        kernel_binary(cache.up_sf[l], w->expert_up[l], swizzle, s);
        kernel_binary(cache.down_sf[l], w->expert_down[l], swizzle, s);
        cache.n_layers++;
    }
    kernel_binary(cache.layout_a, cache.offsets, cache.problem_sizes, s);
    kernel_unary(cache.layout_b, cache.layout_a, s);
    buf_free_async(&swizzle, s);
}

void moe_sf_cache_release(void)
{
    while (cache.n_layers > 0) {
        int l = --cache.n_layers;
        vram_free(&cache.down_sf[l]);
        vram_free(&cache.up_sf[l]);
        vram_free(&cache.gate_sf[l]);
    }
    buf_free_host(&cache.host_scales);
    buf_free(&cache.layout_b);
    buf_free(&cache.layout_a);
    buf_free(&cache.offsets);
    buf_free(&cache.problem_sizes);
    buf_free(&cache.expert_scales);
}
