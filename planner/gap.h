/* Gaps behind blocks (tenure plan --gap): what a plan is made of, and what is held against it, is the same trace with every block that may be placed so
 * much larger; in the program the tiers are asked for as much more. So no tier has to know of gaps. One thread. */
#ifndef TENURE_PLANNER_GAP_H
#define TENURE_PLANNER_GAP_H

#include "planner/trace.h"

#define TN_GAP_MAX ((uint64_t)1 << 30)

/* Once a trace, before anything is made of it; 0 changes nothing. A block that would be larger than any stays as it is. */
void tn_trace_add_gap(tn_trace *trace, uint64_t gap);

#endif
