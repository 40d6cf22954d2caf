/* Bump arenas and stacks, replayed: what is freed on top goes, with what lies freed beneath it. Owned by its user; one thread. */
#ifndef TENURE_PLANNER_BUMP_H
#define TENURE_PLANNER_BUMP_H

#include "planner/section.h"

typedef struct tn_bump { /* all zero: empty; its user frees `blocks` */
    struct tn_bump_block { uint64_t top; uint32_t gone; } *blocks; /* top: the mark before it */
    size_t count, room;
    uint64_t mark, high;
    uint64_t tombstones;  /* frees that were not on top */
} tn_bump;

/* `slot` receives the block's place, for the free. 0: no memory left. */
int tn_bump_take(tn_bump *b, uint64_t bytes, uint64_t alignment, uint32_t *slot);
void tn_bump_free(tn_bump *b, uint32_t slot);

/* One arena for all chosen units, at its highest over all instances. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_bump_capacity(const tn_section *s, const uint8_t *chosen, uint64_t *capacity);

#endif
