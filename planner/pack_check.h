/* The validator of placements. It shares no code with the packer and none of its data but the buffers themselves, so
 * that one mistake cannot be in both. Reads its arguments only; any number of threads may check at once. */
#ifndef TENURE_PLANNER_PACK_CHECK_H
#define TENURE_PLANNER_PACK_CHECK_H

#include "planner/pack.h"

typedef enum tn_pack_verdict {
    TN_PACK_HOLDS = 0,
    TN_PACK_OVERLAP,    /* a and b share an address while both are alive */
    TN_PACK_MISALIGNED, /* a's offset is no multiple of its alignment */
    TN_PACK_TOO_HIGH,   /* a ends above the capacity */
    TN_PACK_UNCHECKED   /* no host memory was left for the check */
} tn_pack_verdict;

/* Indexes of the buffers that are at fault; b only for an overlap. */
typedef struct tn_pack_fault {
    size_t a, b;
} tn_pack_fault;

/* Checks offsets[0 .. count) against lifetimes with their gaps, alignments and the capacity (bytes, UINT64_MAX for none).
 * Of several faults it names one. The buffers must be ones that tn_pack() accepts. */
tn_pack_verdict tn_pack_check(const tn_pack_buffer *buffers, size_t count, const uint64_t *offsets, uint64_t capacity,
                              tn_pack_fault *fault) __attribute__((warn_unused_result));

/* The same, with the caller's conflicts in place of lifetimes. */
tn_pack_verdict tn_pack_check_graph(const tn_pack_buffer *buffers, size_t count, const tn_pack_conflict *conflicts,
                                    size_t conflict_count, const uint64_t *offsets, uint64_t capacity,
                                    tn_pack_fault *fault) __attribute__((warn_unused_result));

#endif
