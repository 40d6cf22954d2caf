#include "exec/exec.h"

#include <stdio.h>
#include <stdlib.h>

#include "memory/vram_allocator.h"

static struct {
    void *hidden;
    void *residual;
    void *normed;
    void *logits;
    void *shared;
    void *decode;
} ws;

static size_t max2(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The parts of a layer never run at the same time, so they share one region. */
static size_t shared_bytes(const struct engine_config *cfg, size_t tokens)
{
    size_t attn = tokens * (size_t)(cfg->n_heads + 2 * cfg->kv_heads) * (size_t)cfg->head_dim * 2;
    size_t ffn = tokens * (size_t)cfg->d_ff * 2 * 2;
    size_t moe = tokens * (size_t)cfg->top_k * (size_t)(cfg->expert_ff * 2 + cfg->d_model) * 2;
    return round_up(max2(attn, max2(ffn, moe)), 256);
}

static void require(const void *p, const char *what)
{
    if (p != NULL)
        return;
    fprintf(stderr, "engine: no device memory for the %s\n", what);
    exit(3);
}

void workspace_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t act = (size_t)cfg->chunk * (size_t)cfg->d_model * 2;
    size_t logits = (size_t)cfg->max_batch * (size_t)cfg->vocab * sizeof(float);

    ws.hidden = vram_alloc(act, "exec/hidden", 0);
    ws.residual = vram_alloc(act, "exec/residual", 0);
    ws.normed = vram_alloc(act, "exec/normed", 0);
    ws.logits = vram_alloc(logits, "exec/logits", 0);
    ws.shared = vram_alloc(shared_bytes(cfg, (size_t)cfg->chunk), "exec/shared_workspace", VRAM_FORCE);
    ws.decode = vram_alloc(shared_bytes(cfg, (size_t)cfg->max_batch), "exec/decode_workspace", 0);
    require(ws.hidden, "hidden state");
    require(ws.residual, "residual");
    require(ws.normed, "normed state");
    require(ws.logits, "logits");
    require(ws.shared, "shared workspace");
    require(ws.decode, "decode workspace");
}

void workspace_release(void)
{
    vram_free(&ws.decode);
    vram_free(&ws.shared);
    vram_free(&ws.logits);
    vram_free(&ws.normed);
    vram_free(&ws.residual);
    vram_free(&ws.hidden);
}

void *workspace_hidden(void)
{
    return ws.hidden;
}

void *workspace_residual(void)
{
    return ws.residual;
}

void *workspace_logits(void)
{
    return ws.logits;
}

void *workspace_shared(void)
{
    return ws.shared;
}

void *workspace_decode(void)
{
    return ws.decode;
}
