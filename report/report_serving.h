/* What the recorded processes asked of the driver while they served, by site. Kept by a watcher of the replay; owned by the report.
 * The rules are phaseguard's (phaseguard/serving.h). One thread. */
#ifndef TENURE_REPORT_REPORT_SERVING_H
#define TENURE_REPORT_REPORT_SERVING_H

#include "phaseguard/serving.h"
#include "report/report_watch.h"

typedef struct tn_serving {
    tn_serving_counts total;
    tn_serving_counts *sites;   /* [report->site_count] */
    size_t processes_served;    /* that were in Serving at some time */
    int charges_read;           /* the journals hold readings around calls, so growth can be known */
    struct tn_serving_process *processes;
} tn_serving;

extern const tn_watcher tn_serving_watcher;

/* Indices of sites that counted anything, those with the most repeated allocations first; free it. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_serving_order(const tn_report *report, uint32_t **out, size_t *count);
/* Allocations of a site that were not its first use. */
static inline uint64_t tn_serving_repeated(const tn_serving_counts *c)
{
    return c->driver_allocations - c->first_uses;
}

#endif
