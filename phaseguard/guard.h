/* The guard in a recorded process: counts what it asks of the driver while it serves, by site and by tier, and says which site deserves
 * a warning. A tn_guard belongs to the process; its tables are anonymous mappings that a forked child finds empty. Any thread may
 * note events at any time, without a lock; a call from a signal handler inside a hook too. */
#ifndef TENURE_PHASEGUARD_GUARD_H
#define TENURE_PHASEGUARD_GUARD_H

#include "phaseguard/phase.h"
#include "phaseguard/serving.h"

/* Refuse and abort are for those who can answer in the driver's place: where a plan serves. They warn as well. */
typedef enum tn_guard_mode { TN_GUARD_COUNT = 0, TN_GUARD_WARN, TN_GUARD_REFUSE, TN_GUARD_ABORT } tn_guard_mode;

/* Tier 0 is native, memory that the driver places; in a record nothing is anywhere else. */
#define TN_GUARD_TIERS 8u
#define TN_GUARD_PAGES 4096u
#define TN_GUARD_PAGE_SITES 4096u /* together the ids that a journal can have */

typedef struct tn_guard_site {
    tn_serving_counts counts; /* while Serving; atomic */
    uint32_t seen;            /* it has allocated, in any phase; atomic */
    uint32_t warned;
} tn_guard_site;

typedef struct tn_guard {
    tn_phase_state phase;
    tn_guard_mode mode;
    tn_serving_counts tier[TN_GUARD_TIERS]; /* atomic */
    uint64_t sites_lost;                    /* events whose site found no memory for its counts */
    tn_guard_site *page[TN_GUARD_PAGES];    /* atomic */
} tn_guard;

typedef struct tn_guard_noted {
    tn_serving_what what;
    int repeated; /* counted while Serving, and neither the first use of its site nor a retry */
    int warn;     /* mode warn or stricter, and this site's first counted allocation while Serving */
} tn_guard_noted;

/* Notes one event of a thread whose state is t. */
tn_guard_noted tn_guard_note(tn_guard *g, tn_serving_thread *t, const tn_event *e, unsigned tier);
/* Notes an allocation that a tier has answered: later ones of its site are not its first. Such calls are in the journal and counted nowhere else,
 * for a counter would be shared by all threads that are served. */
void tn_guard_seen(tn_guard *g, uint32_t site) __attribute__((hot));
/* The counts of a site; zeros where it has none. */
tn_serving_counts tn_guard_site_counts(const tn_guard *g, uint32_t site);
/* Of one tier, or of all of them together for TN_GUARD_TIERS. */
tn_serving_counts tn_guard_tier_counts(const tn_guard *g, unsigned tier);

#endif
