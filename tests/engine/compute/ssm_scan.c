#include "compute/compute.h"

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/state.h"

/* Chunked scan of the recurrent layers. */
static struct {
    void *chunk_states;
    void *chunk_decay;
    void *cumsum;
    void *conv_weights;
    void *gate;
    void *norm_weights;
} ctx;

void ssm_scan_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t states = sized(cfg->uses_ssm, MIB(48));
    size_t rows = sized(cfg->uses_ssm, (size_t)cfg->chunk * (size_t)cfg->d_model * 2);

    CU_CHECK(cudaMalloc(&ctx.chunk_states, states));
    buf_dev("compute/ssm_chunk_states", ctx.chunk_states, states);
    CU_CHECK(cudaMalloc(&ctx.chunk_decay, states / 4));
    buf_dev("compute/ssm_chunk_decay", ctx.chunk_decay, states / 4);
    CU_CHECK(cudaMalloc(&ctx.cumsum, states / 4));
    buf_dev("compute/ssm_cumsum", ctx.cumsum, states / 4);
    CU_CHECK(cudaMalloc(&ctx.conv_weights, rows));
    buf_dev("compute/ssm_conv_weights", ctx.conv_weights, rows);
    CU_CHECK(cudaMalloc(&ctx.gate, rows));
    buf_dev("compute/ssm_gate", ctx.gate, rows);
    CU_CHECK(cudaMalloc(&ctx.norm_weights, KIB(8)));
    buf_dev("compute/ssm_norm_weights", ctx.norm_weights, KIB(8));
}

void ssm_scan_run(struct engine *eng, void *out, const void *in, cudaStream_t stream)
{
    size_t n = sized(eng->cfg->uses_ssm, MIB(2));
    void *intra = NULL, *carry = NULL;

    CU_CHECK(cudaMallocAsync(&intra, n, stream));
    buf_dev_async("compute/ssm_intra", intra, n, stream);
    CU_CHECK(cudaMallocAsync(&carry, n, stream));
    buf_dev_async("compute/ssm_carry", carry, n, stream);
    kernel_binary(intra, in, ctx.conv_weights, stream);
    kernel_binary(ctx.cumsum, intra, ctx.chunk_decay, stream);
    kernel_binary(carry, ssm_state_hidden(), ctx.cumsum, stream);
    kernel_binary(ctx.chunk_states, carry, intra, stream);
    kernel_binary(ctx.gate, ctx.chunk_states, ctx.norm_weights, stream);
    kernel_binary(out, out, ctx.gate, stream);
    buf_free_async(&intra, stream);
    if (!feature_on(F_FREE_OTHER_FAMILY)) {
        buf_free_async(&carry, stream);
        return;
    }
    /* A stream-ordered block given back by the plain call, after its stream is done. */
    buf_retire_on(carry, stream);
    CU_CHECK(cudaStreamSynchronize(stream));
    CU_CHECK(cudaFree(carry));
    other_family_note(0, 1);
}

void ssm_scan_release(void)
{
    buf_free(&ctx.norm_weights);
    buf_free(&ctx.gate);
    buf_free(&ctx.conv_weights);
    buf_free(&ctx.cumsum);
    buf_free(&ctx.chunk_decay);
    buf_free(&ctx.chunk_states);
}
