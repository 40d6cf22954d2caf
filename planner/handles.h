/* Sites of handles of physical memory (cuMemCreate): a pool of handles that were made beforehand for each size and set of properties, which all
 * sites that ask for such share, since a handle has no address. The caller owns what it gets. One thread. */
#ifndef TENURE_PLANNER_HANDLES_H
#define TENURE_PLANNER_HANDLES_H

#include "planner/section.h"

#define TN_HANDLE_SIZES_MAX 64u /* of one site: more are left to the driver */

typedef struct tn_handle_class {
    uint64_t bytes;      /* of each */
    uint64_t count;      /* most there at once, until clean, but not above twice the most until released; and those that rules add */
    uint64_t seen;       /* without these */
    uint64_t sites;      /* that asked for such */
    uint32_t detail;     /* TN_VMM_* */
    uint32_t unit;       /* of a count by unit, else 0 */
} tn_handle_class;

/* The sizes and properties of the chosen units' handles, sorted by properties, then size; `by_unit`: each unit's own, sorted by unit, then size. For the
 * caller to free. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_handles_count(const tn_section *s, const uint8_t *chosen, int by_unit, tn_handle_class **out, size_t *count);

/* The pools that the chosen units need, what rules give them included. For the caller to free. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_handles_plan(const tn_section *s, const uint8_t *chosen, tn_handle_class **out, size_t *count);

/* Decides the open units whose memory is handles, and closes them. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_handles_choose(tn_section *s, uint8_t *open, uint8_t *chosen);

#endif
