#include "tiers/scratch.h"

#include <stdbool.h>

#include "tiers/metadata_use.h"
#include "tiers/seam_use.h"
#include "tiers/size.h"
#include "tiers/span_make.h"

typedef struct block {
    size_t offset;
    size_t bytes; /* 0: a tombstone */
    size_t end;   /* where it ends, which a tombstone must still know */
} block;

typedef struct mark_record {
    uint64_t serial;
    size_t blocks; /* how many there were: what lies below is not taken back while the mark is open */
} mark_record;

struct tn_scratch {
    char *base;
    size_t capacity; /* as planned: a backend that gives more must not make the stack behave otherwise */
    size_t top;
    block *blocks; /* by rising offset */
    size_t block_count, block_room;
    size_t floor; /* `blocks` of the innermost open mark */
    mark_record *marks;
    size_t mark_count, mark_room;
    uint64_t id, next_serial;
    tn_region region;
    tn_backend *backend;
    tn_metadata metadata;
    tn_scratch_stats counted;
};

/* So that a mark of one stack is known as such by another, also by one that was made where a destroyed one lay. */
static uint64_t next_id(void)
{
    static uint64_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

static bool make_room(tn_scratch *s, void **array, size_t *room, size_t needed, size_t item)
{
    return tn_metadata_grow(&s->metadata, array, room, needed, item);
}

static bool make_room_for_blocks(tn_scratch *s, size_t count)
{
    void *blocks = s->blocks;
    bool made = make_room(s, &blocks, &s->block_room, count, sizeof(block));
    s->blocks = blocks;
    return made;
}

static bool make_room_for_marks(tn_scratch *s, size_t count)
{
    void *marks = s->marks;
    bool made = make_room(s, &marks, &s->mark_room, count, sizeof(mark_record));
    s->marks = marks;
    return made;
}

static void free_records(tn_scratch *s)
{
    tn_metadata metadata = s->metadata;
    tn_metadata_free(&metadata, s->blocks, s->block_room * sizeof(block));
    tn_metadata_free(&metadata, s->marks, s->mark_room * sizeof(mark_record));
    tn_metadata_free(&metadata, s, sizeof *s);
}

tn_mem_error tn_scratch_create(const tn_scratch_options *options, tn_scratch **scratch)
{
    if (options == NULL || scratch == NULL || options->backend == NULL || options->tag == NULL || options->capacity == 0)
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_scratch *s = metadata.resize(metadata.self, NULL, 0, sizeof *s);
    if (s == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *s = (tn_scratch){.capacity = options->capacity, .backend = options->backend, .metadata = metadata, .id = next_id()};
    tn_mem_error error = TN_MEM_E_HOST_MEMORY;
    if (make_room_for_blocks(s, options->blocks == 0 ? 64 : options->blocks) && make_room_for_marks(s, 8))
        error = tn_backend_acquire(s->backend, s->capacity, options->alignment, options->tag, &s->region);
    if (error != TN_MEM_OK) {
        free_records(s);
        return error;
    }
    s->base = s->region.base;
    *scratch = s;
    return TN_MEM_OK;
}

tn_mem_error tn_scratch_destroy(tn_scratch **scratch)
{
    if (scratch == NULL || *scratch == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_scratch *s = *scratch;
    tn_scratch_reset(s);
    tn_mem_error error = tn_backend_release(s->backend, &s->region);
    if (error != TN_MEM_OK)
        return error;
    free_records(s);
    *scratch = NULL;
    return TN_MEM_OK;
}

void tn_scratch_abandon(tn_scratch **scratch)
{
    if (scratch == NULL || *scratch == NULL)
        return;
    tn_scratch_reset(*scratch);
    free_records(*scratch);
    *scratch = NULL;
}

tn_mem_error tn_scratch_take(tn_scratch *scratch, size_t bytes, size_t alignment, tn_stable_span *span)
{
    if (scratch == NULL || span == NULL)
        return TN_MEM_E_ARGUMENT;
    *span = tn_stable_none();
    alignment = alignment == 0 ? TN_ALIGNMENT_DEFAULT : alignment;
    if (bytes == 0 || !tn_is_power_of_two(alignment) || alignment > TN_ALIGNMENT_MAX)
        return TN_MEM_E_ARGUMENT;
    tn_scratch *s = scratch;
    size_t address, base = (uintptr_t)s->base;
    bool fits = tn_size_align_up(base + s->top, alignment, &address) && address - base <= s->capacity &&
                bytes <= s->capacity - (address - base);
    if (!fits) {
        s->counted.exhausted++;
        return TN_MEM_E_EXHAUSTED;
    }
    if (s->block_count == s->block_room && !make_room_for_blocks(s, s->block_count + 1))
        return TN_MEM_E_HOST_MEMORY;
    size_t offset = address - base;
    s->top = offset + bytes;
    s->blocks[s->block_count++] = (block){.offset = offset, .bytes = bytes, .end = s->top};
    s->counted.live_bytes += bytes;
    if (s->top > s->counted.high_water)
        s->counted.high_water = s->top;
    TN_SEAM(handed_out, s, s->region.tag, s->base + offset, bytes);
    tn_stable_put(s->base + offset, bytes, span);
    return TN_MEM_OK;
}

/* Takes back the dead blocks on top, down to the innermost open mark. */
static void take_back(tn_scratch *s)
{
    while (s->block_count > s->floor && s->blocks[s->block_count - 1].bytes == 0) {
        s->block_count--;
        s->counted.tombstones--;
    }
    s->top = s->block_count > 0 ? s->blocks[s->block_count - 1].end : 0;
}

static tn_mem_error bad_free(tn_scratch *s, const void *address, tn_mem_error error)
{
    if (s->counted.bad_frees++ == 0)
        s->counted.first_bad_free = address;
    return error;
}

/* The last block that begins at or below `offset`, NULL where none does. */
static block *find_block(const tn_scratch *s, size_t offset)
{
    size_t low = 0, high = s->block_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->blocks[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low == 0 ? NULL : &s->blocks[low - 1];
}

/* Not the live top: a tombstone, or an error. */
static tn_mem_error free_below(tn_scratch *s, const void *address)
{
    size_t offset = (uintptr_t)address - (uintptr_t)s->base;
    if ((uintptr_t)address < (uintptr_t)s->base || offset >= s->capacity)
        return bad_free(s, address, TN_MEM_E_ARGUMENT);
    if (offset >= s->top)
        return bad_free(s, address, TN_MEM_E_STALE);
    block *b = find_block(s, offset);
    if (b == NULL || b->offset != offset)
        return bad_free(s, address, TN_MEM_E_ARGUMENT);
    if (b->bytes == 0)
        return bad_free(s, address, TN_MEM_E_STALE);
    TN_SEAM(taken_back, s, address);
    s->counted.live_bytes -= b->bytes;
    b->bytes = 0;
    s->counted.tombstones++;
    s->counted.out_of_order++;
    return TN_MEM_OK;
}

tn_mem_error tn_scratch_free(tn_scratch *scratch, const void *address)
{
    if (scratch == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_scratch *s = scratch;
    if (s->block_count <= s->floor)
        return free_below(s, address);
    const block *last = &s->blocks[s->block_count - 1];
    if (s->base + last->offset != address)
        return free_below(s, address);
    TN_SEAM(taken_back, s, address);
    /* The top is never a tombstone above the innermost mark: take_back has seen to that. */
    s->counted.live_bytes -= last->bytes;
    s->block_count--;
    if (s->counted.tombstones > 0)
        take_back(s);
    else
        s->top = s->block_count > 0 ? last[-1].end : 0;
    return TN_MEM_OK;
}

tn_mem_error tn_scratch_find(const tn_scratch *scratch, const void *address, void **base, size_t *bytes)
{
    const tn_scratch *s = scratch;
    if (s == NULL || (uintptr_t)address < (uintptr_t)s->base || (uintptr_t)address - (uintptr_t)s->base >= s->capacity)
        return TN_MEM_E_ARGUMENT;
    size_t offset = (uintptr_t)address - (uintptr_t)s->base;
    const block *b = find_block(s, offset);
    if (b == NULL || offset - b->offset >= b->bytes)
        return TN_MEM_E_STALE;
    if (base != NULL)
        *base = s->base + b->offset;
    if (bytes != NULL)
        *bytes = b->bytes;
    return TN_MEM_OK;
}

tn_mem_error tn_scratch_open_mark(tn_scratch *scratch, tn_scratch_mark *mark)
{
    if (scratch == NULL || mark == NULL)
        return TN_MEM_E_ARGUMENT;
    *mark = (tn_scratch_mark){0};
    tn_scratch *s = scratch;
    if (s->mark_count == s->mark_room && !make_room_for_marks(s, s->mark_count + 1))
        return TN_MEM_E_HOST_MEMORY;
    *mark = (tn_scratch_mark){.stack = s->id, .serial = ++s->next_serial, .depth = s->mark_count};
    s->marks[s->mark_count++] = (mark_record){.serial = mark->serial, .blocks = s->block_count};
    s->floor = s->block_count;
    return TN_MEM_OK;
}

static tn_mem_error check_mark(const tn_scratch *s, const tn_scratch_mark *mark)
{
    if (mark->stack != s->id)
        return TN_MEM_E_ARGUMENT;
    if (mark->depth >= s->mark_count || s->marks[mark->depth].serial != mark->serial)
        return TN_MEM_E_STALE;
    return mark->depth + 1 == s->mark_count ? TN_MEM_OK : TN_MEM_E_ORDER;
}

tn_mem_error tn_scratch_rewind(tn_scratch *scratch, tn_scratch_mark mark)
{
    if (scratch == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_scratch *s = scratch;
    tn_mem_error error = check_mark(s, &mark);
    if (error != TN_MEM_OK) {
        s->counted.bad_marks++;
        return error;
    }
    for (size_t i = s->marks[mark.depth].blocks; i < s->block_count; i++) {
        if (s->blocks[i].bytes > 0)
            TN_SEAM(taken_back, s, s->base + s->blocks[i].offset);
        s->counted.live_bytes -= s->blocks[i].bytes;
        s->counted.tombstones -= s->blocks[i].bytes == 0;
    }
    s->block_count = s->marks[mark.depth].blocks;
    s->mark_count = mark.depth;
    s->floor = s->mark_count > 0 ? s->marks[s->mark_count - 1].blocks : 0;
    take_back(s);
    return TN_MEM_OK;
}

void tn_scratch_reset(tn_scratch *scratch)
{
    TN_SEAM(taken_back_all, scratch);
    scratch->block_count = scratch->mark_count = scratch->floor = scratch->top = 0;
    scratch->counted.live_bytes = scratch->counted.tombstones = 0;
    scratch->counted.generation++;
}

void tn_scratch_read_stats(const tn_scratch *scratch, tn_scratch_stats *stats)
{
    *stats = scratch->counted;
    stats->capacity = scratch->capacity;
    stats->used = scratch->top;
    stats->live_blocks = scratch->block_count - scratch->counted.tombstones;
    stats->open_marks = scratch->mark_count;
}
