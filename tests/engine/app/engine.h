/* The engine handle, the model configuration and the token-size rule.
 *
 * One engine per process, owned by main and passed by pointer; it is filled
 * before any subsystem starts and afterwards only the scheduler changes it.
 * Everything here is used from the main thread; loader threads read the
 * configuration only. */
#ifndef ENGINE_APP_ENGINE_H
#define ENGINE_APP_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* Size of a buffer of a feature that the configuration does not use: enough
 * for one token, so that the feature's code still runs once. */
#define TOKEN_BYTES KIB(4)

/* Shapes and limits of one model configuration; sizes in elements or bytes as named. */
struct engine_config {
    const char *name;
    int n_layers;
    int d_model;
    int n_heads;
    int kv_heads;
    int head_dim;
    int d_ff;
    int vocab;
    int n_experts;          /* 0: a dense model */
    int top_k;
    int expert_ff;
    int max_batch;
    int max_seq;
    int chunk;              /* prefill tokens per step */
    int kv_block_tokens;
    int kv_elem_bytes;
    int layer_bits_x1000;   /* stored bits per layer weight, times 1000 */
    int embed_bits_x1000;   /* stored bits per embedding weight, times 1000 */
    bool tied_embedding;
    bool uses_moe;
    bool uses_vision;
    bool uses_draft;
    bool uses_ssm;
    bool uses_mla;
    bool uses_fp16_cache;
    bool uses_fp8_cache;
    bool uses_nvfp4_cache;
    size_t fp16_cache_budget;
    size_t early_cache_bytes;   /* part of the decode cache built before the KV pool */
    size_t expert_cache_bytes;
    size_t balloon_bytes;
    size_t kv_reserve;          /* bytes the KV sizing leaves for later phases */
    size_t first_forward_cap;   /* upper bound of the lazy overlay of the first forward */
    size_t vram_budget;         /* the sizing view that the tracked allocator checks first */
};

struct engine {
    const struct engine_config *cfg;
    cudaStream_t compute;
    cudaStream_t prefill;
    cudaStream_t copy;
    uint64_t rng;
    int n_requests;
    bool serving;
    bool instrumented; /* tells a recorder its phases and marks */
    size_t free_at_start;
};

/* The small model that drafts for speculation; of token size where speculation is not used. */
const struct engine_config *config_draft(bool used);

/* What is queued on `then` from here on runs after what `first` holds now. */
void stream_order(cudaStream_t first, cudaStream_t then);

/* Finds a configuration by name; NULL if there is none. */
const struct engine_config *config_find(const char *name);

/* Bytes of one layer's weights as stored, without experts. */
size_t config_layer_elems(const struct engine_config *cfg);

/* The token-size rule: `bytes` where the configuration uses the feature, else TOKEN_BYTES. */
size_t sized(bool used, size_t bytes);

/* Rounds up to the next multiple of `step`. */
size_t round_up(size_t bytes, size_t step);

/* Deterministic generator of the whole run. */
uint64_t engine_rand(struct engine *eng);

#endif
