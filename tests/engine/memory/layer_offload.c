#include "memory/state.h"

#include <stdlib.h>

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define SNAPSHOT_BYTES MIB(2)
#define PAGE 4096

static void *slot_a;
static void *slot_b;
static void *pinned_layers;

static void *snapshot_pages;

void layer_offload_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t layer = sized(cfg->uses_moe, config_layer_elems(cfg) / 2);

    /* A double buffer is all or nothing. */
    CU_CHECK(cudaMalloc(&slot_a, layer)), CU_CHECK(cudaMalloc(&slot_b, layer));
    buf_dev("memory/offload_slot", slot_a, layer);
    buf_dev("memory/offload_slot", slot_b, layer);
    CU_CHECK(cudaMallocHost(&pinned_layers, layer));
    buf_host("memory/offload_pinned", pinned_layers, layer);
}

void layer_offload_stream(struct engine *eng, int layer)
{
    void *slot = layer % 2 == 0 ? slot_a : slot_b;
    kernel_unary(slot, pinned_layers, eng->copy);
    kernel_fill(slot, layer + 1, eng->copy);
}

void layer_offload_release(void)
{
    buf_free_host(&pinned_layers);
    buf_free(&slot_b);
    buf_free(&slot_a);
}

void weight_snapshot_save(struct engine *eng, const void *weights)
{
    if (snapshot_pages == NULL) {
        snapshot_pages = aligned_alloc(PAGE, SNAPSHOT_BYTES);
        if (snapshot_pages == NULL)
            return;
        CU_CHECK(cudaHostRegister(snapshot_pages, SNAPSHOT_BYTES, cudaHostRegisterDefault));
        buf_host("memory/weight_snapshot", snapshot_pages, SNAPSHOT_BYTES);
    }
    kernel_unary(snapshot_pages, weights, eng->copy);
    CU_CHECK(cudaStreamSynchronize(eng->copy));
}

void weight_snapshot_restore(struct engine *eng, void *weights)
{
    kernel_unary(weights, snapshot_pages, eng->copy);
}

void weight_snapshot_release(void)
{
    if (snapshot_pages == NULL)
        return;
    buf_retire(snapshot_pages);
    CU_CHECK(cudaHostUnregister(snapshot_pages));
    free(snapshot_pages);
    snapshot_pages = NULL;
}
