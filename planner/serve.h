/* Serving replayed: what a plan's tiers would do with the requests of a recorded context, one after the other, by the same rules as serve
 * (DESIGN of each tier in tiers/). A tn_serve belongs to one replay and borrows plan section and trace. One thread. */
#ifndef TENURE_PLANNER_SERVE_H
#define TENURE_PLANNER_SERVE_H

#include "planner/plan_make.h"

typedef enum tn_spill {
    TN_SPILL_NONE = 0,
    TN_SPILL_TOO_LARGE,  /* larger than what was planned for the site; of a handle, of a size that no pool has */
    TN_SPILL_TOO_MANY,   /* more alive at once than was planned */
    TN_SPILL_IN_THE_WAY, /* another site's block has the addresses */
    TN_SPILL_NO_ROOM,    /* the tier's arena is full, or no region is planned for the request */
    TN_SPILL_COUNT
} tn_spill;

typedef struct tn_serve_answer {
    tn_spill spill;
    int waited;          /* it had to wait for work first */
    uint64_t short_by;   /* of a spill: the bytes for which there was no room */
    uint32_t other;      /* IN_THE_WAY: the row that was, else TN_TRACE_NONE */
} tn_serve_answer;

typedef struct tn_serve tn_serve;

/* `lives`: how many lives the process has. NULL: no memory left. */
tn_serve *tn_serve_new(const tn_plan_section *plan, size_t lives);
void tn_serve_free(tn_serve *s);

/* A request of row `row`, which is not native. `life` is the block, numbered as in its process. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_serve_take(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out);
/* The block is freed, and its memory clean; each at most once, in this order, for blocks that were served or not. */
void tn_serve_give(tn_serve *s, const tn_life *block, uint32_t life);
void tn_serve_clean(tn_serve *s, uint32_t life);
/* Stream `to` waited for what `from` had been given up to position `upto`. TN_E_NOMEM. */
TN_MUST_USE tn_error tn_serve_join(tn_serve *s, const tn_trace_join *join);

/* After TN_SPILL_IN_THE_WAY, before anything else: the rows whose blocks are in the way of that one of the row's slots where they have the fewest bytes
 * in the plan, at most `room` of them, each once. Returns how many; *bytes receives what they have together. */
size_t tn_serve_in_the_way(const tn_serve *s, uint32_t row, uint64_t asked, uint32_t *rows, size_t room, uint64_t *bytes);

const char *tn_spill_text(tn_spill spill);

#endif
