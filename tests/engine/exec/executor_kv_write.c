#include "exec/exec.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/kv_cache.h"

/* Writes keys and values into the pool; the scale of a layer is calibrated the
 * first time the layer is written. */
static void *amax;
static void *scale_table;
static void *host_amax;
static bool calibrated[MODEL_MAX_LAYERS];

static void calibrate(struct engine *eng, int layer, cudaStream_t stream)
{
    size_t bytes = (size_t)eng->cfg->kv_heads * (size_t)eng->cfg->head_dim * sizeof(float);
    void *partial = NULL;

    if (amax == NULL) {
        CU_CHECK(cudaMalloc(&amax, KIB(4)));
        buf_dev("exec/kv_amax", amax, KIB(4));
        CU_CHECK(cudaMalloc(&scale_table, KIB(16)));
        buf_dev("exec/kv_scale_table", scale_table, KIB(16));
        CU_CHECK(cudaHostAlloc(&host_amax, KIB(4), cudaHostAllocDefault));
        buf_host("exec/kv_host_amax", host_amax, KIB(4));
    }
    CU_CHECK(cudaMallocAsync(&partial, bytes, stream));
    buf_dev_async("exec/kv_amax_partial", partial, bytes, stream);
    kernel_unary(partial, workspace_residual(), stream);
    kernel_unary(amax, partial, stream);
    kernel_binary(scale_table, amax, host_amax, stream);
    buf_free_async(&partial, stream);
    calibrated[layer] = true;
}

void kv_write(struct engine *eng, int seq, int layer, cudaStream_t stream)
{
    int last = kv_seq_length(seq) / eng->cfg->kv_block_tokens;
    int block = kv_seq_block(seq, last > 0 ? last - 1 : 0);

    if (!calibrated[layer])
        calibrate(eng, layer, stream);
    kernel_binary(kv_block_keys(block), workspace_residual(), scale_table, stream);
    kernel_binary(kv_block_values(block), workspace_hidden(), scale_table, stream);
    if (layer == 0)
        kernel_binary(kv_residual_ring(), workspace_hidden(), kv_block_keys(block), stream);
}

void kv_write_release(void)
{
    buf_free_host(&host_amax);
    buf_free(&scale_table);
    buf_free(&amax);
}
