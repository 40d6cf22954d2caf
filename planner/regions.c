/* Who may be in T1, and which regions that makes. */
#include "planner/regions.h"

#include <stdlib.h>
#include <string.h>

/* Blocks that go between two T1 requests went in an unload if they are at least this part of what T1 held then. */
#define UNLOAD_PART 16u
/* A region smaller than this would cost the driver's smallest piece for less. */
#define REGION_MIN ((uint64_t)2 << 20)

static uint64_t block_bytes(const tn_section *s, const tn_life *l)
{
    return tn_unit_bytes(&s->units[s->unit_of[l->site]], l->bytes);
}

/* ---- who ---- */

/* The chosen blocks of an instance: epoch[k], of the k-th request, how many requests there had been at its free. */
typedef struct requests {
    uint32_t *life;
    uint32_t *epoch;
    size_t count;
    uint64_t *group_bytes, *held_bytes; /* by epoch: what went in it, and what T1 held as it began to go */
} requests;

static void drop_requests(requests *r)
{
    free(r->life);
    free(r->epoch);
    free(r->group_bytes);
    free(r->held_bytes);
}

static tn_error read_requests(const tn_section *s, const tn_instance *in, const uint8_t *chosen, requests *out)
{
    size_t lives = s->trace->processes[in->process].life_count;
    *out = (requests){0};
    out->life = malloc((in->birth_count + 1) * sizeof *out->life);
    out->epoch = malloc((in->birth_count + 1) * sizeof *out->epoch);
    out->group_bytes = calloc(in->birth_count + 1, sizeof *out->group_bytes);
    out->held_bytes = calloc(in->birth_count + 1, sizeof *out->held_bytes);
    uint32_t *number = malloc((lives + 1) * sizeof *number);
    if (!out->life || !out->epoch || !out->group_bytes || !out->held_bytes || !number) {
        free(number);
        drop_requests(out);
        return TN_E_NOMEM;
    }
    tn_walk w = tn_walk_begin(s, in, 0);
    uint64_t held = 0;
    uint32_t i;
    for (int what; (what = tn_walk_next(&w, &i));) {
        const tn_life *l = &w.lives[i];
        if (!chosen[s->unit_of[l->site]])
            continue;
        uint64_t bytes = block_bytes(s, l);
        if (what > 0) {
            number[i] = (uint32_t)out->count;
            out->life[out->count] = i;
            out->epoch[out->count++] = TN_LIFE_OPEN;
            held += bytes;
        } else {
            uint32_t epoch = (uint32_t)out->count;
            out->epoch[number[i]] = epoch;
            if (out->group_bytes[epoch] == 0)
                out->held_bytes[epoch] = held;
            out->group_bytes[epoch] += bytes;
            held -= bytes;
        }
    }
    free(number);
    return TN_OK;
}

static int went_in_an_unload(const requests *r, size_t k)
{
    uint32_t epoch = r->epoch[k];
    return epoch == TN_LIFE_OPEN || epoch == r->count || r->group_bytes[epoch] >= r->held_bytes[epoch] / UNLOAD_PART;
}

static tn_error drop_strays(const tn_section *s, uint8_t *chosen, int *dropped)
{
    for (size_t k = 0; k < s->instance_count; k++) {
        requests r;
        tn_error error = read_requests(s, &s->instances[k], chosen, &r);
        if (error != TN_OK)
            return error;
        const tn_life *lives = s->trace->processes[s->instances[k].process].lives;
        for (size_t i = 0; i < r.count; i++) {
            uint32_t unit = s->unit_of[lives[r.life[i]].site];
            if (chosen[unit] && !went_in_an_unload(&r, i)) {
                chosen[unit] = 0;
                *dropped = 1;
            }
        }
        drop_requests(&r);
    }
    return TN_OK;
}

/* Units that only ever open regions of less than the driver's smallest piece. */
static tn_error drop_small(const tn_section *s, uint8_t *chosen, int *dropped)
{
    tn_regions regions;
    tn_error error = tn_regions_plan(s, chosen, &regions);
    if (error != TN_OK)
        return error;
    for (size_t i = 0; i < regions.count; i++) {
        if (regions.at[i].capacity >= REGION_MIN || !chosen[regions.at[i].unit])
            continue;
        chosen[regions.at[i].unit] = 0;
        *dropped = 1;
    }
    tn_regions_free(&regions);
    return TN_OK;
}

tn_error tn_regions_choose(const tn_section *s, uint8_t *chosen)
{
    tn_error error = TN_OK;
    if (tn_none_chosen(s, chosen))
        return TN_OK;
    for (int dropped = 1; dropped && error == TN_OK;) {
        dropped = 0;
        error = drop_strays(s, chosen, &dropped);
        if (error == TN_OK && !dropped)
            error = drop_small(s, chosen, &dropped);
    }
    return error;
}

/* ---- which ---- */

const tn_region *tn_regions_find(const tn_regions *r, uint32_t unit, uint64_t bytes)
{
    const tn_region *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        if (r->at[i].unit != unit)
            continue;
        if (r->at[i].first_bytes == bytes)
            return &r->at[i];
        if (!best || r->at[i].capacity > best->capacity)
            best = &r->at[i];
    }
    return best;
}

static int by_first(const void *a, const void *b)
{
    const tn_region *x = a, *y = b;
    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    return x->first_bytes < y->first_bytes ? -1 : x->first_bytes > y->first_bytes;
}

/* Enters a region as it was seen; the envelope of those with the same first request. `seen` counts this instance's. */
static tn_error enter(tn_regions *out, uint32_t **seen, uint32_t unit, uint64_t first_bytes, uint64_t capacity, uint64_t count)
{
    size_t i = 0;
    while (i < out->count && (out->at[i].unit != unit || out->at[i].first_bytes != first_bytes))
        i++;
    if (i == out->count) {
        size_t seen_count = out->count;
        tn_region *r = TN_TRACE_PUSH(out->at, out->count);
        uint32_t *n = r ? TN_TRACE_PUSH(*seen, seen_count) : NULL;
        if (!n) {
            out->count -= r != NULL;
            return TN_E_NOMEM;
        }
        *r = (tn_region){.unit = unit, .first_bytes = first_bytes};
        *n = 0;
    }
    tn_region *r = &out->at[i];
    if (capacity > r->capacity)
        r->capacity = capacity;
    if (count > r->count)
        r->count = count;
    if (++(*seen)[i] > r->times)
        r->times = (*seen)[i];
    return TN_OK;
}

/* Of blocks that went after the last request, so in one epoch: whether what begins here went in another phase than the first, and is a region's worth. */
static int parts_here(const tn_section *s, const requests *r, const tn_life *lives, size_t first, size_t i)
{
    uint8_t phase = lives[r->life[i]].free_phase;
    uint64_t bytes = 0;
    if (phase == lives[r->life[first]].free_phase || r->epoch[i] != r->count) return 0;
    for (size_t k = i; k < r->count && bytes < REGION_MIN; k++) {
        const tn_life *l = &lives[r->life[k]];
        if (l->free_phase != phase || r->epoch[k] != r->epoch[i]) break;
        bytes += block_bytes(s, l);
    }
    return bytes >= REGION_MIN;
}

/* Cuts an instance's requests where a free or a phase comes between two, and where what follows went at another time. */
static tn_error cut(const tn_section *s, const tn_instance *in, const uint8_t *chosen, tn_regions *out)
{
    requests r;
    tn_error error = read_requests(s, in, chosen, &r);
    if (error != TN_OK)
        return error;
    const tn_life *lives = s->trace->processes[in->process].lives;
    uint32_t *seen = NULL;
    size_t seen_count = 0;
    for (size_t i = 0; i < out->count && error == TN_OK; i++) {
        uint32_t *n = TN_TRACE_PUSH(seen, seen_count);
        if (!n)
            error = TN_E_NOMEM;
        else
            *n = 0;
    }
    size_t first = 0;
    uint64_t mark = 0;
    for (size_t i = 0; i < r.count && error == TN_OK; i++) {
        const tn_life *l = &lives[r.life[i]];
        uint64_t alignment = tn_native_alignment(s->units[s->unit_of[l->site]].family, l->bytes);
        int together = r.epoch[i] == r.epoch[first] && !(mark >= REGION_MIN && parts_here(s, &r, lives, first, i));
        int closes = i > first && (r.group_bytes[i] > 0 || l->phase != lives[r.life[i - 1]].phase || !together);
        if (closes) {
            const tn_life *f = &lives[r.life[first]];
            error = enter(out, &seen, s->unit_of[f->site], f->bytes, mark, i - first);
            first = i;
            mark = 0;
        }
        mark = tn_round_up(mark, alignment) + tn_round_up(l->bytes, 512);
    }
    if (r.count && error == TN_OK) {
        const tn_life *f = &lives[r.life[first]];
        error = enter(out, &seen, s->unit_of[f->site], f->bytes, mark, r.count - first);
    }
    free(seen);
    drop_requests(&r);
    return error;
}

/* A region that began with a request that none was seen to begin with, because the one before it was full: as many requests as any other. */
static tn_error list_one_more(tn_regions *out, uint32_t unit, uint64_t bytes)
{
    tn_region region = {.unit = unit, .first_bytes = bytes, .capacity = tn_round_up(bytes, 512), .count = 1, .times = 1};
    for (size_t i = 0; i < out->count; i++)
        if (out->at[i].count > region.count)
            region.count = out->at[i].count;
    tn_region *r = TN_TRACE_PUSH(out->at, out->count);
    if (!r)
        return TN_E_NOMEM;
    *r = region;
    qsort(out->at, out->count, sizeof *out->at, by_first);
    return TN_OK;
}

/* Follows serve's rule with the regions listed so far. What does not fit makes them larger: 1 where that happened. */
static tn_error follow(const tn_section *s, const tn_instance *in, const uint8_t *chosen, tn_regions *out, int *grew)
{
    size_t lives = s->trace->processes[in->process].life_count;
    tn_region_run run = {.plan = out, .open = TN_TRACE_NONE};
    uint32_t *where = malloc((lives + 1) * sizeof *where);
    tn_walk w = tn_walk_begin(s, in, 0);
    uint64_t live = 0;
    uint32_t i;
    int made = where != NULL;
    for (int what; made && (what = tn_walk_next(&w, &i));) {
        const tn_life *l = &w.lives[i];
        uint32_t unit = s->unit_of[l->site];
        if (!chosen[unit])
            continue;
        uint64_t bytes = tn_unit_bytes(&s->units[unit], l->bytes), short_by = 0;
        if (what < 0) {
            live -= bytes;
            tn_region_free_block(&run, where[i]);
            continue;
        }
        live += bytes;
        if (live > out->live_peak)
            out->live_peak = live;
        made = tn_region_take(&run, unit, l->bytes, tn_native_alignment(s->units[unit].family, l->bytes), l->phase, &where[i], &short_by);
        if (made && where[i] == TN_TRACE_NONE) {
            /* In the region that is open, or in the one that would have been: it has to hold this one too. */
            const tn_region *planned = run.open != TN_TRACE_NONE ? run.regions[run.open].planned : tn_regions_find(out, unit, l->bytes);
            if (planned)
                out->at[planned - out->at].capacity += short_by;
            else
                made = list_one_more(out, unit, l->bytes) == TN_OK;
            *grew = 1;
            break;
        }
    }
    if (!*grew && run.held_high > out->capacity)
        out->capacity = run.held_high;
    tn_region_run_end(&run);
    free(where);
    return made ? TN_OK : TN_E_NOMEM;
}

tn_error tn_regions_plan(const tn_section *s, const uint8_t *chosen, tn_regions *out)
{
    tn_error error = TN_OK;
    *out = (tn_regions){0};
    for (size_t k = 0; k < s->instance_count && error == TN_OK; k++)
        error = cut(s, &s->instances[k], chosen, out);
    if (error == TN_OK && out->count)
        qsort(out->at, out->count, sizeof *out->at, by_first);
    for (int grew = 1; grew && error == TN_OK;) {
        grew = 0;
        for (size_t k = 0; k < s->instance_count && error == TN_OK && !grew; k++)
            error = follow(s, &s->instances[k], chosen, out, &grew);
    }
    if (error != TN_OK)
        tn_regions_free(out);
    return error;
}

void tn_regions_free(tn_regions *r)
{
    free(r->at);
    *r = (tn_regions){0};
}

/* ---- serve's rule ---- */

static int open_region(tn_region_run *run, uint32_t unit, uint64_t bytes, uint64_t *short_by)
{
    const tn_region *planned = tn_regions_find(run->plan, unit, bytes);
    if (!planned)
        return 1;
    /* None opens that would not hold its first request. */
    if (tn_round_up(bytes, 512) > planned->capacity) {
        *short_by = tn_round_up(bytes, 512) - planned->capacity;
        return 1;
    }
    struct tn_open_region *r = TN_TRACE_PUSH(run->regions, run->region_count);
    if (!r)
        return 0;
    *r = (struct tn_open_region){.capacity = planned->capacity, .planned = planned};
    run->open = (uint32_t)run->region_count - 1;
    run->held += r->capacity;
    if (run->held > run->held_high)
        run->held_high = run->held;
    return 1;
}

int tn_region_take(tn_region_run *run, uint32_t unit, uint64_t requested, uint64_t alignment, uint8_t phase, uint32_t *region, uint64_t *short_by)
{
    uint64_t bytes = tn_round_up(requested, 512);
    *region = TN_TRACE_NONE;
    *short_by = bytes;
    if (phase != run->phase)
        run->open = TN_TRACE_NONE;
    run->phase = phase;
    if (run->open != TN_TRACE_NONE && run->regions[run->open].requests >= run->regions[run->open].planned->count)
        run->open = TN_TRACE_NONE;
    if (run->open == TN_TRACE_NONE && !open_region(run, unit, requested, short_by))
        return 0;
    if (run->open == TN_TRACE_NONE)
        return 1;
    struct tn_open_region *r = &run->regions[run->open];
    uint64_t at = tn_round_up(r->used, alignment);
    r->requests++;
    if (at > r->capacity || bytes > r->capacity - at) {
        *short_by = at + bytes - r->capacity;
        return 1;
    }
    r->used = at + bytes;
    r->live++;
    *region = run->open;
    return 1;
}

void tn_region_free_block(tn_region_run *run, uint32_t region)
{
    run->open = TN_TRACE_NONE;
    if (region == TN_TRACE_NONE)
        return;
    struct tn_open_region *r = &run->regions[region];
    if (--r->live == 0)
        run->held -= r->capacity;
}

void tn_region_run_end(tn_region_run *run)
{
    free(run->regions);
    *run = (tn_region_run){0};
}
