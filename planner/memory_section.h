/* A section of a plan, made from runs, as the lines of a memory plan. No state; any thread. */
#ifndef TENURE_PLANNER_MEMORY_SECTION_H
#define TENURE_PLANNER_MEMORY_SECTION_H

#include "planner/memory.h"
#include "planner/plan.h"

/* Charges as measured, what stays with the driver, and the device's tiers; they add up to the section's total. `pool` takes the sites
 * out that the sizing query sizes (the engine's own KV pool, as large as it was in the record), so that tn_memory_plan_around can put
 * another in their place: a site that shares its addresses with others stays in. There is no KV pool and no budget in it. False with the
 * reason in `where`: figures beyond 64 bits, more lines than there is room for, or `pool` where no query sizes anything. */
bool tn_memory_of_section(const tn_plan_section *section, bool pool, tn_memory_input *out, char where[TN_MEMORY_NAME]);

#endif
