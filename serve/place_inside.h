/* For the files of a place alone: its parts. Slots are lock-free by themselves; a bump tier has a lock of its own around all that is in it. */
#ifndef TENURE_SERVE_PLACE_INSIDE_H
#define TENURE_SERVE_PLACE_INSIDE_H

#include "serve/place.h"
#include "tiers/arena.h"
#include "tiers/metadata_use.h"
#include "tiers/packed.h"
#include "tiers/scratch.h"
#include "tiers/spin.h"

#define TN_PLACE_WAITING 1024u /* blocks of one bump tier that are freed and may not be handed out yet */

/* All slots of one family of memory: packed ones share addresses, those of T3 stand behind them and share none. */
typedef struct tn_place_slots {
    tn_packed *packed;
    tn_packed_plan plan;
    tn_packed_slot *table;
    size_t table_bytes;
    uint64_t *keys;       /* by the table's site: the plan's */
    size_t keys_bytes;
} tn_place_slots;

typedef struct tn_place_waiting { void *address; tn_work_set uncovered; } tn_place_waiting;

/* T2 of a family, or one stack of T4. */
typedef struct tn_place_bump {
    tn_spin lock;
    tn_arena *arena;      /* T2 */
    tn_scratch *stack;    /* T4 */
    uint64_t stream;      /* T4: whose it is; 0: nobody's yet */
    tn_place_waiting *waiting; /* a ring of `count` from `first` on */
    size_t first, count;
    size_t lost;          /* freed, and there was no room to wait in */
} tn_place_bump;

/* T1: regions of the driver's, each with the mark up to which it is used, the newest last. One without live blocks is to be given back. The
 * lock is held around no call of the driver: a region is opened before it is put in, and given back while it is marked as leaving. */
typedef struct tn_place_region {
    tn_region memory;
    size_t capacity;      /* as planned: a backend that gives more must not make the region behave otherwise */
    size_t room;          /* what was acquired: capacity at first, and no less than that when it is used again */
    size_t mark, live;
    int leaving;          /* a thread is giving it back, or takes it into use again */
    tn_work_set uncovered; /* of its freed blocks, where it may be used again */
} tn_place_region;
typedef struct tn_place_model {
    tn_spin lock;
    tn_place_region *regions;
    size_t count, room;
    uint64_t left;        /* requests until the newest region closes; 0: none is open */
    uint8_t phase;        /* of the last request */
} tn_place_model;

typedef struct tn_place_row {
    tn_place_tier tier;
    uint8_t family, flags;
    uint32_t site;        /* in the table of slots */
} tn_place_row;

struct tn_place {
    tn_place_options options;
    tn_metadata metadata;
    tn_place_row *rows;
    tn_place_slots slots[TN_FAMILY_COUNT][TN_PLACE_PINNED_SETS];
    tn_place_model model;                  /* T1, which plain memory alone can have */
    tn_place_bump engine[TN_FAMILY_COUNT]; /* T2 */
    tn_place_bump *stacks;
    size_t stack_count;
    uint64_t waits, not_taken_back, capacity;
};

static inline tn_backend *tn_place_backend(const tn_place *p, unsigned family, unsigned flags)
{
    return family == TN_FAMILY_DEVICE  ? p->options.device
           : family == TN_FAMILY_ASYNC ? p->options.async
                                       : p->options.pinned[flags % TN_PLACE_PINNED_SETS];
}

static inline const tn_work *tn_place_work(const tn_place *p, unsigned family)
{
    return family == TN_FAMILY_PINNED ? &p->options.work_everywhere : &p->options.work;
}

/* The tags of regions, by which whoever stands between place and backend knows whose they are. */
#define TN_PLACE_TAG_T1 "tenure T1"
#define TN_PLACE_TAG_T2 "tenure T2"
#define TN_PLACE_TAG_T4 "tenure T4"
#define TN_PLACE_TAG_SLOTS "tenure slots"

void *tn_place_memory(tn_place *p, size_t count, size_t size);

/* ---- place_slots.c */
TN_MEM_MUST_USE tn_mem_error tn_place_slots_create(tn_place *p, unsigned family, unsigned flags, uint64_t *short_by);
void tn_place_slots_destroy(tn_place *p, unsigned family, unsigned flags, int forget);
void tn_place_slots_take(tn_place *p, const tn_place_row *row, size_t bytes, uint32_t stream, int may_wait, tn_place_answer *out) __attribute__((hot));

/* ---- place_bump.c */
TN_MEM_MUST_USE tn_mem_error tn_place_bumps_create(tn_place *p, uint64_t *short_by);
void tn_place_bumps_destroy(tn_place *p, int forget);
int tn_place_bumps_have_live(tn_place *p); /* stream-ordered blocks, those that wait apart */
void tn_place_bump_take(tn_place *p, const tn_place_row *row, size_t bytes, uint32_t stream, tn_place_answer *out) __attribute__((hot));
TN_MEM_MUST_USE tn_mem_error tn_place_bump_give(tn_place *p, const tn_place_row *row, void *address, uint32_t stream, const tn_work_set *uncovered) __attribute__((hot));

/* ---- place_model.c */
TN_MEM_MUST_USE tn_mem_error tn_place_model_create(tn_place *p);
void tn_place_model_destroy(tn_place *p, int forget);
void tn_place_model_take(tn_place *p, const tn_plan_row *row, size_t bytes, uint8_t phase, int may_wait, tn_place_answer *out);
TN_MEM_MUST_USE tn_mem_error tn_place_model_give(tn_place *p, void *address, const tn_work_set *uncovered);

#endif
