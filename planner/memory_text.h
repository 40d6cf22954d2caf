/* A memory plan for people and for programs. Both are functions of the plan alone, to the byte. */
#ifndef TENURE_PLANNER_MEMORY_TEXT_H
#define TENURE_PLANNER_MEMORY_TEXT_H

#include <jansson.h>
#include <stdio.h>

#include "planner/memory.h"

/* The table, in MiB, in tenths of them where a figure is not whole; shown lines add up to the shown total. Of a plan that does not fit, what
 * is over, the levers, and what would fit. 0, or -1 when `out` failed. */
int tn_memory_text(const tn_memory_plan *plan, FILE *out);

/* The same as a JSON object with its keys in a stable order, sizes in bytes as integers; NULL where host memory ran out. The caller owns
 * the reference. */
json_t *tn_memory_json(const tn_memory_plan *plan);

/* "context", "t1", "kv" and so on, as in the JSON. */
const char *tn_memory_part_name(tn_memory_part part);

#endif
