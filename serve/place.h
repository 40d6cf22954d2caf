/* The arenas of one plan section in one context: what a request of a planned site gets, and what becomes of a block that is freed. The owner
 * makes one a context, keeps backends, section and work tables alive, and knows by itself which addresses are live blocks and of which
 * row (the shim's ledger does). Any thread may call take and give at any time; both take a lock of a few nanoseconds for the bump tiers, none
 * for slots, and call the driver only where a T1 region opens or goes. */
#ifndef TENURE_SERVE_PLACE_H
#define TENURE_SERVE_PLACE_H

#include "planner/plan.h"
#include "tiers/backend.h"
#include "tiers/metadata.h"
#include "tiers/work_mark.h"

#define TN_PLACE_PINNED_SETS 8 /* sets of pinned flags, as the driver has them */

/* Which tier a block is in; the numbers are the journal's. */
typedef enum tn_place_tier {
    TN_PLACE_NATIVE = 0, TN_PLACE_T1, TN_PLACE_T2, TN_PLACE_T3, TN_PLACE_T4, TN_PLACE_PACKED, TN_PLACE_T5B
} tn_place_tier;

/* Why the plan has no place for a request; likewise. */
typedef enum tn_place_spill {
    TN_PLACE_SERVED = 0,
    TN_PLACE_TOO_LARGE,  /* than any request that was planned for */
    TN_PLACE_TOO_MANY,   /* alive at once */
    TN_PLACE_IN_THE_WAY, /* another site's block has the addresses, or a graph holds them */
    TN_PLACE_NO_ROOM,    /* the tier's arena is full, or no region is planned for the request */
    TN_PLACE_CAPTURE,    /* not asked: a capture is active */
    TN_PLACE_NOT_CLEAN   /* what would do may still be in use by the device, and nothing could be waited for */
} tn_place_spill;

typedef struct tn_place tn_place;

typedef struct tn_place_options {
    const tn_plan_section *section;        /* checked (planner/plan_check.h) */
    tn_backend *device, *async;            /* NULL where the section has no tier of that family */
    tn_backend *pinned[TN_PLACE_PINNED_SETS]; /* by flags, likewise */
    tn_work work;                          /* of this context */
    tn_work work_everywhere;               /* of all contexts: for pinned blocks */
    const tn_metadata *metadata;           /* NULL: malloc */
    int pin_regions;                       /* T1's empty regions stay, for the next request that opens one they can be */
} tn_place_options;

typedef struct tn_place_answer {
    void *address;          /* NULL: not served */
    tn_place_tier tier;
    tn_place_spill spill;
    uint64_t waits;         /* that were made for it */
    uint64_t in_the_way;    /* key of the site that was, where one is known */
} tn_place_answer;

typedef struct tn_place_stats {
    uint64_t capacity;      /* bytes of all arenas, T1 as planned */
    uint64_t waits;         /* made before a hand-out */
    uint64_t not_taken_back; /* frees of bump tiers that found no room to wait in: their memory is lost until the arena ends */
} tn_place_stats;

/* Acquires every arena of the section, T1's regions excepted, which come with their first request. All or nothing: on failure *out is NULL and
 * what was acquired has been given back; `short_by` (may be NULL) gets the bytes that were asked for in vain. The context is current. */
TN_MEM_MUST_USE tn_mem_error tn_place_create(const tn_place_options *options, tn_place **out, uint64_t *short_by);

/* Gives everything back. No other call may be under way. `forget`: the context has ended, and its device memory with it: the driver is not
 * asked, and only memory that outlives contexts is given back. */
void tn_place_destroy(tn_place **place, int forget);

/* Whether any of its stream-ordered memory, which alone outlives a context, is a live block. No take may be under way. */
int tn_place_has_live(tn_place *place);

/* A block of `bytes` bytes for row `row` of the section, at the alignment that the driver would give. `stream` is the number of the stream whose
 * order the block follows, 0 for plain and pinned memory. `phase`: TN_PHASE_*. `may_wait`: whether a wait may be made. A row that is native
 * or of another kind than the request is the caller's to know. */
void tn_place_take(tn_place *place, uint32_t row, size_t bytes, uint32_t stream, uint8_t phase, int may_wait, tn_place_answer *out) __attribute__((hot));

/* The live block at `address`, which row `row` got for `stream`, is freed. `uncovered`: what the device may still do with it.
 * STALE, ARGUMENT: the tier knows no such block; nothing happened. */
TN_MEM_MUST_USE tn_mem_error tn_place_give(tn_place *place, uint32_t row, void *address, uint32_t stream, const tn_work_set *uncovered) __attribute__((hot));

/* A graph holds the live or freed block at `address` of row `row`: its memory goes to no other site until released as often. Rows of the bump
 * tiers hold by themselves as long as the block lives, and ARGUMENT is their answer. */
TN_MEM_MUST_USE tn_mem_error tn_place_hold(tn_place *place, uint32_t row, const void *address);
TN_MEM_MUST_USE tn_mem_error tn_place_release_hold(tn_place *place, uint32_t row, const void *address);

/* Whose region has this tag, for who stands between a place and its backends; slots of any tier are PACKED. */
tn_place_tier tn_place_tier_of_tag(const char *tag);

void tn_place_read_stats(tn_place *place, tn_place_stats *stats);

#endif
