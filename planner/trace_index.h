/* A table from 64-bit numbers (addresses, handles) to indices, for what is alive at one moment of a replay. Owned by its user; one thread. */
#ifndef TENURE_PLANNER_TRACE_INDEX_H
#define TENURE_PLANNER_TRACE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/tn_error.h"

#define TN_INDEX_NONE UINT32_MAX

typedef struct tn_index_slot { uint64_t key; uint32_t value; uint32_t used; } tn_index_slot;
typedef struct tn_index { /* all zero: empty */
    tn_index_slot *slots;
    size_t mask, count;
} tn_index;

void tn_index_free(tn_index *t);
/* TN_INDEX_NONE where there is no such key. */
uint32_t tn_index_find(const tn_index *t, uint64_t key);
/* Adds a key, or gives it a new value. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_index_set(tn_index *t, uint64_t key, uint32_t value);
/* Its value, taken out; TN_INDEX_NONE where there is no such key. */
uint32_t tn_index_take(tn_index *t, uint64_t key);

#endif
