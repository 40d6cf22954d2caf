#include "tiers/arena_inside.h"
#include "tiers/metadata_use.h"
#include "tiers/seam_use.h"
#include "tiers/size.h"
#include "tiers/span_make.h"

static bool place(const tn_arena_link *l, size_t bytes, size_t alignment, size_t *offset)
{
    size_t address, base = (uintptr_t)l->region.base;
    if (!tn_size_add(base, l->used, &address) || !tn_size_align_up(address, alignment, &address))
        return false;
    *offset = address - base;
    return *offset <= l->capacity && bytes <= l->capacity - *offset;
}

static size_t planned_capacity(const tn_arena *arena)
{
    const tn_arena_options *o = &arena->options;
    return arena->link_count == 0 || o->growth_bytes == 0 ? o->first_bytes : o->growth_bytes;
}

/* The last block that begins at or below `offset`, NULL where none does. */
static tn_arena_block *find_block(const tn_arena_link *l, size_t offset)
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

static tn_arena_link *find_link(const tn_arena *arena, const void *address)
{
    for (size_t i = arena->link_count; i-- > 0;) {
        uintptr_t base = (uintptr_t)arena->links[i].region.base;
        if ((uintptr_t)address >= base && (uintptr_t)address - base < arena->links[i].capacity)
            return &arena->links[i];
    }
    return NULL;
}

/* The oldest region of an engine's arena stays and is open again; any other is to be released. */
static void note_empty(const tn_arena *arena, tn_arena_link *l)
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

/* Whether the list is sound: of rising sites and first takes, and of regions that hold theirs. */
static bool is_list(const tn_arena_options *o)
{
    if (o->list_count == 0)
        return o->first_bytes > 0;
    for (size_t i = 0; i < o->list_count; i++) {
        const tn_arena_listed *l = &o->list[i], *before = i > 0 ? l - 1 : NULL;
        if (l->first_bytes == 0 || l->capacity < l->first_bytes)
            return false;
        if (before != NULL && (l->site < before->site || (l->site == before->site && l->first_bytes <= before->first_bytes)))
            return false;
    }
    return true;
}

static bool are_options(const tn_arena_options *o)
{
    return o->backend != NULL && o->tag != NULL && o->max_regions > 0 && (unsigned)o->discipline <= TN_ARENA_ENGINE &&
           (o->list_count == 0 || o->list != NULL) && is_list(o) && (o->work == NULL || tn_work_is_valid(o->work)) &&
           (o->region_alignment == 0 || (tn_is_power_of_two(o->region_alignment) && o->region_alignment <= TN_ALIGNMENT_MAX));
}

tn_mem_error tn_arena_create(const tn_arena_options *options, tn_arena **arena)
{
    if (options == NULL || arena == NULL || !are_options(options))
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_arena *made = metadata.resize(metadata.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_arena){.options = *options, .metadata = metadata};
    if (options->work != NULL)
        made->work = *options->work;
    made->options.metadata = NULL; /* the caller's structs may be gone by now; the copies are what counts */
    made->options.work = NULL;
    *arena = made;
    return TN_MEM_OK;
}

static void free_tables(tn_arena **arena)
{
    tn_metadata metadata = (*arena)->metadata;
    for (size_t i = 0; i < (*arena)->table_count; i++)
        tn_metadata_free(&metadata, (*arena)->links[i].blocks, (*arena)->links[i].block_room * sizeof(tn_arena_block));
    tn_metadata_free(&metadata, (*arena)->links, (*arena)->link_room * sizeof(tn_arena_link));
    tn_metadata_free(&metadata, *arena, sizeof **arena);
    *arena = NULL;
}

tn_mem_error tn_arena_destroy(tn_arena **arena)
{
    if (arena == NULL || *arena == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = tn_arena_reset(*arena);
    if (error != TN_MEM_OK)
        return error;
    free_tables(arena);
    return TN_MEM_OK;
}

void tn_arena_abandon(tn_arena **arena)
{
    if (arena == NULL || *arena == NULL)
        return;
    TN_SEAM(taken_back_all, *arena);
    free_tables(arena);
}

/* Puts a block at `offset` of the last link, which has room for it. */
static inline void put_block(tn_arena *arena, tn_arena_link *l, size_t offset, size_t bytes, tn_stable_span *span)
{
    l->blocks[l->block_count++] = (tn_arena_block){.offset = offset, .bytes = bytes};
    l->live_blocks++;
    l->live_bytes += bytes;
    l->pending = false;
    tn_arena_note_used(arena, l, offset + bytes);
    tn_stable_put((char *)l->region.base + offset, bytes, span);
    TN_SEAM(handed_out, arena, arena->options.tag, (char *)l->region.base + offset, bytes);
}

static tn_arena_link *open_link_of(const tn_arena *arena)
{
    tn_arena_link *last = arena->link_count > 0 ? &arena->links[arena->link_count - 1] : NULL;
    return last != NULL && !last->closed ? last : NULL;
}

/* The same where the record is not sure to find room, and where freed bytes may have become clean meanwhile. *fits: whether the block does. */
static tn_mem_error put_if_it_fits(tn_arena *arena, tn_arena_link *l, size_t bytes, size_t alignment, tn_stable_span *span, bool *fits)
{
    size_t offset = 0;
    *fits = place(l, bytes, alignment, &offset);
    if (!*fits && arena->options.discipline == TN_ARENA_ENGINE && l->uncovered.count > 0) {
        tn_arena_take_back_top(arena, l);
        *fits = place(l, bytes, alignment, &offset);
    }
    if (!*fits)
        return TN_MEM_E_EXHAUSTED;
    if (!tn_arena_make_room(arena, l, l->block_count + 1))
        return TN_MEM_E_HOST_MEMORY;
    put_block(arena, l, offset, bytes, span);
    return TN_MEM_OK;
}

static bool are_sizes(size_t bytes, size_t alignment)
{
    return bytes != 0 && tn_is_power_of_two(alignment) && alignment <= TN_ALIGNMENT_MAX;
}

/* Where the table of blocks is full, the open region is, or an argument is not valid. */
static __attribute__((noinline)) tn_mem_error take_slowly(tn_arena *arena, size_t bytes, size_t alignment, tn_stable_span *span)
{
    *span = tn_stable_none();
    if (!are_sizes(bytes, alignment))
        return TN_MEM_E_ARGUMENT;
    tn_arena_link *open = open_link_of(arena);
    if (open != NULL) {
        bool fits;
        tn_mem_error put = put_if_it_fits(arena, open, bytes, alignment, span, &fits);
        if (fits)
            return put;
    }
    size_t capacity = planned_capacity(arena);
    tn_mem_error error = TN_MEM_E_EXHAUSTED;
    if (bytes <= capacity) /* the region is aligned as asked, so that it begins with this tn_arena_block */
        error = tn_arena_open_link(arena, capacity, alignment > TN_ALIGNMENT_DEFAULT ? alignment : TN_ALIGNMENT_DEFAULT);
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
    if (are_sizes(bytes, alignment) && arena->link_count > 0) {
        tn_arena_link *last = &arena->links[arena->link_count - 1];
        size_t offset;
        if (!last->closed && last->block_count < last->block_room && place(last, bytes, alignment, &offset)) {
            put_block(arena, last, offset, bytes, span);
            return TN_MEM_OK;
        }
    }
    return take_slowly(arena, bytes, alignment, span);
}

static tn_mem_error open_listed(tn_arena *arena, uint32_t site, size_t bytes, size_t alignment)
{
    const tn_arena_listed *listed = tn_arena_find_listed(arena, site, bytes);
    if (listed == NULL)
        return TN_MEM_E_EXHAUSTED;
    tn_mem_error error = tn_arena_open_link(arena, listed->capacity, alignment > TN_ALIGNMENT_DEFAULT ? alignment : TN_ALIGNMENT_DEFAULT);
    if (error == TN_MEM_OK)
        arena->links[arena->link_count - 1].takes_planned = listed->takes;
    return error;
}

tn_mem_error tn_arena_open_listed(tn_arena *arena, uint32_t site, size_t bytes)
{
    return arena == NULL ? TN_MEM_E_ARGUMENT : open_listed(arena, site, bytes, TN_ALIGNMENT_DEFAULT);
}

tn_mem_error tn_arena_take_of(tn_arena *arena, uint32_t site, size_t bytes, size_t alignment, tn_stable_span *span)
{
    if (arena == NULL || span == NULL)
        return TN_MEM_E_ARGUMENT;
    *span = tn_stable_none();
    alignment = alignment == 0 ? TN_ALIGNMENT_DEFAULT : alignment;
    if (!are_sizes(bytes, alignment))
        return TN_MEM_E_ARGUMENT;
    tn_arena_link *open = open_link_of(arena);
    if (open != NULL && open->takes_planned > 0 && open->takes >= open->takes_planned) {
        tn_arena_close_region(arena);
        open = NULL;
    }
    tn_mem_error error = open != NULL ? TN_MEM_OK : open_listed(arena, site, bytes, alignment);
    if (error == TN_MEM_OK) {
        bool fits;
        open = &arena->links[arena->link_count - 1];
        open->takes++;
        error = put_if_it_fits(arena, open, bytes, alignment, span, &fits);
    }
    if (error == TN_MEM_E_EXHAUSTED)
        arena->counted.exhausted++;
    return error;
}

tn_mem_error tn_arena_free(tn_arena *arena, const void *address)
{
    return tn_arena_free_used(arena, address, NULL);
}

tn_mem_error tn_arena_free_used(tn_arena *arena, const void *address, const tn_work_set *uncovered)
{
    if (arena == NULL || (uncovered != NULL && uncovered->count > 0 && arena->work.table == NULL))
        return TN_MEM_E_ARGUMENT;
    tn_arena_link *l = find_link(arena, address);
    if (l == NULL)
        return bad_free(arena, address, TN_MEM_E_ARGUMENT);
    size_t offset = (uintptr_t)address - (uintptr_t)l->region.base;
    if (offset >= l->used)
        return bad_free(arena, address, TN_MEM_E_STALE);
    tn_arena_block *b = find_block(l, offset);
    if (b == NULL || b->offset != offset)
        return bad_free(arena, address, TN_MEM_E_ARGUMENT);
    if (b->bytes == 0)
        return bad_free(arena, address, TN_MEM_E_STALE);
    TN_SEAM(taken_back, arena, address);
    if (uncovered != NULL)
        tn_work_set_merge(&l->uncovered, &arena->work, uncovered);
    l->live_blocks--;
    l->live_bytes -= b->bytes;
    b->bytes = 0;
    if (arena->options.discipline == TN_ARENA_ENGINE)
        tn_arena_take_back_top(arena, l);
    else
        tn_arena_close_region(arena);
    if (l->live_blocks == 0)
        note_empty(arena, l);
    /* The block is freed whatever the backend says; what it refused is counted and tried again. */
    if (!arena->options.keeps_empty)
        (void)!tn_arena_release_empties(arena, false);
    return TN_MEM_OK;
}

tn_mem_error tn_arena_find(const tn_arena *arena, const void *address, void **base, size_t *bytes)
{
    const tn_arena_link *l = arena != NULL ? find_link(arena, address) : NULL;
    if (l == NULL)
        return TN_MEM_E_ARGUMENT;
    size_t offset = (uintptr_t)address - (uintptr_t)l->region.base;
    const tn_arena_block *b = find_block(l, offset);
    if (b == NULL || offset - b->offset >= b->bytes)
        return TN_MEM_E_STALE;
    if (base != NULL)
        *base = (char *)l->region.base + b->offset;
    if (bytes != NULL)
        *bytes = b->bytes;
    return TN_MEM_OK;
}

tn_mem_error tn_arena_reset(tn_arena *arena)
{
    if (arena == NULL)
        return TN_MEM_E_ARGUMENT;
    arena->counted.generation++;
    TN_SEAM(taken_back_all, arena);
    for (size_t i = 0; i < arena->link_count; i++) {
        tn_arena_link *l = &arena->links[i];
        l->live_blocks = l->live_bytes = l->block_count = 0;
        tn_arena_note_used(arena, l, 0);
    }
    return tn_arena_release_empties(arena, true);
}

tn_mem_error tn_arena_trim(tn_arena *arena)
{
    return arena == NULL ? TN_MEM_E_ARGUMENT : tn_arena_release_empties(arena, true);
}

tn_mem_error tn_arena_open_region(tn_arena *arena, size_t capacity)
{
    if (arena == NULL)
        return TN_MEM_E_ARGUMENT;
    capacity = capacity == 0 ? planned_capacity(arena) : capacity;
    return capacity == 0 ? TN_MEM_E_ARGUMENT : tn_arena_open_link(arena, capacity, TN_ALIGNMENT_DEFAULT);
}

void tn_arena_close_region(tn_arena *arena)
{
    if (arena->link_count == 0)
        return;
    tn_arena_link *last = &arena->links[arena->link_count - 1];
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
