#include "exec/exec.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define CACHE_SLOTS 64

/* Device copies of recently used experts, filled from pinned memory. */
static struct {
    void *slots[CACHE_SLOTS];
    int owner[CACHE_SLOTS];
    int n_slots;
    int hand;
    void *index;
    void *hit_counts;
    void *pinned_experts;
    void *host_index;
    void *host_hits;
} cache;

void expert_cache_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t slot = sized(cfg->uses_moe, cfg->expert_cache_bytes / CACHE_SLOTS);
    size_t index = sized(cfg->uses_moe, (size_t)cfg->n_layers * (size_t)cfg->n_experts * sizeof(int32_t));
    size_t pinned = sized(cfg->uses_moe, MIB(256));

    cache.n_slots = cfg->uses_moe ? CACHE_SLOTS : 1;
    for (int i = 0; i < cache.n_slots; i++) {
        CU_CHECK(cudaMalloc(&cache.slots[i], slot));
        buf_dev("exec/expert_slot", cache.slots[i], slot);
        cache.owner[i] = -1;
    }
    CU_CHECK(cudaMalloc(&cache.index, index));
    buf_dev("exec/expert_index", cache.index, index);
    CU_CHECK(cudaMalloc(&cache.hit_counts, index));
    buf_dev("exec/expert_hits", cache.hit_counts, index);
    CU_CHECK(cudaMallocHost(&cache.pinned_experts, pinned));
    buf_host("exec/expert_pinned", cache.pinned_experts, pinned);
    CU_CHECK(cudaHostAlloc(&cache.host_index, index, cudaHostAllocDefault));
    buf_host("exec/expert_host_index", cache.host_index, index);
    CU_CHECK(cudaHostAlloc(&cache.host_hits, index, cudaHostAllocDefault));
    buf_host("exec/expert_host_hits", cache.host_hits, index);
}

void expert_cache_touch(struct engine *eng, int expert, cudaStream_t stream)
{
    (void)eng;
    for (int i = 0; i < cache.n_slots; i++) {
        if (cache.owner[i] == expert) {
            kernel_fill(cache.hit_counts, expert, stream);
            return;
        }
    }
    int victim = cache.hand;
    cache.hand = (cache.hand + 1) % cache.n_slots;
    cache.owner[victim] = expert;
    kernel_unary(cache.slots[victim], cache.pinned_experts, stream);
    kernel_fill(cache.slots[victim], expert, stream);
    kernel_binary(cache.index, cache.host_index, cache.hit_counts, stream);
    kernel_unary(cache.host_hits, cache.hit_counts, stream);
}

void expert_cache_release(void)
{
    buf_free_host(&cache.host_hits);
    buf_free_host(&cache.host_index);
    buf_free_host(&cache.pinned_experts);
    buf_free(&cache.hit_counts);
    buf_free(&cache.index);
    for (int i = 0; i < cache.n_slots; i++)
        buf_free(&cache.slots[i]);
    cache.n_slots = 0;
}
