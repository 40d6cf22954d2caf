/* Names for the sites of a trace, from the modules' files on this machine. A plan_names owns what it has looked up and borrows the trace. */
#ifndef TENURE_CLI_PLAN_NAMES_H
#define TENURE_CLI_PLAN_NAMES_H

#include "planner/plan_make.h"
#include "report/report_symbol.h"

typedef struct plan_names plan_names;

/* NULL: no memory left. Every frame of the trace is looked up with the first that is asked for. */
plan_names *plan_names_new(const tn_trace *trace, const tn_symbol_options *options);
void plan_names_free(plan_names *names);

/* A tn_plan_namer's work: appends the site's frames to the row. */
void plan_names_fill(plan_names *names, tn_plan *plan, uint32_t site, tn_plan_row *row);
/* How many frames of what was asked for were not reached in the time given: with some the names, and so the plan, could differ next time. */
size_t plan_names_cut_short(const plan_names *names);

#endif
