/* The chain of an arena's regions: opened, emptied, given back. */
#include "tiers/arena_inside.h"

#include <string.h>

#include "tiers/metadata_use.h"

bool tn_arena_make_room(tn_arena *arena, tn_arena_link *l, size_t count)
{
    void *blocks = l->blocks;
    bool made = tn_metadata_grow(&arena->metadata, &blocks, &l->block_room, count, sizeof(tn_arena_block));
    l->blocks = blocks;
    return made;
}

/* The place for one more link, with a table for its blocks: a released one's where there is one. */
static tn_arena_link *next_link(tn_arena *arena)
{
    void *links = arena->links;
    bool made = tn_metadata_grow(&arena->metadata, &links, &arena->link_room, arena->link_count + 1, sizeof(tn_arena_link));
    arena->links = links;
    if (!made)
        return NULL;
    tn_arena_link *next = &arena->links[arena->link_count];
    if (arena->table_count == arena->link_count) {
        *next = (tn_arena_link){0};
        arena->table_count++;
    }
    size_t room = next->block_room, planned = arena->options.planned_blocks;
    if (!tn_arena_make_room(arena, next, planned > 0 ? planned : 1))
        return NULL;
    /* A page that is touched here, for 256 blocks, is none that a take waits for: 1 to 4 us. */
    if (room < planned)
        memset(next->blocks + room, 0, (next->block_room - room) * sizeof(tn_arena_block));
    return next;
}

tn_mem_error tn_arena_open_link(tn_arena *arena, size_t capacity, size_t alignment)
{
    if (arena->link_count >= arena->options.max_regions)
        return TN_MEM_E_EXHAUSTED;
    tn_arena_link *next = next_link(arena);
    if (next == NULL)
        return TN_MEM_E_HOST_MEMORY;
    tn_arena_link opened = {.capacity = capacity, .blocks = next->blocks, .block_room = next->block_room};
    if (alignment < arena->options.region_alignment)
        alignment = arena->options.region_alignment;
    tn_mem_error error = tn_backend_acquire(arena->options.backend, capacity, alignment, arena->options.tag, &opened.region);
    if (error != TN_MEM_OK)
        return error;
    if (arena->link_count > 0 && arena->options.discipline == TN_ARENA_MODEL)
        arena->links[arena->link_count - 1].closed = true;
    *next = opened;
    arena->link_count++;
    return TN_MEM_OK;
}

/* Takes the link at `index` out of the chain. Its table stays, behind the chain. */
static void take_out(tn_arena *arena, size_t index)
{
    tn_arena_link *l = &arena->links[index];
    tn_arena_link taken = {.blocks = l->blocks, .block_room = l->block_room};
    memmove(l, l + 1, (arena->link_count - index - 1) * sizeof *l);
    arena->links[--arena->link_count] = taken;
}

/* Releases the link at `index`, which has no live block, and takes it out of the chain. */
static tn_mem_error release_link(tn_arena *arena, size_t index)
{
    tn_arena_link *l = &arena->links[index];
    tn_arena_note_used(arena, l, 0);
    l->block_count = 0;
    tn_mem_error error = tn_backend_release(arena->options.backend, &l->region);
    if (error != TN_MEM_OK) {
        arena->counted.unreleased++;
        l->pending = true;
        /* What is left begins anew, which it may not where the device still uses it. */
        l->closed = l->closed || arena->options.discipline == TN_ARENA_MODEL || !tn_work_set_is_clean(&l->uncovered, &arena->work);
        return error;
    }
    take_out(arena, index);
    return TN_MEM_OK;
}

tn_mem_error tn_arena_release_empties(tn_arena *arena, bool all)
{
    tn_mem_error first = TN_MEM_OK;
    for (size_t i = arena->link_count; i-- > 0;) {
        if (arena->links[i].live_blocks != 0 || !(all || arena->links[i].pending))
            continue;
        tn_mem_error error = release_link(arena, i);
        first = first == TN_MEM_OK ? error : first;
    }
    return first;
}

bool tn_arena_pop_empty(tn_arena *arena, tn_region *region, tn_work_set *uncovered)
{
    if (region != NULL)
        *region = (tn_region){0};
    if (arena == NULL || region == NULL)
        return false;
    for (size_t i = arena->link_count; i-- > 0;) {
        tn_arena_link *l = &arena->links[i];
        if (l->live_blocks != 0 || !l->pending)
            continue;
        *region = l->region;
        if (uncovered != NULL)
            *uncovered = l->uncovered;
        tn_arena_note_used(arena, l, 0);
        take_out(arena, i);
        return true;
    }
    return false;
}

void tn_arena_take_back_top(tn_arena *arena, tn_arena_link *l)
{
    if (l->uncovered.count > 0 && !tn_work_set_is_clean(&l->uncovered, &arena->work))
        return;
    while (l->block_count > 0 && l->blocks[l->block_count - 1].bytes == 0)
        l->block_count--;
    const tn_arena_block *top = l->block_count > 0 ? &l->blocks[l->block_count - 1] : NULL;
    tn_arena_note_used(arena, l, top != NULL ? top->offset + top->bytes : 0);
}

const tn_arena_listed *tn_arena_find_listed(const tn_arena *arena, uint32_t site, size_t bytes)
{
    const tn_arena_listed *list = arena->options.list, *largest = NULL;
    size_t low = 0, high = arena->options.list_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].site < site)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < arena->options.list_count && list[low].site == site; low++) {
        if (list[low].first_bytes == bytes)
            return &list[low];
        if (largest == NULL || list[low].capacity > largest->capacity)
            largest = &list[low];
    }
    return largest;
}
