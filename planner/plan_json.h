/* Plan files: JSON in a fixed order, so that two of them can be compared line by line (docs/PLAN.md). No state; any thread. */
#ifndef TENURE_PLANNER_PLAN_JSON_H
#define TENURE_PLANNER_PLAN_JSON_H

#include <stdio.h>

#include "planner/plan.h"

/* Writes the document. The same plan gives the same bytes. TN_E_IO. */
TN_MUST_USE tn_error tn_plan_write(const tn_plan *plan, FILE *out);

/* Reads a plan file, or its text, and has it checked (plan_check.h). On failure *out is NULL and `message` holds one sentence that names the
 * file and the place in it: TN_E_OPEN, TN_E_FORMAT, TN_E_VERSION, TN_E_NOMEM. `name` stands for the file in messages. */
TN_MUST_USE tn_error tn_plan_read(const char *path, tn_plan **out, char message[TN_PLAN_MESSAGE]);
TN_MUST_USE tn_error tn_plan_parse(const char *text, size_t bytes, const char *name, tn_plan **out, char message[TN_PLAN_MESSAGE]);

#endif
