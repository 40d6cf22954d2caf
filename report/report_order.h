/* The events of all processes of a run in one order: by time on their common clock, within a process as its reader
 * gives them, and then its end where it has one. A tn_order borrows the report and its readers, which nothing else may move meanwhile; one thread. */
#ifndef TENURE_REPORT_REPORT_ORDER_H
#define TENURE_REPORT_REPORT_ORDER_H

#include "report/report_model.h"

typedef struct tn_order_head { /* the next event of one journal */
    uint64_t ns;
    const tn_event *event;
    uint32_t process, thread;
    int at_end;
} tn_order_head;

typedef struct tn_order {
    tn_report *report;
    tn_order_head *heap;
    size_t count;
    uint64_t first_ns; /* when the run's first process began to record */
    int started;
} tn_order;

/* Rewinds all readers. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_order_begin(tn_order *order, tn_report *report);
/* NULL at the end; else *process is the index of the event's process, *thread its journal's number of the thread, *ns the time since the run's first process began. An event of type TN_EV_NONE, which no reader gives,
 * says that the process has ended: the last of it. A process that still runs has none. */
const tn_event *tn_order_next(tn_order *order, uint32_t *process, uint32_t *thread, uint64_t *ns);
void tn_order_end(tn_order *order);

#endif
