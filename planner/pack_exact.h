/* Is there a placement no higher than this? A complete depth-first search over placements in which every buffer stands
 * on the floor or on a neighbour, bottom up. Owns its memory from new to free; one thread at a time. */
#ifndef TENURE_PLANNER_PACK_EXACT_H
#define TENURE_PLANNER_PACK_EXACT_H

#include "planner/pack_problem.h"

typedef struct pack_exact pack_exact;

typedef enum pack_answer {
    PACK_FOUND,   /* offsets hold a placement */
    PACK_NEVER,   /* there is none: proved */
    PACK_UNKNOWN, /* the steps ran out */
    PACK_NO_MEMORY
} pack_answer;

/* In which order the buffers that could be next are tried. */
typedef enum pack_preference {
    PACK_LARGE_FIRST,
    PACK_AREA_FIRST,
    PACK_LONG_FIRST,
    PACK_LOW_THEN_LARGE,
    PACK_LOW_THEN_AREA,
    PACK_LOW_THEN_LONG,
    PACK_PREFERENCES
} pack_preference;

/* Whether the search can take such a problem: its conflicts and memberships are listed, and it is not too large. */
bool pack_exact_fits(const pack_problem *p);
pack_exact *pack_exact_new(const pack_problem *p);
void pack_exact_free(pack_exact *x);

/* Looks for a placement no higher than capacity. A round above 0 disturbs the preference, each in its own way: a search
 * that went wrong early is better begun anew than continued. At most `limit` steps (neighbours and memberships read), added to *steps. */
pack_answer pack_exact_run(pack_exact *x, uint64_t capacity, pack_preference preference, uint32_t round,
                           uint64_t limit, uint64_t *offsets, uint64_t *steps);

#endif
