/* The planner's memory table for a section of a plan. No state; one thread. */
#ifndef TENURE_CLI_PLAN_ARITHMETIC_H
#define TENURE_CLI_PLAN_ARITHMETIC_H

#include <stdio.h>

#include "planner/plan.h"

/* Prints the section's arithmetic beside so many bytes. What cannot be printed is a warning of `command`. */
void tn_plan_arithmetic(const char *command, const tn_plan_section *section, uint64_t budget, FILE *out);

#endif
