#include "lora/lora.h"

#include <stdlib.h>

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

struct lora_adapter *lora_load(struct engine *eng, int rank)
{
    const struct engine_config *cfg = eng->cfg;
    struct lora_adapter *a = calloc(1, sizeof *a);

    if (a == NULL)
        return NULL;
    a->rank = rank;
    a->bytes = (size_t)cfg->n_layers * 4 * (size_t)rank * 2 * (size_t)cfg->d_model * 2;
    CU_CHECK(cudaMalloc(&a->slab, a->bytes));
    buf_dev("lora/adapter_slab", a->slab, a->bytes);
    return a;
}

void lora_apply(struct lora_adapter *a, void *hidden, cudaStream_t stream)
{
    if (a != NULL)
        kernel_binary(hidden, hidden, a->slab, stream);
}

void lora_unload(struct lora_adapter *a)
{
    if (a == NULL)
        return;
    buf_free(&a->slab);
    free(a);
}
