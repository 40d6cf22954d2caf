/* The run is replayed from its journals, as tenure verify does it. */
#define _GNU_SOURCE
#include "cli/record_shadow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "planner/gap.h"
#include "planner/plan_text.h"
#include "planner/verify.h"

static void write_shadow(const tn_plan *plan, const tn_trace *run, const tn_verdict *v, const char *folder, int quiet)
{
    char *path = NULL;
    FILE *out = asprintf(&path, "%s/shadow.txt", folder) < 0 ? NULL : fopen(path, "wxe");
    if (!out) {
        cli_warn("record", "%s/shadow.txt cannot be written: %s", folder, strerror(errno));
        free(path);
        return;
    }
    size_t differ = tn_shadow_print(v, plan, out);
    tn_verdict_print(v, plan, run, SIZE_MAX, out);
    int failed = ferror(out); /* fclose() tells of the last bytes alone */
    if (fclose(out) != 0 || failed)
        cli_warn("record", "%s cannot be written: %s", path, strerror(errno));
    else if (!quiet && (differ || v->excesses))
        cli_warn("record", "%zu sites differ from the plan and %llu requests would have found no room: see %s", differ,
                 (unsigned long long)v->excesses, path);
    free(path);
}

void tn_record_shadow(const tn_plan *plan, const char *folder, int quiet)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *run;
    tn_verdict verdict;
    tn_error error = tn_trace_open(&folder, 1, &run, message);
    if (error != TN_OK) {
        cli_warn("record", "the run cannot be compared with the plan: %s", message);
        return;
    }
    tn_trace_add_gap(run, plan->gap);
    if (tn_verify(plan, run, NULL, NULL, &verdict) == TN_OK) {
        write_shadow(plan, run, &verdict, folder, quiet);
        tn_verdict_free(&verdict);
    } else {
        cli_warn("record", "the run cannot be compared with the plan: no memory left");
    }
    tn_trace_free(run);
}
