/* A packing problem made ready: buffers in an order that only their contents decide, sizes in units of the common
 * alignment, lifetimes as ranges of sections. A section is a set of buffers that are alive together and a subset of no other such set;
 * two buffers conflict exactly where they share one. Owned by whoever built it; read-only afterwards. */
#ifndef TENURE_PLANNER_PACK_PROBLEM_H
#define TENURE_PLANNER_PACK_PROBLEM_H

#include "planner/pack.h"

#define PACK_NONE UINT32_MAX

/* Sections [from, to). */
typedef struct pack_piece {
    uint32_t from, to;
} pack_piece;

typedef struct pack_problem {
    uint32_t n;
    uint64_t unit;       /* bytes: every alignment is a multiple of it */
    uint64_t *size;      /* units, rounded up */
    uint64_t *align;     /* units, >= 1 */
    uint64_t *hint;      /* units; UINT64_MAX for none */
    uint64_t *birth;     /* the caller's lower */
    uint64_t *length;    /* how long alive, in the caller's clock */
    uint32_t *name;      /* the caller's index (of the whole problem's arrays) */
    bool graph;          /* conflicts came from the caller: no pieces, and sections are cliques that were found */
    size_t *piece_at;    /* n + 1; pieces of buffer i */
    pack_piece *piece;   /* sorted; empty for a buffer that conflicts with nothing */
    uint32_t sections;
    uint64_t *load;      /* units, per section */
    size_t *adj_at;      /* n + 1; NULL where the conflicts are too many to list */
    uint32_t *adj;       /* sorted */
    size_t *member_at;   /* per buffer its sections, listed; only in small problems and graphs, else NULL */
    uint32_t *member;
    uint64_t bound;      /* units: no placement is lower */
} pack_problem;

/* Conflicts are listed up to this many pairs, memberships up to this many entries. */
enum { PACK_MAX_LISTED = 1 << 21, PACK_MAX_MEMBERS = 1 << 22 };

tn_pack_error pack_problem_build(pack_problem *p, const tn_pack_buffer *buffers, size_t count, bool graph,
                                 const tn_pack_conflict *conflicts, size_t conflict_count, size_t *culprit);
void pack_problem_free(pack_problem *p);

/* Numbers parts that have no conflict with one another in part[0 .. n); returns how many, or PACK_NONE without memory. */
uint32_t pack_problem_parts(const pack_problem *p, uint32_t *part);
/* The sub-problem of `count` buffers (ascending indexes); its names are those indexes. */
tn_pack_error pack_problem_extract(const pack_problem *p, const uint32_t *which, uint32_t count, pack_problem *sub);

/* offset, rounded up to a multiple of align. Sums stay below 2^63 by the check on all sizes. */
static inline uint64_t pack_align(uint64_t offset, uint64_t align)
{
    if (align == 1)
        return offset;
    uint64_t over = offset % align;
    return over ? offset + (align - over) : offset;
}

static inline bool pack_has_conflicts(const pack_problem *p, uint32_t i)
{
    return p->graph ? p->adj_at[i + 1] > p->adj_at[i] : p->piece_at[i + 1] > p->piece_at[i];
}

#endif
