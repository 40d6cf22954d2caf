#include "model/model.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/features.h"
#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"

static size_t stored(size_t elems, int bits_x1000)
{
    return round_up((size_t)((double)elems * bits_x1000 / 8000.0), 256);
}

static void keep(struct model_weights *w, const char *name, void *p, size_t bytes)
{
    w->bytes += bytes;
    buf_dev(name, p, bytes);
}

/* Attention and feed-forward tensors of one layer. */
static bool load_layer(struct model_weights *w, int l)
{
    const struct engine_config *cfg = w->cfg;
    void **t = w->layer[l];
    size_t d = (size_t)cfg->d_model;
    size_t q = stored(d * (size_t)cfg->n_heads * (size_t)cfg->head_dim, cfg->layer_bits_x1000);
    size_t kv = stored(d * (size_t)cfg->kv_heads * (size_t)cfg->head_dim, cfg->layer_bits_x1000);
    size_t ff = sized(cfg->n_experts == 0, stored(d * (size_t)cfg->d_ff, cfg->layer_bits_x1000));

    if (!cu_try(cudaMalloc(&t[W_Q], q)))
        return false;
    keep(w, "model/attn_q", t[W_Q], q);
    if (!cu_try(cudaMalloc(&t[W_K], kv)) || !cu_try(cudaMalloc(&t[W_V], kv)))
        return false;
    keep(w, "model/attn_k", t[W_K], kv);
    keep(w, "model/attn_v", t[W_V], kv);
    if (!cu_try(cudaMalloc(&t[W_O], q)))
        return false;
    keep(w, "model/attn_o", t[W_O], q);

    if (cfg->n_experts > 0 && l > 0)
        return true;
    if (!cu_try(cudaMalloc(&t[W_GATE], ff)))
        return false;
    keep(w, "model/ffn_gate", t[W_GATE], ff);
    if (!cu_try(cudaMalloc(&t[W_UP], ff)))
        return false;
    keep(w, "model/ffn_up", t[W_UP], ff);
    if (!cu_try(cudaMalloc(&t[W_DOWN], ff)))
        return false;
    keep(w, "model/ffn_down", t[W_DOWN], ff);
    return true;
}

/* Packed experts of one layer, all experts of a projection in one tensor. */
static bool load_experts(struct model_weights *w, int l)
{
    const struct engine_config *cfg = w->cfg;
    size_t elems = (size_t)cfg->n_experts * (size_t)cfg->d_model * (size_t)cfg->expert_ff;
    size_t bytes = sized(cfg->uses_moe, stored(elems, cfg->layer_bits_x1000));

    if (!cfg->uses_moe && l > 0)
        return true;
    if (!cu_try(cudaMalloc(&w->expert_gate[l], bytes)))
        return false;
    keep(w, "model/expert_gate", w->expert_gate[l], bytes);
    if (!cu_try(cudaMalloc(&w->expert_up[l], bytes)))
        return false;
    keep(w, "model/expert_up", w->expert_up[l], bytes);
    if (!cu_try(cudaMalloc(&w->expert_down[l], bytes)))
        return false;
    keep(w, "model/expert_down", w->expert_down[l], bytes);
    return true;
}

static bool load_globals(struct model_weights *w)
{
    const struct engine_config *cfg = w->cfg;
    size_t d = (size_t)cfg->d_model;
    size_t embed = stored((size_t)cfg->vocab * d, cfg->embed_bits_x1000);
    size_t head = sized(!cfg->tied_embedding, embed);
    size_t norms = (size_t)(2 * cfg->n_layers + 1) * d * sizeof(float);
    size_t rope = (size_t)cfg->max_seq * (size_t)cfg->head_dim * sizeof(float);
    size_t router = sized(cfg->uses_moe, (size_t)cfg->n_layers * d * (size_t)cfg->n_experts * 2);

    if (!cu_try(cudaMalloc(&w->norms, norms)))
        return false;
    keep(w, "model/norms", w->norms, norms);
    if (!cu_try(cudaMalloc(&w->rope, rope)))
        return false;
    keep(w, "model/rope_table", w->rope, rope);
    if (!cu_try(cudaMalloc(&w->router, router)))
        return false;
    keep(w, "model/router", w->router, router);
    if (!cu_try(cudaMalloc(&w->embed, embed)))
        return false;
    keep(w, "model/embed", w->embed, embed);
    if (!cu_try(cudaMalloc(&w->lm_head, head)))
        return false;
    keep(w, "model/lm_head", w->lm_head, head);
    return true;
}

struct model_weights *weights_load(struct engine *eng, const struct engine_config *cfg)
{
    struct model_weights *w = calloc(1, sizeof *w);
    bool ok = w != NULL;
    if (!ok)
        return NULL;
    w->cfg = cfg;
    for (int l = 0; ok && l < cfg->n_layers; l++)
        ok = load_layer(w, l) && load_experts(w, l);
    ok = ok && load_globals(w);
    if (!ok) {
        weights_unload(w);
        return NULL;
    }
    weights_stage(eng, w);
    return w;
}

static void drop(void **p)
{
    /* A tensor whose partner was refused was never watched. */
    buf_free(p);
}

void weights_unload(struct model_weights *w)
{
    if (w == NULL)
        return;
    drop(&w->lm_head);
    drop(&w->embed);
    drop(&w->router);
    drop(&w->rope);
    drop(&w->norms);
    for (int l = w->cfg->n_layers - 1; l >= 0; l--) {
        drop(&w->expert_down[l]);
        drop(&w->expert_up[l]);
        drop(&w->expert_gate[l]);
        for (int t = W_LAYER_TENSORS - 1; t >= 0; t--)
            drop(&w->layer[l][t]);
    }
    free(w);
}

const void *weights_tensor(const struct model_weights *w, int layer, enum layer_tensor t)
{
    const void *p = w->layer[layer % w->cfg->n_layers][t];
    return p != NULL ? p : w->layer[0][t];
}
