/* What comes after the greedy members: the search that improves a placement, and the one that proves. Both work on one
 * part of a problem, keep the best placement in the state that they are given and stop when it is as low as `target`
 * or their steps are used up. */
#ifndef TENURE_PLANNER_PACK_SEARCH_H
#define TENURE_PLANNER_PACK_SEARCH_H

#include "planner/pack_fit.h"

typedef struct pack_state {
    const pack_problem *p;
    uint64_t *offsets; /* of the best placement so far */
    uint64_t *trial;   /* n, for attempts */
    uint32_t *order;   /* n: an order whose lowest-hole placement is about as good as the best */
    uint64_t height;   /* units */
    uint64_t bound;    /* units: proved */
    uint64_t target;   /* units: no need to be lower than this */
    uint64_t steps;    /* used so far */
    tn_pack_member winner;
    uint64_t heights[TN_PACK_MEMBER_COUNT]; /* UINT64_MAX where it did not run */
} pack_state;

/* Takes the trial over where it is lower than the best. */
void pack_state_offer(pack_state *s, tn_pack_member member, uint64_t height);

/* All greedy members; `limit` bounds the steps of those that are not cheap. */
tn_pack_error pack_greedy(pack_state *s, uint64_t limit);
/* Places by an order, moves the buffer that went too high forward in it, and again. */
tn_pack_error pack_improve(pack_state *s, uint64_t limit);
/* Asks pack_exact for lower and lower placements. */
tn_pack_error pack_close(pack_state *s, uint64_t limit);

#endif
