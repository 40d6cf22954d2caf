/* The ledger's inside, shared by its own files only. A block is entered by its start, and at the level L whose
 * page of 2^L bytes is at least as large as it: it touches at most two such pages, and a look-up of an interior
 * address asks each level in use about the one page that would hold it. Everything of a shard is guarded by its lock; a node belongs to the
 * shard of its first page, and its other page's slot may be in a second shard, so changing it takes both. */
#ifndef TENURE_LEDGER_LEDGER_INTERNAL_H
#define TENURE_LEDGER_LEDGER_INTERNAL_H

#include "ledger/ledger.h"
#include "ledger/tn_lock.h"

/* Levels are grouped in tiers, so that all levels of a tier find an address in the same shard: one lock a
 * tier and look-up. Tier 0 ends at 2 MiB, tier 1 at 1 GiB. Level 0 is the starts. */
#define TN_LEVEL_MIN 9u
#define TN_TIER0_LEVEL 21u
#define TN_TIER1_LEVEL 30u
#define TN_TIER0_SHARDS 64u
#define TN_TIER1_SHARDS 16u
#define TN_SHARDS (TN_TIER0_SHARDS + TN_TIER1_SHARDS + 1u)
#define TN_NO_NODE 0u

typedef struct tn_node {
    tn_entry entry;      /* its first_write is not used: */
    uint8_t first_write; /* atomic, because two shards' holders may both reach it */
    uint8_t space;
    uint8_t level;
    uint8_t live;
    uint32_t next_free;  /* in its slab, while it is free */
} tn_node;

/* One page of one node, or its start. A table is open-addressed with linear probing; `hash` gives the home place, so that
 * deleting closes the gap without touching a node. */
typedef struct tn_slot {
    uint32_t hash;
    uint32_t node; /* TN_NO_NODE: empty */
} tn_slot;

typedef struct tn_slots {
    tn_slot *at;
    uint32_t mask; /* places - 1; 0 with at == NULL */
    uint32_t used;
} tn_slots;

typedef struct tn_shard {
    tn_lock lock;
    tn_slots slots;
    uint32_t partial_slab;  /* a slab of this shard with free nodes, as id + 1; 0: none */
    uint64_t live;          /* nodes that belong here; atomic for tn_ledger_count */
    uint64_t levels[TN_SPACE_COUNT];             /* bit L: level in use; atomic, read without the lock to skip it */
    uint32_t level_count[TN_SPACE_COUNT][64];    /* slots by level */
} __attribute__((aligned(64))) tn_shard;

/* ledger_table.c */
uint32_t tn_hash_page(unsigned space, unsigned level, uint64_t page);
/* Room for `more` slots; 0 when there is no memory. */
int tn_slots_reserve(tn_slots *s, uint32_t more);
void tn_slots_add(tn_slots *s, uint32_t hash, uint32_t node);
void tn_slots_remove(tn_slots *s, uint32_t hash, uint32_t node);

/* ledger_slab.c. Node numbers are valid while the node is live; all under the shard's lock. */
int tn_slabs_init(void);
uint32_t tn_node_new(uint32_t shard); /* TN_NO_NODE when there is no memory */
void tn_node_free(uint32_t shard, uint32_t node);
tn_node *tn_node_at(uint32_t node);
/* For sweeps: the slabs that exist, and who owns one; 0 when it does not exist. */
uint32_t tn_slab_end(void);
int tn_slab_shard(uint32_t slab, uint32_t *shard);
/* The i-th node of a slab whose shard the caller has locked; NULL past the end; *live says whether it is. */
const tn_node *tn_slab_node(uint32_t slab, uint32_t i, int *live);

/* The shards, for tn_node_*'s per-shard list. */
extern tn_shard tn_shards[TN_SHARDS];

_Static_assert(sizeof(tn_node) == 64, "a node is one cache line");

#endif
