/* Two lists of what keys did not match, in one order. Sites of one function have the same coarse key and are told apart by how far into it
 * their calls stand. */
#include "planner/match.h"

#include <stdlib.h>
#include <string.h>

#include "planner/plan_parts.h"

static int same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const tn_plan_section *tn_match_section(const tn_plan *plan, const tn_section *run)
{
    const tn_plan_section *named = NULL;
    for (size_t i = 0; i < plan->section_count; i++) {
        const tn_plan_section *s = &plan->sections[i];
        if (s->device != run->device || !same_text(s->script, run->script))
            continue;
        if (run->exe_build_id[0] && strcmp(s->exe_build_id, run->exe_build_id) == 0)
            return s;
        if (!named && strcmp(s->exe, run->exe) == 0)
            named = s;
    }
    return named;
}

typedef struct side { const tn_plan_row *row; uint32_t index; int done; } side;

static const tn_plan_frame *next_frame(const tn_plan_row *row, size_t *i)
{
    while (*i < row->frame_count && row->frames[*i].inlined)
        ++*i;
    return *i < row->frame_count ? &row->frames[(*i)++] : NULL;
}

/* Where the calls stand in their functions, innermost first. */
static int by_deltas(const tn_plan_row *a, const tn_plan_row *b)
{
    size_t i = 0, k = 0;
    for (;;) {
        const tn_plan_frame *x = next_frame(a, &i), *y = next_frame(b, &k);
        if (!x || !y)
            return (x != NULL) - (y != NULL);
        uint64_t p = x->function ? x->delta : 0, q = y->function ? y->delta : 0;
        if (p != q)
            return p < q ? -1 : 1;
    }
}

static int by_function(const tn_plan_row *a, const tn_plan_row *b)
{
    if (a->coarse != b->coarse)
        return a->coarse < b->coarse ? -1 : 1;
    return a->python < b->python ? -1 : a->python > b->python;
}

static int by_place(const void *a, const void *b)
{
    const side *x = a, *y = b;
    int c = by_function(x->row, y->row);
    if (c == 0)
        c = by_deltas(x->row, y->row);
    return c ? c : x->index < y->index ? -1 : x->index > y->index;
}

static void pair(tn_match *out, side *plan, side *run)
{
    plan->done = run->done = 1;
    out->row_of[run->index] = plan->index;
    out->by_name++;
}

/* A function's sites on both sides: those that stand at the same places, where that is not ambiguous; then the rest in their order, if there are
 * as many on either side. */
static void pair_function(tn_match *out, side *plan, size_t plan_count, side *run, size_t run_count)
{
    size_t plan_left = 0, run_left = 0;
    for (size_t i = 0, k = 0; i < plan_count && k < run_count;) {
        int c = by_deltas(plan[i].row, run[k].row);
        if (c == 0)
            pair(out, &plan[i++], &run[k++]);
        else if (c < 0)
            i++;
        else
            k++;
    }
    for (size_t i = 0; i < plan_count; i++)
        plan_left += !plan[i].done;
    for (size_t k = 0; k < run_count; k++)
        run_left += !run[k].done;
    for (size_t i = 0, k = 0; plan_left == run_left && i < plan_count; i++) {
        if (plan[i].done)
            continue;
        while (run[k].done)
            k++;
        pair(out, &plan[i], &run[k]);
    }
}

static void pair_all(tn_match *out, side *plan, size_t plan_count, side *run, size_t run_count)
{
    if (plan_count)
        qsort(plan, plan_count, sizeof *plan, by_place);
    if (run_count)
        qsort(run, run_count, sizeof *run, by_place);
    for (size_t i = 0, k = 0; i < plan_count && k < run_count;) {
        int c = by_function(plan[i].row, run[k].row);
        size_t plan_end = i, run_end = k;
        while (plan_end < plan_count && c <= 0 && by_function(plan[i].row, plan[plan_end].row) == 0)
            plan_end++;
        while (run_end < run_count && c >= 0 && by_function(run[k].row, run[run_end].row) == 0)
            run_end++;
        if (c == 0 && plan[i].row->coarse)
            pair_function(out, plan + i, plan_end - i, run + k, run_end - k);
        i = plan_end;
        k = run_end;
    }
}

static tn_error match_names(const tn_plan_section *plan, const tn_section *run, const uint8_t *row_used, tn_plan_namer namer, void *user, tn_match *out)
{
    tn_plan *names = tn_plan_new();
    side *p = malloc((plan->row_count + 1) * sizeof *p), *r = malloc((run->unit_count + 1) * sizeof *r);
    tn_plan_row *rows = calloc(run->unit_count + 1, sizeof *rows);
    size_t p_count = 0, r_count = 0;
    tn_error error = names && p && r && rows ? TN_OK : TN_E_NOMEM;
    for (size_t i = 0; i < plan->row_count && error == TN_OK; i++)
        if (!row_used[i])
            p[p_count++] = (side){.row = &plan->rows[i], .index = (uint32_t)i};
    for (size_t i = 0; i < run->unit_count && error == TN_OK; i++) {
        if (out->row_of[i] != TN_TRACE_NONE || run->units[i].blocks == 0)
            continue;
        rows[i].key = run->trace->sites[run->units[i].site].key;
        rows[i].python = run->trace->sites[run->units[i].site].python;
        namer(user, names, run->trace, run->units[i].site, &rows[i]);
        rows[i].coarse = tn_plan_coarse_key(&rows[i]);
        r[r_count++] = (side){.row = &rows[i], .index = (uint32_t)i};
        if (tn_plan_failed(names))
            error = TN_E_NOMEM;
    }
    if (error == TN_OK)
        pair_all(out, p, p_count, r, r_count);
    free(p);
    free(r);
    free(rows);
    tn_plan_free(names);
    return error;
}

tn_error tn_match_make(const tn_plan_section *plan, const tn_section *run, tn_plan_namer namer, void *user, tn_match *out)
{
    *out = (tn_match){0};
    uint8_t *used = calloc(plan->row_count + 1, 1);
    out->row_of = malloc((run->unit_count + 1) * sizeof *out->row_of);
    out->plan_only = malloc((plan->row_count + 1) * sizeof *out->plan_only);
    out->run_only = malloc((run->unit_count + 1) * sizeof *out->run_only);
    tn_error error = used && out->row_of && out->plan_only && out->run_only ? TN_OK : TN_E_NOMEM;
    size_t missing = 0;
    for (size_t i = 0; i < run->unit_count && error == TN_OK; i++) {
        const tn_trace_site *x = &run->trace->sites[run->units[i].site];
        const tn_plan_row *row = tn_plan_row_of(plan, x->key, x->python);
        out->row_of[i] = row ? (uint32_t)(row - plan->rows) : TN_TRACE_NONE;
        if (row && run->units[i].blocks) {
            used[row - plan->rows] = 1;
            out->by_key++;
        }
        missing += !row && run->units[i].blocks;
    }
    if (error == TN_OK && missing && namer)
        error = match_names(plan, run, used, namer, user, out);
    for (size_t i = 0; i < run->unit_count && error == TN_OK; i++) {
        if (out->row_of[i] != TN_TRACE_NONE)
            used[out->row_of[i]] |= run->units[i].blocks > 0;
        else if (run->units[i].blocks)
            out->run_only[out->run_only_count++] = (uint32_t)i;
    }
    for (size_t i = 0; i < plan->row_count && error == TN_OK; i++)
        if (!used[i])
            out->plan_only[out->plan_only_count++] = (uint32_t)i;
    free(used);
    if (error != TN_OK)
        tn_match_free(out);
    return error;
}

void tn_match_free(tn_match *m)
{
    free(m->row_of);
    free(m->plan_only);
    free(m->run_only);
    *m = (tn_match){0};
}
