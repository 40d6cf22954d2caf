/* A place as a whole: its rows, what it is made of, and who serves which row. */
#include "serve/place.h"

#include <string.h>

#include "serve/place_inside.h"

void *tn_place_memory(tn_place *p, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 2 / size) return NULL;
    void *memory = p->metadata.resize(p->metadata.self, NULL, 0, count * size);
    return memory ? memset(memory, 0, count * size) : NULL;
}

tn_place_tier tn_place_tier_of_tag(const char *tag)
{
    return strcmp(tag, TN_PLACE_TAG_T1) == 0   ? TN_PLACE_T1
           : strcmp(tag, TN_PLACE_TAG_T2) == 0 ? TN_PLACE_T2
           : strcmp(tag, TN_PLACE_TAG_T4) == 0 ? TN_PLACE_T4
                                               : TN_PLACE_PACKED;
}

static tn_place_tier tier_of(tn_discipline d)
{
    switch (d) {
    case TN_D_T1: return TN_PLACE_T1;
    case TN_D_T2: return TN_PLACE_T2;
    case TN_D_T3: return TN_PLACE_T3;
    case TN_D_T4: return TN_PLACE_T4;
    case TN_D_PACKED: return TN_PLACE_PACKED;
    case TN_D_T5B: return TN_PLACE_T5B;
    default: return TN_PLACE_NATIVE; /* T5a too: ordinary pinned memory */
    }
}

static tn_mem_error make(tn_place *p, uint64_t *short_by)
{
    const tn_plan_section *s = p->options.section;
    p->rows = tn_place_memory(p, s->row_count + 1, sizeof *p->rows);
    if (!p->rows) return TN_MEM_E_HOST_MEMORY;
    for (size_t i = 0; i < s->row_count; i++) {
        const tn_plan_row *r = &s->rows[i];
        if (r->family >= TN_FAMILY_HANDLE) continue; /* handles belong to no context */
        if (r->family == TN_FAMILY_PINNED && r->detail >= TN_PLACE_PINNED_SETS) continue; /* flags that no driver has: native */
        p->rows[i] = (tn_place_row){.tier = tier_of(r->discipline), .family = (uint8_t)r->family, .flags = (uint8_t)(r->family == TN_FAMILY_PINNED ? r->detail : 0)};
    }
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].discipline != TN_D_T5A && s->tiers[i].family != TN_FAMILY_HANDLE) p->capacity += s->tiers[i].capacity * (s->tiers[i].discipline == TN_D_T4 ? s->tiers[i].streams : 1);
    tn_mem_error error = tn_place_model_create(p);
    for (unsigned family = 0; family < TN_FAMILY_HANDLE && error == TN_MEM_OK; family++)
        for (unsigned flags = 0; flags < (family == TN_FAMILY_PINNED ? TN_PLACE_PINNED_SETS : 1) && error == TN_MEM_OK; flags++)
            error = tn_place_slots_create(p, family, flags, short_by);
    return error == TN_MEM_OK ? tn_place_bumps_create(p, short_by) : error;
}

tn_mem_error tn_place_create(const tn_place_options *options, tn_place **out, uint64_t *short_by)
{
    *out = NULL;
    if (short_by) *short_by = 0;
    if (!options->section || !tn_work_is_valid(&options->work) || !tn_work_is_valid(&options->work_everywhere)) return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_place *p = metadata.resize(metadata.self, NULL, 0, sizeof *p);
    if (!p) return TN_MEM_E_HOST_MEMORY;
    memset(p, 0, sizeof *p);
    p->options = *options;
    p->metadata = metadata;
    tn_mem_error error = make(p, short_by);
    if (error == TN_MEM_OK) *out = p;
    else tn_place_destroy(&p, 0);
    return error;
}

void tn_place_destroy(tn_place **place, int forget)
{
    tn_place *p = *place;
    if (!p) return;
    tn_metadata metadata = p->metadata;
    tn_place_bumps_destroy(p, forget);
    tn_place_model_destroy(p, forget);
    for (unsigned family = 0; family < TN_FAMILY_COUNT; family++)
        for (unsigned flags = 0; flags < TN_PLACE_PINNED_SETS; flags++) tn_place_slots_destroy(p, family, flags, forget);
    if (p->rows) tn_metadata_free(&metadata, p->rows, (p->options.section->row_count + 1) * sizeof *p->rows);
    tn_metadata_free(&metadata, p, sizeof *p);
    *place = NULL;
}

void tn_place_take(tn_place *p, uint32_t index, size_t bytes, uint32_t stream, uint8_t phase, int may_wait, tn_place_answer *out)
{
    const tn_place_row *row = &p->rows[index];
    *out = (tn_place_answer){0};
    switch (row->tier) {
    case TN_PLACE_NATIVE: break;
    case TN_PLACE_T1: tn_place_model_take(p, &p->options.section->rows[index], bytes, phase, may_wait, out); break;
    case TN_PLACE_T2:
    case TN_PLACE_T4: tn_place_bump_take(p, row, bytes, stream, out); break;
    default: tn_place_slots_take(p, row, bytes, stream, may_wait, out); break;
    }
}

tn_mem_error tn_place_give(tn_place *p, uint32_t index, void *address, uint32_t stream, const tn_work_set *uncovered)
{
    const tn_place_row *row = &p->rows[index];
    switch (row->tier) {
    case TN_PLACE_NATIVE: return TN_MEM_E_ARGUMENT;
    case TN_PLACE_T1: return tn_place_model_give(p, address, uncovered);
    case TN_PLACE_T2:
    case TN_PLACE_T4: return tn_place_bump_give(p, row, address, stream, uncovered);
    default: return tn_packed_free(p->slots[row->family][row->flags].packed, address, uncovered);
    }
}

static tn_packed *slots_of(tn_place *p, uint32_t index)
{
    const tn_place_row *row = &p->rows[index];
    int has = row->tier == TN_PLACE_T3 || row->tier == TN_PLACE_PACKED || row->tier == TN_PLACE_T5B;
    return has ? p->slots[row->family][row->flags].packed : NULL;
}

tn_mem_error tn_place_hold(tn_place *p, uint32_t row, const void *address)
{
    tn_packed *slots = slots_of(p, row);
    return slots ? tn_packed_hold(slots, address) : TN_MEM_E_ARGUMENT;
}

tn_mem_error tn_place_release_hold(tn_place *p, uint32_t row, const void *address)
{
    tn_packed *slots = slots_of(p, row);
    return slots ? tn_packed_release_hold(slots, address) : TN_MEM_E_ARGUMENT;
}

int tn_place_has_live(tn_place *p)
{
    tn_packed_stats slots = {0};
    if (p->slots[TN_FAMILY_ASYNC][0].packed) tn_packed_read_stats(p->slots[TN_FAMILY_ASYNC][0].packed, &slots);
    return slots.live_blocks != 0 || tn_place_bumps_have_live(p);
}

void tn_place_read_stats(tn_place *p, tn_place_stats *stats)
{
    stats->capacity = p->capacity;
    stats->waits = __atomic_load_n(&p->waits, __ATOMIC_RELAXED);
    stats->not_taken_back = __atomic_load_n(&p->not_taken_back, __ATOMIC_RELAXED);
}
