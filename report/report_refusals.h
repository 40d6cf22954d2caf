/* Requests that CUDA answered with an error, by site, and what stood in their way: what was live, and what stream-ordered pools
 * may have held idle, which a plain allocation cannot have until the next wait. Kept by a watcher of the replay; owned by the
 * report. One thread. */
#ifndef TENURE_REPORT_REPORT_REFUSALS_H
#define TENURE_REPORT_REPORT_REFUSALS_H

#include "report/report_watch.h"

typedef struct tn_refusal { /* one row of one process */
    uint32_t process, row;
    uint64_t count;
    uint64_t requested;   /* of the largest one; the figures below are of that moment */
    int32_t result;       /* CUDA's error */
    uint64_t live;        /* backed bytes at the place, all processes of the run */
    uint64_t idle;        /* backed bytes freed to the process's stream-ordered pools there and not known to have gone back; at most that */
    int granted_later;    /* the next request of the site was granted: it was tried again */
    uint64_t ns;
} tn_refusal;

typedef struct tn_refusals {
    tn_refusal *each; /* once the replay is over: the largest request first */
    size_t count;
    struct tn_refusals_state *state;
} tn_refusals;

extern const tn_watcher tn_refusals_watcher;

#endif
