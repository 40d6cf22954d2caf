/* What the parts of serving replayed share. For them alone. */
#ifndef TENURE_PLANNER_SERVE_PARTS_H
#define TENURE_PLANNER_SERVE_PARTS_H

#include "planner/bump.h"
#include "planner/regions.h"
#include "planner/serve.h"
#include "planner/trace_index.h"

typedef enum tn_slot_use { TN_SLOT_FREE = 0, TN_SLOT_ALIVE, TN_SLOT_FREED } tn_slot_use; /* TN_SLOT_FREED: not clean yet */

typedef struct tn_serve_slot {
    uint64_t offset, bytes;
    uint32_t row, life;
    uint32_t freed, stream; /* of TN_SLOT_FREED */
    uint32_t freed_in;      /* likewise: how many waits of ours there had been */
    uint32_t first_other, other_count; /* in `others` */
    tn_slot_use use;
} tn_serve_slot;

typedef struct tn_serve_pool { uint64_t block, count, alive, freed; } tn_serve_pool;
typedef struct tn_serve_fixed {
    uint64_t block, count;
    uint64_t lowest;        /* of its slots all below are alive */
    uint64_t looked;        /* all below are alive, or were freed since as many waits as `looked_in` */
    uint32_t looked_in;
} tn_serve_fixed;

struct tn_serve {
    const tn_plan_section *plan;
    tn_serve_slot *slots; size_t slot_count; /* those of T3 behind all others, as they share addresses with none */
    uint32_t *others; size_t other_count;
    uint32_t *first_slot;         /* by row: its first slot */
    tn_serve_fixed *fixeds;       /* T3, by row */
    tn_serve_pool *pools;         /* of handles, by tier */
    tn_bump bumps[TN_FAMILY_COUNT];
    tn_bump *stacks; size_t stack_count;
    tn_index stack_of_stream;
    tn_regions regions;
    tn_region_run run;
    struct loose { uint32_t detail; uint64_t used; } *loose; size_t loose_count; /* T5a, by flags */
    uint32_t *place;             /* by life: slot, bump block, region, or nothing */
    uint32_t *row_of;            /* by life; TN_TRACE_NONE: not served */
    uint32_t *freed_in;          /* by life, of handles: 1 + how many waits of ours there had been at its free */
    uint32_t waits;
    tn_index joins;
};

/* The slots of all rows, and whom each shares addresses with. 0: no memory left. */
int tn_serve_make_slots(tn_serve *s);
void tn_serve_take_slot(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out);
void tn_serve_take_fixed(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out);
void tn_serve_give_slot(tn_serve *s, const tn_life *block, uint32_t life);
void tn_serve_clean_slot(tn_serve *s, uint32_t life);
/* A wait for the whole context: everything that is freed is clean. */
void tn_serve_wait(tn_serve *s);

#endif
