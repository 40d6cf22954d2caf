/* The stacks are replayed as serve keeps them: a block freed beneath others is a tombstone until they go. */
#include "planner/stacks.h"

#include <stdlib.h>

#include "planner/bump.h"
#include "planner/trace_index.h"

typedef struct run {
    tn_bump *stacks; size_t count;
    tn_index of_stream;
    uint32_t *slot;       /* by life */
    uint64_t high;
} run;

static tn_bump *stack_of(run *r, uint32_t stream)
{
    uint32_t i = tn_index_find(&r->of_stream, stream);
    if (i == TN_INDEX_NONE) {
        tn_bump *b = TN_TRACE_PUSH(r->stacks, r->count);
        if (!b)
            return NULL;
        *b = (tn_bump){0};
        i = (uint32_t)r->count - 1;
        if (tn_index_set(&r->of_stream, stream, i) != TN_OK)
            return NULL;
    }
    return &r->stacks[i];
}

static void end_run(run *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->stacks[i].blocks);
    free(r->stacks);
    free(r->slot);
    tn_index_free(&r->of_stream);
    *r = (run){0};
}

/* Walks one instance. `strays` (may be NULL) is set for units with a block that was not on top when it went. */
static int walk(const tn_section *s, const tn_instance *in, const uint8_t *chosen, uint8_t *strays, run *r, uint64_t *live_peak)
{
    tn_walk w = tn_walk_begin(s, in, 0);
    uint64_t live = 0;
    uint32_t i;
    r->slot = malloc((s->trace->processes[in->process].life_count + 1) * sizeof *r->slot);
    if (!r->slot)
        return 0;
    for (int what; (what = tn_walk_next(&w, &i));) {
        const tn_life *l = &w.lives[i];
        uint32_t unit = s->unit_of[l->site];
        if (!chosen[unit])
            continue;
        tn_bump *b = stack_of(r, l->stream);
        uint64_t bytes = tn_unit_bytes(&s->units[unit], l->bytes);
        if (!b)
            return 0;
        if (what > 0) {
            if (!tn_bump_take(b, tn_round_up(l->bytes, 512), tn_native_alignment(s->units[unit].family, l->bytes), &r->slot[i]))
                return 0;
            live += bytes;
            if (live > *live_peak)
                *live_peak = live;
            if (b->high > r->high)
                r->high = b->high;
        } else {
            uint64_t tombstones = b->tombstones;
            tn_bump_free(b, r->slot[i]);
            live -= bytes;
            if (strays && (b->tombstones != tombstones || l->free_stream != l->stream))
                strays[unit] = 1;
        }
    }
    return 1;
}

tn_error tn_stacks_choose(const tn_section *s, uint8_t *chosen)
{
    if (tn_none_chosen(s, chosen))
        return TN_OK;
    uint8_t *strays = malloc(s->unit_count + 1);
    tn_error error = strays ? TN_OK : TN_E_NOMEM;
    for (int dropped = 1; dropped && error == TN_OK;) {
        uint64_t peak = 0;
        dropped = 0;
        for (size_t i = 0; i < s->unit_count; i++)
            strays[i] = 0;
        for (size_t k = 0; k < s->instance_count && error == TN_OK; k++) {
            run r = {0};
            if (!walk(s, &s->instances[k], chosen, strays, &r, &peak))
                error = TN_E_NOMEM;
            end_run(&r);
        }
        for (size_t i = 0; i < s->unit_count && error == TN_OK; i++) {
            dropped |= chosen[i] && strays[i];
            chosen[i] &= !strays[i];
        }
    }
    free(strays);
    return error;
}

tn_error tn_stacks_plan(const tn_section *s, const uint8_t *chosen, tn_stacks *out)
{
    tn_error error = TN_OK;
    *out = (tn_stacks){0};
    if (tn_none_chosen(s, chosen))
        return TN_OK;
    for (size_t k = 0; k < s->instance_count && error == TN_OK; k++) {
        run r = {0};
        if (!walk(s, &s->instances[k], chosen, NULL, &r, &out->live_peak))
            error = TN_E_NOMEM;
        if (r.high > out->capacity)
            out->capacity = r.high;
        if (r.count > out->streams)
            out->streams = r.count;
        end_run(&r);
    }
    return error;
}
