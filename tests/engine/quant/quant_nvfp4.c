#include "quant/quant.h"

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

static struct {
    void *codebook;
    void *global_amax;
    void *sf_layout;
    void *act_packed;
} ctx;

void quant_nvfp4_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t packed = sized(cfg->uses_nvfp4_cache, (size_t)cfg->chunk * (size_t)cfg->d_model / 2);

    CU_CHECK(cudaMalloc(&ctx.codebook, KIB(1)));
    buf_dev("quant/nvfp4_codebook", ctx.codebook, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.global_amax, KIB(1)));
    buf_dev("quant/nvfp4_global_amax", ctx.global_amax, KIB(1));
    CU_CHECK(cudaMalloc(&ctx.sf_layout, KIB(32)));
    buf_dev("quant/nvfp4_sf_layout", ctx.sf_layout, KIB(32));
    CU_CHECK(cudaMalloc(&ctx.act_packed, packed));
    buf_dev("quant/nvfp4_act_packed", ctx.act_packed, packed);
}

void quant_nvfp4_convert(struct engine *eng, void *out, const void *weight, cudaStream_t stream)
{
    const struct engine_config *cfg = eng->cfg;
    size_t elems = (size_t)cfg->d_model * (size_t)cfg->d_model;
    void *wide = NULL, *packed = NULL, *errors = NULL;

    CU_CHECK(cudaMalloc(&wide, elems * sizeof(float)));
    buf_dev("quant/nvfp4_wide", wide, elems * sizeof(float));
    CU_CHECK(cudaMalloc(&packed, elems / 2));
    buf_dev("quant/nvfp4_packed", packed, elems / 2);
    CU_CHECK(cudaMallocAsync(&errors, KIB(128), stream));
    buf_dev_async("quant/nvfp4_errors", errors, KIB(128), stream);
    kernel_unary(wide, weight, stream);
    kernel_binary(errors, wide, ctx.codebook, stream);
    kernel_binary(ctx.global_amax, wide, errors, stream);
    kernel_binary(packed, wide, ctx.sf_layout, stream);
    kernel_binary(ctx.act_packed, packed, ctx.global_amax, stream);
    kernel_unary(out, packed, stream);
    buf_free_async(&errors, stream);
    buf_free_inflight(&wide, stream);
    buf_free_inflight(&packed, stream);
}

void quant_nvfp4_release(void)
{
    buf_free(&ctx.act_packed);
    buf_free(&ctx.sf_layout);
    buf_free(&ctx.global_amax);
    buf_free(&ctx.codebook);
}
