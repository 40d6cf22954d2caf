/* Whether the processes that wrote a run's journals are still there. Asks this machine's process table, since a process
 * that was killed or left by _exit says nothing in its journal. Once ended, always ended: only the report of a run that is
 * still going on can change. One thread, on a report whose journals are open. */
#ifndef TENURE_REPORT_REPORT_ALIVE_H
#define TENURE_REPORT_REPORT_ALIVE_H

#include "report/report_model.h"

/* Sets tn_process.ended of every process: it ran its exit handlers; or its boot is not this machine's present one; or no
 * process here has its number and is as old; or it has become another program (exec), which has a journal of its own. */
void tn_alive_mark(tn_report *report);

#endif
