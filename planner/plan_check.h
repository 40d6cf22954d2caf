/* Is a plan sound in itself? Separate from the planner, which it shares nothing with but the plan's own structure: run over every plan that is
 * made or read, and once more by whoever serves from it. No state; any thread. */
#ifndef TENURE_PLANNER_PLAN_CHECK_H
#define TENURE_PLANNER_PLAN_CHECK_H

#include "planner/plan.h"

#define TN_PLAN_CHECK_MESSAGE 512

/* TN_OK; TN_E_FORMAT with one sentence that says where and what: order and uniqueness of rows, what fits which family, capacities that cover
 * what is in them, offsets inside them and aligned, slots of one class apart, no held site that shares, a total that adds up. TN_E_NOMEM. Its own memory is
 * from the hook, else malloc's. */
TN_MUST_USE tn_error tn_plan_check_in(const tn_plan *plan, const tn_metadata *memory, char message[TN_PLAN_CHECK_MESSAGE]);
TN_MUST_USE tn_error tn_plan_check(const tn_plan *plan, char message[TN_PLAN_CHECK_MESSAGE]);

#endif
