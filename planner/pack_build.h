/* The steps by which a problem is built, each filling its own fields (pack_problem.h); for pack_problem.c and
 * pack_parts.c alone. */
#ifndef TENURE_PLANNER_PACK_BUILD_H
#define TENURE_PLANNER_PACK_BUILD_H

#include "planner/pack_problem.h"

/* The arrays that every problem has, zeroed. */
tn_pack_error pack_build_arrays(pack_problem *p, uint32_t n);
/* Pieces and sections from lifetimes. */
tn_pack_error pack_build_sections(pack_problem *p, const tn_pack_buffer *buffers);
/* adj from pieces, where the pairs are few enough. */
tn_pack_error pack_build_conflicts(pack_problem *p);
/* adj from the caller's pairs, lengths (how many conflicts), and cliques as sections with their members. */
tn_pack_error pack_build_graph(pack_problem *p, const tn_pack_conflict *conflicts, size_t count, size_t *culprit);
/* member from pieces, where they are few enough; load from either. */
tn_pack_error pack_build_members(pack_problem *p);
void pack_build_bound(pack_problem *p);

#endif
