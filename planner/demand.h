/* Declared demand: what an engine will be asked to hold, as a person writes it down before it runs (docs/DEMAND.md). A tn_demand is one
 * flat value without pointers: it is copied by assignment, so that a plan can be tried with a part changed. No state; any thread. */
#ifndef TENURE_PLANNER_DEMAND_H
#define TENURE_PLANNER_DEMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/charge.h"
#include "planner/document.h"

typedef enum tn_demand_error {
    TN_DEMAND_OK = 0,
    TN_DEMAND_FILE,    /* unreadable, or no YAML (document.h) */
    TN_DEMAND_UNKNOWN, /* a key that is none here */
    TN_DEMAND_MISSING, /* a key that must be there */
    TN_DEMAND_VALUE    /* a value of the wrong kind or range, or two that contradict each other */
} tn_demand_error;

typedef enum tn_dtype {
    TN_DTYPE_F32 = 0, TN_DTYPE_F16, TN_DTYPE_BF16, TN_DTYPE_FP8, TN_DTYPE_FP8_E4M3, TN_DTYPE_FP8_E5M2, TN_DTYPE_INT8,
    TN_DTYPE_FP4, TN_DTYPE_INT4, TN_DTYPE_NVFP4, TN_DTYPES
} tn_dtype;

/* Which tier holds an item. */
typedef enum tn_item_tier { TN_ITEM_CACHE = 0 /* T1 */, TN_ITEM_ENGINE /* T2 */, TN_ITEM_POOL /* T3 */, TN_ITEM_SCRATCH /* T4 */,
                            TN_ITEM_TIERS } tn_item_tier;

enum { TN_DEMAND_NAME = 64, TN_DEMAND_ITEMS = 64 };
#define TN_DEMAND_UNSET UINT64_MAX /* not given: its default; of full_sequences: all */

/* Takes the sum of: bytes; per_sequence x max_batch; per_token x step_tokens; per_context_token x max_seq_len;
 * hidden_states x step_tokens x hidden_size x 2; logits x step_tokens x vocab_size x 4. */
typedef struct tn_demand_item {
    char name[TN_DEMAND_NAME];
    tn_item_tier tier;
    bool optional; /* the engine also runs without it */
    uint64_t bytes, per_sequence, per_token, per_context_token, hidden_states, logits;
} tn_demand_item;

typedef struct tn_demand {
    char name[TN_DEMAND_NAME]; /* "": none */
    uint64_t budget;           /* TN_DEMAND_UNSET: none */
    struct { char gpu[TN_DEMAND_NAME], driver[TN_DEMAND_NAME], loading[TN_DEMAND_NAME]; uint64_t granularity; } device;
    struct { uint64_t layers, hidden_size, vocab_size, kv_layers, kv_heads, head_dim, kv_tensors, weights; } model;
    struct { uint64_t max_batch, max_seq_len, step_tokens, full_sequences; } limits;
    struct { tn_dtype dtype; uint64_t block_size, block_overhead; } kv;
    tn_demand_item items[TN_DEMAND_ITEMS];
    size_t item_count;
    tn_charges charges;
    struct { uint64_t execs, bytes_per_exec; } graphs;
    struct { bool enabled; uint64_t weights, buffers, image_tokens; } vision;
    struct { bool enabled; uint64_t draft_tokens, weights, buffers, kv_layers, kv_heads, head_dim; } speculation;
    struct { bool enabled; uint64_t window, layers, step_tokens, kv_heads, head_dim; } sliding_window;
} tn_demand;

/* Reads a demand file. On failure *out is untouched and `message` is one sentence without a full stop that names the file and the place. */
tn_demand_error tn_demand_load(const char *path, tn_demand *out, char message[TN_DOCUMENT_MESSAGE]);
/* The same from memory; `name` stands for the file. */
tn_demand_error tn_demand_parse(const char *name, const void *bytes, size_t length, tn_demand *out, char message[TN_DOCUMENT_MESSAGE]);
tn_demand_error tn_demand_read(const tn_document *document, tn_demand *out, char message[TN_DOCUMENT_MESSAGE]);

/* The i-th key of the file's language as a path ("model.kv_heads"), for tests of the documentation; NULL behind the last. */
const char *tn_demand_key(size_t i);

const char *tn_dtype_name(tn_dtype dtype);
/* The dtype of that name, or TN_DTYPES. */
tn_dtype tn_dtype_find(const char *name);
/* The dtype of half the bits that an engine would go to; TN_DTYPES where there is none. */
tn_dtype tn_dtype_half(tn_dtype dtype);
/* Bytes of one head's vector of `head_dim` elements, scales included; false where they do not fit 64 bits. */
bool tn_dtype_vector_bytes(tn_dtype dtype, uint64_t head_dim, uint64_t *bytes);

#endif
