/* What a person is told of a plan and of a verdict: tables of at most 110 columns. No state; any thread. */
#ifndef TENURE_PLANNER_PLAN_TEXT_H
#define TENURE_PLANNER_PLAN_TEXT_H

#include <stdio.h>

#include "planner/plan_make.h"
#include "planner/verify.h"

/* Each section's tiers, the sum beside the device's live peak and beside what added waits would buy, its charges, and which sites another mix
 * of requests would disturb. */
void tn_plan_print(const tn_plan *plan, FILE *out);
/* What verify says, `top` rows at most. */
void tn_verdict_print(const tn_verdict *verdict, const tn_plan *plan, const tn_trace *run, size_t top, FILE *out);

/* Site by site what was planned and what there really was, those that differ. Returns how many. */
size_t tn_shadow_print(const tn_verdict *verdict, const tn_plan *plan, FILE *out);

/* The row's innermost frame of its own in a few words: "load_weights (load.c:123)", "engine+0x1234", "no stack". Cut at `size`. Returns `out`. */
char *tn_plan_row_words(const tn_plan_row *row, char *out, size_t size);

#endif
