/* Each site's own history, replayed under each discipline: what it would take if it had that memory to itself. */
#ifndef TENURE_PLANNER_SIMULATE_H
#define TENURE_PLANNER_SIMULATE_H

#include "planner/section.h"

/* Fills in what was seen of the section's units and their figures, all but slot_bytes and at_peak. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_simulate_units(tn_section *s);

/* The sum of what is alive of the chosen units, at native alignment, at its highest over all instances. `clean`: until its memory may serve
 * another. chosen[unit]. */
uint64_t tn_live_peak(const tn_section *s, const uint8_t *chosen, int clean);

#endif
