/* Section by section of the run, instance by instance, its blocks' births, frees and cleanings in order. */
#define _GNU_SOURCE
#include "planner/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_parts.h"
#include "planner/simulate.h"

typedef struct verify {
    const tn_plan *plan;
    const tn_trace *trace;
    tn_verdict *out;
    const tn_plan_section *section;
    uint32_t section_number;
    const tn_section *run;
    tn_match match;
    tn_verdict_row *rows; /* by row of the section */
    struct spilled { uint64_t blocks, bytes; } *spilled; /* by row: alive and without room because they were too many */
    const tn_serve *serve; /* of the instance */
    uint32_t *spilled_of; /* by life of the instance's process: 1 + the row where it is one of these */
} verify;

static uint64_t placed_bytes(const verify *v, uint32_t row, const tn_life *l)
{
    return tn_round_up(l->bytes, tn_native_alignment(v->section->rows[row].family, l->bytes));
}

static void note_spill(verify *v, uint32_t row, const tn_life *l, uint32_t life, const tn_serve_answer *answer)
{
    tn_verdict_row *r = &v->rows[row];
    r->by_spill[answer->spill]++;
    int of_its_size = answer->spill == TN_SPILL_TOO_MANY && v->section->rows[row].family == TN_FAMILY_HANDLE; /* a rule for handles names it */
    if ((answer->spill == TN_SPILL_TOO_LARGE || of_its_size) && l->bytes > r->largest)
        r->largest = l->bytes;
    if (answer->spill == TN_SPILL_TOO_MANY || answer->spill == TN_SPILL_NO_ROOM) {
        struct spilled *s = &v->spilled[row];
        v->spilled_of[life] = row + 1;
        s->bytes += placed_bytes(v, row, l);
        if (++s->blocks > r->more)
            r->more = s->blocks;
        if (s->bytes > r->more_bytes)
            r->more_bytes = s->bytes;
    }
    if (answer->spill == TN_SPILL_IN_THE_WAY) { /* whoever has the fewer bytes is to make way */
        enum { ROOM = 64 };
        uint32_t others[ROOM];
        uint64_t bytes;
        size_t count = tn_serve_in_the_way(v->serve, row, l->bytes, others, ROOM, &bytes);
        if (count == 0 || count == ROOM || bytes >= v->section->rows[row].capacity)
            v->rows[row].in_the_way = 1;
        else
            for (size_t i = 0; i < count; i++)
                v->rows[others[i]].in_the_way = 1;
    }
}

static void end_spill(verify *v, uint32_t life, const tn_life *l)
{
    if (!v->spilled_of[life])
        return;
    uint32_t row = v->spilled_of[life] - 1;
    v->spilled[row].blocks--;
    v->spilled[row].bytes -= placed_bytes(v, row, l);
    v->spilled_of[life] = 0;
}

static void note(verify *v, const tn_instance *in, uint32_t row, const tn_life *l, uint32_t life, const tn_serve_answer *answer)
{
    tn_verdict_row *r = &v->rows[row];
    v->out->hand_outs++;
    r->waits += answer->waited != 0;
    v->out->waits += answer->waited != 0;
    if (!answer->spill)
        return;
    note_spill(v, row, l, life, answer);
    tn_excess e = {.section = v->section_number, .row = row, .process = in->process, .at = l->begin, .answer = *answer, .bytes = l->bytes};
    if (r->excesses++ == 0)
        r->first = *answer;
    if (answer->short_by > r->worst)
        r->worst = answer->short_by;
    if (v->out->excesses++ == 0)
        v->out->first = v->out->worst = e;
    if (answer->short_by > v->out->worst.answer.short_by)
        v->out->worst = e;
}

/* Placed by the plan, and by the plan's family: a site that has changed its calls is the driver's. */
static uint32_t placed_row(const verify *v, const tn_life *l)
{
    uint32_t row = v->match.row_of[v->run->unit_of[l->site]];
    if (row == TN_TRACE_NONE || v->section->rows[row].discipline == TN_D_NATIVE || v->section->rows[row].family != tn_family_of_kind(l->kind))
        return TN_TRACE_NONE;
    return tn_family_has_detail(tn_family_of_kind(l->kind)) && l->detail != v->section->rows[row].detail ? TN_TRACE_NONE : row;
}

static tn_error replay_instance(verify *v, const tn_instance *in)
{
    const tn_trace_process *p = &v->trace->processes[in->process];
    const tn_life *lives = p->lives;
    tn_serve *serve = tn_serve_new(v->section, p->life_count);
    size_t freed = 0, clean = 0, join = 0;
    v->serve = serve;
    v->spilled_of = calloc(p->life_count + 1, sizeof *v->spilled_of);
    memset(v->spilled, 0, v->section->row_count * sizeof *v->spilled);
    tn_error error = serve && v->spilled_of ? TN_OK : TN_E_NOMEM;
    for (size_t i = 0; i < in->birth_count && error == TN_OK; i++) {
        const tn_life *l = &lives[in->births[i]];
        while (error == TN_OK) { /* what comes before it, in order; a free before the cleaning at the same event */
            uint32_t next_free = freed < in->free_count ? lives[in->frees[freed]].freed : TN_LIFE_OPEN;
            uint32_t next_clean = clean < in->clean_count ? lives[in->cleans[clean]].clean : TN_LIFE_OPEN;
            uint32_t next_join = join < p->join_count ? p->joins[join].at : TN_LIFE_OPEN;
            if (next_free <= l->begin && next_free <= next_clean && next_free <= next_join) {
                tn_serve_give(serve, &lives[in->frees[freed]], in->frees[freed]);
                if (lives[in->frees[freed]].kind == TN_KIND_ASYNC)
                    end_spill(v, in->frees[freed], &lives[in->frees[freed]]);
                freed++;
            } else if (next_clean <= l->begin && next_clean <= next_join) {
                tn_serve_clean(serve, in->cleans[clean]);
                end_spill(v, in->cleans[clean], &lives[in->cleans[clean]]);
                clean++;
            } else if (next_join <= l->begin) {
                error = tn_serve_join(serve, &p->joins[join++]);
            } else {
                break;
            }
        }
        uint32_t row = placed_row(v, l);
        tn_serve_answer answer;
        if (error != TN_OK || row == TN_TRACE_NONE)
            continue;
        error = tn_serve_take(serve, row, l, in->births[i], &answer);
        if (error == TN_OK)
            note(v, in, row, l, in->births[i], &answer);
    }
    tn_serve_free(serve);
    free(v->spilled_of);
    return error;
}

static tn_error note_missing(verify *v)
{
    char **at = TN_TRACE_PUSH(v->out->missing, v->out->missing_count);
    if (!at)
        return TN_E_NOMEM;
    if (asprintf(at, "%s%s%s on device %u", v->run->exe, v->run->script ? " " : "", v->run->script ? v->run->script : "", v->run->device) < 0) {
        v->out->missing_count--;
        return TN_E_NOMEM;
    }
    return TN_OK;
}

static int by_row(const void *a, const void *b)
{
    const struct tn_seen *x = a, *y = b;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static tn_error note_seen(verify *v)
{
    for (size_t i = 0; i < v->run->unit_count; i++) {
        const tn_unit *u = &v->run->units[i];
        if (v->match.row_of[i] == TN_TRACE_NONE || u->blocks == 0)
            continue;
        struct tn_seen *at = TN_TRACE_PUSH(v->out->seen, v->out->seen_count);
        if (!at)
            return TN_E_NOMEM;
        *at = (struct tn_seen){.section = v->section_number, .row = v->match.row_of[i], .blocks = u->live_blocks, .largest = u->largest, .bytes = u->live_bytes};
    }
    return TN_OK;
}

static tn_error note_unplanned(verify *v)
{
    for (size_t i = 0; i < v->match.run_only_count; i++) {
        const tn_unit *u = &v->run->units[v->match.run_only[i]];
        size_t count = v->out->unplanned;
        struct tn_unplanned *at = TN_TRACE_PUSH(v->out->unplanned_sites, count);
        if (!at)
            return TN_E_NOMEM;
        v->out->unplanned = count;
        const tn_trace_site *x = &v->trace->sites[u->site];
        *at = (struct tn_unplanned){.key = x->key, .python = x->python, .bytes = u->live_bytes ? u->live_bytes : u->backed_bytes, .blocks = u->blocks};
        v->out->unplanned_bytes += at->bytes;
    }
    return TN_OK;
}

/* A row's discipline is the unit's, so that what the plan leaves to the driver is summed up as the planner sums it. */
static tn_error note_native(verify *v, tn_section *run)
{
    tn_plan *scratch = tn_plan_new();
    tn_plan_section seen = {0};
    if (!scratch)
        return TN_E_NOMEM;
    for (size_t i = 0; i < run->unit_count; i++) {
        uint32_t row = v->match.row_of[i];
        run->units[i].discipline = row == TN_TRACE_NONE ? TN_D_NATIVE : v->section->rows[row].discipline;
    }
    tn_error error = tn_plan_read_phases(scratch, run, &seen);
    uint64_t over = v->out->native_bytes > v->out->native_planned ? v->out->native_bytes - v->out->native_planned : 0;
    uint64_t here = seen.native_bytes > v->section->native_bytes ? seen.native_bytes - v->section->native_bytes : 0;
    if (v->out->native_bytes == 0 || here > over) {
        v->out->native_bytes = seen.native_bytes;
        v->out->native_planned = v->section->native_bytes;
    }
    tn_plan_free(scratch);
    return error;
}

static tn_error verify_section(verify *v, tn_section *run, tn_plan_namer namer, void *user)
{
    v->run = run;
    v->section = tn_match_section(v->plan, run);
    if (!v->section)
        return note_missing(v);
    v->out->sections++;
    v->section_number = (uint32_t)(v->section - v->plan->sections);
    tn_error error = tn_simulate_units(run);
    if (error == TN_OK)
        error = tn_match_make(v->section, run, namer, user, &v->match);
    if (error != TN_OK)
        return error;
    v->out->by_key += v->match.by_key;
    v->out->by_name += v->match.by_name;
    v->out->plan_only += v->match.plan_only_count;
    v->rows = calloc(v->section->row_count + 1, sizeof *v->rows);
    v->spilled = calloc(v->section->row_count + 1, sizeof *v->spilled);
    error = v->rows && v->spilled ? note_unplanned(v) : TN_E_NOMEM;
    if (error == TN_OK)
        error = note_seen(v);
    for (size_t i = 0; i < run->instance_count && error == TN_OK; i++)
        error = replay_instance(v, &run->instances[i]);
    if (error == TN_OK)
        error = note_native(v, run);
    for (uint32_t i = 0; i < v->section->row_count && error == TN_OK; i++) {
        if (!v->rows[i].excesses && !v->rows[i].waits && !v->rows[i].in_the_way)
            continue;
        tn_verdict_row *at = TN_TRACE_PUSH(v->out->rows, v->out->row_count);
        if (!at)
            error = TN_E_NOMEM;
        else
            *at = v->rows[i];
        if (at) {
            at->section = v->section_number;
            at->row = i;
        }
    }
    free(v->rows);
    free(v->spilled);
    tn_match_free(&v->match);
    return error;
}

/* Where the plan has rows for Python callers, the run's units must be as fine. */
static void find_apart(const tn_plan *plan, const tn_trace *run, uint8_t *apart)
{
    for (uint32_t i = 0; i < run->site_count; i++)
        for (size_t k = 0; k < plan->section_count && run->sites[i].python; k++) {
            const tn_plan_row *row = tn_plan_row_of(&plan->sections[k], run->sites[i].key, run->sites[i].python);
            if (row && row->python)
                apart[run->sites[i].native] = 1;
        }
}

tn_error tn_verify(const tn_plan *plan, const tn_trace *run, tn_plan_namer namer, void *user, tn_verdict *out)
{
    verify v = {.plan = plan, .trace = run, .out = out};
    tn_sections sections = {0};
    uint8_t *apart = calloc(run->site_count + 1, 1);
    *out = (tn_verdict){.incomplete = tn_trace_incomplete(run)};
    tn_error error = apart ? TN_OK : TN_E_NOMEM;
    if (apart)
        find_apart(plan, run, apart);
    if (error == TN_OK)
        error = tn_sections_make(run, apart, &sections);
    for (size_t i = 0; i < sections.count && error == TN_OK; i++)
        error = verify_section(&v, &sections.at[i], namer, user);
    free(apart);
    tn_sections_free(&sections);
    if (out->seen_count)
        qsort(out->seen, out->seen_count, sizeof *out->seen, by_row);
    if (error != TN_OK)
        tn_verdict_free(out);
    return error;
}

void tn_verdict_free(tn_verdict *v)
{
    for (size_t i = 0; i < v->missing_count; i++)
        free(v->missing[i]);
    free(v->missing);
    free(v->rows);
    free(v->unplanned_sites);
    free(v->seen);
    *v = (tn_verdict){0};
}
