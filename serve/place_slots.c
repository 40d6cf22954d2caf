/* The tiers of slots: one table and one region of memory a family, packed slots first and the unshared ones of T3 behind them. */
#include <string.h>

#include "serve/place_inside.h"

static int is_of(const tn_plan_row *r, unsigned family, unsigned flags)
{
    return r->family == family && (family != TN_FAMILY_PINNED || r->detail == flags) &&
           (r->discipline == TN_D_PACKED || r->discipline == TN_D_T5B || r->discipline == TN_D_T3);
}

static size_t slots_of(const tn_plan_row *r, uint64_t *block)
{
    size_t count = 0;
    *block = 0;
    if (r->discipline == TN_D_T3) {
        *block = tn_round_up(r->largest, tn_native_alignment(r->family, r->largest));
        return *block ? r->capacity / *block : 0;
    }
    for (size_t k = 0; k < r->class_count; k++) count += r->classes[k].count;
    return count;
}

/* Writes the row's slots; `end`: where unshared ones may begin, moved behind them. */
static size_t write_slots(tn_packed_slot *out, const tn_plan_row *r, uint32_t site, uint64_t *end)
{
    uint64_t block;
    size_t count = slots_of(r, &block), at = 0;
    if (r->discipline == TN_D_T3) {
        uint64_t alignment = tn_native_alignment(r->family, r->largest);
        *end = tn_round_up(*end, alignment);
        for (; at < count; at++, *end += block)
            out[at] = (tn_packed_slot){.site = site, .ordinal = (uint32_t)at, .offset = *end, .bytes = block, .alignment = alignment};
        return count;
    }
    for (size_t k = 0; k < r->class_count; k++)
        for (size_t n = 0; n < r->classes[k].count; n++)
            out[at++] = (tn_packed_slot){.site = site, .size_class = (uint32_t)k, .ordinal = (uint32_t)n, .offset = r->classes[k].offsets[n],
                                         .bytes = r->classes[k].bytes, .alignment = r->classes[k].alignment};
    return count;
}

static uint64_t packed_capacity(const tn_plan_section *s, unsigned family, unsigned flags)
{
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].family == family && (family != TN_FAMILY_PINNED || s->tiers[i].detail == flags) &&
            (s->tiers[i].discipline == TN_D_PACKED || s->tiers[i].discipline == TN_D_T5B))
            return s->tiers[i].capacity;
    return 0;
}

tn_mem_error tn_place_slots_create(tn_place *p, unsigned family, unsigned flags, uint64_t *short_by)
{
    const tn_plan_section *s = p->options.section;
    tn_place_slots *slots = &p->slots[family][flags];
    size_t count = 0, sites = 0, at = 0;
    uint64_t block;
    for (size_t i = 0; i < s->row_count; i++)
        if (is_of(&s->rows[i], family, flags)) {
            count += slots_of(&s->rows[i], &block);
            sites++;
        }
    if (count == 0) return TN_MEM_OK;
    tn_backend *backend = tn_place_backend(p, family, flags);
    if (!backend) return TN_MEM_E_UNSUPPORTED;
    slots->table_bytes = count * sizeof *slots->table;
    slots->keys_bytes = sites * sizeof *slots->keys;
    slots->table = tn_place_memory(p, count, sizeof *slots->table);
    slots->keys = tn_place_memory(p, sites, sizeof *slots->keys);
    if (!slots->table || !slots->keys) return TN_MEM_E_HOST_MEMORY;
    uint64_t end = packed_capacity(s, family, flags);
    sites = 0;
    for (size_t i = 0; i < s->row_count; i++) {
        if (!is_of(&s->rows[i], family, flags)) continue;
        p->rows[i].site = (uint32_t)sites;
        slots->keys[sites] = s->rows[i].key;
        at += write_slots(slots->table + at, &s->rows[i], (uint32_t)sites++, &end);
    }
    slots->plan = (tn_packed_plan){.slots = slots->table, .slot_count = count, .site_count = (uint32_t)sites, .capacity = end};
    tn_packed_options o = {.backend = backend, .tag = TN_PLACE_TAG_SLOTS, .plan = &slots->plan, .work = *tn_place_work(p, family), .metadata = &p->metadata};
    tn_mem_error error = tn_packed_create(&o, &slots->packed);
    if (error != TN_MEM_OK) {
        if (short_by) *short_by = end;
        return error;
    }
    return TN_MEM_OK;
}

void tn_place_slots_destroy(tn_place *p, unsigned family, unsigned flags, int forget)
{
    tn_place_slots *slots = &p->slots[family][flags];
    if (slots->packed) {
        /* A region that the driver does not take back, or that has gone with its context, stays with the backend, which ends next. */
        int gone = forget && family != TN_FAMILY_ASYNC;
        if (gone || tn_packed_destroy(&slots->packed) != TN_MEM_OK) tn_packed_abandon(&slots->packed);
    }
    if (slots->table) tn_metadata_free(&p->metadata, slots->table, slots->table_bytes);
    if (slots->keys) tn_metadata_free(&p->metadata, slots->keys, slots->keys_bytes);
    memset(slots, 0, sizeof *slots);
}

static tn_place_spill spill_of(const tn_packed_refusal *why)
{
    switch (why->cause) {
    case TN_PACKED_NO_CLASS: return TN_PLACE_TOO_LARGE;
    case TN_PACKED_ALL_ALIVE: return TN_PLACE_TOO_MANY;
    case TN_PACKED_NOT_CLEAN: return TN_PLACE_NOT_CLEAN;
    /* Blocks of one site share addresses too, in classes of other sizes. */
    case TN_PACKED_IN_THE_WAY: return why->slot_site == why->site ? TN_PLACE_TOO_MANY : TN_PLACE_IN_THE_WAY;
    default: return TN_PLACE_IN_THE_WAY;
    }
}

/* One wait that cleans every freed block of the context, with nothing held; what is freed meanwhile is not worth a second. Of several contexts only
 * where the block was used in several: another's work, on another device perhaps, may be held up by this very thread. */
static bool wait_for(const tn_work *work, tn_work_set set)
{
    if (!work->table->wait) return false;
    if (set.count == 0) return work->table->wait(work->self, work->table->all(work->self)) == TN_MEM_OK;
    for (size_t i = 0; i < TN_WORK_SET_MARKS && (i == 0 || !tn_work_set_is_clean(&set, work)); i++)
        if (work->table->wait(work->self, set.marks[0]) != TN_MEM_OK) return false;
    return true;
}

void tn_place_slots_take(tn_place *p, const tn_place_row *row, size_t bytes, uint32_t stream, int may_wait, tn_place_answer *out)
{
    tn_place_slots *slots = &p->slots[row->family][row->flags];
    tn_packed_refusal why;
    tn_stable_span span;
    if (!slots->packed) { /* a plan of no slots at all, for any site of the family */
        out->spill = TN_PLACE_TOO_MANY;
        return;
    }
    why.cause = TN_PACKED_NO_CLASS; /* of no bytes, which a take refuses without a word */
    why.slot = TN_PACKED_NO_SLOT;
    tn_mem_error error = tn_packed_take(slots->packed, row->site, bytes, stream, &span, &why);
    if (error == TN_MEM_E_MUST_WAIT && may_wait && wait_for(tn_place_work(p, row->family), why.wait_for)) {
        __atomic_fetch_add(&p->waits, 1, __ATOMIC_RELAXED);
        out->waits++;
        error = tn_packed_take(slots->packed, row->site, bytes, stream, &span, &why);
    }
    if (error == TN_MEM_OK) {
        out->address = tn_stable_data(span);
        out->tier = row->tier;
        return;
    }
    out->spill = spill_of(&why);
    if (out->spill != TN_PLACE_TOO_MANY && why.slot != TN_PACKED_NO_SLOT && why.slot_site < slots->plan.site_count)
        out->in_the_way = slots->keys[why.slot_site];
}
