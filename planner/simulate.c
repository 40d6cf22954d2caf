/* One walk per instance and per meaning of a block's end; all units at once. */
#include "planner/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "planner/bump.h"

/* What is kept of a unit while an instance is walked. */
typedef struct state {
    uint64_t live_bytes, live_blocks, backed;
    tn_bump bump;
    uint64_t regions_bytes;   /* of all that are there */
    uint32_t open_region;     /* index in the regions, or TN_TRACE_NONE */
    uint8_t freed;            /* a block was freed */
} state;

typedef struct region { uint64_t bytes, live; } region;

static void highest(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

/* Per life what its free needs to find again. */
typedef struct places { uint32_t *bump, *region; } places;

static void look_at(tn_unit *u, const tn_life *l, int told_phases)
{
    u->kinds |= 1u << l->kind;
    tn_family f = tn_family_of_kind(l->kind);
    if (u->blocks == 0) {
        u->family = f;
        u->detail = l->detail;
        u->smallest = l->bytes;
        u->by_host = 1;
        u->within_loading = 1;
    } else if (f != u->family) {
        u->family = TN_FAMILY_COUNT;
    }
    u->mixed_detail |= l->detail != u->detail;
    u->blocks++;
    u->flags |= l->flags;
    u->phases |= (uint8_t)(1u << l->phase);
    u->by_host &= l->first_write == TN_WRITE_H2D && l->write_phase != TN_PHASE_SERVING;
    u->within_loading &= told_phases && l->phase == TN_PHASE_LOADING && l->freed != TN_LIFE_OPEN && l->free_phase == TN_PHASE_LOADING;
    int placeable = tn_may_be_placed(l);
    if (placeable > u->placeable) /* others do not count any more */
        u->smallest = u->largest = l->bytes;
    if (placeable < u->placeable)
        return;
    u->placeable = (uint8_t)placeable;
    if (l->bytes < u->smallest)
        u->smallest = l->bytes;
    highest(&u->largest, l->bytes);
}

static int told_phases(const tn_trace_process *p)
{
    for (size_t i = 0; i < p->phase_count; i++)
        if (p->phases[i].phase == TN_PHASE_SERVING)
            return 1;
    return 0;
}

/* Kinds and flags, of every block on the device, those that the driver keeps too. */
static void look_at_all(tn_section *s)
{
    for (size_t i = 0; i < s->process_count; i++) {
        const tn_trace_process *p = &s->trace->processes[s->processes[i]];
        int told = told_phases(p);
        for (size_t k = 0; k < p->life_count; k++) {
            const tn_life *l = &p->lives[k];
            if (l->device == s->device)
                look_at(&s->units[s->unit_of[l->site]], l, told);
        }
    }
    for (size_t i = 0; i < s->trace->site_count; i++)
        if (s->unit_of[i] != TN_TRACE_NONE)
            s->units[s->unit_of[i]].flags |= s->trace->sites[i].flags;
}

/* Until clean: what is alive, and a bump arena. */
static int walk_clean(tn_section *s, const tn_instance *in, state *states, places *at)
{
    tn_walk w = tn_walk_begin(s, in, 1);
    uint32_t i;
    for (int what; (what = tn_walk_next(&w, &i));) {
        const tn_life *l = &w.lives[i];
        uint32_t unit = s->unit_of[l->site];
        tn_unit *u = &s->units[unit];
        state *st = &states[unit];
        uint64_t bytes = tn_round_up(l->bytes, tn_native_alignment(tn_family_of_kind(l->kind), l->bytes));
        if (what > 0) {
            highest(&u->live_bytes, st->live_bytes += bytes);
            highest(&u->live_blocks, ++st->live_blocks);
            u->repeats |= st->freed;
            if (!tn_bump_take(&st->bump, tn_round_up(l->bytes, 512), tn_native_alignment(u->family, l->bytes), &at->bump[i]))
                return 0;
            highest(&u->bump_bytes, st->bump.high);
        } else {
            st->live_bytes -= bytes;
            st->live_blocks--;
            st->freed = 1;
            tn_bump_free(&st->bump, at->bump[i]);
        }
    }
    return 1;
}

/* Until freed: the driver's own bytes, a stack, and regions. */
static int walk_freed(tn_section *s, const tn_instance *in, state *states, places *at)
{
    tn_walk w = tn_walk_begin(s, in, 0);
    region *regions = NULL;
    size_t region_count = 0;
    uint32_t i;
    int made = 1;
    for (int what; made && (what = tn_walk_next(&w, &i));) {
        const tn_life *l = &w.lives[i];
        uint32_t unit = s->unit_of[l->site];
        tn_unit *u = &s->units[unit];
        state *st = &states[unit];
        uint64_t alignment = tn_native_alignment(tn_family_of_kind(l->kind), l->bytes), bytes = tn_round_up(l->bytes, 512);
        if (what > 0) {
            highest(&u->backed_bytes, st->backed += (uint64_t)l->backed * TN_LIFE_UNIT);
            made = tn_bump_take(&st->bump, bytes, alignment, &at->bump[i]);
            highest(&u->stack_bytes, st->bump.high);
            if (st->open_region == TN_TRACE_NONE) {
                region *r = TN_TRACE_PUSH(regions, region_count);
                if (!r) {
                    made = 0;
                    break;
                }
                *r = (region){0};
                st->open_region = (uint32_t)region_count - 1;
            }
            at->region[i] = st->open_region;
            regions[st->open_region].bytes += bytes;
            regions[st->open_region].live++;
            highest(&u->region_bytes, st->regions_bytes += bytes);
        } else {
            st->backed -= (uint64_t)l->backed * TN_LIFE_UNIT;
            tn_bump_free(&st->bump, at->bump[i]);
            st->open_region = TN_TRACE_NONE;
            region *r = &regions[at->region[i]];
            if (--r->live == 0)
                st->regions_bytes -= r->bytes;
        }
    }
    free(regions);
    return made;
}

static void reset(state *states, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tn_bump bump = {.blocks = states[i].bump.blocks, .room = states[i].bump.room};
        states[i] = (state){.bump = bump, .open_region = TN_TRACE_NONE};
    }
}

tn_error tn_simulate_units(tn_section *s)
{
    state *states = calloc(s->unit_count + 1, sizeof *states);
    int made = states != NULL;
    look_at_all(s);
    for (size_t k = 0; made && k < s->instance_count; k++) {
        const tn_instance *in = &s->instances[k];
        size_t lives = s->trace->processes[in->process].life_count;
        places at = {.bump = malloc((lives + 1) * sizeof *at.bump), .region = malloc((lives + 1) * sizeof *at.region)};
        made = at.bump && at.region;
        if (made) {
            reset(states, s->unit_count);
            made = walk_clean(s, in, states, &at);
        }
        if (made) {
            reset(states, s->unit_count);
            made = walk_freed(s, in, states, &at);
        }
        free(at.bump);
        free(at.region);
    }
    for (size_t i = 0; i < s->unit_count; i++)
        s->units[i].varies = s->units[i].repeats && s->units[i].smallest != s->units[i].largest;
    for (size_t i = 0; states && i < s->unit_count; i++)
        free(states[i].bump.blocks);
    free(states);
    return made ? TN_OK : TN_E_NOMEM;
}

uint64_t tn_live_peak(const tn_section *s, const uint8_t *chosen, int clean)
{
    uint64_t most = 0;
    for (size_t k = 0; k < s->instance_count; k++) {
        tn_walk w = tn_walk_begin(s, &s->instances[k], clean);
        uint64_t live = 0;
        uint32_t i;
        for (int what; (what = tn_walk_next(&w, &i));) {
            const tn_life *l = &w.lives[i];
            uint32_t unit = s->unit_of[l->site];
            if (!chosen[unit])
                continue;
            uint64_t bytes = tn_unit_bytes(&s->units[unit], l->bytes);
            live = what > 0 ? live + bytes : live - bytes;
            highest(&most, live);
        }
    }
    return most;
}
