/* One state a tier; slots know whom they share addresses with. */
#include "planner/serve.h"

#include <stdlib.h>
#include <string.h>

#include "planner/bump.h"
#include "planner/regions.h"
#include "planner/trace_index.h"

typedef enum slot_use { FREE = 0, ALIVE, FREED } slot_use; /* FREED: not clean yet */

typedef struct slot {
    uint64_t offset, bytes;
    uint32_t row, life;
    uint32_t freed, stream; /* of FREED */
    uint32_t first_other, other_count; /* in `others` */
    slot_use use;
} slot;

typedef struct fixed { uint64_t block, count, alive, freed; } fixed; /* T3, by row */

struct tn_serve {
    const tn_plan_section *plan;
    slot *slots; size_t slot_count;
    uint32_t *others; size_t other_count;
    uint32_t *first_slot;         /* by row: its first slot */
    fixed *fixeds;               /* by row */
    tn_bump bumps[TN_FAMILY_COUNT];
    tn_bump *stacks; size_t stack_count;
    tn_index stack_of_stream;
    tn_regions regions;
    tn_region_run run;
    struct loose { uint32_t detail; uint64_t used; } *loose; size_t loose_count; /* T5a, by flags */
    uint32_t *place;             /* by life: slot, bump block, region, or nothing */
    uint32_t *row_of;            /* by life; TN_TRACE_NONE: not served */
    uint32_t *freed_in;          /* by life, of T3: 1 + how many waits of ours there had been at its free */
    uint32_t waits;
    tn_index joins;
};

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
        if (s->tiers[i].discipline == d && s->tiers[i].family == f && (f != TN_FAMILY_PINNED || s->tiers[i].detail == detail))
            return &s->tiers[i];
    return NULL;
}

/* ---- making ---- */

static int same_arena(const tn_plan_row *a, const tn_plan_row *b)
{
    return a->discipline == b->discipline && a->family == b->family && (a->family != TN_FAMILY_PINNED || a->detail == b->detail);
}

static int by_offset(const void *a, const void *b)
{
    const slot *x = *(slot *const *)a, *y = *(slot *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

static int make_slots(tn_serve *s)
{
    const tn_plan_section *p = s->plan;
    size_t count = 0;
    for (size_t i = 0; i < p->row_count; i++)
        for (size_t k = 0; k < p->rows[i].class_count; k++)
            count += p->rows[i].classes[k].count;
    s->slots = calloc(count + 1, sizeof *s->slots);
    slot **sorted = malloc((count + 1) * sizeof *sorted);
    if (!s->slots || !sorted) {
        free(sorted);
        return 0;
    }
    for (size_t i = 0; i < p->row_count; i++) {
        s->first_slot[i] = (uint32_t)s->slot_count;
        for (size_t k = 0; k < p->rows[i].class_count; k++)
            for (size_t n = 0; n < p->rows[i].classes[k].count; n++)
                s->slots[s->slot_count++] = (slot){.offset = p->rows[i].classes[k].offsets[n], .bytes = p->rows[i].classes[k].bytes, .row = (uint32_t)i};
    }
    for (size_t i = 0; i < count; i++)
        sorted[i] = &s->slots[i];
    if (count)
        qsort(sorted, count, sizeof *sorted, by_offset);
    /* Whom each shares addresses with: from its offset on until its end, and those before it that reach into it, found the other way
     * round in two passes. */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < count; i++) {
            for (size_t k = i + 1; k < count && sorted[k]->offset < sorted[i]->offset + sorted[i]->bytes; k++) {
                if (!same_arena(&p->rows[sorted[i]->row], &p->rows[sorted[k]->row]))
                    continue;
                if (pass == 0) {
                    sorted[i]->other_count++;
                    sorted[k]->other_count++;
                } else {
                    s->others[sorted[i]->first_other + sorted[i]->other_count++] = (uint32_t)(sorted[k] - s->slots);
                    s->others[sorted[k]->first_other + sorted[k]->other_count++] = (uint32_t)(sorted[i] - s->slots);
                }
            }
        }
        if (pass)
            break;
        for (size_t i = 0; i < count; i++) {
            s->slots[i].first_other = (uint32_t)s->other_count;
            s->other_count += s->slots[i].other_count;
            s->slots[i].other_count = 0;
        }
        s->others = malloc((s->other_count + 1) * sizeof *s->others);
        if (!s->others) {
            free(sorted);
            return 0;
        }
    }
    free(sorted);
    return 1;
}

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
    s->place = malloc((lives + 1) * sizeof *s->place);
    s->row_of = malloc((lives + 1) * sizeof *s->row_of);
    s->freed_in = calloc(lives + 1, sizeof *s->freed_in);
    if (!s->first_slot || !s->fixeds || !s->place || !s->row_of || !s->freed_in || !make_slots(s) || !make_regions(s)) {
        tn_serve_free(s);
        return NULL;
    }
    memset(s->row_of, 0xff, (lives + 1) * sizeof *s->row_of);
    for (size_t i = 0; i < plan->row_count; i++) {
        const tn_plan_row *row = &plan->rows[i];
        if (row->discipline != TN_D_T3)
            continue;
        s->fixeds[i].block = tn_round_up(row->largest, tn_native_alignment(row->family, row->largest));
        s->fixeds[i].count = s->fixeds[i].block ? row->capacity / s->fixeds[i].block : 0;
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

/* ---- slots ---- */

static int stream_may_have(const tn_serve *s, const slot *x, uint32_t stream)
{
    if (!x->stream || !stream)
        return 0;
    uint32_t upto = tn_index_find(&s->joins, (uint64_t)stream << 32 | x->stream);
    return x->stream == stream || (upto != TN_INDEX_NONE && upto > x->freed);
}

/* What keeps `stream` from the slot's memory: FREE nothing, FREED a wait would do, ALIVE. *who is the slot in the way. */
static slot_use obstacle(const tn_serve *s, uint32_t index, uint32_t stream, uint32_t *who)
{
    const slot *x = &s->slots[index];
    slot_use worst = FREE;
    for (uint32_t k = 0; k <= x->other_count && worst != ALIVE; k++) {
        uint32_t other = k == 0 ? index : s->others[x->first_other + k - 1];
        const slot *y = &s->slots[other];
        if (y->use == ALIVE || (y->use == FREED && worst == FREE && !stream_may_have(s, y, stream))) {
            worst = y->use;
            *who = other;
        }
    }
    return worst;
}

/* A wait for the whole context: everything that is freed is clean. */
static void wait_for_all(tn_serve *s)
{
    s->waits++;
    for (size_t i = 0; i < s->slot_count; i++)
        if (s->slots[i].use == FREED)
            s->slots[i].use = FREE;
    for (size_t i = 0; i < s->plan->row_count; i++) {
        s->fixeds[i].alive -= s->fixeds[i].freed;
        s->fixeds[i].freed = 0;
    }
}

static void take_slot(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    const tn_plan_row *r = &s->plan->rows[row];
    uint32_t first = s->first_slot[row], wait = TN_TRACE_NONE, who = TN_TRACE_NONE;
    size_t k = 0;
    for (; k < r->class_count && r->classes[k].bytes < block->bytes; k++)
        first += (uint32_t)r->classes[k].count;
    out->short_by = block->bytes;
    if (k == r->class_count) {
        out->spill = TN_SPILL_TOO_LARGE;
        return;
    }
    int own = 1;
    for (uint32_t i = first; i < first + r->classes[k].count; i++) {
        uint32_t other = TN_TRACE_NONE;
        slot_use use = obstacle(s, i, block->stream, &other);
        if (use == ALIVE && s->slots[other].row != row) {
            own = 0;
            who = s->slots[other].row;
        }
        if (use == FREED && wait == TN_TRACE_NONE)
            wait = i;
        if (use != FREE)
            continue;
        wait = i;
        own = -1;
        break;
    }
    if (wait == TN_TRACE_NONE) {
        out->spill = own ? TN_SPILL_TOO_MANY : TN_SPILL_IN_THE_WAY;
        out->other = own ? TN_TRACE_NONE : who;
        return;
    }
    if (own != -1) {
        out->waited = 1;
        wait_for_all(s);
    }
    s->slots[wait].use = ALIVE;
    s->slots[wait].life = life;
    s->place[life] = wait;
    s->row_of[life] = row;
}

/* The rows that have blocks alive on the slot's addresses; `room` where there are as many or more. */
static size_t others_alive(const tn_serve *s, const slot *x, uint32_t *rows, size_t room, uint64_t *bytes)
{
    size_t count = 0;
    *bytes = 0;
    for (uint32_t k = 0; k < x->other_count && count < room; k++) {
        const slot *y = &s->slots[s->others[x->first_other + k]];
        size_t i = 0;
        while (i < count && rows[i] != y->row)
            i++;
        if (y->use != ALIVE || i < count)
            continue;
        rows[count++] = y->row;
        *bytes += s->plan->rows[y->row].capacity;
    }
    return count;
}

size_t tn_serve_in_the_way(const tn_serve *s, uint32_t row, uint64_t asked, uint32_t *rows, size_t room, uint64_t *bytes)
{
    const tn_plan_row *r = &s->plan->rows[row];
    uint32_t first = s->first_slot[row], best = TN_TRACE_NONE;
    size_t k = 0;
    for (; k < r->class_count && r->classes[k].bytes < asked; k++)
        first += (uint32_t)r->classes[k].count;
    *bytes = UINT64_MAX;
    for (uint32_t i = first; k < r->class_count && i < first + r->classes[k].count; i++) {
        uint64_t these;
        if (s->slots[i].use == ALIVE || others_alive(s, &s->slots[i], rows, room, &these) == 0 || these >= *bytes)
            continue;
        *bytes = these;
        best = i;
    }
    return best == TN_TRACE_NONE ? 0 : others_alive(s, &s->slots[best], rows, room, bytes);
}

/* ---- the other tiers ---- */

static void take_fixed(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    fixed *f = &s->fixeds[row];
    out->short_by = block->bytes;
    if (block->bytes > f->block)
        out->spill = TN_SPILL_TOO_LARGE;
    else if (f->alive >= f->count && f->freed == 0)
        out->spill = TN_SPILL_TOO_MANY;
    if (out->spill)
        return;
    if (f->alive >= f->count) {
        out->waited = 1;
        wait_for_all(s);
    }
    f->alive++;
    s->row_of[life] = row;
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
    case TN_D_T3: take_fixed(s, row, block, life, out); break;
    case TN_D_T4: error = t ? take_stack(s, t, row, block, life, out) : TN_E_ARGUMENT; break;
    case TN_D_T5A: error = t ? take_loose(s, t, row, block, life, out) : TN_E_ARGUMENT; break;
    case TN_D_PACKED:
    case TN_D_T5B: take_slot(s, row, block, life, out); break;
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
    slot *x;
    switch (s->plan->rows[row].discipline) {
    case TN_D_T1:
        tn_region_free_block(&s->run, s->place[life]);
        break;
    case TN_D_T3:
        s->fixeds[row].freed++;
        s->freed_in[life] = s->waits + 1;
        break;
    case TN_D_T4:
        tn_bump_free(&s->stacks[tn_index_find(&s->stack_of_stream, block->stream)], s->place[life]);
        break;
    case TN_D_T5A:
        s->loose[s->place[life]].used -= tn_round_up(block->bytes, tn_native_alignment(TN_FAMILY_PINNED, block->bytes));
        break;
    case TN_D_PACKED:
    case TN_D_T5B:
        x = &s->slots[s->place[life]];
        x->use = FREED;
        x->freed = block->freed;
        x->stream = block->free_stream;
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
    slot *x;
    switch (s->plan->rows[row].discipline) {
    case TN_D_T2:
        tn_bump_free(&s->bumps[s->plan->rows[row].family], s->place[life]);
        break;
    case TN_D_T3:
        /* A wait of ours may have made it clean before. */
        if (s->freed_in[life] == s->waits + 1) {
            s->fixeds[row].freed--;
            s->fixeds[row].alive--;
        }
        break;
    case TN_D_PACKED:
    case TN_D_T5B:
        x = &s->slots[s->place[life]];
        if (x->life == life && x->use == FREED)
            x->use = FREE;
        break;
    default:
        break;
    }
}

tn_error tn_serve_join(tn_serve *s, const tn_trace_join *join)
{
    return tn_index_set(&s->joins, (uint64_t)join->to << 32 | join->from, join->upto);
}
