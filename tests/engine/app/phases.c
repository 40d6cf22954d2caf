#include "app/phases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenure.h>

#include "app/features.h"
#include "compute/compute.h"
#include "core/allocator.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "exec/exec.h"
#include "memory/kv_cache.h"
#include "memory/state.h"
#include "memory/vram_allocator.h"
#include "quant/quant.h"
#include "vision/vision.h"

void phase_mark(struct engine *eng, const char *name)
{
    static double last;
    size_t free_bytes, total;

    CU_CHECK(cudaMemGetInfo(&free_bytes, &total));
    double used = (double)(total - free_bytes) / (double)MIB(1);
    printf("phase=%s used_mib=%.1f free_mib=%.1f delta_mib=%.1f\n", name, used, (double)free_bytes / (double)MIB(1),
           used - last);
    fflush(stdout);
    last = used;
    if (eng->instrumented)
        tenure_mark(name);
}

/* What an engine that knows its phases says to whoever records it. */
static void tell_phase(const struct engine *eng, int phase)
{
    if (eng->instrumented)
        tenure_phase(phase);
}

/* A pool that gives nothing back until it is told to. */
static void pin_pool_threshold(void)
{
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;

    if (!feature_on(F_POOL_THRESHOLD))
        return;
    CU_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CU_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
}

static void pre_init(struct server *srv)
{
    struct engine *eng = srv->eng;

    CU_CHECK(cudaFree(NULL));
    CU_CHECK(cudaStreamCreateWithFlags(&eng->compute, cudaStreamNonBlocking));
    CU_CHECK(cudaStreamCreateWithFlags(&eng->prefill, cudaStreamNonBlocking));
    CU_CHECK(cudaStreamCreateWithFlags(&eng->copy, cudaStreamNonBlocking));
    pin_pool_threshold();
    probe_init(eng);
    vram_tracker_init(eng->cfg->vram_budget);
    core_self_check();
}

static void prewarm_gemm(struct server *srv)
{
    struct engine *eng = srv->eng;

    printf("blas=%d\n", blas_open());
    gemm_init(eng);
    attention_cublas_prewarm(eng);
    grouped_3x_prewarm(eng);
    cutlass_init(eng);
    CU_CHECK(cudaStreamSynchronize(eng->compute));
}

static void weights_and_caches(struct server *srv)
{
    struct engine *eng = srv->eng;

    balloon_inflate(eng);
    weights_scan_index(eng);
    srv->weights = weights_load(eng, eng->cfg);
    if (srv->weights == NULL) {
        fputs("engine: the model does not fit\n", stderr);
        exit(3);
    }
    if (feature_on(F_DRAFT_MODEL))
        srv->draft = draft_load(eng);
    quant_nvfp4_init(eng);
    quant_nvfp4_convert(eng, srv->weights->norms, weights_tensor(srv->weights, 0, W_O), eng->compute);
    caches_build_early(srv);
    expert_cache_init(eng);
    CU_CHECK(cudaDeviceSynchronize());
}

static void kv_and_workspaces(struct server *srv)
{
    struct engine *eng = srv->eng;
    int blocks;

    tell_phase(eng, TENURE_PLANNING);
    blocks = kv_blocks_from_free(eng);

    kv_cache_init(eng, blocks);
    balloon_release();
    kv_manager_init(eng);
    workspace_init(eng);
    workspace_buffers_init(eng);
    ssm_state_init(eng);
    snapshot_store_init(eng);
    caches_build_late(srv);
    CU_CHECK(cudaDeviceSynchronize());
}

static void features(struct server *srv)
{
    struct engine *eng = srv->eng;

    if (!vision_load(eng))
        fputs("engine: no room for the vision tower, images are refused\n", stderr);
    moe_workspace_init(eng);
    grouped_small_init(eng);
    moe_fused_init(eng);
    attention_paged_init(eng);
    attention_mla_init(eng);
    norm_rope_init(eng);
    ssm_scan_init(eng);
    embedding_init(eng);
    reduce_init(eng);
    logit_ops_init(eng);
    sampling_init(eng);
    quant_fp8_init(eng);
    quant_q8_init(eng);
    layer_offload_init(eng);
    runtime_init(eng);
    scheduler_init(eng);
    graph_decode_init(eng);
    cuda_graph_init(eng);
    spec_init(eng);
    stream_output_init(eng);
    if (!feature_on(F_INIT_AFTER_SERVING))
        srv->lora = lora_load(eng, 16);
}

/* One request of a few tokens, which is also the first forward pass. */
static void warmup(struct server *srv)
{
    struct engine *eng = srv->eng;
    struct request req = { .id = 0, .prompt_tokens = 32, .max_new_tokens = 1 };

    workspace_buffers_once(eng);
    runtime_warm_l2(eng, srv->weights->embed);
    weight_snapshot_save(eng, srv->weights->norms);
    scheduler_prefill(srv, &req);
    graph_decode_begin(srv, &req);
    graph_decode_step(srv, &req);
    req.state = REQ_FINISHED;
    graph_decode_end(srv, &req);
    printf("warmup loss=%.3f\n", perplexity_run(eng, srv->weights));
    CU_CHECK(cudaDeviceSynchronize());
    probe_collect();
}

static void serving(struct server *srv)
{
    srv->eng->serving = true;
    server_run(srv);
}

/* The draft's successor is loaded beside it, and then it goes. */
static void swap_draft(struct server *srv)
{
    struct draft_model *old = srv->draft;

    if (old == NULL || !srv->eng->cfg->uses_draft)
        return;
    struct draft_model *next = draft_load(srv->eng);
    if (next == NULL)
        return;
    if (srv->eng->instrumented)
        tenure_mark("both_drafts");
    srv->draft = next;
    CU_CHECK(cudaDeviceSynchronize());
    draft_unload(old);
    if (srv->eng->instrumented)
        tenure_mark("one_draft");
}

static void swap_models(struct server *srv)
{
    struct engine *eng = srv->eng;
    struct engine_config broken = *eng->cfg;
    struct engine_config other = *eng->cfg;

    if (!feature_on(F_MODEL_SWAP))
        return;
    eng->serving = false;
    printf("phase=planning\n");
    fflush(stdout);
    tell_phase(eng, TENURE_PLANNING);
    if (feature_on(F_SWAP_FAILURE)) {
        /* A file whose header asks for more than any card has. */
        broken.name = "broken";
        broken.n_layers = 2;
        broken.vocab = 1 << 30;
        bool swapped = model_swap(srv, &broken);
        behaviour(F_SWAP_FAILURE, "swapped=%d back=%d", swapped, srv->weights->cfg == eng->cfg);
    }
    other.name = "other";
    const struct engine_config *before = srv->weights->cfg;
    bool swapped = model_swap(srv, &other);
    behaviour(F_MODEL_SWAP, "swapped=%d changed=%d bytes=%zu", swapped, srv->weights->cfg != before,
              srv->weights->bytes);
    swap_draft(srv);
    /* The configuration of the new set lives on this stack only. */
    srv->weights->cfg = eng->cfg;
    eng->serving = true;
    printf("phase=serving\n");
    fflush(stdout);
    tell_phase(eng, TENURE_SERVING);
    server_run_more(srv, 2);
}

/* Hands back what the pools of the device and of its graphs keep for later. */
static void trim_pools(void)
{
    cudaMemPool_t pool;
    size_t before, after, total;

    if (!feature_on(F_MEMORY_TRIM))
        return;
    CU_CHECK(cudaMemGetInfo(&before, &total));
    CU_CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    CU_CHECK(cudaMemPoolTrimTo(pool, 0));
    CU_CHECK(cudaDeviceGraphMemTrim(0));
    CU_CHECK(cudaMemGetInfo(&after, &total));
    behaviour(F_MEMORY_TRIM, "returned=%zu", after - before);
}

static void shut_down(struct server *srv)
{
    CU_CHECK(cudaDeviceSynchronize());
    vram_tracker_report();
    cutlass_report();
    reduce_report();
    attention_prefill_report();
    logit_ops_report();
    other_family_report();
    cuda_graph_report();
    spec_report();

    stream_output_release();
    spec_release();
    cuda_graph_release();
    graph_decode_release();
    scheduler_release();
    runtime_release();
    layer_offload_release();
    weight_snapshot_release();
    lora_unload(srv->lora);
    quant_q8_release();
    quant_fp8_release();
    quant_nvfp4_release();
    sampling_release();
    logit_ops_release();
    reduce_release();
    embedding_release();
    ssm_scan_release();
    norm_rope_release();
    attention_mla_release();
    attention_paged_release();
    moe_fused_release();
    grouped_small_release();
    moe_workspace_release();
    vision_release();
    kv_write_release();
    attention_prefill_release();
    forward_release();
    caches_release();
    snapshot_store_release();
    ssm_state_release();
    workspace_buffers_release();
    workspace_release();
    kv_manager_release();
    kv_cache_release();
    expert_cache_release();
    draft_unload(srv->draft);
    weights_unload(srv->weights);
    cutlass_release();
    grouped_3x_release();
    attention_cublas_release();
    gemm_release();
    blas_close();
    CU_CHECK(cudaDeviceSynchronize());
    trim_pools();
}

static const struct {
    const char *name;
    void (*run)(struct server *srv);
} order[] = {
    { "00_pre_init", pre_init },
    { "01_prewarm_gemm", prewarm_gemm },
    { "02_weights+decode_cache", weights_and_caches },
    { "03_kv_cache", kv_and_workspaces },
    { "04_features", features },
    { "05_post_warmup", warmup },
    { "serving", serving },
    { "swap", swap_models },
    { "shutdown", shut_down },
};

void phases_run(struct server *srv, const char *until)
{
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        if (strcmp(order[i].name, "serving") == 0) {
            printf("phase=serving\n");
            fflush(stdout);
            tell_phase(srv->eng, TENURE_SERVING);
        }
        order[i].run(srv);
        phase_mark(srv->eng, strcmp(order[i].name, "serving") == 0 ? "served" : order[i].name);
        if (until != NULL && strcmp(order[i].name, until) == 0)
            return;
    }
}
