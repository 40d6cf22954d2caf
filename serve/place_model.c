/* T1: a chain of regions, one allocation of the driver's each. A region closes at a T1 free, at a change of phase, or after its planned number of
 * requests; when its blocks are gone it goes back by the driver's free, which waits for the device, so that nothing has to be clean. */
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

/* From the open region, under the lock. */
static void *bump(tn_place_model *m, size_t bytes, uint8_t phase)
{
    if (m->count == 0 || m->left == 0 || m->phase != phase) return NULL;
    tn_place_region *r = &m->regions[m->count - 1];
    uint64_t alignment = tn_native_alignment(TN_FAMILY_DEVICE, bytes);
    uint64_t base = (uint64_t)(uintptr_t)r->memory.base, at = tn_round_up(base + r->mark, alignment) - base;
    if (at > r->memory.committed || bytes > r->memory.committed - at) return NULL;
    r->mark = at + tn_round_up(bytes, 512);
    r->live++;
    m->left--;
    return (char *)r->memory.base + at;
}

static void answer(tn_place_answer *out, void *address)
{
    out->address = address;
    out->spill = address ? TN_PLACE_SERVED : TN_PLACE_NO_ROOM;
    out->tier = address ? TN_PLACE_T1 : TN_PLACE_NATIVE;
}

void tn_place_model_take(tn_place *p, const tn_plan_row *row, size_t bytes, uint8_t phase, tn_place_answer *out)
{
    tn_place_model *m = &p->model;
    answer(out, NULL);
    if (!m->regions) return;
    tn_spin_lock(&m->lock);
    int open = m->count && m->left && m->phase == phase;
    void *address = bump(m, bytes, phase);
    if (open && !address) m->left--; /* it counts among the region's requests, as the planner replays it */
    tn_spin_unlock(&m->lock);
    const tn_plan_region *planned = address || open ? NULL : planned_region(p->options.section, row, bytes);
    if (address || !planned || planned->capacity < bytes) { /* what no longer fits an open region spills */
        answer(out, address);
        return;
    }
    tn_region memory = {0};
    if (tn_backend_acquire(p->options.device, planned->capacity, tn_native_alignment(TN_FAMILY_DEVICE, bytes), TN_PLACE_TAG_T1, &memory) != TN_MEM_OK) return;
    tn_spin_lock(&m->lock);
    /* Another thread may have opened one meanwhile: then this one is its and not needed. */
    if (m->count && m->left && m->phase == phase) address = bump(m, bytes, phase);
    if (!address && m->count < m->room) {
        m->regions[m->count++] = (tn_place_region){.memory = memory};
        m->left = planned->count;
        m->phase = phase;
        address = bump(m, bytes, phase);
        memory.base = NULL;
    }
    tn_spin_unlock(&m->lock);
    if (memory.base) (void)(tn_backend_release(p->options.device, &memory) == TN_MEM_OK);
    answer(out, address);
}

tn_mem_error tn_place_model_give(tn_place *p, void *address)
{
    tn_place_model *m = &p->model;
    tn_region gone = {0};
    tn_mem_error error = TN_MEM_E_ARGUMENT;
    uint64_t at = (uint64_t)(uintptr_t)address;
    tn_spin_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++) {
        tn_place_region *r = &m->regions[i];
        if (at - (uint64_t)(uintptr_t)r->memory.base >= r->memory.committed || r->live == 0) continue;
        error = TN_MEM_OK;
        m->left = 0; /* what comes next belongs to another load */
        if (--r->live == 0) {
            gone = r->memory;
            memmove(r, r + 1, (m->count - i - 1) * sizeof *r);
            m->count--;
        }
        break;
    }
    tn_spin_unlock(&m->lock);
    if (!gone.base) return error;
    /* What the driver does not take back the backend keeps, and tries again. */
    return tn_backend_release(p->options.device, &gone);
}
