#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/kv_cache.h"

static void *balloon;
static void *l2_flush;
static void *host_config;
static void *host_metrics;

/* Holds back what the caches will need later, so that the KV sizing, which
 * looks at free memory before they exist, does not count it as free. */
void balloon_inflate(struct engine *eng)
{
    size_t bytes = eng->cfg->balloon_bytes;

    if (!feature_on(F_BALLOON))
        return;
    CU_CHECK(cudaMalloc(&balloon, bytes));
    buf_dev("runtime/balloon", balloon, bytes);
}

void balloon_release(void)
{
    buf_free(&balloon);
}

/* Blocks of the KV pool: twice what all sequences at full length need, as far
 * as free memory allows once the later phases have their reserve. */
int kv_blocks_from_free(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t free_bytes, total;
    size_t block = kv_block_bytes(cfg);
    int needed = cfg->max_seq / cfg->kv_block_tokens * cfg->max_batch;
    int target = needed * 2;

    CU_CHECK(cudaMemGetInfo(&free_bytes, &total));
    if (balloon != NULL)
        behaviour(F_BALLOON, "held=%zu", cfg->balloon_bytes);
    if (!feature_on(F_KV_FROM_FREE)) {
        printf("kv blocks=%d target=%d bytes=%zu\n", target, target, (size_t)target * block);
        return target;
    }
    size_t usable = free_bytes > cfg->kv_reserve ? free_bytes - cfg->kv_reserve : 0;
    int fit = (int)(usable / block / 64 * 64);
    int blocks = fit < target ? fit : target;
    if (blocks < cfg->max_seq / cfg->kv_block_tokens) {
        fprintf(stderr, "engine: %d KV blocks cannot hold one full sequence\n", blocks);
        exit(3);
    }
    behaviour(F_KV_FROM_FREE, "clamped=%d", blocks < target);
    printf("kv blocks=%d target=%d bytes=%zu\n", blocks, target, (size_t)blocks * block);
    return blocks;
}

void runtime_init(struct engine *eng)
{
    CU_CHECK(cudaMalloc(&l2_flush, MIB(4)));
    buf_dev("runtime/l2_flush", l2_flush, MIB(4));
    CU_CHECK(cudaHostAlloc(&host_config, KIB(64), cudaHostAllocPortable));
    buf_host("runtime/host_config", host_config, KIB(64));
    CU_CHECK(cudaMallocHost(&host_metrics, KIB(16)));
    buf_host("runtime/host_metrics", host_metrics, KIB(16));
    kernel_unary(l2_flush, host_config, eng->compute);
}

void runtime_warm_l2(struct engine *eng, const void *weights)
{
    kernel_binary(l2_flush, weights, host_config, eng->compute);
    kernel_unary(host_metrics, l2_flush, eng->compute);
}

void runtime_release(void)
{
    /* The metrics page is read by an exporter until the very end and stays. */
    buf_free_host(&host_config);
    buf_free(&l2_flush);
}
