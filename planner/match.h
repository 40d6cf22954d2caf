/* Which of a plan's rows a run's sites are. By key where the program is the same; after a rebuild by modules and functions, for sites whose keys
 * are on one side only. What is left is listed on both sides. A tn_match owns its arrays. */
#ifndef TENURE_PLANNER_MATCH_H
#define TENURE_PLANNER_MATCH_H

#include "planner/plan_make.h"

typedef struct tn_match {
    uint32_t *row_of;      /* by unit of the run's section: index of the plan's row, or TN_TRACE_NONE */
    uint64_t by_key, by_name; /* units matched */
    uint32_t *plan_only; size_t plan_only_count; /* rows that no unit is */
    uint32_t *run_only; size_t run_only_count;   /* units without a row */
} tn_match;

/* The plan's section for a run's: the same build-id, script and device, else the same name, script and device; NULL. */
const tn_plan_section *tn_match_section(const tn_plan *plan, const tn_section *run);

/* `namer` (NULL: keys alone decide) is asked for the frames of units whose keys the plan does not have. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_match_make(const tn_plan_section *plan, const tn_section *run, tn_plan_namer namer, void *user, tn_match *out);
void tn_match_free(tn_match *m);

#endif
