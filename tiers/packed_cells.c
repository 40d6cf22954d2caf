#include "tiers/packed_cells.h"

#include "tiers/metadata_use.h"
#include "tiers/size.h"
#include "tiers/sort.h"

static void *make(const tn_metadata *metadata, size_t count, size_t item)
{
    size_t bytes;
    if (!tn_size_multiply(count, item, &bytes))
        return NULL;
    unsigned char *made = metadata->resize(metadata->self, NULL, 0, bytes);
    for (size_t i = 0; made != NULL && i < bytes; i++)
        made[i] = 0;
    return made;
}

static size_t block_count(const tn_packed_cells *cells)
{
    return (cells->cell_count + TN_PACKED_BLOCK - 1) / TN_PACKED_BLOCK;
}

static size_t hash(const tn_packed_cells *cells, size_t offset)
{
    return (size_t)((uint64_t)offset * 0x9E3779B97F4A7C15u >> cells->key_shift);
}

/* The place of `offset` among the keys, or the free one where it belongs. */
static size_t key_of(const tn_packed_cells *cells, size_t offset)
{
    size_t i = hash(cells, offset);
    while (cells->keys[i] != offset && cells->keys[i] != SIZE_MAX)
        i = (i + 1) & (cells->key_count - 1);
    return i;
}

/* The cuts by rising offset, each once; how many. */
static size_t cut(const tn_packed_plan *plan, tn_sort_item *cuts)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < plan->slot_count; i++) {
        cuts[count++].key = plan->slots[i].offset;
        cuts[count++].key = plan->slots[i].offset + plan->slots[i].bytes;
    }
    tn_sort(cuts, count);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || cuts[kept - 1].key != cuts[i].key)
            cuts[kept++] = cuts[i];
    return kept;
}

/* The index of a cut that is there. */
static uint32_t find_cut(const tn_sort_item *cuts, size_t count, size_t offset)
{
    size_t low = 0, high = count;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (cuts[middle].key <= offset)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static bool make_arrays(tn_packed_cells *cells, size_t slots, const tn_metadata *metadata)
{
    unsigned bits = 1;
    while (((size_t)1 << bits) < 2 * slots)
        bits++;
    cells->key_count = (size_t)1 << bits;
    cells->key_shift = 64 - bits;
    cells->owners = make(metadata, cells->cell_count, sizeof *cells->owners);
    cells->block_owners = make(metadata, block_count(cells), sizeof *cells->block_owners);
    cells->keys = make(metadata, cells->key_count, sizeof *cells->keys);
    cells->cells_of_key = make(metadata, cells->key_count, sizeof *cells->cells_of_key);
    cells->starts = make(metadata, cells->cell_count + 1, sizeof *cells->starts);
    return cells->owners != NULL && cells->block_owners != NULL && cells->keys != NULL && cells->cells_of_key != NULL &&
           cells->starts != NULL;
}

bool tn_packed_cells_create(tn_packed_cells *cells, const tn_packed_plan *plan, const tn_metadata *metadata, tn_packed_range *ranges)
{
    *cells = (tn_packed_cells){0};
    tn_sort_item *cuts = make(metadata, plan->slot_count, 2 * sizeof *cuts);
    if (cuts == NULL)
        return false;
    size_t count = cut(plan, cuts);
    cells->cell_count = count - 1; /* between each two: a slot has bytes, so there are two at least */
    bool made = make_arrays(cells, plan->slot_count, metadata);
    for (size_t i = 0; made && i < cells->key_count; i++)
        cells->keys[i] = SIZE_MAX;
    for (size_t i = 0; made && i < count; i++)
        cells->starts[i] = cuts[i].key;
    for (size_t i = 0; made && i < plan->slot_count; i++) {
        const tn_packed_slot *s = &plan->slots[i];
        ranges[i] = (tn_packed_range){find_cut(cuts, count, s->offset), find_cut(cuts, count, s->offset + s->bytes)};
        size_t key = key_of(cells, s->offset);
        cells->keys[key] = s->offset;
        cells->cells_of_key[key] = ranges[i].first;
    }
    tn_metadata_free(metadata, cuts, plan->slot_count * 2 * sizeof *cuts);
    if (!made)
        tn_packed_cells_free(cells, metadata);
    return made;
}

void tn_packed_cells_free(tn_packed_cells *cells, const tn_metadata *metadata)
{
    tn_metadata_free(metadata, cells->owners, cells->cell_count * sizeof *cells->owners);
    tn_metadata_free(metadata, cells->block_owners, block_count(cells) * sizeof *cells->block_owners);
    tn_metadata_free(metadata, cells->keys, cells->key_count * sizeof *cells->keys);
    tn_metadata_free(metadata, cells->cells_of_key, cells->key_count * sizeof *cells->cells_of_key);
    tn_metadata_free(metadata, cells->starts, (cells->cell_count + 1) * sizeof *cells->starts);
    *cells = (tn_packed_cells){0};
}

bool tn_packed_cells_find(const tn_packed_cells *cells, size_t offset, uint32_t *cell)
{
    size_t key = key_of(cells, offset);
    if (cells->keys[key] != offset || offset == SIZE_MAX)
        return false;
    *cell = cells->cells_of_key[key];
    return true;
}

bool tn_packed_cells_around(const tn_packed_cells *cells, size_t offset, uint32_t *cell)
{
    size_t low = 0, high = cells->cell_count;
    if (offset < cells->starts[0] || offset >= cells->starts[high])
        return false;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (cells->starts[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    *cell = (uint32_t)low;
    return true;
}

bool tn_packed_cells_take_untouched(tn_packed_cells *cells, uint32_t cell, uint32_t slot)
{
    uint32_t none = 0;
    return __atomic_compare_exchange_n(&cells->owners[cell], &none, slot + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void set_owner(uint32_t *owner, uint32_t value)
{
    __atomic_store_n(owner, value, __ATOMIC_RELEASE);
}

/* The part of a block that is in the range. Where one slot had the whole block, its other cells are written out for it first: who sees that the
 * block has no owner must find one at each cell. */
static void pass_part(tn_packed_cells *cells, uint32_t block, tn_packed_range part, uint32_t slot)
{
    uint32_t whole = __atomic_load_n(&cells->block_owners[block], __ATOMIC_RELAXED);
    uint32_t first = block * TN_PACKED_BLOCK;
    for (uint32_t cell = first; whole != 0 && cell < first + TN_PACKED_BLOCK; cell++)
        set_owner(&cells->owners[cell], whole);
    for (uint32_t cell = part.first; cell < part.end; cell++)
        set_owner(&cells->owners[cell], slot + 1);
    if (whole != 0)
        set_owner(&cells->block_owners[block], 0);
}

void tn_packed_cells_pass(tn_packed_cells *cells, tn_packed_range range, uint32_t slot)
{
    for (uint32_t at = range.first; at < range.end;) {
        uint32_t block = at / TN_PACKED_BLOCK, next = (block + 1) * TN_PACKED_BLOCK, end = next < range.end ? next : range.end;
        if (end - at == TN_PACKED_BLOCK)
            set_owner(&cells->block_owners[block], slot + 1);
        else
            pass_part(cells, block, (tn_packed_range){at, end}, slot);
        at = end;
    }
}
