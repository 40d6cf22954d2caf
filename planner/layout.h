/* Packed slots: what a set of sites ever had alive at once, laid out in one region so that slots share addresses where no instance saw both
 * alive. A slot is (site, size class, ordinal); a request goes to the smallest class of its site that holds it, at the lowest ordinal that is
 * free. The caller owns the layout; the same section gives the same layout. */
#ifndef TENURE_PLANNER_LAYOUT_H
#define TENURE_PLANNER_LAYOUT_H

#include "planner/section.h"

/* More than so many are not laid out together: TN_E_LIMIT. */
#define TN_LAYOUT_SLOTS_MAX 2048u

typedef struct tn_slot {
    uint32_t unit;
    uint32_t size_class, ordinal; /* both from 0 */
    uint64_t bytes;               /* the same for all of a class; a multiple of 512 */
    uint64_t alignment, offset;
} tn_slot;

typedef struct tn_layout {
    tn_slot *slots; size_t slot_count; /* by unit, size class, ordinal */
    uint64_t capacity;
    uint64_t lower_bound;     /* no layout of these slots is lower */
    uint64_t live_peak;       /* of the blocks, at native alignment, until clean */
    uint64_t live_exact;      /* the same with sizes rounded to 512 B */
    uint64_t with_waits;      /* the capacity if every block were waited for at its free */
    uint32_t classes_an_octave; /* how fine the size classes are; or TN_CLASSES_* */
    uint64_t hand_outs;       /* blocks placed, over all instances */
    uint64_t shared;          /* of these, on an address that another site's slot had in between */
    uint64_t nearest;         /* the fewest hand-outs between the end of a block and the next use of its address by another site; 0: never */
} tn_layout;

typedef struct tn_layout_options {
    uint64_t steps;           /* of the search, planner/pack.h; 0: none but the greedy ones */
    uint32_t classes_an_octave; /* 1 to 64, TN_CLASSES_*; 0: whichever is best */
    uint32_t headroom;        /* percent: sites that vary get slots of one size, their largest request and so much more; 0: slots as seen */
} tn_layout_options;

/* Of the units with chosen[unit] != 0, which are of one family. TN_E_NOMEM, TN_E_LIMIT. */
TN_MUST_USE tn_error tn_layout_make(const tn_section *s, const uint8_t *chosen, const tn_layout_options *options, tn_layout *out);
void tn_layout_free(tn_layout *l);

/* Its capacity, quickly and with `per_octave` size classes an octave: no better than tn_layout_make's. */
TN_MUST_USE tn_error tn_layout_estimate(const tn_section *s, const uint8_t *chosen, uint32_t per_octave, uint64_t *capacity);

#endif
