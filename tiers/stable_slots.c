#include "tiers/stable_slots.h"

#include "tiers/key_map.h"
#include "tiers/seam_use.h"
#include "tiers/span_make.h"
#include "tiers/spin.h"

typedef enum status { TAKEN, RETURNING, RELEASED, DROPPED } status;

typedef struct slot {
    size_t offset, bytes; /* as it was made */
    size_t asked;         /* by the last take */
    uint64_t key;         /* whose it is, unless dropped */
    status status;
    tn_work_set set;
} slot;

struct tn_stable_slots {
    tn_spin lock;
    char *base;
    size_t capacity, used;
    slot *slots;
    size_t slot_count, slot_room;
    tn_key_map by_key;
    tn_work work; /* table NULL: none */
    tn_region region;
    tn_backend *backend;
    tn_metadata metadata;
    tn_stable_slots_stats counted;
};

static void free_tables(tn_stable_slots *s)
{
    tn_metadata metadata = s->metadata;
    if (s->by_key.entries != NULL)
        tn_key_map_free(&s->by_key, &metadata);
    tn_metadata_free(&metadata, s->slots, s->slot_room * sizeof(slot));
    tn_metadata_free(&metadata, s, sizeof *s);
}

static tn_mem_error check_options(const tn_stable_slots_options *o)
{
    if (o == NULL || o->backend == NULL || o->tag == NULL || o->capacity == 0 || o->slots == 0)
        return TN_MEM_E_ARGUMENT;
    return o->work == NULL || tn_work_is_valid(o->work) ? TN_MEM_OK : TN_MEM_E_ARGUMENT;
}

tn_mem_error tn_stable_slots_create(const tn_stable_slots_options *options, tn_stable_slots **slots)
{
    tn_mem_error error = check_options(options);
    if (error != TN_MEM_OK || slots == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    size_t bytes;
    if (options->slots >= TN_KEY_MAP_NONE || !tn_size_multiply(options->slots, sizeof(slot), &bytes))
        return TN_MEM_E_HOST_MEMORY;
    tn_stable_slots *s = metadata.resize(metadata.self, NULL, 0, sizeof *s);
    if (s == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *s = (tn_stable_slots){.capacity = options->capacity, .slot_room = options->slots, .backend = options->backend, .metadata = metadata};
    if (options->work != NULL)
        s->work = *options->work;
    s->slots = metadata.resize(metadata.self, NULL, 0, bytes);
    error = TN_MEM_E_HOST_MEMORY;
    if (s->slots != NULL && tn_key_map_create(&s->by_key, options->slots, &metadata))
        error = tn_backend_acquire(s->backend, s->capacity, options->alignment, options->tag, &s->region);
    if (error != TN_MEM_OK) {
        free_tables(s);
        return error;
    }
    s->base = s->region.base;
    *slots = s;
    return TN_MEM_OK;
}

tn_mem_error tn_stable_slots_destroy(tn_stable_slots **slots)
{
    if (slots == NULL || *slots == NULL)
        return TN_MEM_E_ARGUMENT;
    for (size_t i = 0; i < (*slots)->slot_count; i++)
        if ((*slots)->slots[i].status == TAKEN)
            return TN_MEM_E_LEFTOVER;
    tn_mem_error error = tn_backend_release((*slots)->backend, &(*slots)->region);
    if (error != TN_MEM_OK)
        return error;
    free_tables(*slots);
    *slots = NULL;
    return TN_MEM_OK;
}

static bool is_aligned(const tn_stable_slots *s, const slot *at, size_t alignment)
{
    return ((uintptr_t)s->base + at->offset) % alignment == 0;
}

static bool is_clean(tn_stable_slots *s, slot *at, uint64_t queue)
{
    return at->set.count == 0 || tn_work_set_is_ready(&at->set, &s->work, queue);
}

/* The smallest dropped slot that holds so much and is clean, of no more than twice the size; *dirty: there is one that is not clean. */
static slot *find_dropped(tn_stable_slots *s, size_t bytes, size_t alignment, uint64_t queue, bool *dirty)
{
    slot *best = NULL;
    for (size_t i = 0; i < s->slot_count && s->counted.dropped > 0; i++) {
        slot *at = &s->slots[i];
        if (at->status != DROPPED || at->bytes < bytes || at->bytes / 2 > bytes || !is_aligned(s, at, alignment))
            continue;
        if (best != NULL && best->bytes <= at->bytes)
            continue;
        if (is_clean(s, at, queue))
            best = at;
        else
            *dirty = true;
    }
    return best;
}

/* A slot beyond those that were made; NULL where there is no room. */
static slot *make_slot(tn_stable_slots *s, size_t bytes, size_t alignment)
{
    size_t base = (uintptr_t)s->base, address;
    if (s->slot_count == s->slot_room || !tn_size_align_up(base + s->used, alignment, &address))
        return NULL;
    size_t offset = address - base;
    if (offset > s->capacity || bytes > s->capacity - offset)
        return NULL;
    slot *made = &s->slots[s->slot_count++];
    *made = (slot){.offset = offset, .bytes = bytes, .status = DROPPED};
    s->used = offset + bytes;
    s->counted.dropped++;
    return made;
}

static tn_mem_error find_or_make(tn_stable_slots *s, uint64_t key, size_t bytes, size_t alignment, uint64_t queue, slot **found)
{
    uint32_t number = tn_key_map_find(&s->by_key, key);
    if (number != TN_KEY_MAP_NONE) {
        slot *at = *found = &s->slots[number];
        if (at->status != RELEASED)
            return TN_MEM_E_IN_USE;
        if (at->bytes < bytes || !is_aligned(s, at, alignment))
            return TN_MEM_E_NOT_GROWABLE;
        if (!is_clean(s, at, queue))
            return TN_MEM_E_MUST_WAIT;
        s->counted.comebacks++;
        s->counted.released--;
        return TN_MEM_OK;
    }
    bool dirty = false;
    slot *at = find_dropped(s, bytes, alignment, queue, &dirty);
    if (at == NULL)
        at = make_slot(s, bytes, alignment);
    if (at == NULL)
        return dirty ? TN_MEM_E_MUST_WAIT : TN_MEM_E_EXHAUSTED;
    at->key = key;
    tn_key_map_put(&s->by_key, key, (uint32_t)(at - s->slots));
    s->counted.dropped--;
    *found = at;
    return TN_MEM_OK;
}

tn_mem_error tn_stable_slots_take(tn_stable_slots *slots, uint64_t key, size_t bytes, size_t alignment, uint64_t queue,
                                  tn_stable_span *span)
{
    if (slots == NULL || span == NULL)
        return TN_MEM_E_ARGUMENT;
    *span = tn_stable_none();
    alignment = alignment == 0 ? TN_ALIGNMENT_DEFAULT : alignment;
    if (bytes == 0 || !tn_is_power_of_two(alignment) || alignment > TN_ALIGNMENT_MAX)
        return TN_MEM_E_ARGUMENT;
    slot *at = NULL;
    tn_spin_lock(&slots->lock);
    tn_mem_error error = find_or_make(slots, key, bytes, alignment, queue, &at);
    slots->counted.must_waits += error == TN_MEM_E_MUST_WAIT;
    slots->counted.exhausted += error == TN_MEM_E_EXHAUSTED;
    slots->counted.bad_keys += error == TN_MEM_E_IN_USE;
    if (error == TN_MEM_OK) {
        at->status = TAKEN;
        at->asked = bytes;
        slots->counted.taken++;
        slots->counted.taken_bytes += bytes;
        tn_stable_put(slots->base + at->offset, bytes, span);
    }
    tn_spin_unlock(&slots->lock);
    if (error == TN_MEM_OK)
        TN_SEAM(handed_out, slots, slots->region.tag, tn_stable_data(*span), bytes);
    return error;
}

/* The key's slot, which is to have one status and not the other. */
static tn_mem_error find_slot(tn_stable_slots *s, uint64_t key, status wanted, tn_mem_error otherwise, slot **found)
{
    uint32_t number = tn_key_map_find(&s->by_key, key);
    if (number == TN_KEY_MAP_NONE)
        return TN_MEM_E_ARGUMENT;
    *found = &s->slots[number];
    return (*found)->status == wanted ? TN_MEM_OK : otherwise;
}

tn_mem_error tn_stable_slots_release(tn_stable_slots *slots, uint64_t key, const tn_work_set *uncovered)
{
    if (slots == NULL || (uncovered != NULL && uncovered->count > 0 && slots->work.table == NULL))
        return TN_MEM_E_ARGUMENT;
    slot *at = NULL;
    tn_spin_lock(&slots->lock);
    tn_mem_error error = find_slot(slots, key, TAKEN, TN_MEM_E_STALE, &at);
    if (error == TN_MEM_OK && tn_seam_now() != NULL) { /* told before the key can have it again, and with no lock held */
        at->status = RETURNING;
        tn_spin_unlock(&slots->lock);
        TN_SEAM(taken_back, slots, slots->base + at->offset);
        tn_spin_lock(&slots->lock);
    }
    if (error == TN_MEM_OK) {
        if (uncovered != NULL)
            tn_work_set_merge(&at->set, &slots->work, uncovered);
        at->status = RELEASED;
        slots->counted.taken--;
        slots->counted.released++;
        slots->counted.taken_bytes -= at->asked;
    }
    slots->counted.bad_keys += error != TN_MEM_OK;
    tn_spin_unlock(&slots->lock);
    return error;
}

tn_mem_error tn_stable_slots_drop(tn_stable_slots *slots, uint64_t key)
{
    if (slots == NULL)
        return TN_MEM_E_ARGUMENT;
    slot *at = NULL;
    tn_spin_lock(&slots->lock);
    tn_mem_error error = find_slot(slots, key, RELEASED, TN_MEM_E_IN_USE, &at);
    if (error == TN_MEM_OK) {
        tn_key_map_remove(&slots->by_key, key);
        at->status = DROPPED;
        slots->counted.released--;
        slots->counted.dropped++;
    }
    slots->counted.bad_keys += error != TN_MEM_OK;
    tn_spin_unlock(&slots->lock);
    return error;
}

void tn_stable_slots_read_stats(tn_stable_slots *slots, tn_stable_slots_stats *stats)
{
    tn_spin_lock(&slots->lock);
    *stats = slots->counted;
    stats->capacity = slots->capacity;
    stats->used = slots->used;
    stats->slots = slots->slot_count;
    tn_spin_unlock(&slots->lock);
}
