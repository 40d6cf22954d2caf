/* The verdict on a run that served: did it allocate in steady state, and did everything that requests took come back? The report is the
 * caller's; one thread. */
#ifndef TENURE_REPORT_REPORT_SOAK_H
#define TENURE_REPORT_REPORT_SOAK_H

#include <regex.h>
#include <stdio.h>

#include "report/report_model.h"

/* The mark that says that all requests have been answered; without it the end of each process counts. */
#define TN_SOAK_DRAINED "soak: drained"

typedef enum tn_soak_verdict { TN_SOAK_HOLDS = 0, TN_SOAK_FALLS_SHORT = 1, TN_SOAK_INCONCLUSIVE = 3 } tn_soak_verdict;

typedef struct tn_soak_options {
    size_t top;   /* lines of each table */
    int strict;   /* first uses count too, and blocks that they keep */
    const regex_t *drained_on; /* a mark with such a text says so, too; NULL: none */
    int planned;  /* a plan serves it: the criteria of report_soak_plan.h decide, and are printed */
    uint64_t peak_most; /* of a planned one: own bytes of a device; 0: no bound */
    const char *broken; /* why nothing can be concluded, whatever was counted; else NULL */
} tn_soak_options;

/* Whether a mark's text says that all requests have been answered. */
int tn_soak_is_drained(const tn_soak_options *options, const char *mark);

/* Prints the verdict and the sites. Falls short: a site allocated again while serving; or one holds more blocks when the requests are
 * done than at the (last) flip to Serving, but for a block that its first use in Serving keeps; of a planned run, where a criterion does. Inconclusive: no process served, the
 * journals are not complete, or the run was broken off; what was counted until then is printed all the same where it served. */
tn_soak_verdict tn_report_soak(tn_report *report, const tn_soak_options *options, FILE *out);

#endif
