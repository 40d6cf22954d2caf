/* The checks, from the rows outward. */
#include "planner/plan_check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "ledger/journal_format.h"
#include "tiers/sort.h"

#define BYTES_MAX ((uint64_t)1 << 56) /* so that sums of some do not wrap */

typedef struct check {
    const tn_plan_section *section;
    const tn_metadata *memory;
    tn_sort_item *items; size_t room; /* offsets in their order */
    size_t number;   /* of the section */
    char *message;
    tn_error error;
} check;

static void fail(check *c, const char *format, ...)
{
    va_list args;
    char what[400];
    if (c->error != TN_OK)
        return;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    c->error = TN_E_FORMAT;
    snprintf(c->message, TN_PLAN_CHECK_MESSAGE, "sections[%zu]: %s", c->number, what);
}

static int is_power_of_two(uint64_t n)
{
    return n && (n & (n - 1)) == 0;
}

static const tn_plan_tier *tier_of(const tn_plan_section *s, const tn_plan_row *row)
{
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].discipline == row->discipline && s->tiers[i].family == row->family &&
            (!tn_family_has_detail(row->family) || s->tiers[i].detail == row->detail) &&
            (row->family != TN_FAMILY_HANDLE || s->tiers[i].block == row->largest))
            return &s->tiers[i];
    return NULL;
}

/* Room for the offsets of a class. */
static tn_sort_item *items_for(check *c, size_t count)
{
    if (count <= c->room)
        return c->items;
    size_t room = count < 64 ? 64 : count * 2;
    tn_sort_item *items = c->memory->resize(c->memory->self, c->items, c->room * sizeof *items, room * sizeof *items);
    if (!items) {
        c->error = c->error == TN_OK ? TN_E_NOMEM : c->error;
        snprintf(c->message, TN_PLAN_CHECK_MESSAGE, "no memory left to check it");
        return NULL;
    }
    c->room = room;
    return c->items = items;
}

static void check_class(check *c, const tn_plan_row *row, const tn_plan_class *k, uint64_t capacity)
{
    if (k->bytes == 0 || k->bytes > BYTES_MAX || !is_power_of_two(k->alignment) || k->alignment < 512) {
        fail(c, "site %016" PRIx64 ": a slot of %" PRIu64 " bytes, aligned to %" PRIu64 ", cannot be", row->key, k->bytes, k->alignment);
        return;
    }
    if (k->alignment < tn_native_alignment(row->family, k->bytes))
        fail(c, "site %016" PRIx64 ": slots of %" PRIu64 " bytes are aligned to %" PRIu64 ", less than the driver's", row->key, k->bytes, k->alignment);
    if (k->count == 0)
        fail(c, "site %016" PRIx64 ": the class of %" PRIu64 " bytes has no slot", row->key, k->bytes);
    tn_sort_item *sorted = items_for(c, k->count);
    if (!sorted)
        return;
    for (size_t i = 0; i < k->count; i++) {
        sorted[i].key = k->offsets[i];
        if (k->offsets[i] % k->alignment)
            fail(c, "site %016" PRIx64 ": offset %" PRIu64 " is no multiple of %" PRIu64, row->key, k->offsets[i], k->alignment);
        if (k->offsets[i] > capacity || k->bytes > capacity - k->offsets[i])
            fail(c, "site %016" PRIx64 ": the slot of %" PRIu64 " bytes at %" PRIu64 " reaches beyond the tier's %" PRIu64, row->key, k->bytes,
                 k->offsets[i], capacity);
    }
    tn_sort(sorted, k->count);
    for (size_t i = 1; i < k->count; i++)
        if (sorted[i].key - sorted[i - 1].key < k->bytes)
            fail(c, "site %016" PRIx64 ": two slots of one class overlap at %" PRIu64, row->key, (uint64_t)sorted[i].key);
}

static void check_row(check *c, const tn_plan_row *row)
{
    if (row->capacity > BYTES_MAX || row->largest > BYTES_MAX || row->blocks > BYTES_MAX || row->runner_capacity > BYTES_MAX) {
        fail(c, "site %016" PRIx64 ": a size is too large", row->key);
        return;
    }
    if (row->discipline == TN_D_NATIVE) {
        if (row->class_count)
            fail(c, "site %016" PRIx64 ": it is native and has slots", row->key);
        return;
    }
    if (row->family == TN_FAMILY_COUNT || !tn_discipline_fits(row->discipline, row->family)) {
        fail(c, "site %016" PRIx64 ": %s is not for %s memory", row->key, tn_discipline_name(row->discipline),
             row->family == TN_FAMILY_COUNT ? "other" : tn_family_name(row->family));
        return;
    }
    const tn_plan_tier *tier = tier_of(c->section, row);
    if (!tier) {
        fail(c, "site %016" PRIx64 ": there is no tier %s for %s memory", row->key, tn_discipline_name(row->discipline), tn_family_name(row->family));
        return;
    }
    int has_slots = row->discipline == TN_D_PACKED || row->discipline == TN_D_T5B;
    if (has_slots != (row->class_count > 0))
        fail(c, "site %016" PRIx64 ": %s, and %s slots", row->key, tn_discipline_name(row->discipline), has_slots ? "no" : "it has");
    if (row->held && (row->discipline == TN_D_PACKED || row->discipline == TN_D_T4))
        fail(c, "site %016" PRIx64 ": graphs hold its addresses, and it shares them", row->key);
    if (row->discipline == TN_D_T3 && row->family != TN_FAMILY_HANDLE && (row->largest == 0 || row->capacity / row->largest < row->blocks))
        fail(c, "site %016" PRIx64 ": %" PRIu64 " blocks of %" PRIu64 " bytes are more than its %" PRIu64, row->key, row->blocks,
             row->largest, row->capacity);
    for (size_t i = 0; i < row->class_count; i++) {
        if (i && row->classes[i].bytes <= row->classes[i - 1].bytes)
            fail(c, "site %016" PRIx64 ": its classes are not in the order of their sizes", row->key);
        check_class(c, row, &row->classes[i], tier->capacity);
    }
    if (row->class_count && row->classes[row->class_count - 1].bytes < row->largest)
        fail(c, "site %016" PRIx64 ": no slot holds its largest request, %" PRIu64 " bytes", row->key, row->largest);
}

static void check_rows(check *c)
{
    const tn_plan_section *s = c->section;
    for (size_t i = 0; i < s->row_count && c->error == TN_OK; i++) {
        if (i && (s->rows[i].key < s->rows[i - 1].key || (s->rows[i].key == s->rows[i - 1].key && s->rows[i].python <= s->rows[i - 1].python)))
            fail(c, "site %016" PRIx64 ": sites are not in the order of their keys, or one is there twice", s->rows[i].key);
        check_row(c, &s->rows[i]);
    }
}

/* A pool of handles: all of one size, as many as there is memory for. */
static void check_pool(check *c, const tn_plan_tier *t)
{
    uint64_t each = t->block <= BYTES_MAX ? tn_round_up(t->block, tn_native_alignment(TN_FAMILY_HANDLE, t->block)) : 0;
    if (t->detail & TN_VMM_OTHER)
        fail(c, "tier T3 of handles: no pool has the properties %" PRIu32, t->detail);
    if (each == 0 || t->slots == 0 || t->slots > TN_PLAN_HANDLES_MAX || t->capacity % each || t->capacity / each != t->slots)
        fail(c, "tier T3 of handles: %" PRIu64 " of %" PRIu64 " bytes are not its %" PRIu64, t->slots, t->block, t->capacity);
}

static void check_tiers(check *c)
{
    const tn_plan_section *s = c->section;
    for (size_t i = 0; i < s->tier_count && c->error == TN_OK; i++) {
        const tn_plan_tier *t = &s->tiers[i];
        uint64_t fixed = 0;
        if (t->capacity > BYTES_MAX || t->streams > BYTES_MAX / (t->capacity + 1)) {
            fail(c, "tier %s: its capacity is too large", tn_discipline_name(t->discipline));
            return;
        }
        if (t->discipline == TN_D_NATIVE || t->family == TN_FAMILY_COUNT || !tn_discipline_fits(t->discipline, t->family))
            fail(c, "tier %s is not for this family of memory", tn_discipline_name(t->discipline));
        if (t->family == TN_FAMILY_HANDLE)
            check_pool(c, t);
        else if (t->block)
            fail(c, "tier %s: blocks of %" PRIu64 " bytes are for handles alone", tn_discipline_name(t->discipline), t->block);
        for (size_t k = 0; k < i; k++)
            if (s->tiers[k].discipline == t->discipline && s->tiers[k].family == t->family && s->tiers[k].detail == t->detail && s->tiers[k].block == t->block)
                fail(c, "tier %s is there twice for %s memory", tn_discipline_name(t->discipline), tn_family_name(t->family));
        for (size_t k = 0; k < s->row_count && t->discipline == TN_D_T3 && t->family != TN_FAMILY_HANDLE; k++)
            if (s->rows[k].discipline == TN_D_T3 && s->rows[k].family == t->family && s->rows[k].capacity <= BYTES_MAX && fixed <= BYTES_MAX)
                fixed += s->rows[k].capacity;
        if (fixed > t->capacity)
            fail(c, "tier T3 has %" PRIu64 " bytes for sites that take %" PRIu64, t->capacity, fixed);
    }
}

static void check_regions(check *c)
{
    const tn_plan_section *s = c->section;
    for (size_t i = 0; i < s->region_count && c->error == TN_OK; i++) {
        const tn_plan_region *r = &s->regions[i];
        const tn_plan_row *row = tn_plan_row_of(s, r->key, r->python);
        if (!row || row->discipline != TN_D_T1)
            fail(c, "regions[%zu]: its first request is of no T1 site", i);
        if (r->capacity < r->first_bytes || r->capacity > BYTES_MAX || r->count == 0)
            fail(c, "regions[%zu]: %" PRIu64 " bytes for %" PRIu64 " requests, the first of %" PRIu64 ", cannot be", i, r->capacity, r->count, r->first_bytes);
    }
}

static void check_total(check *c)
{
    const tn_plan_section *s = c->section;
    uint64_t total = s->native_bytes;
    for (size_t i = 0; i < s->tier_count && total <= BYTES_MAX; i++)
        if (s->tiers[i].family != TN_FAMILY_PINNED)
            total += s->tiers[i].capacity * (s->tiers[i].discipline == TN_D_T4 ? s->tiers[i].streams : 1);
    for (size_t i = 0; i < s->charge_count && total <= BYTES_MAX; i++)
        total += s->charges[i].bytes <= BYTES_MAX ? s->charges[i].bytes : BYTES_MAX;
    if (total != s->total)
        fail(c, "its total is %" PRIu64 ", and its parts add up to %" PRIu64, s->total, total);
}

tn_error tn_plan_check_in(const tn_plan *plan, const tn_metadata *memory, char message[TN_PLAN_CHECK_MESSAGE])
{
    check c = {.memory = memory, .message = message};
    message[0] = 0;
    if (plan->gap > BYTES_MAX) {
        snprintf(message, TN_PLAN_CHECK_MESSAGE, "gap_bytes: %" PRIu64 " cannot be", plan->gap);
        return TN_E_FORMAT;
    }
    for (size_t i = 0; i < plan->section_count && c.error == TN_OK; i++) {
        c.section = &plan->sections[i];
        c.number = i;
        check_rows(&c);
        check_tiers(&c);
        check_regions(&c);
        if (c.error == TN_OK)
            check_total(&c);
    }
    if (c.items)
        (void)memory->resize(memory->self, c.items, c.room * sizeof *c.items, 0);
    return c.error;
}
