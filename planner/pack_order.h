/* The orders in which the greedy members place buffers. */
#ifndef TENURE_PLANNER_PACK_ORDER_H
#define TENURE_PLANNER_PACK_ORDER_H

#include "planner/pack_problem.h"

/* A key for each buffer: the higher it is, the earlier the buffer; equal keys by content. */
typedef struct pack_keyed {
    unsigned __int128 key;
    uint32_t i;
} pack_keyed;

/* Sorts keys[0 .. n) and writes the buffers into order[0 .. n). */
void pack_sort_keyed(pack_keyed *keys, uint32_t n, uint32_t *order);

/* Fills order[0 .. n) for one of the greedy members; false without memory. */
bool pack_order(const pack_problem *p, tn_pack_member member, uint32_t *order);

/* peak[i]: the highest load of any section that buffer i is in. */
bool pack_peaks(const pack_problem *p, uint64_t *peak);

#endif
