/* What the debugging options of a served run found: how many blocks had a canary and what became of it, and which were written past their end, by the sites
 * of their allocation and free. Kept by a watcher of the replay; owned by the report. One thread. */
#ifndef TENURE_REPORT_REPORT_CHECKS_H
#define TENURE_REPORT_REPORT_CHECKS_H

#include "report/report_watch.h"

typedef struct tn_overwrite { /* blocks of one site that were freed by another, of one process */
    uint32_t process, site, free_site; /* indices in report->sites; free_site TN_NO_INDEX: not freed, found when the process ended */
    uint64_t count;
    uint64_t address, bytes;  /* of the first of them */
    uint64_t first, overwritten; /* the first byte behind its end that was written, from 0, and how many of its canary were */
} tn_overwrite;

typedef struct tn_checks {
    uint64_t guarded, bare;   /* served calls: with a canary; without, where one was asked for */
    uint64_t intact, overwritten, not_done; /* blocks, when freed */
    uint64_t at_exit, at_exit_overwritten;  /* live ones that were looked at when their process ended */
    uint64_t unseen;          /* canaries of which nothing is known: their context or process ended first, or it was killed */
    uint64_t seen;            /* of which something is */
    uint64_t waits, poisoned;
    tn_overwrite *each; size_t count, capacity; /* those with the most blocks first, once the replay is over */
} tn_checks;

extern const tn_watcher tn_checks_watcher;

/* Whether an option was on at all, as far as a run can show. */
int tn_checks_any(const tn_checks *c);

#endif
