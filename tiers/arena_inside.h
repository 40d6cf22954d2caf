/* For arena*.c alone: the regions of an arena and the records of their blocks. Nothing here takes a lock: calls on one arena do not overlap. */
#ifndef TENURE_TIERS_ARENA_INSIDE_H
#define TENURE_TIERS_ARENA_INSIDE_H

#include <stdbool.h>

#include "tiers/arena.h"

typedef struct tn_arena_block {
    size_t offset;
    size_t bytes; /* 0: freed */
} tn_arena_block;

/* A region and its blocks, by rising offset, as a bump makes them. */
typedef struct tn_arena_link {
    tn_region region;
    size_t capacity; /* as planned: a backend that gives more must not make the arena behave otherwise */
    size_t used;
    size_t live_blocks, live_bytes;
    tn_arena_block *blocks;
    size_t block_count, block_room;
    size_t takes, takes_planned; /* of a listed one; planned 0: any number */
    tn_work_set uncovered;       /* what the device may still do with bytes that were freed */
    bool closed;  /* no take goes here */
    bool pending; /* to be released: it emptied, or the backend refused to take it back */
} tn_arena_link;

struct tn_arena {
    tn_arena_options options;
    tn_metadata metadata;
    tn_work work;
    tn_arena_link *links; /* the oldest first; takes go to the last */
    size_t link_count, link_room;
    size_t table_count; /* links, and behind them those of released regions that still have their table, for the next */
    size_t used; /* of all links */
    tn_arena_stats counted; /* what is counted, not summed up */
};

static inline void tn_arena_note_used(tn_arena *arena, tn_arena_link *l, size_t used)
{
    arena->used = arena->used - l->used + used;
    l->used = used;
    if (arena->used > arena->counted.high_water)
        arena->counted.high_water = arena->used;
}

/* False where there is no memory for the records of `count` blocks. */
bool tn_arena_make_room(tn_arena *arena, tn_arena_link *l, size_t count);

/* Acquires a region of `capacity` bytes, at least so aligned, at the end of the chain. EXHAUSTED: max_regions. */
tn_mem_error tn_arena_open_link(tn_arena *arena, size_t capacity, size_t alignment);

/* Releases the links without a live block, all or those that are to be; the first error. */
tn_mem_error tn_arena_release_empties(tn_arena *arena, bool all);

/* Lets the freed blocks on top go, unless the device may still use them. */
void tn_arena_take_back_top(tn_arena *arena, tn_arena_link *l);

/* What is listed for a first take, NULL. */
const tn_arena_listed *tn_arena_find_listed(const tn_arena *arena, uint32_t site, size_t bytes);

#endif
