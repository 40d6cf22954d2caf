/* What a plan made of the program's requests: how many each tier served, what went to the driver and why, and what the tiers held. Kept by a watcher
 * of the replay from the routes that the journals hold with each allocation; owned by the report. One thread. */
#ifndef TENURE_REPORT_REPORT_ROUTING_H
#define TENURE_REPORT_REPORT_ROUTING_H

#include "report/report_watch.h"

typedef struct tn_routing_counts {
    uint64_t served;
    uint64_t spilled;    /* of a planned site, and yet to the driver */
    uint64_t unplanned;  /* of a site that the plan does not name */
    uint64_t native;     /* all others, in processes with a plan: left to the driver by it, or of kinds that no plan places */
    uint64_t waited;     /* served after a wait that was made for it */
    uint64_t causes[TN_ROUTE_CAUSES]; /* of the spilled; [0] is 0 */
} tn_routing_counts;

/* One tier on one place. Bytes as asked for of what it served; of its own memory as the driver backed it. */
typedef struct tn_routing_tier {
    uint64_t served;              /* calls */
    uint64_t live, peak;          /* what is not freed yet, as in a stat */
    uint64_t capacity, arena_peak; /* memory held now, and the most */
    uint64_t left, arena_left;    /* of ended processes; 0 once the replay is over, which adds it to live and capacity */
} tn_routing_tier;

typedef struct tn_routing {
    tn_routing_counts total;      /* granted calls, and spilled ones that the driver refused */
    int planned;                  /* some process had a plan; else all else is 0 */
    size_t planned_sites;         /* sites of which a tier served a call, or that spilled one */
    tn_routing_counts *rows; size_t row_count; /* by index in report->rows; rows beyond had no call */
    uint8_t *row_tiers;           /* [row_count]: bit t: tier t served it */
    tn_routing_tier (*places)[TN_ROUTE_TIERS]; size_t place_count; /* by place, then tier */
    struct tn_routing_process { uint64_t native; uint8_t planned; } *processes;
} tn_routing;

extern const tn_watcher tn_routing_watcher;

/* NULL where the row had no call, or no process a plan. */
const tn_routing_counts *tn_routing_of(const tn_report *report, uint32_t row);
/* "packed", "T1 T2", "spilled", "native", "unplanned": where its calls went, "" where no process had a plan. */
const char *tn_routing_words(const tn_report *report, uint32_t row, char out[64]);
static inline int tn_routing_tier_used(const tn_routing_tier *t) { return t->served || t->arena_peak; }

#endif
