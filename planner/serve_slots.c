/* Slots at planned offsets: who may have which, and who is in whose way. */
#include <stdlib.h>

#include "planner/serve_parts.h"

static int same_arena(const tn_plan_row *a, const tn_plan_row *b)
{
    return a->discipline == b->discipline && a->family == b->family && (a->family != TN_FAMILY_PINNED || a->detail == b->detail);
}

static int by_offset(const void *a, const void *b)
{
    const tn_serve_slot *x = *(tn_serve_slot *const *)a, *y = *(tn_serve_slot *const *)b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x < y ? -1 : x > y;
}

int tn_serve_make_slots(tn_serve *s)
{
    const tn_plan_section *p = s->plan;
    size_t count = 0;
    uint64_t fixed = 0;
    for (size_t i = 0; i < p->row_count; i++) {
        for (size_t k = 0; k < p->rows[i].class_count; k++)
            count += p->rows[i].classes[k].count;
        fixed += s->fixeds[i].count;
    }
    if (fixed >= TN_TRACE_NONE || count + fixed >= TN_TRACE_NONE)
        return 0;
    s->slots = calloc(count + fixed + 1, sizeof *s->slots);
    tn_serve_slot **sorted = malloc((count + 1) * sizeof *sorted);
    if (!s->slots || !sorted) {
        free(sorted);
        return 0;
    }
    for (size_t i = 0; i < p->row_count; i++) {
        s->first_slot[i] = (uint32_t)s->slot_count;
        for (size_t k = 0; k < p->rows[i].class_count; k++)
            for (size_t n = 0; n < p->rows[i].classes[k].count; n++)
                s->slots[s->slot_count++] = (tn_serve_slot){.offset = p->rows[i].classes[k].offsets[n], .bytes = p->rows[i].classes[k].bytes, .row = (uint32_t)i};
    }
    for (size_t i = 0; i < p->row_count; i++) {
        if (s->fixeds[i].count)
            s->first_slot[i] = (uint32_t)s->slot_count;
        for (uint64_t n = 0; n < s->fixeds[i].count; n++)
            s->slots[s->slot_count++] = (tn_serve_slot){.bytes = s->fixeds[i].block, .row = (uint32_t)i};
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

static int stream_may_have(const tn_serve *s, const tn_serve_slot *x, uint32_t stream)
{
    if (!x->stream || !stream)
        return 0;
    uint32_t upto = tn_index_find(&s->joins, (uint64_t)stream << 32 | x->stream);
    return x->stream == stream || (upto != TN_INDEX_NONE && upto > x->freed);
}

/* Freed, and neither the run nor we have waited since. */
static int is_unclean(const tn_serve *s, const tn_serve_slot *x)
{
    return x->use == TN_SLOT_FREED && x->freed_in == s->waits;
}

/* What keeps `stream` from the slot's memory: TN_SLOT_FREE nothing, TN_SLOT_FREED a wait would do, TN_SLOT_ALIVE. *who is the slot in the way. */
static tn_slot_use obstacle(const tn_serve *s, uint32_t index, uint32_t stream, uint32_t *who)
{
    const tn_serve_slot *x = &s->slots[index];
    tn_slot_use worst = TN_SLOT_FREE;
    for (uint32_t k = 0; k <= x->other_count && worst != TN_SLOT_ALIVE; k++) {
        uint32_t other = k == 0 ? index : s->others[x->first_other + k - 1];
        const tn_serve_slot *y = &s->slots[other];
        if (y->use == TN_SLOT_ALIVE || (is_unclean(s, y) && worst == TN_SLOT_FREE && !stream_may_have(s, y, stream))) {
            worst = y->use;
            *who = other;
        }
    }
    return worst;
}

void tn_serve_wait(tn_serve *s)
{
    s->waits++;
    for (size_t i = 0; i < s->plan->tier_count; i++) {
        s->pools[i].alive -= s->pools[i].freed;
        s->pools[i].freed = 0;
    }
}

static void take(tn_serve *s, uint32_t row, uint32_t slot, uint32_t life)
{
    s->slots[slot].use = TN_SLOT_ALIVE;
    s->slots[slot].life = life;
    s->place[life] = slot;
    s->row_of[life] = row;
}

void tn_serve_take_slot(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
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
        tn_slot_use use = obstacle(s, i, block->stream, &other);
        if (use == TN_SLOT_ALIVE && s->slots[other].row != row) {
            own = 0;
            who = s->slots[other].row;
        }
        if (use == TN_SLOT_FREED && wait == TN_TRACE_NONE)
            wait = i;
        if (use != TN_SLOT_FREE)
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
        tn_serve_wait(s);
    }
    take(s, row, wait, life);
}

/* The lowest slot that the stream may have; else TN_TRACE_NONE. Blocks of no stream, which may have none that is not clean, begin where the one before
 * them ended. */
static uint32_t find_fixed(const tn_serve *s, tn_serve_fixed *f, uint32_t first, uint32_t stream)
{
    uint64_t i = !stream && f->looked_in == s->waits && f->looked > f->lowest ? f->looked : f->lowest;
    for (; i < f->count; i++) {
        const tn_serve_slot *x = &s->slots[first + i];
        if (x->use == TN_SLOT_FREE || (x->use == TN_SLOT_FREED && (!is_unclean(s, x) || stream_may_have(s, x, stream))))
            break;
    }
    if (!stream) {
        f->looked = i;
        f->looked_in = s->waits;
    }
    return i < f->count ? first + (uint32_t)i : TN_TRACE_NONE;
}

/* As of slots, but that no other row is in the way. */
void tn_serve_take_fixed(tn_serve *s, uint32_t row, const tn_life *block, uint32_t life, tn_serve_answer *out)
{
    tn_serve_fixed *f = &s->fixeds[row];
    uint32_t first = s->first_slot[row];
    out->short_by = block->bytes;
    if (block->bytes > f->block) {
        out->spill = TN_SPILL_TOO_LARGE;
        return;
    }
    while (f->lowest < f->count && s->slots[first + f->lowest].use == TN_SLOT_ALIVE)
        f->lowest++;
    uint32_t slot = find_fixed(s, f, first, block->stream);
    if (slot == TN_TRACE_NONE && f->lowest < f->count) { /* the lowest that is not alive is freed */
        out->waited = 1;
        tn_serve_wait(s);
        slot = first + (uint32_t)f->lowest;
    }
    if (slot == TN_TRACE_NONE)
        out->spill = TN_SPILL_TOO_MANY;
    else
        take(s, row, slot, life);
}

/* The slot may be had from now on by who looks there. */
static void look_again(tn_serve *s, uint32_t slot)
{
    tn_serve_fixed *f = &s->fixeds[s->slots[slot].row];
    uint32_t ordinal = slot - s->first_slot[s->slots[slot].row];
    if (ordinal < f->looked)
        f->looked = ordinal;
}

void tn_serve_give_slot(tn_serve *s, const tn_life *block, uint32_t life)
{
    tn_serve_slot *x = &s->slots[s->place[life]];
    x->use = TN_SLOT_FREED;
    x->freed = block->freed;
    x->stream = block->free_stream;
    x->freed_in = s->waits;
    tn_serve_fixed *f = &s->fixeds[x->row];
    uint32_t ordinal = s->place[life] - s->first_slot[x->row];
    if (ordinal < f->lowest)
        f->lowest = ordinal;
}

void tn_serve_clean_slot(tn_serve *s, uint32_t life)
{
    tn_serve_slot *x = &s->slots[s->place[life]];
    if (x->life != life || x->use != TN_SLOT_FREED)
        return; /* it is another's by now */
    x->use = TN_SLOT_FREE;
    look_again(s, s->place[life]);
}

/* The rows that have blocks alive on the slot's addresses; `room` where there are as many or more. */
static size_t others_alive(const tn_serve *s, const tn_serve_slot *x, uint32_t *rows, size_t room, uint64_t *bytes)
{
    size_t count = 0;
    *bytes = 0;
    for (uint32_t k = 0; k < x->other_count && count < room; k++) {
        const tn_serve_slot *y = &s->slots[s->others[x->first_other + k]];
        size_t i = 0;
        while (i < count && rows[i] != y->row)
            i++;
        if (y->use != TN_SLOT_ALIVE || i < count)
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
        if (s->slots[i].use == TN_SLOT_ALIVE || others_alive(s, &s->slots[i], rows, room, &these) == 0 || these >= *bytes)
            continue;
        *bytes = these;
        best = i;
    }
    return best == TN_TRACE_NONE ? 0 : others_alive(s, &s->slots[best], rows, room, bytes);
}
