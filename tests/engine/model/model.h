/* Model weights: loading, unloading, the draft model.
 *
 * A weight set owns all its tensors and is loaded and unloaded wholesale.
 * Loading may fail, and then leaves nothing behind. The main thread loads;
 * it starts and joins the loader threads itself. */
#ifndef ENGINE_MODEL_MODEL_H
#define ENGINE_MODEL_MODEL_H

#include "app/engine.h"

#define MODEL_MAX_LAYERS 64

enum layer_tensor { W_Q, W_K, W_V, W_O, W_GATE, W_UP, W_DOWN, W_LAYER_TENSORS };

struct model_weights {
    const struct engine_config *cfg;
    void *embed;
    void *lm_head;
    void *norms;
    void *rope;
    void *router;
    void *layer[MODEL_MAX_LAYERS][W_LAYER_TENSORS];
    void *expert_gate[MODEL_MAX_LAYERS];
    void *expert_up[MODEL_MAX_LAYERS];
    void *expert_down[MODEL_MAX_LAYERS];
    size_t bytes;
};

/* NULL if the device refuses a tensor. */
struct model_weights *weights_load(struct engine *eng, const struct engine_config *cfg);
void weights_unload(struct model_weights *w);

/* Any tensor of a layer that the kernels may read; never NULL for a loaded set. */
const void *weights_tensor(const struct model_weights *w, int layer, enum layer_tensor t);

/* Reads the tensor index with a few threads, each with staging of its own. */
void weights_scan_index(struct engine *eng);

/* Copies through staging and a device transient that live only while loading. */
void weights_stage(struct engine *eng, struct model_weights *w);

struct draft_model {
    struct model_weights *weights;
    void *vocab_map;
    void *file_pages;
};

struct draft_model *draft_load(struct engine *eng);
void draft_unload(struct draft_model *d);

#endif
