/* Stacks of T4: stream-ordered blocks that go in the reverse order of their coming, one stack a stream. Only what every journal shows to be so. */
#ifndef TENURE_PLANNER_STACKS_H
#define TENURE_PLANNER_STACKS_H

#include "planner/section.h"

typedef struct tn_stacks {
    uint64_t capacity;   /* of one stack: the highest mark of any stream */
    uint64_t streams;    /* that had a stack, at most in one instance */
    uint64_t live_peak;  /* of all stacks together, rounded to native alignment */
} tn_stacks;

/* Clears chosen[unit] of those that were freed beneath a block that stayed, or on another stream than they came on, until the rest were not.
 * TN_E_NOMEM. */
TN_MUST_USE tn_error tn_stacks_choose(const tn_section *s, uint8_t *chosen);
TN_MUST_USE tn_error tn_stacks_plan(const tn_section *s, const uint8_t *chosen, tn_stacks *out);

#endif
