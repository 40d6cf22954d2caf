/* The steps: what must stay with the driver; rules; T1; T2; stream-ordered stacks; fixed blocks; what is left is packed. */
#include "planner/classify_parts.h"

#include <stdlib.h>
#include <string.h>

#include "planner/bump.h"
#include "planner/handles.h"
#include "planner/layout.h"
#include "planner/regions.h"
#include "planner/room_threads.h"
#include "planner/simulate.h"
#include "planner/stacks.h"

#define BUMP_LOSS 16u
/* More blocks alive at once than this are not laid out together, and then half as many: packing brings little there, and is not worth the time
 * of the most that can be. */
#define PACKED_BLOCKS_MAX 512u

/* Where it is not, no rule makes it so: the family's memory cannot be served like that, graphs would write into another's block, or a stack would
 * hand out what the stream that freed it still uses. */
static int can_be(const tn_unit *u, tn_discipline d)
{
    if (u->held && (d == TN_D_PACKED || d == TN_D_T4))
        return 0;
    return tn_discipline_fits(d, u->family) && !(d == TN_D_T4 && u->flags & TN_LF_OTHER_FREE_STREAM);
}

/* Of T3. */
static uint64_t fixed_bytes(const tn_unit *u)
{
    if (u->family == TN_FAMILY_HANDLE)
        return u->live_bytes; /* of pools that others share */
    uint64_t size = u->room.size > u->largest ? u->room.size : u->largest, blocks = u->room.blocks > u->live_blocks ? u->room.blocks : u->live_blocks;
    return blocks * tn_unit_bytes(u, size);
}

/* ---- groups ---- */

static void mark(const tn_section *s, const uint8_t *open, uint8_t *chosen, int (*fits)(const tn_unit *u))
{
    for (size_t i = 0; i < s->unit_count; i++)
        chosen[i] = open[i] && fits(&s->units[i]);
}

static int is_weight_like(const tn_unit *u)
{
    return u->family == TN_FAMILY_DEVICE && u->by_host && !(u->phases & 1u << TN_PHASE_SERVING) && !u->within_loading && !u->held;
}

static int is_async(const tn_unit *u) { return u->family == TN_FAMILY_ASYNC && !u->held; }
static int is_device(const tn_unit *u) { return u->family == TN_FAMILY_DEVICE; }
static int is_async_family(const tn_unit *u) { return u->family == TN_FAMILY_ASYNC; }
static int is_pinned_to_stay(const tn_unit *u) { return u->family == TN_FAMILY_PINNED && !u->within_loading; }

static tn_error choose_t1(tn_section *s, uint8_t *open, uint8_t *chosen)
{
    mark(s, open, chosen, is_weight_like);
    tn_error error = tn_regions_choose(s, chosen);
    for (size_t i = 0; i < s->unit_count && error == TN_OK; i++) {
        if (!chosen[i])
            continue;
        tn_decide(&s->units[i], TN_D_T1, s->units[i].region_bytes, "written from the host before serving, and gone only together with others");
        open[i] = 0;
    }
    return error;
}

/* By instance: when the unit's last block came and its first one went. */
typedef struct span { uint32_t last_birth, first_free; } span;

static void read_spans(const tn_section *s, const tn_instance *in, span *spans)
{
    const tn_life *lives = s->trace->processes[in->process].lives;
    for (size_t i = 0; i < s->unit_count; i++)
        spans[i] = (span){.first_free = TN_LIFE_OPEN};
    for (size_t i = 0; i < in->birth_count; i++) {
        const tn_life *l = &lives[in->births[i]];
        span *x = &spans[s->unit_of[l->site]];
        x->last_birth = l->begin;
        if (l->freed < x->first_free)
            x->first_free = l->freed;
    }
}

/* A bump arena pads where small blocks and large ones alternate, and a packed region does not: 0 where that costs more than one part in
 * BUMP_LOSS of both tiers together. `chosen` are those for T2, of the open ones that fit. */
static tn_error bump_is_worth_it(const tn_section *s, const uint8_t *open, const uint8_t *chosen, int (*fits)(const tn_unit *u), int *worth)
{
    uint8_t *other = malloc(s->unit_count + 1);
    uint64_t bump = 0, rest = 0, all = 0;
    if (!other)
        return TN_E_NOMEM;
    uint64_t blocks = 0;
    for (size_t i = 0; i < s->unit_count; i++)
        blocks += open[i] && fits(&s->units[i]) ? s->units[i].live_blocks : 0;
    *worth = 1;
    if (blocks > PACKED_BLOCKS_MAX) { /* not all of it could be packed */
        free(other);
        return TN_OK;
    }
    tn_error error = tn_bump_capacity(s, chosen, &bump);
    if (error == TN_OK && bump > 0) {
        for (size_t i = 0; i < s->unit_count; i++)
            other[i] = open[i] && fits(&s->units[i]) && !chosen[i];
        error = tn_layout_estimate(s, other, 4, &rest);
        for (size_t i = 0; i < s->unit_count; i++)
            other[i] = open[i] && fits(&s->units[i]);
        if (error == TN_OK)
            error = tn_layout_estimate(s, other, 4, &all);
        *worth = error != TN_OK || bump + rest - (bump + rest) / BUMP_LOSS <= all;
        if (error == TN_E_LIMIT) /* too many to be packed: then this is the way */
            error = TN_OK;
    }
    free(other);
    return error;
}

/* What stays to the end: every free comes after the last request of all that stay, so that a bump arena loses nothing. */
static tn_error choose_t2(tn_section *s, uint8_t *open, uint8_t *chosen, int (*fits)(const tn_unit *u))
{
    span *spans = malloc((s->unit_count + 1) * sizeof *spans);
    if (!spans)
        return TN_E_NOMEM;
    mark(s, open, chosen, fits);
    for (int changed = !tn_none_chosen(s, chosen); changed;) {
        changed = 0;
        for (size_t k = 0; k < s->instance_count; k++) {
            uint32_t last = 0;
            read_spans(s, &s->instances[k], spans);
            for (size_t i = 0; i < s->unit_count; i++)
                if (chosen[i] && spans[i].first_free > spans[i].last_birth && spans[i].last_birth > last)
                    last = spans[i].last_birth;
            for (size_t i = 0; i < s->unit_count; i++) {
                if (!chosen[i] || spans[i].last_birth == 0 || (spans[i].first_free > spans[i].last_birth && spans[i].first_free > last))
                    continue;
                chosen[i] = 0;
                changed = 1;
            }
        }
    }
    free(spans);
    int worth = 1;
    tn_error error = bump_is_worth_it(s, open, chosen, fits, &worth);
    if (error != TN_OK)
        return error;
    for (size_t i = 0; i < s->unit_count; i++) {
        if (!chosen[i] || !worth)
            continue;
        tn_decide(&s->units[i], TN_D_T2, s->units[i].bump_bytes, "kept until nothing is taken any more");
        open[i] = 0;
    }
    return TN_OK;
}

/* What each open unit of the family had alive when all of them were at their highest: what packing would give up without it. */
static tn_error read_peak(tn_section *s, const uint8_t *chosen)
{
    if (tn_none_chosen(s, chosen))
        return TN_OK;
    uint64_t *live = calloc(s->unit_count + 1, sizeof *live), highest = 0;
    if (!live)
        return TN_E_NOMEM;
    for (int pass = 0; pass < 2; pass++) {
        int found = 0;
        for (size_t k = 0; k < s->instance_count && !found; k++) {
            tn_walk w = tn_walk_begin(s, &s->instances[k], 1);
            uint64_t sum = 0;
            uint32_t i;
            memset(live, 0, s->unit_count * sizeof *live);
            for (int what; !found && (what = tn_walk_next(&w, &i));) {
                const tn_life *l = &w.lives[i];
                uint32_t unit = s->unit_of[l->site];
                if (!chosen[unit])
                    continue;
                uint64_t bytes = tn_unit_bytes(&s->units[unit], l->bytes);
                sum = what > 0 ? sum + bytes : sum - bytes;
                live[unit] = what > 0 ? live[unit] + bytes : live[unit] - bytes;
                if (pass == 0 && sum > highest)
                    highest = sum;
                found = pass == 1 && sum == highest;
            }
        }
        for (size_t i = 0; pass == 1 && i < s->unit_count; i++)
            if (chosen[i])
                s->units[i].at_peak = live[i];
    }
    free(live);
    return TN_OK;
}

/* Last in, first out, where that takes no more than the group would in packed slots. */
static tn_error choose_t4(tn_section *s, uint8_t *open, uint8_t *chosen)
{
    tn_stacks stacks;
    uint64_t at_peak = 0;
    mark(s, open, chosen, is_async);
    tn_error error = read_peak(s, chosen);
    if (error == TN_OK)
        error = tn_stacks_choose(s, chosen);
    if (error == TN_OK)
        error = tn_stacks_plan(s, chosen, &stacks);
    if (error != TN_OK)
        return error;
    for (size_t i = 0; i < s->unit_count; i++)
        if (chosen[i])
            at_peak += s->units[i].at_peak;
    if (stacks.capacity == 0 || stacks.capacity * stacks.streams > at_peak)
        return TN_OK;
    for (size_t i = 0; i < s->unit_count; i++) {
        if (!chosen[i])
            continue;
        tn_decide(&s->units[i], TN_D_T4, s->units[i].stack_bytes, "every block was the last to come on its stream when it went");
        open[i] = 0;
    }
    return TN_OK;
}

/* Blocks of one size that are all alive when memory is shortest lose nothing by not sharing. */
static int is_fixed(const tn_unit *u)
{
    /* Stream-ordered ones come back sooner where packed slots follow their streams. */
    return u->family == TN_FAMILY_DEVICE && u->live_blocks >= 2 && u->smallest == u->largest && u->at_peak == u->live_bytes;
}

static tn_error choose_t3(tn_section *s, uint8_t *open, uint8_t *chosen, int (*fits)(const tn_unit *u))
{
    mark(s, open, chosen, fits);
    tn_error error = read_peak(s, chosen);
    for (size_t i = 0; i < s->unit_count && error == TN_OK; i++) {
        tn_unit *u = &s->units[i];
        if (!open[i] || !fits(u) || !(u->held || is_fixed(u)))
            continue;
        tn_decide(u, TN_D_T3, fixed_bytes(u),
               u->held ? "graphs held its addresses, so no other site may have them" : "blocks of one size, all alive when memory is shortest");
        open[i] = 0;
    }
    return error;
}

typedef struct weight { uint64_t bytes; uint32_t unit; } weight;

static int by_weight(const void *a, const void *b)
{
    const weight *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Where more than `most` blocks would be laid out, sites that have `kept` together are, those that weigh most; the rest keep what they have. */
static tn_error limit_packed(tn_section *s, uint8_t *open, int (*fits)(const tn_unit *u), uint64_t most, uint64_t kept)
{
    weight *weights = malloc((s->unit_count + 1) * sizeof *weights);
    size_t count = 0;
    uint64_t packed = 0, all = 0;
    if (!weights)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->unit_count; i++) {
        if (!open[i] || !fits(&s->units[i]))
            continue;
        weights[count++] = (weight){.bytes = s->units[i].live_bytes, .unit = i};
        all += s->units[i].live_blocks;
    }
    if (count)
        qsort(weights, count, sizeof *weights, by_weight);
    for (size_t i = 0; i < count && all > most; i++) {
        tn_unit *u = &s->units[weights[i].unit];
        if (packed + u->live_blocks <= kept) {
            packed += u->live_blocks;
            continue;
        }
        if (u->family == TN_FAMILY_PINNED)
            tn_decide(u, TN_D_NATIVE, u->backed_bytes, TN_REASON_TOO_MANY);
        else
            tn_decide(u, TN_D_T3, fixed_bytes(u), TN_REASON_TOO_MANY);
        open[weights[i].unit] = 0;
    }
    free(weights);
    return TN_OK;
}

static void choose_rest(tn_section *s, uint8_t *open)
{
    for (size_t i = 0; i < s->unit_count; i++) {
        tn_unit *u = &s->units[i];
        if (!open[i])
            continue;
        if (u->family == TN_FAMILY_PINNED && u->within_loading)
            tn_decide(u, TN_D_T5A, u->live_bytes, "pinned, and gone when loading ended");
        else if (u->family == TN_FAMILY_PINNED)
            tn_decide(u, TN_D_T5B, u->live_bytes, "pinned, and there while serving");
        else
            tn_decide(u, TN_D_PACKED, u->at_peak,
                   u->within_loading ? "gone before loading ended: shares its addresses with what comes later" : "comes and goes: shares its addresses with what is not alive then");
        open[i] = 0;
    }
}

/* ---- what else there was ---- */

static uint64_t figure(const tn_unit *u, tn_discipline d)
{
    switch (d) {
    case TN_D_T1: return u->region_bytes;
    case TN_D_T2: return u->bump_bytes;
    case TN_D_T3: return fixed_bytes(u);
    case TN_D_T4: return u->stack_bytes;
    case TN_D_PACKED: return u->at_peak;
    case TN_D_T5A:
    case TN_D_T5B: return u->live_bytes;
    default: return u->backed_bytes;
    }
}

static int would_be_right(const tn_unit *u, tn_discipline d)
{
    return d != u->discipline && can_be(u, d) && (d != TN_D_T5A || u->within_loading);
}

static void choose_runner_up(tn_unit *u)
{
    u->runner_up = TN_D_NATIVE;
    u->runner_capacity = u->backed_bytes;
    if (u->family == TN_FAMILY_COUNT)
        return;
    for (unsigned d = TN_D_T1; d < TN_D_COUNT; d++) {
        if (would_be_right(u, (tn_discipline)d) && figure(u, (tn_discipline)d) < u->runner_capacity) {
            u->runner_up = (tn_discipline)d;
            u->runner_capacity = figure(u, (tn_discipline)d);
        }
    }
}

tn_error tn_classify(tn_section *s, const tn_classify_options *options)
{
    uint8_t *open = calloc(s->unit_count + 1, 1), *chosen = calloc(s->unit_count + 1, 1);
    tn_error error = open && chosen ? tn_simulate_units(s) : TN_E_NOMEM;
    if (error == TN_OK && options && options->for_threads)
        error = tn_room_for_threads(s);
    for (size_t i = 0; i < s->unit_count && error == TN_OK; i++) {
        tn_unit *u = &s->units[i];
        u->held = (u->flags & TN_LF_HELD) != 0;
        tn_discipline ruled = options && options->rule_of ? options->rule_of(options->user, s->trace, u->site, &u->rule) : TN_D_COUNT;
        int decides = ruled != TN_D_COUNT && can_be(u, ruled);
        if (options && options->room_of)
            options->room_of(options->user, s->trace, u->site, &u->room);
        const char *cause = tn_native_cause(u, !decides || ruled == TN_D_NATIVE);
        if (cause) {
            tn_decide(u, TN_D_NATIVE, u->backed_bytes, cause);
            if (ruled != TN_D_NATIVE)
                u->rule = NULL;
        } else if (decides) {
            tn_decide(u, ruled, figure(u, ruled), "a rule says so");
        } else {
            u->rule = NULL;
            open[i] = 1;
        }
    }
    if (error == TN_OK) {
        tn_keep_exporters(s, open);
        error = tn_handles_choose(s, open, chosen);
    }
    if (error == TN_OK) {
        /* For the comparison: what each would add if all of its family were packed. */
        for (size_t i = 0; i < s->unit_count; i++)
            chosen[i] = is_device(&s->units[i]);
        error = read_peak(s, chosen);
        for (size_t i = 0; i < s->unit_count; i++)
            chosen[i] = is_async_family(&s->units[i]);
        if (error == TN_OK)
            error = read_peak(s, chosen);
    }
    if (error == TN_OK)
        error = choose_t1(s, open, chosen);
    if (error == TN_OK)
        error = choose_t2(s, open, chosen, is_device);
    if (error == TN_OK)
        error = choose_t2(s, open, chosen, is_async_family);
    if (error == TN_OK)
        error = choose_t4(s, open, chosen);
    if (error == TN_OK)
        error = choose_t3(s, open, chosen, is_device);
    if (error == TN_OK)
        error = choose_t3(s, open, chosen, is_async_family);
    if (error == TN_OK)
        error = limit_packed(s, open, is_device, PACKED_BLOCKS_MAX, PACKED_BLOCKS_MAX / 2);
    if (error == TN_OK)
        error = limit_packed(s, open, is_async_family, PACKED_BLOCKS_MAX, PACKED_BLOCKS_MAX / 2);
    /* There is no T3 of pinned memory: as many as can be. */
    if (error == TN_OK)
        error = limit_packed(s, open, is_pinned_to_stay, TN_LAYOUT_SLOTS_MAX, TN_LAYOUT_SLOTS_MAX);
    if (error == TN_OK) {
        choose_rest(s, open);
        for (size_t i = 0; i < s->unit_count; i++)
            choose_runner_up(&s->units[i]);
    }
    free(open);
    free(chosen);
    return error;
}
