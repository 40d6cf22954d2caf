/* The steps of making a plan that stand in files of their own; for plan_make.c and those who name rows. */
#ifndef TENURE_PLANNER_PLAN_PARTS_H
#define TENURE_PLANNER_PLAN_PARTS_H

#include "planner/plan_make.h"

/* Phases with the most alive in each; native_bytes; graph_execs; instances. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_plan_read_phases(tn_plan *plan, const tn_section *s, tn_plan_section *out);
/* The query that sizes the largest pool, if there is one. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_plan_find_sizing(tn_plan *plan, const tn_section *s, const tn_plan_sizing_option *option, tn_plan_section *out);

/* A hash of the row's modules and functions, inlined ones left out; 0 where no frame's function is known. */
uint64_t tn_plan_coarse_key(const tn_plan_row *row);
/* A module's build-id in hexadecimal, "jit" for anonymous code, "hash:..." where there is none; NULL for no module. */
const char *tn_plan_build_id(tn_plan *plan, const tn_rec_module *module);

#endif
