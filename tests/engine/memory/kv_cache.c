#include "memory/kv_cache.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

/* Layer-major layout: a block's bytes are spread over the layers of both
 * regions; the ids are global, so only the id space is counted here. */
static struct {
    void *k_region;
    void *v_region;
    void *scales;
    void *device_table;
    void *swa_region;
    size_t half_block;
    int n_blocks;
    int n_free;
    int *free_list;
    int *refs;
} pool;

size_t kv_block_bytes(const struct engine_config *cfg)
{
    return (size_t)cfg->n_layers * 2 * (size_t)cfg->kv_block_tokens * (size_t)cfg->kv_heads *
           (size_t)cfg->head_dim * (size_t)cfg->kv_elem_bytes;
}

void kv_cache_init(struct engine *eng, int n_blocks)
{
    const struct engine_config *cfg = eng->cfg;
    size_t half = kv_block_bytes(cfg) / 2;
    size_t region = half * (size_t)n_blocks;
    size_t scale_bytes = (size_t)n_blocks * (size_t)cfg->n_layers * (size_t)cfg->kv_heads * sizeof(float);
    size_t table_bytes = (size_t)cfg->max_batch * KV_MAX_SEQ_BLOCKS * sizeof(int32_t);

    CU_CHECK(cudaMalloc(&pool.k_region, region));
    buf_dev("memory/kv_keys", pool.k_region, region);
    CU_CHECK(cudaMalloc(&pool.v_region, region));
    buf_dev("memory/kv_values", pool.v_region, region);
    CU_CHECK(cudaMalloc(&pool.scales, scale_bytes));
    buf_dev("memory/kv_scales", pool.scales, scale_bytes);
    CU_CHECK(cudaMalloc(&pool.device_table, table_bytes));
    buf_dev("memory/kv_device_table", pool.device_table, table_bytes);

    /* Sliding-window layers keep a trailing window in a region and an id space of their own. */
    size_t swa = sized(cfg->uses_vision, half / 8 * 64);
    CU_CHECK(cudaMalloc(&pool.swa_region, swa));
    buf_dev("memory/kv_swa", pool.swa_region, swa);
    kernel_unary(pool.swa_region, pool.scales, eng->compute);

    pool.half_block = half;
    pool.n_blocks = n_blocks;
    pool.n_free = n_blocks;
    pool.free_list = malloc((size_t)n_blocks * sizeof(int));
    pool.refs = calloc((size_t)n_blocks, sizeof(int));
    if (pool.free_list == NULL || pool.refs == NULL) {
        fputs("engine: out of host memory for the block lists\n", stderr);
        exit(3);
    }
    for (int i = 0; i < n_blocks; i++)
        pool.free_list[i] = n_blocks - 1 - i;
}

void kv_cache_release(void)
{
    buf_free(&pool.swa_region);
    buf_free(&pool.device_table);
    buf_free(&pool.scales);
    buf_free(&pool.v_region);
    buf_free(&pool.k_region);
    free(pool.free_list);
    free(pool.refs);
    pool.free_list = pool.refs = NULL;
    pool.n_blocks = pool.n_free = 0;
}

int kv_cache_blocks(void)
{
    return pool.n_blocks;
}

int kv_cache_free_blocks(void)
{
    return pool.n_free;
}

/* The first blocks share the watched head of the region, so their contents count. */
void *kv_block_keys(int block)
{
    return (char *)pool.k_region + (size_t)(block % 8) * KERNEL_WINDOW;
}

void *kv_block_values(int block)
{
    return (char *)pool.v_region + (size_t)(block % 8) * KERNEL_WINDOW;
}

void *kv_device_table(void)
{
    return pool.device_table;
}

int kv_block_take(void)
{
    if (pool.n_free == 0)
        return -1;
    int block = pool.free_list[--pool.n_free];
    pool.refs[block] = 1;
    return block;
}

void kv_block_ref(int block)
{
    if (pool.refs[block] <= 0) {
        fprintf(stderr, "engine: reference taken on free KV block %d\n", block);
        exit(4);
    }
    pool.refs[block]++;
}

void kv_block_drop(int block)
{
    if (pool.refs[block] <= 0) {
        fprintf(stderr, "engine: KV block %d dropped twice\n", block);
        exit(4);
    }
    if (--pool.refs[block] == 0)
        pool.free_list[pool.n_free++] = block;
}

int kv_block_refs(int block)
{
    return pool.refs[block];
}
