/* What a run that a plan served must hold while it serves, one criterion a line. The report is the caller's; one thread. */
#ifndef TENURE_REPORT_REPORT_SOAK_PLAN_H
#define TENURE_REPORT_REPORT_SOAK_PLAN_H

#include "report/report_soak.h"

typedef struct tn_soak_blocks { /* alive in the processes that served, tiers' own memory left out */
    int64_t then; /* at the last flip to serving */
    int64_t now;  /* when the requests were done, else at the end */
    int drained;  /* some process has the mark that says when that was */
} tn_soak_blocks;

/* Prints the criteria. Inconclusive where none falls short and one cannot be told. */
tn_soak_verdict tn_soak_plan(const tn_report *report, const tn_soak_options *options, const tn_soak_blocks *blocks, FILE *out);

#endif
