/* The executor: workspaces, weight caches, MoE buffers and the forward pass.
 *
 * Every part is a file-scope singleton made at start-up and released at
 * shutdown; the caches go and come with the model. All of it belongs to the
 * main thread. */
#ifndef ENGINE_EXEC_EXEC_H
#define ENGINE_EXEC_EXEC_H

#include "app/engine.h"
#include "model/model.h"

/* executor_workspace.c: the activations every forward pass shares. */
void workspace_init(struct engine *eng);
void workspace_release(void);
void *workspace_hidden(void);
void *workspace_residual(void);
void *workspace_logits(void);
void *workspace_shared(void);
void *workspace_decode(void);

/* executor_workspace_buffers.c: one buffer per kernel family. */
void workspace_buffers_init(struct engine *eng);
void workspace_buffers_attention(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t stream);
void workspace_buffers_ffn(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t stream);
void workspace_buffers_once(struct engine *eng);
void workspace_buffers_release(void);

/* pre_dequant_*.c: caches of weights in a format that the kernels like better. */
void fp16_cache_build(struct engine *eng, const struct model_weights *w);
void fp16_cache_release(void);
void fp8_cache_build(struct engine *eng, const struct model_weights *w);
void fp8_cache_release(void);
/* Builds layers until `budget` is spent and goes on from there at the next call; the last adds the head. */
void nvfp4_cache_build(struct engine *eng, const struct model_weights *w, size_t budget, bool last);
void nvfp4_cache_release(void);
const void *nvfp4_cache_layer(int layer);
void moe_sf_cache_build(struct engine *eng, const struct model_weights *w);
void moe_sf_cache_release(void);

/* moe_workspace.c, expert_cache.c */
void moe_workspace_init(struct engine *eng);
void moe_workspace_forward(struct engine *eng, const struct model_weights *w, int layer, cudaStream_t stream);
void moe_workspace_release(void);
void expert_cache_init(struct engine *eng);
void expert_cache_touch(struct engine *eng, int expert, cudaStream_t stream);
void expert_cache_release(void);

/* executor_forward.c and its helpers */
void forward_prefill(struct engine *eng, const struct model_weights *w, int seq, int n_tokens);
void forward_decode(struct engine *eng, const struct model_weights *w, int seq);
void forward_release(void);
void attention_prefill(struct engine *eng, const struct model_weights *w, int layer, int n_tokens);
void attention_prefill_report(void);
void attention_prefill_release(void);
void kv_write(struct engine *eng, int seq, int layer, cudaStream_t stream);
void kv_write_release(void);
double perplexity_run(struct engine *eng, const struct model_weights *w);

#endif
