/* T1: a chain of regions, one allocation of the driver's each. A region closes at a T1 free, at a change of phase, or after its planned number of
 * requests; when its blocks are gone it goes back by the driver's free, which waits for the device, so that nothing has to be clean. With pin_regions
 * it stays instead, and the next region that is opened and fits into it is made there, once the device is done with what was in it. */
#include <string.h>

#include "serve/place_inside.h"

tn_mem_error tn_place_model_create(tn_place *p)
{
    const tn_plan_section *s = p->options.section;
    tn_place_model *m = &p->model;
    if (s->region_count == 0) return TN_MEM_OK;
    if (!p->options.device) return TN_MEM_E_UNSUPPORTED;
    /* As many at once as there were in all, and as many again: two models, or a load before an unload. */
    for (size_t i = 0; i < s->region_count; i++) m->room += s->regions[i].times ? s->regions[i].times : 1;
    m->room *= 2;
    m->regions = tn_place_memory(p, m->room, sizeof *m->regions);
    return m->regions ? TN_MEM_OK : TN_MEM_E_HOST_MEMORY;
}

void tn_place_model_destroy(tn_place *p, int forget)
{
    tn_place_model *m = &p->model;
    for (size_t i = 0; i < m->count; i++) {
        if (!forget) (void)(tn_backend_release(p->options.device, &m->regions[i].memory) == TN_MEM_OK);
    }
    if (m->regions) tn_metadata_free(&p->metadata, m->regions, m->room * sizeof *m->regions);
    memset(m, 0, sizeof *m);
}

static const tn_plan_region *planned_region(const tn_plan_section *s, const tn_plan_row *row, size_t bytes)
{
    const tn_plan_region *best = NULL;
    for (size_t i = 0; i < s->region_count; i++) {
        const tn_plan_region *r = &s->regions[i];
        if (r->key != row->key || r->python != row->python) continue;
        if (r->first_bytes == bytes) return r;
        if (!best || r->capacity > best->capacity) best = r;
    }
    return best;
}

/* Under the lock. Whether a region is open; another phase closes it for good. */
static int is_open(tn_place_model *m, uint8_t phase)
{
    if (m->phase != phase) m->left = 0;
    m->phase = phase;
    return m->left > 0;
}

/* From the region that is open, under the lock; NULL: it no longer fits, and counts among the region's requests all the same. */
static void *bump(tn_place_model *m, size_t bytes)
{
    tn_place_region *r = &m->regions[m->count - 1];
    uint64_t alignment = tn_native_alignment(TN_FAMILY_DEVICE, bytes), whole = tn_round_up(bytes, 512);
    uint64_t base = (uint64_t)(uintptr_t)r->memory.base, at = tn_round_up(base + r->mark, alignment) - base;
    m->left--;
    if (at > r->capacity || whole > r->capacity - at) return NULL;
    r->mark = at + whole;
    r->live++;
    return (char *)r->memory.base + at;
}

static void answer(tn_place_answer *out, void *address)
{
    out->address = address;
    out->spill = address ? TN_PLACE_SERVED : TN_PLACE_NO_ROOM;
    out->tier = address ? TN_PLACE_T1 : TN_PLACE_NATIVE;
}

static size_t index_of(const tn_place_model *m, uint64_t id)
{
    size_t i = 0;
    while (m->regions[i].memory.id != id) i++;
    return i;
}

/* Gives back the regions whose blocks are gone. What the driver does not take back stays in the chain, for the next time. */
static void give_back_empty(tn_place *p)
{
    tn_place_model *m = &p->model;
    uint64_t refused = 0; /* by rising ids, so that each is tried once */
    for (;;) {
        tn_region gone = {0};
        tn_spin_lock(&m->lock);
        tn_place_region *next = NULL;
        for (size_t i = 0; i < m->count; i++) {
            tn_place_region *r = &m->regions[i];
            if (r->live == 0 && !r->leaving && r->memory.id > refused && (!next || r->memory.id < next->memory.id)) next = r;
        }
        if (next) {
            next->leaving = 1;
            gone = next->memory;
        }
        tn_spin_unlock(&m->lock);
        if (!gone.base) return;
        uint64_t id = gone.id;
        int released = tn_backend_release(p->options.device, &gone) == TN_MEM_OK;
        tn_spin_lock(&m->lock);
        size_t i = index_of(m, id);
        m->regions[i].leaving = 0;
        if (released) memmove(&m->regions[i], &m->regions[i + 1], (--m->count - i) * sizeof *m->regions);
        else refused = id;
        tn_spin_unlock(&m->lock);
    }
}

/* ---- regions that stay */

/* Under the lock: the smallest that is empty and can be the planned one; `count` where there is none. */
static size_t empty_region(const tn_place_model *m, const tn_plan_region *planned, uint64_t alignment)
{
    size_t best = m->count;
    for (size_t i = 0; i < m->count; i++) {
        const tn_place_region *r = &m->regions[i];
        if (r->live > 0 || r->leaving || r->room < planned->capacity || (uint64_t)(uintptr_t)r->memory.base % alignment != 0) continue;
        if (best == m->count || r->room < m->regions[best].room) best = i;
    }
    return best;
}

/* Opens the planned region in memory that an unloaded model left. 0: there is none, or the device is not done with it and nothing can be waited for. */
static int open_again(tn_place *p, const tn_plan_region *planned, size_t bytes, uint8_t phase, int may_wait, tn_place_answer *out, void **address)
{
    tn_place_model *m = &p->model;
    tn_work_set uncovered;
    tn_spin_lock(&m->lock);
    size_t i = empty_region(m, planned, tn_native_alignment(TN_FAMILY_DEVICE, bytes));
    int found = i < m->count;
    uint64_t id = 0;
    if (found) {
        m->regions[i].leaving = 1;
        id = m->regions[i].memory.id;
        uncovered = m->regions[i].uncovered;
    }
    tn_spin_unlock(&m->lock);
    if (!found) return 0;
    int clean = tn_work_set_is_clean(&uncovered, &p->options.work);
    if (!clean && may_wait && tn_work_set_wait(&uncovered, &p->options.work) == TN_MEM_OK) {
        __atomic_fetch_add(&p->waits, 1, __ATOMIC_RELAXED);
        out->waits++;
        clean = 1;
    }
    tn_spin_lock(&m->lock);
    i = index_of(m, id);
    m->regions[i].leaving = 0;
    /* Another thread may have opened one meanwhile: then that one is the load's. */
    int open = is_open(m, phase);
    if (clean && !open) {
        tn_place_region r = m->regions[i];
        memmove(&m->regions[i], &m->regions[i + 1], (m->count - 1 - i) * sizeof *m->regions);
        r.capacity = planned->capacity;
        r.mark = 0;
        r.uncovered = (tn_work_set){0};
        m->regions[m->count - 1] = r;
        m->left = planned->count;
        open = 1;
    }
    if (open) *address = bump(m, bytes);
    tn_spin_unlock(&m->lock);
    return open;
}

/* What stays is never more than the plan has for T1, and gives way where the driver has no memory left. */
static void make_room(tn_place *p, size_t capacity)
{
    tn_place_model *m = &p->model;
    const tn_plan_section *s = p->options.section;
    uint64_t held = capacity, most = 0;
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].discipline == TN_D_T1) most += s->tiers[i].capacity;
    tn_spin_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++) held += m->regions[i].room;
    int full = held > most || m->count == m->room;
    tn_spin_unlock(&m->lock);
    if (full) give_back_empty(p);
}

static tn_mem_error acquire(tn_place *p, size_t capacity, uint64_t alignment, tn_region *memory)
{
    /* What is left of empty regions may be the memory that is missing. */
    if (p->options.pin_regions) make_room(p, capacity);
    else give_back_empty(p);
    tn_mem_error error = tn_backend_acquire(p->options.device, capacity, alignment, TN_PLACE_TAG_T1, memory);
    if (error == TN_MEM_OK || !p->options.pin_regions) return error;
    give_back_empty(p);
    return tn_backend_acquire(p->options.device, capacity, alignment, TN_PLACE_TAG_T1, memory);
}

void tn_place_model_take(tn_place *p, const tn_plan_row *row, size_t bytes, uint8_t phase, int may_wait, tn_place_answer *out)
{
    tn_place_model *m = &p->model;
    void *address = NULL;
    answer(out, NULL);
    if (!m->regions) return;
    tn_spin_lock(&m->lock);
    int open = is_open(m, phase);
    if (open) address = bump(m, bytes);
    tn_spin_unlock(&m->lock);
    const tn_plan_region *planned = open ? NULL : planned_region(p->options.section, row, bytes);
    if (!planned || planned->capacity < tn_round_up(bytes, 512)) {
        answer(out, address);
        return;
    }
    if (p->options.pin_regions && open_again(p, planned, bytes, phase, may_wait, out, &address)) {
        answer(out, address);
        return;
    }
    tn_region memory = {0};
    if (acquire(p, planned->capacity, tn_native_alignment(TN_FAMILY_DEVICE, bytes), &memory) != TN_MEM_OK) return;
    tn_spin_lock(&m->lock);
    /* Another thread may have opened one meanwhile: then that one is the load's, and this one not needed. */
    if (is_open(m, phase)) {
        address = bump(m, bytes);
    } else if (m->count < m->room) {
        m->regions[m->count++] = (tn_place_region){.memory = memory, .capacity = planned->capacity, .room = planned->capacity};
        m->left = planned->count;
        address = bump(m, bytes);
        memory.base = NULL;
    }
    tn_spin_unlock(&m->lock);
    /* A backend keeps what the driver does not take back, and gives it back when it ends. */
    if (memory.base) (void)(tn_backend_release(p->options.device, &memory) == TN_MEM_OK);
    answer(out, address);
}

tn_mem_error tn_place_model_give(tn_place *p, void *address, const tn_work_set *uncovered)
{
    tn_place_model *m = &p->model;
    tn_mem_error error = TN_MEM_E_ARGUMENT;
    uint64_t at = (uint64_t)(uintptr_t)address;
    int empty = 0;
    tn_spin_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++) {
        tn_place_region *r = &m->regions[i];
        if (at - (uint64_t)(uintptr_t)r->memory.base >= r->mark || r->live == 0) continue;
        error = TN_MEM_OK;
        m->left = 0; /* what comes next belongs to another load */
        if (p->options.pin_regions && uncovered) tn_work_set_merge(&r->uncovered, &p->options.work, uncovered);
        empty = --r->live == 0 && !p->options.pin_regions;
        break;
    }
    tn_spin_unlock(&m->lock);
    if (empty) give_back_empty(p);
    return error;
}
