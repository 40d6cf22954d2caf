/* Kernel families and the scratch that each keeps for itself.
 *
 * Every family is a file with statics: an init or a first call that takes the
 * memory, calls that only enqueue work on the given stream, and a release. All
 * of it belongs to the main thread. */
#ifndef ENGINE_COMPUTE_COMPUTE_H
#define ENGINE_COMPUTE_COMPUTE_H

#include "app/engine.h"

/* gemm.c: the matrix library's workspace and the algorithm search. */
void gemm_init(struct engine *eng);
void gemm_batched(void *c, const void *a, const void *b, cudaStream_t stream);
void gemm_bench(const void *a, const void *b, cudaStream_t stream);
void gemm_release(void);

/* gemm_cutlass_sm120.c: fallback products whose workspace grows when it is too small. */
void cutlass_init(struct engine *eng);
void cutlass_gemm(struct engine *eng, void *c, const void *a, const void *b, size_t m, cudaStream_t stream);
void cutlass_report(void);
void cutlass_release(void);

/* gemm_grouped_nvfp4_smallM.c, gemm_grouped_3x_nvfp4.c, gemm_moe_fused.c: products over experts. */
void grouped_small_init(struct engine *eng);
void grouped_small_run(void *c, const void *a, const void *b, cudaStream_t stream);
void grouped_small_release(void);
void grouped_3x_prewarm(struct engine *eng);
void grouped_3x_run(void *c, const void *a, const void *b, cudaStream_t stream);
void grouped_3x_release(void);
void moe_fused_init(struct engine *eng);
void moe_fused_run(struct engine *eng, void *c, const void *a, const void *b, cudaStream_t stream);
void moe_fused_release(void);

/* Attention. */
void attention_cublas_prewarm(struct engine *eng);
void attention_cublas_run(void *out, const void *q, const void *kv, cudaStream_t stream);
void attention_cublas_release(void);
void attention_paged_init(struct engine *eng);
void attention_paged_run(struct engine *eng, void *out, const void *q, int seq, cudaStream_t stream);
void attention_paged_release(void);
void attention_mla_init(struct engine *eng);
void attention_mla_run(struct engine *eng, void *out, const void *latent, cudaStream_t stream);
void attention_mla_release(void);

/* Everything around the products. */
void norm_rope_init(struct engine *eng);
void norm_rope_run(void *out, const void *in, cudaStream_t stream);
void norm_rope_release(void);
void ssm_scan_init(struct engine *eng);
void ssm_scan_run(struct engine *eng, void *out, const void *in, cudaStream_t stream);
void ssm_scan_release(void);
void embedding_init(struct engine *eng);
void embedding_run(void *out, const void *table, cudaStream_t stream);
void embedding_release(void);
void reduce_init(struct engine *eng);
void reduce_softmax(struct engine *eng, void *out, const void *logits, cudaStream_t stream);
void reduce_report(void);
void reduce_release(void);
void logit_ops_init(struct engine *eng);
void logit_ops_run(struct engine *eng, void *logits, cudaStream_t stream);
void logit_ops_report(void);
void logit_ops_release(void);

/* sampling.c: the token that the logits choose; waits for the stream. */
void sampling_init(struct engine *eng);
int sampling_run(struct engine *eng, const void *logits, cudaStream_t stream);
void sampling_release(void);

/* Frees of one family's memory through another family's call, counted by the callers. */
void other_family_note(int async_of_plain, int plain_of_async);
void other_family_report(void);

#endif
