/* From decided units to a plan: tiers with their capacities, rows, regions, phases, the sizing query. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/bump.h"
#include "planner/classify.h"
#include "planner/handles.h"
#include "planner/layout.h"
#include "planner/plan_make.h"
#include "planner/plan_parts.h"
#include "planner/regions.h"
#include "planner/simulate.h"
#include "planner/stacks.h"

typedef struct make {
    tn_plan *plan;
    const tn_section *s;
    const tn_plan_options *options;
    tn_plan_section *out;
    uint8_t *chosen;       /* by unit: of the tier in hand */
    uint32_t *row_of;      /* by unit */
} make;

/* ---- rows ---- */

static void plain_frames(tn_plan *plan, const tn_trace *trace, uint32_t site, tn_plan_row *row)
{
    const tn_trace_site *x = &trace->sites[site];
    for (uint32_t i = 0; x->record && i < x->record->frame_count; i++) {
        const tn_reader *reader = trace->processes[x->process].reader;
        const char *path = tn_reader_module_path(reader, x->record->frames[i].module);
        const char *slash = path ? strrchr(path, '/') : NULL;
        tn_plan_frame *f = tn_plan_add_frame(plan, row);
        if (!f)
            return;
        f->module = tn_plan_text(plan, slash ? slash + 1 : path);
        f->build_id = tn_plan_build_id(plan, tn_reader_module(reader, x->record->frames[i].module));
        f->offset = x->record->frames[i].offset;
    }
}

static void python_frames(tn_plan *plan, const tn_trace *trace, uint32_t site, tn_plan_row *row)
{
    const tn_trace_site *x = &trace->sites[site];
    if (!x->python_record || !x->python_record->frame_count)
        return;
    row->python_frames = tn_plan_memory(plan, x->python_record->frame_count, sizeof(char *));
    for (uint32_t i = 0; row->python_frames && i < x->python_record->frame_count; i++) {
        const char *file = NULL, *name = NULL;
        const struct tn_python_frame *f = &x->python_record->frames[i];
        char text[2304];
        if (!tn_reader_python(trace->processes[x->process].reader, f->function, &file, &name))
            continue;
        const char *slash = strrchr(file, '/');
        snprintf(text, sizeof text, "%s (%s:%u)", name, slash ? slash + 1 : file, f->line);
        row->python_frames[row->python_frame_count++] = tn_plan_text(plan, text);
    }
}

static void make_rows(make *m)
{
    const tn_section *s = m->s;
    m->out->rows = tn_plan_memory(m->plan, s->unit_count, sizeof(tn_plan_row));
    for (size_t i = 0; m->out->rows && i < s->unit_count; i++) {
        const tn_unit *u = &s->units[i];
        m->row_of[i] = TN_TRACE_NONE;
        if (u->blocks == 0)
            continue; /* a native site all of whose callers stand apart */
        m->row_of[i] = (uint32_t)m->out->row_count;
        tn_plan_row *row = &m->out->rows[m->out->row_count++];
        *row = (tn_plan_row){.key = s->trace->sites[u->site].key, .python = s->trace->sites[u->site].python, .discipline = u->discipline,
                             .runner_up = u->runner_up, .family = u->family, .detail = tn_family_has_detail(u->family) ? u->detail : 0,
                             .held = u->held != 0, .varies = u->varies, .capacity = u->capacity, .runner_capacity = u->runner_capacity, .blocks = u->live_blocks,
                             .largest = u->largest, .alignment = u->discipline == TN_D_NATIVE ? 0 : tn_native_alignment(u->family, u->largest),
                             .reason = tn_plan_text(m->plan, u->reason), .rule = tn_plan_text(m->plan, u->rule), .room = u->room};
        if (u->discipline == TN_D_T3) { /* what its blocks are made for */
            row->blocks = u->room.blocks > row->blocks ? u->room.blocks : row->blocks;
            row->largest = u->room.size > row->largest ? u->room.size : row->largest;
            row->alignment = tn_native_alignment(u->family, row->largest);
            if (u->family == TN_FAMILY_HANDLE && row->largest > u->largest)
                row->largest = tn_round_up(row->largest, row->alignment);
        }
        if (m->options->namer)
            m->options->namer(m->options->user, m->plan, s->trace, u->site, row);
        else
            plain_frames(m->plan, s->trace, u->site, row);
        python_frames(m->plan, s->trace, u->site, row);
        row->coarse = tn_plan_coarse_key(row);
    }
}

/* ---- tiers ---- */

static tn_plan_tier *add_tier(make *m, tn_discipline d, tn_family f, uint32_t detail)
{
    tn_plan_tier *t = &m->out->tiers[m->out->tier_count++];
    *t = (tn_plan_tier){.discipline = d, .family = f, .detail = detail};
    for (size_t i = 0; i < m->s->unit_count; i++) {
        const tn_unit *u = &m->s->units[i];
        m->chosen[i] = u->discipline == d && u->family == f && (f != TN_FAMILY_PINNED || u->detail == detail) && u->blocks > 0;
        t->sites += m->chosen[i];
    }
    return t;
}

static tn_error make_regions(make *m, tn_plan_tier *t)
{
    tn_regions r;
    tn_error error = tn_regions_plan(m->s, m->chosen, &r);
    if (error != TN_OK)
        return error;
    m->out->regions = tn_plan_memory(m->plan, r.count, sizeof(tn_plan_region));
    for (size_t i = 0; m->out->regions && i < r.count; i++) {
        const tn_trace_site *x = &m->s->trace->sites[m->s->units[r.at[i].unit].site];
        m->out->regions[m->out->region_count++] = (tn_plan_region){.key = x->key, .python = x->python, .first_bytes = r.at[i].first_bytes,
                                                                   .capacity = r.at[i].capacity, .count = r.at[i].count, .times = r.at[i].times};
    }
    t->capacity = r.capacity;
    t->live_peak = r.live_peak;
    tn_regions_free(&r);
    return TN_OK;
}

static void put_slots(make *m, const tn_layout *l)
{
    for (size_t i = 0; i < l->slot_count;) {
        size_t end = i, classes = 0;
        while (end < l->slot_count && l->slots[end].unit == l->slots[i].unit) {
            classes += end == i || l->slots[end].size_class != l->slots[end - 1].size_class;
            end++;
        }
        tn_plan_row *row = &m->out->rows[m->row_of[l->slots[i].unit]];
        row->classes = tn_plan_memory(m->plan, classes, sizeof(tn_plan_class));
        row->capacity = 0;
        for (size_t k = i; row->classes && k < end; k++) {
            tn_plan_class *c = k == i || l->slots[k].size_class != l->slots[k - 1].size_class ? &row->classes[row->class_count++] : &row->classes[row->class_count - 1];
            if (!c->offsets) {
                size_t n = k;
                while (n < end && l->slots[n].size_class == l->slots[k].size_class)
                    n++;
                c->bytes = l->slots[k].bytes;
                c->alignment = l->slots[k].alignment;
                c->offsets = tn_plan_memory(m->plan, n - k, sizeof(uint64_t));
                if (!c->offsets)
                    return;
            }
            c->offsets[c->count++] = l->slots[k].offset;
            row->capacity += l->slots[k].bytes;
        }
        if (row->class_count && (m->options->headroom || row->room.given) && row->classes[row->class_count - 1].bytes > tn_round_up(row->largest, 512))
            row->headroom = row->classes[row->class_count - 1].bytes - tn_round_up(row->largest, 512);
        i = end;
    }
}

static tn_error make_layout(make *m, tn_plan_tier *t)
{
    tn_layout l;
    tn_layout_options options = {.steps = m->options->steps, .classes_an_octave = m->options->classes_an_octave,
                                 .headroom = m->options->headroom};
    tn_error error = tn_layout_make(m->s, m->chosen, &options, &l);
    if (error != TN_OK)
        return error;
    t->capacity = l.capacity;
    t->live_peak = l.live_peak;
    t->live_exact = l.live_exact;
    t->lower_bound = l.lower_bound;
    t->with_waits = l.with_waits;
    t->slots = l.slot_count;
    t->hand_outs = l.hand_outs;
    t->shared = l.shared;
    t->nearest = l.nearest;
    t->classes_an_octave = l.classes_an_octave;
    put_slots(m, &l);
    tn_layout_free(&l);
    return TN_OK;
}

static uint64_t arena_room(const make *m)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->s->unit_count; i++)
        bytes += m->chosen[i] ? tn_round_up(m->s->units[i].room.bytes, tn_native_alignment(m->s->units[i].family, m->s->units[i].room.bytes)) : 0;
    return bytes;
}

static tn_error fill_tier(make *m, tn_plan_tier *t)
{
    tn_error error = TN_OK;
    if (t->discipline != TN_D_T1 && t->discipline != TN_D_PACKED && t->discipline != TN_D_T5B)
        t->live_peak = tn_live_peak(m->s, m->chosen, t->family != TN_FAMILY_ASYNC);
    switch (t->discipline) {
    case TN_D_T1:
        return make_regions(m, t);
    case TN_D_T2:
        error = tn_bump_capacity(m->s, m->chosen, &t->capacity);
        t->capacity += tn_round_up(t->capacity / 100 * m->options->headroom + t->capacity % 100 * m->options->headroom / 100, 512) + arena_room(m);
        return error;
    case TN_D_T3:
        for (size_t i = 0; i < m->s->unit_count; i++)
            if (m->chosen[i])
                t->capacity += m->s->units[i].capacity;
        return TN_OK;
    case TN_D_T4: {
        tn_stacks stacks;
        error = tn_stacks_plan(m->s, m->chosen, &stacks);
        t->capacity = error == TN_OK ? stacks.capacity : 0;
        t->streams = error == TN_OK ? stacks.streams : 0;
        t->live_peak = error == TN_OK ? stacks.live_peak : 0;
        return error;
    }
    case TN_D_T5A:
        t->capacity = t->live_peak + arena_room(m);
        return TN_OK;
    default:
        return make_layout(m, t);
    }
}

/* A tier for each size and set of properties. */
static tn_error make_pools(make *m)
{
    tn_handle_class *at;
    size_t count;
    for (size_t i = 0; i < m->s->unit_count; i++)
        m->chosen[i] = m->s->units[i].family == TN_FAMILY_HANDLE && m->s->units[i].discipline == TN_D_T3 && m->s->units[i].blocks > 0;
    if (tn_none_chosen(m->s, m->chosen))
        return TN_OK;
    tn_error error = tn_handles_plan(m->s, m->chosen, &at, &count);
    tn_plan_tier *tiers = error == TN_OK ? tn_plan_memory(m->plan, m->out->tier_count + count, sizeof *tiers) : NULL;
    if (tiers && m->out->tier_count)
        memcpy(tiers, m->out->tiers, m->out->tier_count * sizeof *tiers);
    for (size_t i = 0; tiers && i < count; i++) {
        uint64_t each = tn_round_up(at[i].bytes, tn_native_alignment(TN_FAMILY_HANDLE, at[i].bytes));
        tiers[m->out->tier_count++] = (tn_plan_tier){.discipline = TN_D_T3, .family = TN_FAMILY_HANDLE, .detail = at[i].detail, .block = at[i].bytes,
                                                     .sites = at[i].sites, .capacity = each * at[i].count, .live_peak = each * at[i].seen, .slots = at[i].count};
    }
    if (error == TN_OK)
        free(at);
    if (tiers)
        m->out->tiers = tiers;
    return error == TN_OK && !tiers ? TN_E_NOMEM : error;
}

static tn_error make_tiers(make *m)
{
    const tn_section *s = m->s;
    tn_error error = TN_OK;
    size_t most = TN_D_COUNT * TN_FAMILY_COUNT;
    for (size_t i = 0; i < s->unit_count; i++)
        most += s->units[i].family == TN_FAMILY_PINNED;
    m->out->tiers = tn_plan_memory(m->plan, most, sizeof(tn_plan_tier));
    if (!m->out->tiers)
        return TN_E_NOMEM;
    for (unsigned f = 0; f < TN_FAMILY_HANDLE && error == TN_OK; f++) {
        for (unsigned d = TN_D_T1; d < TN_D_COUNT && error == TN_OK; d++) {
            /* Pinned memory by its flags, in their order. */
            for (uint64_t detail = 0, next; detail != UINT64_MAX && error == TN_OK; detail = next) {
                int any = 0;
                next = UINT64_MAX;
                for (size_t i = 0; i < s->unit_count; i++) {
                    const tn_unit *u = &s->units[i];
                    if ((unsigned)u->discipline != d || (unsigned)u->family != f || u->blocks == 0)
                        continue;
                    uint64_t its = f == TN_FAMILY_PINNED ? u->detail : 0;
                    any |= its == detail;
                    if (its > detail && its < next)
                        next = its;
                }
                if (any)
                    error = fill_tier(m, add_tier(m, (tn_discipline)d, (tn_family)f, (uint32_t)detail));
            }
        }
    }
    return error == TN_OK ? make_pools(m) : error;
}

/* ---- the section ---- */

static tn_error make_section(tn_plan *plan, const tn_section *s, const tn_plan_options *options, tn_plan_section *out)
{
    make m = {.plan = plan, .s = s, .options = options, .out = out};
    *out = (tn_plan_section){.exe_build_id = tn_plan_text(plan, s->exe_build_id), .exe = tn_plan_text(plan, s->exe),
                             .script = tn_plan_text(plan, s->script), .device = s->device};
    m.chosen = malloc(s->unit_count + 1);
    m.row_of = malloc((s->unit_count + 1) * sizeof *m.row_of);
    tn_error error = m.chosen && m.row_of ? TN_OK : TN_E_NOMEM;
    if (error == TN_OK) {
        make_rows(&m);
        error = out->rows || s->unit_count == 0 ? make_tiers(&m) : TN_E_NOMEM;
    }
    if (error == TN_OK)
        error = tn_plan_read_phases(plan, s, out);
    if (error == TN_OK)
        error = tn_plan_find_sizing(plan, s, &options->sizing, out);
    if (error == TN_OK) {
        for (size_t i = 0; i < s->unit_count; i++)
            m.chosen[i] = s->units[i].family != TN_FAMILY_PINNED && s->units[i].family != TN_FAMILY_COUNT;
        out->device_live_peak = tn_live_peak(s, m.chosen, 0);
        if (options->charger)
            options->charger(options->user, plan, s, out);
        out->total = out->native_bytes;
        for (size_t i = 0; i < out->tier_count; i++)
            if (out->tiers[i].family != TN_FAMILY_PINNED)
                out->total += out->tiers[i].capacity * (out->tiers[i].discipline == TN_D_T4 ? out->tiers[i].streams : 1);
        for (size_t i = 0; i < out->charge_count; i++)
            out->total += out->charges[i].bytes;
    }
    free(m.chosen);
    free(m.row_of);
    return error == TN_OK && tn_plan_failed(plan) ? TN_E_NOMEM : error;
}

tn_error tn_plan_make(const tn_trace *trace, const tn_plan_options *options, tn_plan **out, char message[TN_PLAN_MESSAGE])
{
    tn_sections sections = {0};
    tn_classify_options classify = {.rule_of = options->rule_of, .room_of = options->room_of, .user = options->user,
                                    .for_threads = options->headroom != 0};
    *out = NULL;
    message[0] = 0;
    tn_plan *plan = tn_plan_new();
    tn_error error = plan ? tn_classify_trace(trace, &classify, &sections) : TN_E_NOMEM;
    if (error == TN_OK) {
        plan->budget = options->budget;
        plan->headroom = options->headroom;
        plan->gap = options->gap;
        plan->processes = trace->process_count;
        for (size_t i = 0; i < trace->process_count; i++)
            plan->events += trace->processes[i].events;
        plan->sections = tn_plan_memory(plan, sections.count, sizeof(tn_plan_section));
        error = plan->sections || sections.count == 0 ? TN_OK : TN_E_NOMEM;
    }
    for (size_t i = 0; error == TN_OK && i < sections.count; i++)
        error = make_section(plan, &sections.at[i], options, &plan->sections[plan->section_count++]);
    if (error == TN_OK && plan->section_count == 0) {
        error = TN_E_EMPTY;
        snprintf(message, TN_PLAN_MESSAGE, "no CUDA memory was taken in what was recorded, so there is nothing to plan");
    }
    int sized = options->sizing.choice != TN_SIZING_GIVEN;
    for (size_t i = 0; error == TN_OK && i < plan->section_count; i++)
        sized |= plan->sections[i].sizing.known;
    if (error == TN_OK && !sized) {
        error = TN_E_ARGUMENT;
        snprintf(message, TN_PLAN_MESSAGE, "no run asks for free memory %" PRIu32 " times at site %016" PRIx64 ", so that query sizes nothing", options->sizing.ordinal,
                 options->sizing.key);
    }
    tn_sections_free(&sections);
    if (error == TN_OK) {
        *out = plan;
        return TN_OK;
    }
    if (message[0] == 0 && error == TN_E_LIMIT)
        snprintf(message, TN_PLAN_MESSAGE, "more than %u slots would have to be laid out together: fewer size classes (--classes), or a rule that sets some sites apart "
                                           "(native, T3), would do", TN_LAYOUT_SLOTS_MAX);
    else if (message[0] == 0)
        snprintf(message, TN_PLAN_MESSAGE, "no memory left to make the plan");
    tn_plan_free(plan);
    return error;
}
