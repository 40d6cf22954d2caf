/* The facts about the run as a whole, from run.json where `tenure record` left one, else from the journals.
 * Strings point into the report. */
#ifndef TENURE_REPORT_REPORT_RUN_H
#define TENURE_REPORT_REPORT_RUN_H

#include "report/report_json_text.h"
#include "report/report_model.h"

typedef struct tn_run {
    const char *host;
    const char *cwd;           /* NULL = unknown */
    uint64_t start_ns;         /* CLOCK_REALTIME */
    uint64_t duration_ns;
    uint32_t driver_version, runtime_version; /* 0 = not seen */
    int has_status, status;    /* exit status of the command, where it is known */
    int has_signal, signal;
} tn_run;

void tn_run_collect(const tn_report *report, tn_run *out);
/* The command as one line, arguments with blanks in quotes; free it. NULL when no memory is left. */
char *tn_run_command_text(const tn_report *report);
/* A process's arguments (NUL-separated in its header) as a JSON array; of the command for NULL. NULL when no memory is left. */
json_t *tn_run_command_json(const tn_report *report, const tn_journal_header *header);

#endif
