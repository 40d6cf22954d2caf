/* The paged KV pool and the sequences that use it.
 *
 * The pool owns the device regions; blocks are ids with a reference count held
 * by sequences and by the prefix cache. The manager is used by the scheduler's
 * thread only. */
#ifndef ENGINE_MEMORY_KV_CACHE_H
#define ENGINE_MEMORY_KV_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "app/engine.h"

#define KV_MAX_SEQS 16
#define KV_MAX_SEQ_BLOCKS 512
#define KV_HOLE (-1)

/* Device side. `n_blocks` was sized by the caller from free memory. */
void kv_cache_init(struct engine *eng, int n_blocks);
void kv_cache_release(void);
size_t kv_block_bytes(const struct engine_config *cfg);
int kv_cache_blocks(void);
int kv_cache_free_blocks(void);

/* Where a block's keys and values lie, for the kernels. */
void *kv_block_keys(int block);
void *kv_block_values(int block);
void *kv_device_table(void);

/* Block ids: -1 if the pool is empty. */
int kv_block_take(void);
void kv_block_ref(int block);
void kv_block_drop(int block);
int kv_block_refs(int block);

/* Sequences. A sequence holds one reference per positional slot; a hole keeps its slot. */
void kv_manager_init(struct engine *eng);
void kv_manager_release(void);
bool kv_seq_grow(int seq, int n_tokens, cudaStream_t stream);
int kv_seq_reuse_prefix(int seq, uint64_t prefix_hash, int n_tokens);
/* Makes room by dropping the least recently used prefix that is not pinned. */
void kv_seq_cache_prefix(int seq, uint64_t prefix_hash, int n_blocks);
/* A pin holds no reference: it only makes eviction pass the prefix over. */
void kv_prefix_pin(uint64_t prefix_hash);
void kv_seq_evict_middle(int seq, int keep_front, int keep_back);
void kv_seq_free(int seq);
int kv_seq_block(int seq, int slot);
int kv_seq_length(int seq);
void *kv_residual_ring(void);
int kv_prefix_hits(void);
int kv_prefix_passed_over(void);
int kv_holes_made(void);

/* Writes the cached prefixes out through pinned staging and loads them back, taking references. */
int kv_prefix_persist(struct engine *eng);
void kv_prefix_drop_all(void);

#endif
