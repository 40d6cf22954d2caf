/* Where the replay stops: `--at`. The state is report->stop; one thread. */
#ifndef TENURE_REPORT_REPORT_AT_H
#define TENURE_REPORT_REPORT_AT_H

#include "report/report_watch.h"

/* After an event has been replayed: 1 where it is the mark or phase that was asked for, and then the replay is over. Marks
 * are numbered over all processes in the order of the replay; the end of a range is none. */
int tn_at_reached(const tn_moment *moment);

#endif
