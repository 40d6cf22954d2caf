/* What a section's device memory costs beside its blocks, as the runs it was recorded in measured it. A plan_charges owns what it has read. */
#ifndef TENURE_CLI_PLAN_CHARGES_H
#define TENURE_CLI_PLAN_CHARGES_H

#include "planner/plan.h"

typedef struct plan_charges plan_charges;

/* Reads the runs whose journals hold readings of a device; `message` as of tn_report_load. On failure *out is NULL. */
TN_MUST_USE tn_error plan_charges_read(const char *const *runs, size_t count, plan_charges **out, char message[TN_PLAN_MESSAGE]);
void plan_charges_free(plan_charges *charges);
/* A tn_plan_charger's work: of each kind the most that any run had at a phase, a mark or its end. */
void plan_charges_fill(const plan_charges *charges, tn_plan *plan, tn_plan_section *section);

#endif
