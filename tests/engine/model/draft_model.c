#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

#define FILE_PAGES MIB(1)
#define PAGE 4096

/* Draft and target differ in vocabulary, so tokens go through a pinned map. */
struct draft_model *draft_load(struct engine *eng)
{
    struct draft_model *d = calloc(1, sizeof *d);
    const struct engine_config *cfg = config_draft(eng->cfg->uses_draft);
    size_t map = (size_t)cfg->vocab * sizeof(int32_t);

    if (d == NULL)
        return NULL;
    d->weights = weights_load(eng, cfg);
    if (d->weights == NULL) {
        free(d);
        return NULL;
    }
    CU_CHECK(cudaHostAlloc(&d->vocab_map, map, cudaHostAllocMapped));
    buf_host("model/draft_vocab_map", d->vocab_map, map);

    d->file_pages = aligned_alloc(PAGE, FILE_PAGES);
    if (d->file_pages == NULL) {
        fputs("engine: out of host memory for the draft file\n", stderr);
        exit(3);
    }
    CU_CHECK(cudaHostRegister(d->file_pages, FILE_PAGES, cudaHostRegisterPortable));
    buf_host("model/draft_file", d->file_pages, FILE_PAGES);
    kernel_unary(d->weights->embed, d->file_pages, eng->copy);
    CU_CHECK(cudaStreamSynchronize(eng->copy));
    behaviour(F_DRAFT_MODEL, "layers=%d bytes=%zu", d->weights->cfg->n_layers, d->weights->bytes);
    return d;
}

void draft_unload(struct draft_model *d)
{
    if (d == NULL)
        return;
    buf_retire(d->file_pages);
    CU_CHECK(cudaHostUnregister(d->file_pages));
    free(d->file_pages);
    buf_free_host(&d->vocab_map);
    weights_unload(d->weights);
    free(d);
}
