/* The regions of T1. A region is one driver allocation through which requests bump; a free of any T1 block, a change of phase, or the planned
 * number of requests closes it, and the next request opens another. When a region's own blocks are gone it goes back to the driver. */
#ifndef TENURE_PLANNER_REGIONS_H
#define TENURE_PLANNER_REGIONS_H

#include "planner/section.h"

/* What is known by its first request, and planned: how much it holds and after how many requests it closes. */
typedef struct tn_region {
    uint32_t unit;        /* of the first request */
    uint64_t first_bytes; /* of the first request */
    uint64_t capacity;
    uint64_t count;
    uint32_t times;       /* how often it was opened, at most, in one instance */
} tn_region;

typedef struct tn_regions {
    tn_region *at; size_t count; /* by unit, then first bytes */
    uint64_t capacity;    /* of all regions that are there at once, at most in one instance */
    uint64_t live_peak;   /* of the blocks, at native alignment, until freed */
} tn_regions;

/* Clears chosen[unit] of those whose blocks are not unloaded together with others, until the rest is. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_regions_choose(const tn_section *s, uint8_t *chosen);
/* Lists the regions of the chosen units, by the rule that serve follows. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_regions_plan(const tn_section *s, const uint8_t *chosen, tn_regions *out);
void tn_regions_free(tn_regions *r);

/* The listed region for a first request: the one of that site and size, else the largest listed for the site, else NULL. `unit` numbers are the
 * caller's. */
const tn_region *tn_regions_find(const tn_regions *r, uint32_t unit, uint64_t bytes);

/* An instance's T1 as serve keeps it, one request or free at a time. Owned by its user. */
typedef struct tn_region_run {
    const tn_regions *plan;
    struct tn_open_region { uint64_t used, high, capacity, live; const tn_region *planned; uint64_t requests; } *regions;
    size_t region_count;
    uint32_t open;        /* index, or TN_TRACE_NONE */
    uint8_t phase;
    uint64_t held;        /* capacities of those that are there */
    uint64_t held_high;
} tn_region_run;
/* A request of the unit: *region receives where it went, TN_TRACE_NONE: it spills, being `short_by` bytes too large, all of it where no region is
 * listed. 0: no memory left. */
int tn_region_take(tn_region_run *run, uint32_t unit, uint64_t requested, uint64_t alignment, uint8_t phase, uint32_t *region, uint64_t *short_by);
void tn_region_free_block(tn_region_run *run, uint32_t region);
void tn_region_run_end(tn_region_run *run);

#endif
