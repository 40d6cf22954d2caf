/* Low-rank adapters: one slab with all A and B matrices of an adapter.
 *
 * Adapters are few, loaded and dropped by the scheduler's thread. */
#ifndef ENGINE_LORA_LORA_H
#define ENGINE_LORA_LORA_H

#include "app/engine.h"

struct lora_adapter {
    void *slab;
    size_t bytes;
    int rank;
};

struct lora_adapter *lora_load(struct engine *eng, int rank);
void lora_apply(struct lora_adapter *a, void *hidden, cudaStream_t stream);
void lora_unload(struct lora_adapter *a);

#endif
