/* For the packed slots alone: why the slots of a large class are not to be had, so that a take need not ask each. A slot is kept by a piece
 * of work that is not done, by another slot that has some of its bytes and is in use, or by a live block of its own; groups of slots, and
 * groups of groups, say what keeps all in them, so that one question answers for many. What is written here stays true however late it is
 * read: a slot's marks go only when they are done, and of two slots that share bytes one is in use. Only "live" must be told to end, by each
 * free. The allocator owns it; any thread: its lock is held for a free's few words and for a take's search, and who does not get it soon goes
 * on without. */
#ifndef TENURE_TIERS_PACKED_INDEX_H
#define TENURE_TIERS_PACKED_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiers/spin.h"
#include "tiers/work_mark.h"

#define TN_PACKED_INDEX_FEWEST 33u /* slots of a class; fewer are looked at one by one */
#define TN_PACKED_FAN 64u
#define TN_PACKED_LEVELS 5u  /* 64^5 is above TN_PACKED_SLOTS_MAX */
#define TN_PACKED_QUEUES 64u /* that keep slots of one class at a time; what others keep is looked at each time */
#define TN_PACKED_USERS 8u   /* slots that a group names as in the way of its own; with more it is looked into each time */

/* What keeps a slot. */
typedef enum tn_packed_kept_by { TN_PACKED_BY_UNKNOWN, TN_PACKED_BY_LIFE, TN_PACKED_BY_WORK, TN_PACKED_BY_SLOT } tn_packed_kept_by;
typedef struct tn_packed_kept {
    tn_packed_kept_by by; /* UNKNOWN: it must be looked at again; LIFE: it is live */
    tn_work_mark mark;    /* WORK */
    uint32_t slot;        /* SLOT: that one, as long as it is live, or freed and held */
} tn_packed_kept;

typedef struct tn_packed_keeper {
    uint64_t sequence; /* WORK */
    uint32_t what;     /* WORK: below TN_PACKED_QUEUES, the queue's place; else one of packed_index.c's */
} tn_packed_keeper;

typedef struct tn_packed_group {
    uint64_t look;     /* the slots, or groups, in it that must be looked at in any case */
    uint64_t queues;   /* no other of it is to be had while all of these queues' marks keep the taker, and all of these slots are in use */
    uint32_t user_count;
    bool full;         /* there are more users */
    uint32_t users[TN_PACKED_USERS];
    uint64_t sequences[TN_PACKED_QUEUES]; /* the earliest */
} tn_packed_group;

typedef struct tn_packed_index {
    tn_spin lock;
    int used;        /* takes have searched it, and frees must tell it; never 0 again */
    int told_apart;  /* there are bits in `told` */
    uint32_t count;  /* slots */
    uint32_t levels;
    uint64_t *told;  /* a bit a slot: freed while another had the lock, so look at it */
    tn_packed_keeper *keepers; /* a slot each */
    tn_packed_group *groups[TN_PACKED_LEVELS]; /* of slots, of those groups, ...; the last is one */
    uint32_t sizes[TN_PACKED_LEVELS];
    uint64_t queues[TN_PACKED_QUEUES];
    uint32_t kept[TN_PACKED_QUEUES]; /* slots by each: a queue that keeps none makes way */
    uint64_t changed;                /* places that became another's since a search last looked */
    uint64_t steps;  /* slots and groups that searches looked at */
} tn_packed_index;

/* Bytes for a class of `count` slots; false: more than a size_t. In such a piece it is laid out, all slots to be looked at. */
bool tn_packed_index_bytes(size_t count, size_t *bytes);
tn_packed_index *tn_packed_index_place(void *memory, size_t count);

/* Slot `ordinal`, which the caller has claimed and which was live, is freed, and `set` is the work that may still use it. To be called where `used`,
 * read after the claim, is not 0. */
void tn_packed_index_freed(tn_packed_index *index, uint32_t ordinal, const tn_work_set *set);

typedef enum tn_packed_sought {
    TN_PACKED_ANY,        /* every slot that may be to be had */
    TN_PACKED_KEPT_BY_WORK,
    TN_PACKED_KEPT_BY_SLOT
} tn_packed_sought;

/* Searches of one take, for a taker in `queue`. `slot` looks at one slot, says what keeps it now, and whether that was the last to look at. `uses`:
 * whether a slot is live, or freed and held. */
typedef struct tn_packed_search {
    tn_packed_index *index;
    const tn_work *work;
    uint64_t queue;
    bool (*slot)(void *self, uint32_t ordinal, tn_packed_kept *kept);
    bool (*uses)(void *self, uint32_t slot);
    void *self;
    tn_packed_sought sought;
    uint64_t steps;
    uint64_t asked;                    /* queues of which something is known; 0 at first */
    uint64_t ready[TN_PACKED_QUEUES];  /* marks before it do not keep the taker */
    uint64_t keeps[TN_PACKED_QUEUES];  /* marks from it on do */
} tn_packed_search;

/* Whether the lock was had; then the index is the caller's until end, and what was freed before is in it. */
bool tn_packed_index_begin(tn_packed_index *index);
void tn_packed_index_end(tn_packed_index *index);

/* Looks, by rising ordinal, at each slot that is what is sought, until one ends it: then true. Between begin and end. */
bool tn_packed_index_search(tn_packed_search *search, tn_packed_sought sought);

#endif
