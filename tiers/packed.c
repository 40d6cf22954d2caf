#include "tiers/packed.h"

#include "tiers/metadata_use.h"
#include "tiers/packed_state.h"
#include "tiers/seam_use.h"
#include "tiers/size.h"

static void *make(const tn_metadata *metadata, size_t count, size_t item)
{
    size_t bytes;
    return tn_size_multiply(count, item, &bytes) ? metadata->resize(metadata->self, NULL, 0, bytes) : NULL;
}

static bool begins_class(const tn_packed_slot *slots, size_t i)
{
    return i == 0 || slots[i].site != slots[i - 1].site || slots[i].size_class != slots[i - 1].size_class;
}

/* The slots are sorted by site and class. */
static void fill_classes(tn_packed *p)
{
    size_t class = 0, site = 0;
    for (size_t i = 0; i < p->slot_count; i++) {
        if (begins_class(p->slots, i)) {
            while (site <= p->slots[i].site)
                p->site_classes[site++] = (uint32_t)class;
            p->classes[class++] = (size_class){.bytes = p->slots[i].bytes, .first = (uint32_t)i};
        }
        p->classes[class - 1].count++;
        p->places[i].class = (uint32_t)class - 1;
    }
    while (site <= p->site_count)
        p->site_classes[site++] = (uint32_t)class;
}

/* An index for each class of many slots, one behind the other. */
static bool make_indexes(tn_packed *p)
{
    size_t bytes;
    for (size_t i = 0; i < p->class_count; i++)
        if (p->classes[i].count >= TN_PACKED_INDEX_FEWEST &&
            (!tn_packed_index_bytes(p->classes[i].count, &bytes) || !tn_size_add(p->index_bytes, bytes, &p->index_bytes)))
            return false;
    if (p->index_bytes == 0)
        return true;
    char *next = p->indexes = make(&p->metadata, 1, p->index_bytes);
    for (size_t i = 0; p->indexes != NULL && i < p->class_count; i++)
        if (p->classes[i].count >= TN_PACKED_INDEX_FEWEST) {
            p->classes[i].index = tn_packed_index_place(next, p->classes[i].count);
            (void)tn_packed_index_bytes(p->classes[i].count, &bytes);
            next += bytes;
        }
    return p->indexes != NULL;
}

static bool make_tables(tn_packed *p, const tn_packed_plan *plan)
{
    for (size_t i = 0; i < plan->slot_count; i++)
        p->class_count += begins_class(plan->slots, i);
    p->places = make(&p->metadata, p->slot_count, sizeof(place));
    p->classes = make(&p->metadata, p->class_count, sizeof(size_class));
    p->site_classes = make(&p->metadata, p->site_count + 1, sizeof(uint32_t));
    tn_packed_range *ranges = make(&p->metadata, p->slot_count, sizeof *ranges);
    bool made = p->places != NULL && p->classes != NULL && p->site_classes != NULL && ranges != NULL &&
                tn_packed_cells_create(&p->cells, plan, &p->metadata, ranges);
    for (size_t i = 0; made && i < p->slot_count; i++)
        p->places[i] = (place){.range = ranges[i]};
    if (made)
        fill_classes(p);
    tn_metadata_free(&p->metadata, ranges, p->slot_count * sizeof *ranges);
    return made && make_indexes(p);
}

static void free_tables(tn_packed *p)
{
    tn_metadata metadata = p->metadata;
    if (p->cells.cell_count > 0)
        tn_packed_cells_free(&p->cells, &metadata);
    tn_metadata_free(&metadata, p->indexes, p->index_bytes);
    tn_metadata_free(&metadata, p->places, p->slot_count * sizeof(place));
    tn_metadata_free(&metadata, p->classes, p->class_count * sizeof(size_class));
    tn_metadata_free(&metadata, p->site_classes, (p->site_count + 1) * sizeof(uint32_t));
    tn_metadata_free(&metadata, p, sizeof *p);
}

static size_t region_alignment(const tn_packed_plan *plan)
{
    size_t most = TN_ALIGNMENT_DEFAULT;
    for (size_t i = 0; i < plan->slot_count; i++)
        most = plan->slots[i].alignment > most ? plan->slots[i].alignment : most;
    return most;
}

tn_mem_error tn_packed_create(const tn_packed_options *options, tn_packed **packed)
{
    if (options == NULL || packed == NULL || options->backend == NULL || options->tag == NULL || !tn_work_is_valid(&options->work))
        return TN_MEM_E_ARGUMENT;
    const tn_packed_plan *plan = options->plan;
    tn_mem_error error = tn_packed_plan_check(plan, options->metadata, NULL);
    if (error != TN_MEM_OK)
        return error;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_packed *p = metadata.resize(metadata.self, NULL, 0, sizeof *p);
    if (p == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *p = (tn_packed){.capacity = plan->capacity, .slots = plan->slots, .slot_count = plan->slot_count, .site_count = plan->site_count,
                     .work = options->work, .backend = options->backend, .metadata = metadata};
    error = TN_MEM_E_HOST_MEMORY;
    if (make_tables(p, plan))
        error = tn_backend_acquire(p->backend, p->capacity, region_alignment(plan), options->tag, &p->region);
    if (error != TN_MEM_OK) {
        free_tables(p);
        return error;
    }
    p->base = p->region.base;
    *packed = p;
    return TN_MEM_OK;
}

/* What was said to be gone, and is there still. */
static void tell_live(const tn_packed *p)
{
    for (size_t i = 0; i < p->slot_count; i++)
        if (status_of(load_state(&p->places[i])) == LIVE)
            TN_SEAM(handed_out, p, p->region.tag, p->base + p->slots[i].offset, p->places[i].asked);
}

tn_mem_error tn_packed_destroy(tn_packed **packed)
{
    if (packed == NULL || *packed == NULL)
        return TN_MEM_E_ARGUMENT;
    TN_SEAM(taken_back_all, *packed); /* before the addresses can be another's */
    tn_mem_error error = tn_backend_release((*packed)->backend, &(*packed)->region);
    if (error != TN_MEM_OK) {
        tell_live(*packed);
        return error;
    }
    free_tables(*packed);
    *packed = NULL;
    return TN_MEM_OK;
}

void tn_packed_abandon(tn_packed **packed)
{
    if (packed == NULL || *packed == NULL)
        return;
    TN_SEAM(taken_back_all, *packed);
    free_tables(*packed);
    *packed = NULL;
}

/* The slot that begins at `address` and has its first cell. */
static tn_mem_error find_slot(const tn_packed *p, const void *address, uint32_t *slot)
{
    uint32_t cell;
    if ((uintptr_t)address < (uintptr_t)p->base || (uintptr_t)address - (uintptr_t)p->base >= p->capacity ||
        !tn_packed_cells_find(&p->cells, (uintptr_t)address - (uintptr_t)p->base, &cell))
        return TN_MEM_E_ARGUMENT;
    uint32_t owner = tn_packed_cells_owner(&p->cells, cell, NULL);
    if (owner == 0 || p->places[owner - 1].range.first != cell)
        return TN_MEM_E_STALE;
    *slot = owner - 1;
    return TN_MEM_OK;
}

/* How many bytes were asked for, where the slot is live. Who reads the next block's figure sees that the slot was claimed for it. */
static bool read_live(const place *p, size_t *asked)
{
    for (uint64_t seen = load_state(p), again; status_of(seen) == LIVE; seen = again) {
        *asked = __atomic_load_n(&p->asked, __ATOMIC_ACQUIRE);
        again = load_state(p);
        if (status_of(again) == LIVE && again / TAKE == seen / TAKE)
            return true;
    }
    return false;
}

tn_mem_error tn_packed_find(const tn_packed *packed, const void *address, void **base, size_t *bytes)
{
    const tn_packed *p = packed;
    uint32_t cell;
    if (p == NULL || (uintptr_t)address < (uintptr_t)p->base || (uintptr_t)address - (uintptr_t)p->base >= p->capacity)
        return TN_MEM_E_ARGUMENT;
    size_t offset = (uintptr_t)address - (uintptr_t)p->base, asked;
    uint32_t owner = tn_packed_cells_around(&p->cells, offset, &cell) ? tn_packed_cells_owner(&p->cells, cell, NULL) : 0;
    /* Who has the cell has all its slot's if it is live, now as when it was asked: a live slot's pass to nobody. */
    if (owner == 0 || !read_live(&p->places[owner - 1], &asked) || offset - p->slots[owner - 1].offset >= asked)
        return TN_MEM_E_STALE;
    if (base != NULL)
        *base = p->base + p->slots[owner - 1].offset;
    if (bytes != NULL)
        *bytes = asked;
    return TN_MEM_OK;
}

static tn_mem_error bad_free(tn_packed *p, const void *address, tn_mem_error error)
{
    if (__atomic_fetch_add(&p->bad_frees, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&p->first_bad_free, address, __ATOMIC_RELAXED);
    return error;
}

tn_mem_error tn_packed_free(tn_packed *packed, const void *address, const tn_work_set *uncovered)
{
    if (packed == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_packed *p = packed;
    uint32_t slot;
    tn_mem_error error = find_slot(p, address, &slot);
    if (error != TN_MEM_OK)
        return bad_free(p, address, error);
    place *freed = &p->places[slot];
    uint64_t seen = load_state(freed);
    do { /* again only where a hold came between */
        if (status_of(seen) != LIVE)
            return bad_free(p, address, TN_MEM_E_STALE);
    } while (!claim_place(freed, &seen));
    if (uncovered != NULL)
        tn_work_set_merge(&freed->set, &p->work, uncovered);
    uint32_t *lowest = &p->classes[freed->class].lowest, ordinal = p->slots[slot].ordinal;
    tn_packed_index *index = p->classes[freed->class].index;
    if (index != NULL && __atomic_load_n(&index->used, __ATOMIC_SEQ_CST))
        tn_packed_index_freed(index, ordinal, &freed->set);
    TN_SEAM(taken_back, p, address); /* before another can have it */
    store_state(freed, with_status(seen, FREED));
    if (ordinal < __atomic_load_n(lowest, __ATOMIC_RELAXED))
        __atomic_store_n(lowest, ordinal, __ATOMIC_RELAXED);
    return TN_MEM_OK;
}

static tn_mem_error change_holds(tn_packed *p, const void *address, bool up)
{
    uint32_t slot;
    if (p == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = find_slot(p, address, &slot);
    if (error != TN_MEM_OK)
        return error;
    place *held = &p->places[slot];
    uint64_t seen = load_state(held);
    for (;;) {
        uint64_t holds = holds_of(seen);
        if (status_of(seen) == FREE || (!up && holds == 0))
            return TN_MEM_E_STALE;
        if (up && holds == HOLDS_MAX)
            return TN_MEM_E_EXHAUSTED;
        if (status_of(seen) == CLAIMED) {
            tn_spin_relax();
            seen = load_state(held);
        } else if (__atomic_compare_exchange_n(&held->state, &seen, up ? seen + HOLD : seen - HOLD, false, __ATOMIC_ACQ_REL,
                                               __ATOMIC_ACQUIRE)) {
            return TN_MEM_OK;
        }
    }
}

tn_mem_error tn_packed_hold(tn_packed *packed, const void *address)
{
    return change_holds(packed, address, true);
}

tn_mem_error tn_packed_release_hold(tn_packed *packed, const void *address)
{
    return change_holds(packed, address, false);
}

tn_device_span tn_packed_region(const tn_packed *packed)
{
    return (tn_device_span){.data = packed->base, .bytes = packed->capacity};
}

void tn_packed_read_stats(const tn_packed *packed, tn_packed_stats *stats)
{
    const tn_packed *p = packed;
    *stats = (tn_packed_stats){.capacity = p->capacity, .slots = p->slot_count};
    for (size_t i = 0; i < p->slot_count; i++) {
        uint64_t state = load_state(&p->places[i]);
        stats->takes += state / TAKE;
        stats->held_blocks += holds_of(state) > 0;
        stats->freed_blocks += status_of(state) == FREED;
        if (status_of(state) != LIVE)
            continue;
        stats->live_blocks++;
        stats->live_bytes += __atomic_load_n(&p->places[i].asked, __ATOMIC_RELAXED);
    }
    stats->must_waits = __atomic_load_n(&p->must_waits, __ATOMIC_RELAXED);
    stats->diverged = __atomic_load_n(&p->diverged, __ATOMIC_RELAXED);
    stats->races = __atomic_load_n(&p->races, __ATOMIC_RELAXED);
    stats->looks = __atomic_load_n(&p->looks, __ATOMIC_RELAXED);
    for (size_t i = 0; i < p->class_count; i++)
        stats->looks += p->classes[i].index != NULL ? __atomic_load_n(&p->classes[i].index->steps, __ATOMIC_RELAXED) : 0;
    stats->bad_frees = __atomic_load_n(&p->bad_frees, __ATOMIC_RELAXED);
    stats->first_bad_free = __atomic_load_n(&p->first_bad_free, __ATOMIC_RELAXED);
    if (__atomic_load_n(&p->first_diverged_is_there, __ATOMIC_ACQUIRE))
        stats->first_diverged = p->first_diverged;
}
