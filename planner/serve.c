/* One state a tier; slots, which know whom they share addresses with, are in serve_slots.c. */
#include <stdlib.h>
#include <string.h>

#include "planner/serve_parts.h"

const char *tn_spill_text(tn_spill spill)
{
    switch (spill) {
    case TN_SPILL_TOO_LARGE: return "larger than any request that was planned for";
    case TN_SPILL_TOO_MANY: return "more alive at once than was planned for";
    case TN_SPILL_IN_THE_WAY: return "another site's block has the addresses";
    case TN_SPILL_NO_ROOM: return "the arena is full, or no region is planned for it";
    default: return "served";
    }
}

static const tn_plan_tier *tier_of(const tn_plan_section *s, tn_discipline d, tn_family f, uint32_t detail)
{
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].discipline == d && s->tiers[i].family == f && (!tn_family_has_detail(f) || s->tiers[i].detail == detail))
            return &s->tiers[i];
    return NULL;
}

/* ---- making ---- */

static int make_regions(tn_serve *s)
{
    const tn_plan_section *p = s->plan;
    for (size_t i = 0; i < p->region_count; i++) {
        const tn_plan_row *row = tn_plan_row_of(p, p->regions[i].key, p->regions[i].python);
        tn_region *r = row ? TN_TRACE_PUSH(s->regions.at, s->regions.count) : NULL;
        if (row && !r)
            return 0;
        if (r)
            *r = (tn_region){.unit = (uint32_t)(row - p->rows), .first_bytes = p->regions[i].first_bytes, .capacity = p->regions[i].capacity,
                             .count = p->regions[i].count};
    }
    s->run = (tn_region_run){.plan = &s->regions, .open = TN_TRACE_NONE};
    return 1;
}

tn_serve *tn_serve_new(const tn_plan_section *plan, size_t lives)
{
    tn_serve *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->plan = plan;
    s->first_slot = calloc(plan->row_count + 1, sizeof *s->first_slot);
    s->fixeds = calloc(plan->row_count + 1, sizeof *s->fixeds);
    s->pools = calloc(plan->tier_count + 1, sizeof *s->pools);
    s->place = malloc((lives + 1) * sizeof *s->place);
    s->row_of = malloc((lives + 1) * sizeof *s->row_of);
    s->freed_in = calloc(lives + 1, sizeof *s->freed_in);
    if (!s->first_slot || !s->fixeds || !s->pools || !s->place || !s->row_of || !s->freed_in) {
        tn_serve_free(s);
        return NULL;
    }
    memset(s->row_of, 0xff, (lives + 1) * sizeof *s->row_of);
    for (size_t i = 0; i < plan->row_count; i++) {
        const tn_plan_row *row = &plan->rows[i];
        if (row->discipline != TN_D_T3 || row->family == TN_FAMILY_HANDLE)
            continue;
        s->fixeds[i].block = tn_round_up(row->largest, tn_native_alignment(row->family, row->largest));
        s->fixeds[i].count = s->fixeds[i].block ? row->capacity / s->fixeds[i].block : 0;
    }
    for (size_t i = 0; i < plan->tier_count; i++)
        if (plan->tiers[i].family == TN_FAMILY_HANDLE)
            s->pools[i] = (tn_serve_pool){.block = plan->tiers[i].block, .count = plan->tiers[i].slots};
    if (!tn_serve_make_slots(s) || !make_regions(s)) {
        tn_serve_free(s);
        return NULL;
    }
    return s;
}

void tn_serve_free(tn_serve *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < TN_FAMILY_COUNT; i++)
        free(s->bumps[i].blocks);
    for (size_t i = 0; i < s->stack_count; i++)
        free(s->stacks[i].blocks);
    free(s->stacks);
    free(s->slots);
    free(s->others);
    free(s->first_slot);
    free(s->fixeds);
    free(s->pools);
    free(s->loose);
    free(s->place);
    free(s->row_of);
    free(s->freed_in);
    tn_index_free(&s->stack_of_stream);
    tn_index_free(&s->joins);
    tn_region_run_end(&s->run);
    tn_regions_free(&s->regions);
    free(s);
}

/* ---- the other tiers ---- */

/* The pool of just such handles; NULL: the plan has none. */
static tn_serve_pool *pool_of(const tn_serve *s, const tn_life *block)
{
    for (size_t i = 0; i < s->plan->tier_count; i++)
        if (s->plan->tiers[i].family == TN_FAMILY_HANDLE && s->plan->tiers[i].detail == block->detail && s->plan->tiers[i].block == block->bytes)
            return &s->pools[i];
    return NULL;
}

static void take_handle(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    tn_serve_pool *pool = pool_of(s, block);
    out->short_by = block->bytes;
    if (!pool)
        out->spill = TN_SPILL_TOO_LARGE; /* or too small: there is no room of its size */
    else if (pool->alive >= pool->count && pool->freed == 0)
        out->spill = TN_SPILL_TOO_MANY;
    if (out->spill)
        return;
    if (pool->alive >= pool->count) {
        out->waited = 1;
        tn_serve_wait(s);
    }
    pool->alive++;
    s->place[life] = (uint32_t)(pool - s->pools);
    s->row_of[life] = row;
}

static void give_handle(tn_serve *s, uint32_t life)
{
    s->pools[s->place[life]].freed++;
    s->freed_in[life] = s->waits + 1;
}

static void clean_handle(tn_serve *s, uint32_t life)
{
    if (s->freed_in[life] != s->waits + 1)
        return; /* a wait of ours has made it clean before */
    s->pools[s->place[life]].freed--;
    s->pools[s->place[life]].alive--;
}

static tn_error take_bump(tn_serve *s, tn_bump *b, uint64_t capacity, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    uint64_t alignment = tn_native_alignment(s->plan->rows[row].family, block->bytes), bytes = tn_round_up(block->bytes, 512);
    uint64_t end = tn_round_up(b->mark, alignment) + bytes;
    if (end > capacity) {
        out->spill = TN_SPILL_NO_ROOM;
        out->short_by = end - capacity;
        return TN_OK;
    }
    if (!tn_bump_take(b, bytes, alignment, &s->place[life]))
        return TN_E_NOMEM;
    s->row_of[life] = row;
    return TN_OK;
}

static tn_error take_stack(tn_serve *s, const tn_plan_tier *t, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    uint32_t i = tn_index_find(&s->stack_of_stream, block->stream);
    if (i == TN_INDEX_NONE) {
        if (s->stack_count >= t->streams) {
            out->spill = TN_SPILL_NO_ROOM;
            out->short_by = block->bytes;
            return TN_OK;
        }
        tn_bump *b = TN_TRACE_PUSH(s->stacks, s->stack_count);
        if (!b || tn_index_set(&s->stack_of_stream, block->stream, (uint32_t)s->stack_count - 1) != TN_OK)
            return TN_E_NOMEM;
        *b = (tn_bump){0};
        i = (uint32_t)s->stack_count - 1;
    }
    return take_bump(s, &s->stacks[i], t->capacity, row, block, life, out);
}

static tn_error take_region(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    uint32_t region;
    uint64_t short_by;
    if (!tn_region_take(&s->run, row, block->bytes, tn_native_alignment(s->plan->rows[row].family, block->bytes), block->phase, &region, &short_by))
        return TN_E_NOMEM;
    if (region == TN_TRACE_NONE) {
        out->spill = TN_SPILL_NO_ROOM;
        out->short_by = short_by;
        return TN_OK;
    }
    s->place[life] = region;
    s->row_of[life] = row;
    return TN_OK;
}

static tn_error take_loose(tn_serve *s, const tn_plan_tier *t, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    size_t i = 0;
    while (i < s->loose_count && s->loose[i].detail != t->detail)
        i++;
    if (i == s->loose_count) {
        struct loose *l = TN_TRACE_PUSH(s->loose, s->loose_count);
        if (!l)
            return TN_E_NOMEM;
        *l = (struct loose){.detail = t->detail};
    }
    uint64_t bytes = tn_round_up(block->bytes, tn_native_alignment(TN_FAMILY_PINNED, block->bytes));
    if (bytes > t->capacity - s->loose[i].used) {
        out->spill = TN_SPILL_NO_ROOM;
        out->short_by = bytes - (t->capacity - s->loose[i].used);
        return TN_OK;
    }
    s->loose[i].used += bytes;
    s->place[life] = (uint32_t)i;
    s->row_of[life] = row;
    return TN_OK;
}

tn_error tn_serve_take(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    const tn_plan_row *r = &s->plan->rows[row];
    const tn_plan_tier *t = tier_of(s->plan, r->discipline, r->family, r->detail);
    tn_error error = TN_OK;
    *out = (tn_serve_answer){.other = TN_TRACE_NONE};
    switch (r->discipline) {
    case TN_D_T1: error = take_region(s, row, block, life, out); break;
    case TN_D_T2: error = t ? take_bump(s, &s->bumps[r->family], t->capacity, row, block, life, out) : TN_E_ARGUMENT; break;
    case TN_D_T3: (r->family == TN_FAMILY_HANDLE ? take_handle : tn_serve_take_fixed)(s, row, block, life, out); break;
    case TN_D_T4: error = t ? take_stack(s, t, row, block, life, out) : TN_E_ARGUMENT; break;
    case TN_D_T5A: error = t ? take_loose(s, t, row, block, life, out) : TN_E_ARGUMENT; break;
    case TN_D_PACKED:
    case TN_D_T5B: tn_serve_take_slot(s, row, block, life, out); break;
    default: error = TN_E_ARGUMENT; break;
    }
    return error;
}

/* ---- ends ---- */

void tn_serve_give(tn_serve *s, const tn_life *block, uint32_t life)
{
    uint32_t row = s->row_of[life];
    if (row == TN_TRACE_NONE)
        return;
    switch (s->plan->rows[row].discipline) {
    case TN_D_T1:
        tn_region_free_block(&s->run, s->place[life]);
        break;
    case TN_D_T3:
        if (s->plan->rows[row].family == TN_FAMILY_HANDLE)
            give_handle(s, life);
        else
            tn_serve_give_slot(s, block, life);
        break;
    case TN_D_T4:
        tn_bump_free(&s->stacks[tn_index_find(&s->stack_of_stream, block->stream)], s->place[life]);
        break;
    case TN_D_T5A:
        s->loose[s->place[life]].used -= tn_round_up(block->bytes, tn_native_alignment(TN_FAMILY_PINNED, block->bytes));
        break;
    case TN_D_PACKED:
    case TN_D_T5B:
        tn_serve_give_slot(s, block, life);
        break;
    default:
        break;
    }
}

void tn_serve_clean(tn_serve *s, uint32_t life)
{
    uint32_t row = s->row_of[life];
    if (row == TN_TRACE_NONE)
        return;
    const tn_plan_row *r = &s->plan->rows[row];
    if (r->discipline == TN_D_T2) {
        tn_bump_free(&s->bumps[r->family], s->place[life]);
    } else if (r->discipline == TN_D_T3 && r->family == TN_FAMILY_HANDLE) {
        clean_handle(s, life);
    } else if (r->discipline == TN_D_T3 || r->discipline == TN_D_PACKED || r->discipline == TN_D_T5B) {
        tn_serve_clean_slot(s, life);
    }
}

tn_error tn_serve_join(tn_serve *s, const tn_trace_join *join)
{
    return tn_index_set(&s->joins, (uint64_t)join->to << 32 | join->from, join->upto);
}
