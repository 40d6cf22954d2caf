#include "tiers/arena.h"

#include <stdbool.h>
#include <string.h>

#include "tiers/metadata_use.h"
#include "tiers/seam_use.h"
#include "tiers/size.h"
#include "tiers/span_make.h"

typedef struct block {
    size_t offset;
    size_t bytes; /* 0: freed */
} block;

/* A region and its blocks, by rising offset, as a bump makes them. */
typedef struct link {
    tn_region region;
    size_t capacity; /* as planned: a backend that gives more must not make the arena behave otherwise */
    size_t used;
    size_t live_blocks, live_bytes;
    block *blocks;
    size_t block_count, block_room;
    bool closed;  /* no take goes here */
    bool pending; /* to be released: it emptied, or the backend refused to take it back */
} link;

struct tn_arena {
    tn_arena_options options;
    tn_metadata metadata;
    link *links; /* the oldest first; takes go to the last */
    size_t link_count, link_room;
    size_t table_count; /* links, and behind them those of released regions that still have their table, for the next */
    size_t used; /* of all links */
    tn_arena_stats counted; /* what is counted, not summed up */
};

static void note_used(tn_arena *arena, link *l, size_t used)
{
    arena->used = arena->used - l->used + used;
    l->used = used;
    if (arena->used > arena->counted.high_water)
        arena->counted.high_water = arena->used;
}

static bool place(const link *l, size_t bytes, size_t alignment, size_t *offset)
{
    size_t address, base = (uintptr_t)l->region.base;
    if (!tn_size_add(base, l->used, &address) || !tn_size_align_up(address, alignment, &address))
        return false;
    *offset = address - base;
    return *offset <= l->capacity && bytes <= l->capacity - *offset;
}

static bool make_room_for_blocks(tn_arena *arena, link *l, size_t count)
{
    void *blocks = l->blocks;
    bool made = tn_metadata_grow(&arena->metadata, &blocks, &l->block_room, count, sizeof(block));
    l->blocks = blocks;
    return made;
}

/* The place for one more link, with a table for its blocks: a released one's where there is one. */
static link *next_link(tn_arena *arena)
{
    void *links = arena->links;
    bool made = tn_metadata_grow(&arena->metadata, &links, &arena->link_room, arena->link_count + 1, sizeof(link));
    arena->links = links;
    if (!made)
        return NULL;
    link *next = &arena->links[arena->link_count];
    if (arena->table_count == arena->link_count) {
        *next = (link){0};
        arena->table_count++;
    }
    size_t room = next->block_room, planned = arena->options.planned_blocks;
    if (!make_room_for_blocks(arena, next, planned > 0 ? planned : 1))
        return NULL;
    /* A page that is touched here, for 256 blocks, is none that a take waits for: 1 to 4 us. */
    if (room < planned)
        memset(next->blocks + room, 0, (next->block_room - room) * sizeof(block));
    return next;
}

static size_t planned_capacity(const tn_arena *arena)
{
    const tn_arena_options *o = &arena->options;
    return arena->link_count == 0 || o->growth_bytes == 0 ? o->first_bytes : o->growth_bytes;
}

static tn_mem_error open_link(tn_arena *arena, size_t capacity, size_t alignment)
{
    if (arena->link_count >= arena->options.max_regions)
        return TN_MEM_E_EXHAUSTED;
    link *next = next_link(arena);
    if (next == NULL)
        return TN_MEM_E_HOST_MEMORY;
    link opened = {.capacity = capacity, .blocks = next->blocks, .block_room = next->block_room};
    tn_mem_error error = tn_backend_acquire(arena->options.backend, capacity, alignment, arena->options.tag, &opened.region);
    if (error != TN_MEM_OK)
        return error;
    if (arena->link_count > 0 && arena->options.discipline == TN_ARENA_MODEL)
        arena->links[arena->link_count - 1].closed = true;
    *next = opened;
    arena->link_count++;
    return TN_MEM_OK;
}

/* Releases the link at `index`, which has no live block, and takes it out of the chain. Its table stays, behind the chain. */
static tn_mem_error release_link(tn_arena *arena, size_t index)
{
    link *l = &arena->links[index];
    note_used(arena, l, 0);
    l->block_count = 0;
    tn_mem_error error = tn_backend_release(arena->options.backend, &l->region);
    if (error != TN_MEM_OK) {
        arena->counted.unreleased++;
        l->pending = true;
        l->closed = l->closed || arena->options.discipline == TN_ARENA_MODEL;
        return error;
    }
    link released = {.blocks = l->blocks, .block_room = l->block_room};
    memmove(l, l + 1, (arena->link_count - index - 1) * sizeof *l);
    arena->links[--arena->link_count] = released;
    return TN_MEM_OK;
}

/* Releases the links without a live block, all or those that are to be; the first error. */
static tn_mem_error release_empties(tn_arena *arena, bool all)
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

/* The last block that begins at or below `offset`, NULL where none does. */
static block *find_block(const link *l, size_t offset)
{
    size_t low = 0, high = l->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->blocks[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : &l->blocks[low - 1];
}

static void take_back_top(tn_arena *arena, link *l)
{
    while (l->block_count > 0 && l->blocks[l->block_count - 1].bytes == 0)
        l->block_count--;
    const block *top = l->block_count > 0 ? &l->blocks[l->block_count - 1] : NULL;
    note_used(arena, l, top != NULL ? top->offset + top->bytes : 0);
}

static link *find_link(const tn_arena *arena, const void *address)
{
    for (size_t i = arena->link_count; i-- > 0;) {
        uintptr_t base = (uintptr_t)arena->links[i].region.base;
        if ((uintptr_t)address >= base && (uintptr_t)address - base < arena->links[i].capacity)
            return &arena->links[i];
    }
    return NULL;
}

/* The oldest region of an engine's arena stays and is open again; any other is to be released. */
static void note_empty(const tn_arena *arena, link *l)
{
    bool stays = arena->options.discipline == TN_ARENA_ENGINE && l == arena->links;
    l->pending = !stays;
    l->closed = l->closed && !stays;
}

static tn_mem_error bad_free(tn_arena *arena, const void *address, tn_mem_error error)
{
    if (arena->counted.bad_frees++ == 0)
        arena->counted.first_bad_free = address;
    return error;
}

tn_mem_error tn_arena_create(const tn_arena_options *options, tn_arena **arena)
{
    if (options == NULL || arena == NULL || options->backend == NULL || options->tag == NULL || options->first_bytes == 0 ||
        options->max_regions == 0 || (unsigned)options->discipline > TN_ARENA_ENGINE)
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_arena *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_arena){.options = *options, .metadata = metadata};
    made->options.metadata = NULL; /* the caller's may be gone by now; the copy is what counts */
    *arena = made;
    return TN_MEM_OK;
}

tn_mem_error tn_arena_destroy(tn_arena **arena)
{
    if (arena == NULL || *arena == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = tn_arena_reset(*arena);
    if (error != TN_MEM_OK)
        return error;
    tn_metadata metadata = (*arena)->metadata;
    for (size_t i = 0; i < (*arena)->table_count; i++)
        tn_metadata_free(&metadata, (*arena)->links[i].blocks, (*arena)->links[i].block_room * sizeof(block));
    tn_metadata_free(&metadata, (*arena)->links, (*arena)->link_room * sizeof(link));
    tn_metadata_free(&metadata, *arena, sizeof **arena);
    *arena = NULL;
    return TN_MEM_OK;
}

/* Puts a block at `offset` of the last link, which has room for it. */
static inline void put_block(tn_arena *arena, link *l, size_t offset, size_t bytes, tn_stable_span *span)
{
    l->blocks[l->block_count++] = (block){.offset = offset, .bytes = bytes};
    l->live_blocks++;
    l->live_bytes += bytes;
    l->pending = false;
    note_used(arena, l, offset + bytes);
    tn_stable_put((char *)l->region.base + offset, bytes, span);
    TN_SEAM(handed_out, arena, arena->options.tag, (char *)l->region.base + offset, bytes);
}

/* Where the table of blocks is full, the open region is, or an argument is not valid. */
static __attribute__((noinline)) tn_mem_error take_slowly(tn_arena *arena, size_t bytes, size_t alignment, tn_stable_span *span)
{
    *span = tn_stable_none();
    if (bytes == 0 || !tn_is_power_of_two(alignment) || alignment > TN_ALIGNMENT_MAX)
        return TN_MEM_E_ARGUMENT;
    size_t offset = 0;
    link *last = arena->link_count > 0 ? &arena->links[arena->link_count - 1] : NULL;
    if (last != NULL && !last->closed && place(last, bytes, alignment, &offset)) {
        if (!make_room_for_blocks(arena, last, last->block_count + 1))
            return TN_MEM_E_HOST_MEMORY;
        put_block(arena, last, offset, bytes, span);
        return TN_MEM_OK;
    }
    size_t capacity = planned_capacity(arena);
    tn_mem_error error = TN_MEM_E_EXHAUSTED;
    if (bytes <= capacity) /* the region is aligned as asked, so that it begins with this block */
        error = open_link(arena, capacity, alignment > TN_ALIGNMENT_DEFAULT ? alignment : TN_ALIGNMENT_DEFAULT);
    if (error == TN_MEM_E_EXHAUSTED)
        arena->counted.exhausted++;
    if (error == TN_MEM_OK)
        put_block(arena, &arena->links[arena->link_count - 1], 0, bytes, span);
    return error;
}

tn_mem_error tn_arena_take(tn_arena *arena, size_t bytes, size_t alignment, tn_stable_span *span)
{
    if (arena == NULL || span == NULL)
        return TN_MEM_E_ARGUMENT;
    alignment = alignment == 0 ? TN_ALIGNMENT_DEFAULT : alignment;
    if (bytes != 0 && tn_is_power_of_two(alignment) && alignment <= TN_ALIGNMENT_MAX && arena->link_count > 0) {
        link *last = &arena->links[arena->link_count - 1];
        size_t offset;
        if (!last->closed && last->block_count < last->block_room && place(last, bytes, alignment, &offset)) {
            put_block(arena, last, offset, bytes, span);
            return TN_MEM_OK;
        }
    }
    return take_slowly(arena, bytes, alignment, span);
}

tn_mem_error tn_arena_free(tn_arena *arena, const void *address)
{
    if (arena == NULL)
        return TN_MEM_E_ARGUMENT;
    link *l = find_link(arena, address);
    if (l == NULL)
        return bad_free(arena, address, TN_MEM_E_ARGUMENT);
    size_t offset = (uintptr_t)address - (uintptr_t)l->region.base;
    if (offset >= l->used)
        return bad_free(arena, address, TN_MEM_E_STALE);
    block *b = find_block(l, offset);
    if (b == NULL || b->offset != offset)
        return bad_free(arena, address, TN_MEM_E_ARGUMENT);
    if (b->bytes == 0)
        return bad_free(arena, address, TN_MEM_E_STALE);
    TN_SEAM(taken_back, arena, address);
    l->live_blocks--;
    l->live_bytes -= b->bytes;
    b->bytes = 0;
    if (arena->options.discipline == TN_ARENA_ENGINE)
        take_back_top(arena, l);
    else
        tn_arena_close_region(arena);
    if (l->live_blocks == 0)
        note_empty(arena, l);
    /* The block is freed whatever the backend says; what it refused is counted and tried again. */
    (void)!release_empties(arena, false);
    return TN_MEM_OK;
}

tn_mem_error tn_arena_reset(tn_arena *arena)
{
    if (arena == NULL)
        return TN_MEM_E_ARGUMENT;
    arena->counted.generation++;
    TN_SEAM(taken_back_all, arena);
    for (size_t i = 0; i < arena->link_count; i++) {
        link *l = &arena->links[i];
        l->live_blocks = l->live_bytes = l->block_count = 0;
        note_used(arena, l, 0);
    }
    return release_empties(arena, true);
}

tn_mem_error tn_arena_trim(tn_arena *arena)
{
    return arena == NULL ? TN_MEM_E_ARGUMENT : release_empties(arena, true);
}

tn_mem_error tn_arena_open_region(tn_arena *arena, size_t capacity)
{
    if (arena == NULL)
        return TN_MEM_E_ARGUMENT;
    return open_link(arena, capacity == 0 ? planned_capacity(arena) : capacity, TN_ALIGNMENT_DEFAULT);
}

void tn_arena_close_region(tn_arena *arena)
{
    if (arena->link_count == 0)
        return;
    link *last = &arena->links[arena->link_count - 1];
    last->closed = true;
    last->pending = last->live_blocks == 0; /* nothing will ever come into it */
}

void tn_arena_read_stats(const tn_arena *arena, tn_arena_stats *stats)
{
    *stats = arena->counted;
    stats->used = arena->used;
    stats->regions = arena->link_count;
    for (size_t i = 0; i < arena->link_count; i++) {
        stats->capacity += arena->links[i].capacity;
        stats->live_bytes += arena->links[i].live_bytes;
        stats->live_blocks += arena->links[i].live_blocks;
    }
}
