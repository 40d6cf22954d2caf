/* What sites of a plan need so that other runs fit: the excesses of their verdicts as room (planner/room.h) or another discipline, each a line of a
 * rules file. A plan made with these lines of the same runs has that room; where sites have moved because of it, another replay may ask for more.
 * A tn_needs owns its array; its indices are into the plan. One thread. */
#ifndef TENURE_PLANNER_NEEDS_H
#define TENURE_PLANNER_NEEDS_H

#include <stdio.h>

#include "planner/verify.h"

typedef struct tn_need {
    uint32_t section, row;
    tn_room room;             /* with what the plan's row has already */
    tn_discipline discipline; /* that serves it better than its own; TN_D_COUNT: its own will do */
    uint64_t excesses;
} tn_need;

typedef struct tn_needs { tn_need *at; size_t count; } tn_needs; /* all zero: none; by section and row */

/* Joins what one run needs to it. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_needs_join(tn_needs *needs, const tn_plan *plan, const tn_verdict *verdict);
void tn_needs_free(tn_needs *needs);

/* A rule a line, each with its site in words behind a '#'. */
void tn_needs_print(const tn_needs *needs, const tn_plan *plan, FILE *out);

#endif
