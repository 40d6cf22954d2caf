/* Random demands, and demands as files. A maker's state is its caller's; the same seed gives the same demand. */
#ifndef TENURE_TESTS_PLANNER_DEMAND_MAKER_H
#define TENURE_TESTS_PLANNER_DEMAND_MAKER_H

#include <stdio.h>

#include "planner/demand.h"

/* The next number of a generator; the state must not be 0. */
uint64_t maker_next(uint64_t *state);
static inline uint64_t maker_below(uint64_t *state, uint64_t n) { return maker_next(state) % n; }

/* A demand that the reader takes: of every size from a toy's to a rack's, with any features. Its budget is TN_DEMAND_UNSET. */
void maker_demand(uint64_t *state, tn_demand *out);

/* The demand as a file: sections, keys in them and the spelling of sizes in an order that `state` chooses, defaults left out or not.
 * Reading it gives the same demand. */
void maker_write(const tn_demand *demand, uint64_t *state, FILE *out);

#endif
