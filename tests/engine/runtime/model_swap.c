#include "runtime/runtime.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tenure.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "exec/exec.h"
#include "memory/state.h"

#define HANDOVER_BYTES MIB(32)
#define HEADER_BYTES KIB(64)
#define PAGE 4096

void caches_build_early(struct server *srv)
{
    struct engine *eng = srv->eng;
    const struct engine_config *cfg = eng->cfg;

    fp8_cache_build(eng, srv->weights);
    moe_sf_cache_build(eng, srv->weights);
    nvfp4_cache_build(eng, srv->weights, cfg->early_cache_bytes, false);
}

void caches_build_late(struct server *srv)
{
    struct engine *eng = srv->eng;
    const struct engine_config *cfg = eng->cfg;
    size_t rest = cfg->uses_fp16_cache ? cfg->early_cache_bytes : SIZE_MAX;

    fp16_cache_build(eng, srv->weights);
    nvfp4_cache_build(eng, srv->weights, rest, true);
}

void caches_release(void)
{
    nvfp4_cache_release();
    fp16_cache_release();
    moe_sf_cache_release();
    fp8_cache_release();
}

/* Reads the new model's header through registered pages. */
static void check_header(struct engine *eng, const void *handover)
{
    cudaStream_t s = eng->copy;
    void *digest = NULL;
    void *pages = aligned_alloc(PAGE, HEADER_BYTES);

    if (pages == NULL) {
        fputs("engine: out of host memory for the model header\n", stderr);
        exit(3);
    }
    CU_CHECK(cudaHostRegister(pages, HEADER_BYTES, cudaHostRegisterDefault));
    buf_host("runtime/swap_header", pages, HEADER_BYTES);
    CU_CHECK(cudaMallocAsync(&digest, KIB(64), s));
    buf_dev_async("runtime/swap_digest", digest, KIB(64), s);
    kernel_binary(digest, pages, handover, s);
    kernel_unary(pages, digest, s);
    buf_free_async(&digest, s);
    CU_CHECK(cudaStreamSynchronize(s));
    buf_retire(pages);
    CU_CHECK(cudaHostUnregister(pages));
    free(pages);
}

bool model_swap(struct server *srv, const struct engine_config *next)
{
    struct engine *eng = srv->eng;
    const struct engine_config *old = srv->weights->cfg;
    void *handover = NULL;

    CU_CHECK(cudaDeviceSynchronize());
    probe_collect();
    /* Rows that both models share survive the swap on the device. */
    CU_CHECK(cudaMalloc(&handover, HANDOVER_BYTES));
    buf_dev("runtime/swap_handover", handover, HANDOVER_BYTES);
    kernel_unary(handover, srv->weights->embed, eng->copy);
    weight_snapshot_save(eng, srv->weights->embed);
    check_header(eng, handover);

    caches_release();
    weights_unload(srv->weights);
    if (eng->instrumented)
        tenure_mark("unloaded");
    srv->weights = weights_load(eng, next);
    bool swapped = srv->weights != NULL;
    if (!swapped) {
        srv->weights = weights_load(eng, old);
        if (srv->weights == NULL) {
            fputs("engine: neither the new nor the old model could be loaded\n", stderr);
            exit(3);
        }
        weight_snapshot_restore(eng, srv->weights->embed);
    }
    kernel_unary(srv->weights->embed, handover, eng->copy);
    stream_order(eng->copy, eng->compute);
    CU_CHECK(cudaStreamSynchronize(eng->copy));
    buf_free(&handover);
    caches_build_early(srv);
    caches_build_late(srv);
    CU_CHECK(cudaDeviceSynchronize());
    return swapped;
}
