#include "memory/state.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/vram_allocator.h"

#define CONV_KERNEL 4
#define STATE_DIM 128
#define SNAPSHOT_ENTRIES 4

static void *conv_state;
static void *hidden_state;
static size_t slab_bytes;

static void *snapshot_slab;
static void *snapshot_staging;

void ssm_state_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t layers = (size_t)cfg->n_layers * 3 / 4;
    size_t conv_ch = (size_t)cfg->d_model * 2;
    size_t conv = sized(cfg->uses_ssm, layers * (size_t)cfg->max_batch * conv_ch * (CONV_KERNEL - 1) * 4);
    size_t hidden = sized(cfg->uses_ssm, layers * (size_t)cfg->max_batch * (size_t)cfg->n_heads * STATE_DIM *
                                             (size_t)cfg->head_dim * 2);

    conv_state = vram_alloc(conv, "memory/ssm_conv", 0);
    hidden_state = vram_alloc(hidden, "memory/ssm_hidden", 0);
    slab_bytes = sized(cfg->uses_ssm, (conv + hidden) / (size_t)cfg->max_batch);
}

void ssm_state_step(struct engine *eng, int seq, cudaStream_t stream)
{
    (void)eng;
    kernel_binary(hidden_state, hidden_state, conv_state, stream);
    kernel_fill(conv_state, seq + 1, stream);
}

void *ssm_state_conv(void)
{
    return conv_state;
}

void *ssm_state_hidden(void)
{
    return hidden_state;
}

void ssm_state_release(void)
{
    vram_free(&hidden_state);
    vram_free(&conv_state);
}

void snapshot_store_init(struct engine *eng)
{
    (void)eng;
    CU_CHECK(cudaMalloc(&snapshot_slab, slab_bytes * SNAPSHOT_ENTRIES));
    buf_dev("memory/recurrent_snapshots", snapshot_slab, slab_bytes * SNAPSHOT_ENTRIES);
    CU_CHECK(cudaHostAlloc(&snapshot_staging, slab_bytes, cudaHostAllocDefault));
    buf_host("memory/snapshot_staging", snapshot_staging, slab_bytes);
}

void snapshot_store_save(struct engine *eng, int entry)
{
    char *slot = (char *)snapshot_slab + slab_bytes * (size_t)(entry % SNAPSHOT_ENTRIES);
    kernel_binary(slot, hidden_state, conv_state, eng->compute);
    kernel_unary(snapshot_staging, slot, eng->compute);
}

void snapshot_store_load(struct engine *eng, int entry)
{
    char *slot = (char *)snapshot_slab + slab_bytes * (size_t)(entry % SNAPSHOT_ENTRIES);
    kernel_unary(hidden_state, slot, eng->compute);
}

void snapshot_store_release(void)
{
    buf_free_host(&snapshot_staging);
    buf_free(&snapshot_slab);
}
