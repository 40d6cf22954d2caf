/* The replay's events with a look ahead: what an event will touch is asked of memory some events earlier, since a large run's
 * blocks and rows are in no cache and are met in no order. Changes nothing but time. Owned by the replay; one thread. */
#ifndef TENURE_REPORT_REPORT_AHEAD_H
#define TENURE_REPORT_REPORT_AHEAD_H

#include "report/report_blocks.h"
#include "report/report_order.h"
#include "report/report_watch.h"

#define TN_AHEAD 16u /* events; a power of two */

typedef struct tn_ahead {
    tn_order *order;
    tn_moment ring[TN_AHEAD];
    uint32_t next, end; /* counted on; ring[n % TN_AHEAD] */
    int drained;
} tn_ahead;

/* Start from {.order = ...}. The next event in `now` (report, process, thread, ns, event; row is none); 0 at the end. */
int tn_ahead_next(tn_ahead *ahead, tn_report *report, const tn_blocks *blocks, tn_moment *now);

#endif
