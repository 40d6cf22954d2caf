/* A census, what an allowlist makes of it, and what runs made of it, as text or JSON. Nothing is kept; sizes in JSON are integers. */
#ifndef TENURE_CENSUS_PRINT_H
#define TENURE_CENSUS_PRINT_H

#include <stdio.h>

#include "census/census.h"
#include "census/census_allowlist.h"
#include "census/census_runs.h"

typedef struct tn_census_view {
    const tn_census *census;
    const char *allowlist;        /* its path; NULL = none was asked for */
    const tn_finding *findings;
    size_t finding_count;
    const tn_runs *runs;          /* NULL = none were asked for */
    int stats, list;              /* text only: the tables by folder and file; each call on a line of its own */
} tn_census_view;

/* 0, or -1 where `out` failed or no memory was left. */
int tn_census_text(const tn_census_view *view, FILE *out);
int tn_census_json(const tn_census_view *view, FILE *out);

#endif
