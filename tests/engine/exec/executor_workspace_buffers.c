#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/vram_allocator.h"

#define ATTN_SCORES_BYTES MIB(320)
#define SPLIT_K 8
#define SPEC_DEPTH 8

/* Attention. */
static struct {
    void *scores, *out, *qkv, *q_rot, *k_rot;
    void *partials, *lse;
    void *decode_qkv, *decode_out;
    void *mla_kv_a, *mla_latent, *mla_k_rope, *mla_kv_b;
    void *positions, *ctx_lens, *cu_seqlens;
    void *chunk_k, *chunk_v;
    void *sinks, *alibi;
} at;

/* Feed-forward and quantised activations. */
static struct {
    void *gate_up, *act, *mmvq_q8;
    void *fp8_act, *fp8_scale;
    void *fp4_act, *fp4_sf;
    void *moe_packed, *moe_sf;
    void *cutlass_data, *cutlass_sf, *cutlass_ws;
    void *mxfp4_sf, *mxfp4_ws;
    void *row_amax, *global_scale;
} ff;

/* Recurrent layers, speculation, heads and host staging. */
static struct {
    void *conv_in, *dt, *bc, *scan_y;
    void *spec_hidden, *spec_logits, *spec_tokens;
    void *head_fp32, *head_stats;
    void *host_positions, *host_ctx, *host_tokens, *host_logits, *host_stats;
} misc;

static void attention_init(const struct engine_config *cfg)
{
    size_t chunk = (size_t)cfg->chunk;
    size_t batch = (size_t)cfg->max_batch;
    size_t heads = (size_t)cfg->n_heads;
    size_t hd = (size_t)cfg->head_dim;
    size_t qkv = chunk * (heads + 2 * (size_t)cfg->kv_heads) * hd * 2;

    at.scores = vram_alloc(ATTN_SCORES_BYTES, "exec/attn_scores", 0);
    at.out = vram_alloc(chunk * heads * hd * 2, "exec/attn_out", 0);
    at.qkv = vram_alloc(qkv, "exec/qkv", 0);
    at.q_rot = vram_alloc(chunk * heads * hd * 2, "exec/q_rotated", 0);
    at.k_rot = vram_alloc(chunk * (size_t)cfg->kv_heads * hd * 2, "exec/k_rotated", 0);
    at.partials = vram_alloc(batch * SPLIT_K * heads * hd * sizeof(float), "exec/splitk_partials", 0);
    at.lse = vram_alloc(batch * SPLIT_K * heads * 2 * sizeof(float), "exec/splitk_lse", 0);
    at.decode_qkv = vram_alloc(batch * (heads + 2 * (size_t)cfg->kv_heads) * hd * 2, "exec/decode_qkv", 0);
    at.decode_out = vram_alloc(batch * heads * hd * 2, "exec/decode_attn_out", 0);

    size_t mla = sized(cfg->uses_mla, chunk * 576 * 2);
    CU_CHECK(cudaMalloc(&at.mla_kv_a, mla));
    buf_dev("exec/mla_kv_a", at.mla_kv_a, mla);
    CU_CHECK(cudaMalloc(&at.mla_latent, mla));
    buf_dev("exec/mla_latent", at.mla_latent, mla);
    CU_CHECK(cudaMalloc(&at.mla_k_rope, mla));
    buf_dev("exec/mla_k_rope", at.mla_k_rope, mla);
    CU_CHECK(cudaMalloc(&at.mla_kv_b, mla));
    buf_dev("exec/mla_kv_b", at.mla_kv_b, mla);

    CU_CHECK(cudaMalloc(&at.positions, chunk * sizeof(int32_t)));
    buf_dev("exec/positions", at.positions, chunk * sizeof(int32_t));
    CU_CHECK(cudaMalloc(&at.ctx_lens, KIB(1))), CU_CHECK(cudaMalloc(&at.cu_seqlens, KIB(1)));
    buf_dev("exec/ctx_lens", at.ctx_lens, KIB(1));
    buf_dev("exec/cu_seqlens", at.cu_seqlens, KIB(1));

    /* Keys and values of one chunk, for graphs that capture a whole chunk. */
    size_t pair = chunk * (size_t)cfg->kv_heads * hd * 2;
    CU_CHECK(cudaMalloc(&at.chunk_k, pair)), CU_CHECK(cudaMalloc(&at.chunk_v, pair));
    buf_dev("exec/chunk_k", at.chunk_k, pair);
    buf_dev("exec/chunk_v", at.chunk_v, pair);
    CU_CHECK(cudaMalloc(&at.sinks, heads * hd * sizeof(float)));
    buf_dev("exec/attn_sinks", at.sinks, heads * hd * sizeof(float));
    CU_CHECK(cudaMalloc(&at.alibi, KIB(2)));
    buf_dev("exec/alibi_slopes", at.alibi, KIB(2));
}

/* A group whose members are only useful together: all of them, or none and the
 * feature works without. `n` counts what was given back. */
static int undo(void **members, int n)
{
    int freed = 0;
    for (int i = n - 1; i >= 0; i--) {
        if (members[i] == NULL)
            continue;
        CU_CHECK(cudaFree(members[i]));
        members[i] = NULL;
        freed++;
    }
    return freed;
}

/* Packed activations and scale factors of the three-times-packed MoE path. */
static bool moe_group(size_t packed, size_t sf, int *freed)
{
    if (cu_try(cudaMalloc(&ff.moe_packed, packed)) && cu_try(cudaMalloc(&ff.moe_sf, sf))) {
        buf_dev("exec/moe_3x_packed", ff.moe_packed, packed);
        buf_dev("exec/moe_3x_sf", ff.moe_sf, sf);
        return true;
    }
    void *members[] = { ff.moe_packed, ff.moe_sf };
    *freed += undo(members, 2);
    ff.moe_packed = ff.moe_sf = NULL;
    return false;
}

static bool cutlass_group(size_t data, size_t sf, size_t work, int *freed)
{
    bool ok = cu_try(cudaMalloc(&ff.cutlass_data, data));
    ok = ok && cu_try(cudaMalloc(&ff.cutlass_sf, sf));
    ok = ok && cu_try(cudaMalloc(&ff.cutlass_ws, work));
    if (ok) {
        buf_dev("exec/cutlass_act_data", ff.cutlass_data, data);
        buf_dev("exec/cutlass_act_sf", ff.cutlass_sf, sf);
        buf_dev("exec/cutlass_act_workspace", ff.cutlass_ws, work);
        return true;
    }
    void *members[] = { ff.cutlass_data, ff.cutlass_sf, ff.cutlass_ws };
    *freed += undo(members, 3);
    ff.cutlass_data = ff.cutlass_sf = ff.cutlass_ws = NULL;
    return false;
}

static bool mxfp4_group(size_t sf, size_t work, int *freed)
{
    bool ok = cu_try(cudaMalloc(&ff.mxfp4_sf, sf));
    ok = ok && cu_try(cudaMalloc(&ff.mxfp4_ws, work));
    if (ok) {
        buf_dev("exec/mxfp4_act_sf", ff.mxfp4_sf, sf);
        buf_dev("exec/mxfp4_act_workspace", ff.mxfp4_ws, work);
        return true;
    }
    void *members[] = { ff.mxfp4_sf, ff.mxfp4_ws };
    *freed += undo(members, 2);
    ff.mxfp4_sf = ff.mxfp4_ws = NULL;
    return false;
}

/* First the geometry for the longest prompt that could ever be batched, whose
 * last member no card can hold; then the one for a single chunk. */
static void groups_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t free_bytes, total;
    size_t expanded = (size_t)cfg->chunk * (size_t)(cfg->top_k > 0 ? cfg->top_k : 1);
    size_t packed = sized(cfg->uses_moe, expanded * (size_t)cfg->expert_ff * 3 / 2);
    size_t act = (size_t)cfg->chunk * (size_t)cfg->d_ff / 2;
    int freed = 0, disabled = 0;

    CU_CHECK(cudaMemGetInfo(&free_bytes, &total));
    if (feature_on(F_ROLLBACK_GROUPS)) {
        disabled += !moe_group(packed, total * 2, &freed);
        disabled += !cutlass_group(act, act / 8, total * 2, &freed);
        disabled += !mxfp4_group(act / 16, total * 2, &freed);
        behaviour(F_ROLLBACK_GROUPS, "groups=%d freed=%d", disabled, freed);
    }
    if (!moe_group(packed, sized(cfg->uses_moe, packed / 8), &freed) ||
        !cutlass_group(act, act / 8, MIB(1), &freed) || !mxfp4_group(act / 16, KIB(512), &freed)) {
        fputs("engine: no device memory for the activation groups\n", stderr);
        exit(3);
    }
}

static void ffn_init(const struct engine_config *cfg)
{
    size_t chunk = (size_t)cfg->chunk;
    size_t wide = chunk * (size_t)cfg->d_ff;

    ff.gate_up = vram_alloc(wide * 2 * 2, "exec/ffn_gate_up", 0);
    ff.act = vram_alloc(wide * 2, "exec/ffn_act", 0);
    ff.mmvq_q8 = vram_alloc(chunk * ((size_t)cfg->d_ff / 32) * 36 * 2, "exec/mmvq_q8_1", 0);
    ff.fp8_act = vram_alloc(sized(cfg->uses_fp8_cache, wide), "exec/fp8_act", 0);
    ff.fp4_act = vram_alloc(sized(cfg->uses_nvfp4_cache, wide / 2), "exec/nvfp4_act", 0);
    ff.fp4_sf = vram_alloc(sized(cfg->uses_nvfp4_cache, wide / 16), "exec/nvfp4_act_sf", 0);

    size_t scale = sized(cfg->uses_fp8_cache, chunk * sizeof(float));
    CU_CHECK(cudaMalloc(&ff.fp8_scale, scale));
    buf_dev("exec/fp8_act_scale", ff.fp8_scale, scale);
    CU_CHECK(cudaMalloc(&ff.row_amax, chunk * sizeof(float)));
    buf_dev("exec/row_amax", ff.row_amax, chunk * sizeof(float));
    CU_CHECK(cudaMalloc(&ff.global_scale, KIB(1)));
    buf_dev("exec/global_scale", ff.global_scale, KIB(1));
}

static void misc_init(const struct engine_config *cfg)
{
    size_t chunk = (size_t)cfg->chunk;
    size_t batch = (size_t)cfg->max_batch;
    size_t d = (size_t)cfg->d_model;
    size_t spec = sized(cfg->uses_draft, batch * SPEC_DEPTH * d * 2);
    size_t spec_logits = sized(cfg->uses_draft, SPEC_DEPTH * (size_t)cfg->vocab * sizeof(float));
    size_t ssm = sized(cfg->uses_ssm, chunk * d * 2 * 2);

    CU_CHECK(cudaMalloc(&misc.conv_in, ssm));
    buf_dev("exec/ssm_conv_in", misc.conv_in, ssm);
    CU_CHECK(cudaMalloc(&misc.dt, ssm));
    buf_dev("exec/ssm_dt", misc.dt, ssm);
    CU_CHECK(cudaMalloc(&misc.bc, ssm));
    buf_dev("exec/ssm_bc", misc.bc, ssm);
    CU_CHECK(cudaMalloc(&misc.scan_y, ssm));
    buf_dev("exec/ssm_scan_y", misc.scan_y, ssm);

    CU_CHECK(cudaMalloc(&misc.spec_hidden, spec));
    buf_dev("exec/spec_hidden", misc.spec_hidden, spec);
    CU_CHECK(cudaMalloc(&misc.spec_logits, spec_logits));
    buf_dev("exec/spec_logits", misc.spec_logits, spec_logits);
    CU_CHECK(cudaMalloc(&misc.spec_tokens, KIB(4)));
    buf_dev("exec/spec_tokens", misc.spec_tokens, KIB(4));

    CU_CHECK(cudaMalloc(&misc.head_fp32, batch * d * sizeof(float)));
    buf_dev("exec/head_fp32", misc.head_fp32, batch * d * sizeof(float));
    CU_CHECK(cudaMalloc(&misc.head_stats, KIB(4)));
    buf_dev("exec/head_stats", misc.head_stats, KIB(4));

    CU_CHECK(cudaHostAlloc(&misc.host_positions, chunk * sizeof(int32_t), cudaHostAllocDefault));
    buf_host("exec/host_positions", misc.host_positions, chunk * sizeof(int32_t));
    CU_CHECK(cudaHostAlloc(&misc.host_ctx, KIB(1), cudaHostAllocDefault));
    buf_host("exec/host_ctx_lens", misc.host_ctx, KIB(1));
    CU_CHECK(cudaHostAlloc(&misc.host_tokens, chunk * sizeof(int32_t), cudaHostAllocDefault));
    buf_host("exec/host_tokens", misc.host_tokens, chunk * sizeof(int32_t));
    CU_CHECK(cudaHostAlloc(&misc.host_logits, batch * (size_t)cfg->vocab * sizeof(float), cudaHostAllocDefault));
    buf_host("exec/host_logits", misc.host_logits, batch * (size_t)cfg->vocab * sizeof(float));
    CU_CHECK(cudaHostAlloc(&misc.host_stats, KIB(4), cudaHostAllocMapped));
    buf_host("exec/host_stats", misc.host_stats, KIB(4));
}

void workspace_buffers_init(struct engine *eng)
{
    attention_init(eng->cfg);
    ffn_init(eng->cfg);
    groups_init(eng);
    misc_init(eng->cfg);
}

void workspace_buffers_attention(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t stream)
{
    (void)eng;
    kernel_gemm(at.qkv, workspace_hidden(), weights_tensor(w, layer, W_Q), stream);
    kernel_unary(at.q_rot, at.qkv, stream);
    kernel_binary(at.k_rot, at.qkv, weights_tensor(w, layer, W_K), stream);
    kernel_gemm(at.scores, at.q_rot, at.k_rot, stream);
    kernel_binary(at.partials, at.scores, weights_tensor(w, layer, W_V), stream);
    kernel_unary(at.lse, at.scores, stream);
    kernel_binary(at.out, at.partials, at.lse, stream);
    kernel_gemm(workspace_residual(), at.out, weights_tensor(w, layer, W_O), stream);
}

void workspace_buffers_ffn(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t stream)
{
    (void)eng;
    kernel_gemm(ff.gate_up, workspace_residual(), weights_tensor(w, layer, W_GATE), stream);
    kernel_binary(ff.act, ff.gate_up, weights_tensor(w, layer, W_UP), stream);
    kernel_unary(ff.mmvq_q8, ff.act, stream);
    kernel_unary(ff.fp4_act, ff.act, stream);
    kernel_unary(ff.fp4_sf, ff.row_amax, stream);
    kernel_gemm(workspace_hidden(), ff.mmvq_q8, weights_tensor(w, layer, W_DOWN), stream);
}

void workspace_buffers_once(struct engine *eng)
{
    cudaStream_t s = eng->compute;
    kernel_unary(at.positions, misc.host_positions, s);
    kernel_unary(at.ctx_lens, misc.host_ctx, s);
    kernel_unary(at.cu_seqlens, at.ctx_lens, s);
    kernel_binary(at.mla_latent, at.mla_kv_a, at.mla_k_rope, s);
    kernel_unary(at.mla_kv_b, at.mla_latent, s);
    kernel_binary(at.chunk_k, at.k_rot, at.sinks, s);
    kernel_binary(at.chunk_v, at.k_rot, at.alibi, s);
    kernel_binary(at.decode_out, at.decode_qkv, at.lse, s);
    kernel_binary(ff.moe_packed, ff.moe_sf, ff.global_scale, s);
    kernel_binary(ff.cutlass_data, ff.cutlass_sf, ff.cutlass_ws, s);
    kernel_binary(ff.mxfp4_ws, ff.mxfp4_sf, ff.fp8_scale, s);
    kernel_unary(ff.fp8_act, ff.act, s);
    kernel_binary(misc.scan_y, misc.conv_in, misc.bc, s);
    kernel_unary(misc.dt, misc.scan_y, s);
    kernel_binary(misc.spec_hidden, workspace_hidden(), misc.spec_tokens, s);
    kernel_unary(misc.spec_logits, misc.spec_hidden, s);
    kernel_unary(misc.head_fp32, workspace_hidden(), s);
    kernel_unary(misc.head_stats, misc.head_fp32, s);
    kernel_unary(misc.host_stats, misc.head_stats, s);
    kernel_binary(misc.host_logits, workspace_logits(), misc.host_tokens, s);
}

void workspace_buffers_release(void)
{
    void **raw[] = {
        &misc.head_stats, &misc.head_fp32, &misc.spec_tokens, &misc.spec_logits, &misc.spec_hidden,
        &misc.scan_y, &misc.bc, &misc.dt, &misc.conv_in,
        &ff.global_scale, &ff.row_amax, &ff.fp8_scale, &ff.mxfp4_ws, &ff.mxfp4_sf,
        &ff.cutlass_ws, &ff.cutlass_sf, &ff.cutlass_data, &ff.moe_sf, &ff.moe_packed,
        &at.alibi, &at.sinks, &at.chunk_v, &at.chunk_k, &at.cu_seqlens, &at.ctx_lens, &at.positions,
        &at.mla_kv_b, &at.mla_k_rope, &at.mla_latent, &at.mla_kv_a,
    };
    void **tracked[] = {
        &ff.fp4_sf, &ff.fp4_act, &ff.fp8_act, &ff.mmvq_q8, &ff.act, &ff.gate_up,
        &at.decode_out, &at.decode_qkv, &at.lse, &at.partials, &at.k_rot, &at.q_rot, &at.qkv, &at.out, &at.scores,
    };
    void **host[] = {
        &misc.host_stats, &misc.host_logits, &misc.host_tokens, &misc.host_ctx, &misc.host_positions,
    };
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        buf_free_host(host[i]);
    for (size_t i = 0; i < sizeof raw / sizeof raw[0]; i++)
        buf_free(raw[i]);
    for (size_t i = 0; i < sizeof tracked / sizeof tracked[0]; i++)
        vram_free(tracked[i]);
}
