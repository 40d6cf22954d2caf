/* What a plan must be, worked out a second time and otherwise: from the demand by the formulas of docs/DEMAND.md in 128 bits. No state. */
#ifndef TENURE_TESTS_PLANNER_MEMORY_CHECK_H
#define TENURE_TESTS_PLANNER_MEMORY_CHECK_H

#include "planner/memory.h"

typedef unsigned __int128 wide;

typedef struct memory_need {
    wide parts[TN_PARTS]; /* ROUNDING and KV: 0 */
    wide fixed;           /* all of them, each tier rounded up */
    wide block, sequence_blocks, wanted, floor;
    wide least;           /* fixed and the floor of the pool */
} memory_need;

memory_need memory_need_of(const tn_demand *demand);

/* NULL where `plan` is what the demand and the budget ask for, else what is wrong with it. */
const char *memory_check(const tn_demand *demand, uint64_t budget, const tn_memory_plan *plan);

#endif
