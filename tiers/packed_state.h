/* For the packed slots alone: what they are made of, and the rules that make it work without a lock. A slot whose status is CLAIMED is its
 * claimer's, and nobody waits for it. A LIVE or FREED slot has all of its cells. A FREE one has not, but may have some left, with
 * what `set` says of them. A cell passes to another slot only by a thread that has claimed both, or that was first to swap it for none. */
#ifndef TENURE_TIERS_PACKED_STATE_H
#define TENURE_TIERS_PACKED_STATE_H

#include <stdbool.h>

#include "tiers/packed.h"
#include "tiers/packed_cells.h"
#include "tiers/packed_index.h"
#include "tiers/spin.h"

/* The word of a slot: its status, how often it is held, how often it was taken. */
#define STATUS ((uint64_t)3)
enum { FREE, CLAIMED, LIVE, FREED };
#define HOLD ((uint64_t)1 << 2)
#define HOLDS_MAX ((uint64_t)0xFFFF)
#define TAKE ((uint64_t)1 << 18)

/* Of a LIVE slot, `set` is work that was ordered before its first use but is not known to be done: it outlasts the block. */
typedef struct place {
    uint64_t state;
    size_t asked; /* bytes, of a LIVE one */
    tn_packed_range range;
    uint32_t class;
    uint32_t next; /* of the slots that a take has claimed */
    unsigned was;  /* its status before that */
    const void *claimer; /* that take; NULL while not claimed by one */
    tn_work_set set;
} place;

typedef struct size_class {
    size_t bytes;
    uint32_t first, count; /* slots */
    uint32_t lowest;       /* all ordinals below are live: where a search begins */
    tn_packed_index *index; /* NULL: few slots */
} size_class;

struct tn_packed {
    char *base;
    size_t capacity;
    place *places;
    const tn_packed_slot *slots;
    size_class *classes;
    uint32_t *site_classes; /* a site each, and one more: its first class */
    tn_packed_cells cells;
    void *indexes;
    size_t index_bytes;
    tn_work work;
    size_t slot_count, class_count, site_count;
    tn_region region;
    tn_backend *backend;
    tn_metadata metadata;
    uint64_t must_waits, diverged, races, bad_frees, looks;
    const void *first_bad_free;
    tn_packed_refusal first_diverged;
    int first_diverged_is_there;
};

static inline unsigned status_of(uint64_t state)
{
    return (unsigned)(state & STATUS);
}

static inline uint64_t holds_of(uint64_t state)
{
    return state >> 2 & HOLDS_MAX;
}

static inline uint64_t with_status(uint64_t state, unsigned status)
{
    return (state & ~STATUS) | status;
}

static inline uint64_t load_state(const place *p)
{
    return __atomic_load_n(&p->state, __ATOMIC_ACQUIRE);
}

static inline void store_state(place *p, uint64_t state)
{
    __atomic_store_n(&p->state, state, __ATOMIC_RELEASE);
}

/* From the state *seen to CLAIMED. Where it is another by now, false and that one in *seen. What the claimer reads after it is read after it. */
static inline bool claim_place(place *p, uint64_t *seen)
{
    return __atomic_compare_exchange_n(&p->state, seen, with_status(*seen, CLAIMED), false, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE);
}

#endif
