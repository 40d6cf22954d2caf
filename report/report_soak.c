/* Steady-state allocations by site, and blocks that did not come back. */
#define _GNU_SOURCE
#include "report/report_soak.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_serving.h"
#include "report/report_short_name.h"
#include "report/report_soak_plan.h"
#include "report/report_stack.h"
#include "report/report_steps.h"
#include "report/report_text_parts.h"

enum { CALLERS = 3 };

int tn_soak_is_drained(const tn_soak_options *options, const char *mark)
{
    return strcmp(mark, TN_SOAK_DRAINED) == 0 || (options->drained_on && regexec(options->drained_on, mark, 0, NULL, 0) == 0);
}

/* Blocks of one row that were not there when loading was over. */
typedef struct excess {
    uint32_t row;
    int64_t blocks, backed;
    int first_use; /* nothing but what the site's first use in Serving keeps */
} excess;

typedef struct findings {
    tn_report *report;
    const tn_soak_options *options;
    excess *excess;
    size_t excess_count;
    int64_t blocks, backed; /* of excess that is no first use */
    size_t kept;            /* rows whose first use keeps a block */
    tn_soak_blocks alive;
} findings;

static int is_drained(const findings *f, const tn_step *s)
{
    return s->type == TN_STEP_MARK && s->name && tn_soak_is_drained(f->options, s->name);
}

/* The process's last flip to Serving, and the moment at which its requests were done: NULL where it never served. */
static const tn_step *span_of(findings *f, uint32_t process, const tn_step **to)
{
    const tn_report *r = f->report;
    const tn_step *from = NULL;
    *to = NULL;
    for (size_t i = 0; i < r->steps->count; i++) {
        const tn_step *s = &r->steps->steps[i];
        if (s->process != process)
            continue;
        if (s->type == TN_STEP_PHASE && s->phase == TN_PHASE_SERVING) {
            from = s;
            *to = NULL;
        } else if (from && !*to && (is_drained(f, s) || s->type == TN_STEP_END)) {
            *to = s;
            f->alive.drained |= is_drained(f, s);
        }
    }
    return from;
}

static tn_error add_excess(findings *f, const tn_step_sum *sum)
{
    for (size_t i = 0; i < sum->touched_count; i++) {
        const tn_step_change *c = &sum->rows[sum->touched[i]];
        if (c->blocks <= 0 || f->report->sites[f->report->rows[c->row].site].tier)
            continue;
        excess *grown = realloc(f->excess, (f->excess_count + 1) * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        f->excess = grown;
        const tn_serving_counts *s = &f->report->serving->sites[f->report->rows[c->row].site];
        excess e = {.row = c->row, .blocks = c->blocks, .backed = c->backed, .first_use = s->first_uses > 0 && (uint64_t)c->blocks <= s->first_uses && tn_serving_repeated(s) == 0};
        f->excess[f->excess_count++] = e;
        f->kept += (size_t)e.first_use;
        f->blocks += e.first_use ? 0 : e.blocks;
        f->backed += e.first_use ? 0 : e.backed;
    }
    return TN_OK;
}

/* Blocks that a step added, tiers' own memory left out. */
static int64_t blocks_of(const tn_report *r, const tn_step *s)
{
    int64_t blocks = 0;
    for (size_t i = 0; i < s->change_count; i++)
        blocks += r->sites[r->rows[s->changes[i].row].site].tier ? 0 : s->changes[i].blocks;
    return blocks;
}

static void count_alive(findings *f, uint32_t process, const tn_step *from, const tn_step *to)
{
    for (const tn_step *s = f->report->steps->steps; s <= to; s++) {
        int64_t blocks = s->process == process ? blocks_of(f->report, s) : 0;
        f->alive.now += blocks;
        f->alive.then += s <= from ? blocks : 0;
    }
}

static tn_error find(findings *f)
{
    tn_report *r = f->report;
    tn_error error = TN_OK;
    for (uint32_t p = 0; p < r->process_count && error == TN_OK; p++) {
        const tn_step *to, *from = span_of(f, p, &to);
        tn_step_sum sum;
        if (!from || !to)
            continue;
        error = tn_step_sum_begin(&sum, r);
        if (error != TN_OK)
            break;
        for (const tn_step *s = from + 1; s <= to; s++)
            if (s->process == p)
                tn_step_sum_add(&sum, s);
        error = add_excess(f, &sum);
        count_alive(f, p, from, to);
        tn_step_sum_free(&sum);
    }
    return error;
}

static int by_bytes(const void *a, const void *b)
{
    const excess *x = a, *y = b;
    if (x->first_use != y->first_use)
        return x->first_use - y->first_use;
    if (x->backed != y->backed)
        return x->backed > y->backed ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The site, and on a line of its own who called it: many allocate through one function. */
static void print_site(tn_report *r, uint32_t site, FILE *out)
{
    static tn_stack stack; /* large; one thread a report */
    char name[160], callers[400] = "", short_name[200];
    fprintf(out, "  %016" PRIx64 "  ", r->sites[site].key);
    tn_text_site_line(r, site, name, sizeof(name));
    tn_text_clean(out, name, 46);
    fputc('\n', out);
    tn_stack_of(r, site, 1, &stack);
    const tn_stack_line *where = tn_stack_where(&stack);
    unsigned shown = 0;
    for (uint32_t i = where ? (uint32_t)(where - stack.lines) + 1 : stack.count; i < stack.count && shown < CALLERS; i++) {
        const tn_stack_line *line = &stack.lines[i];
        size_t used = strlen(callers);
        if (line->layer || !line->function)
            continue;
        snprintf(callers + used, sizeof(callers) - used, "%s%s", used ? ", " : "", tn_short_name(line->function, short_name, sizeof(short_name)));
        if (line->file && strlen(callers) + 1 < sizeof(callers))
            snprintf(callers + strlen(callers), sizeof(callers) - strlen(callers), ":%" PRIu32, line->line);
        shown++;
    }
    if (shown) {
        fputs("           called by ", out);
        tn_text_clean(out, callers, TN_TEXT_COLUMNS - 21);
        fputc('\n', out);
    }
}

/* Sites that allocated while serving; `repeated`: those that did so again, else those whose first time it was. */
static void print_sites(tn_report *r, const uint32_t *order, size_t count, int repeated, size_t top, FILE *out)
{
    char bytes[TN_FIGURE];
    size_t lines = 0;
    for (size_t i = 0; i < count; i++) {
        const tn_serving_counts *c = &r->serving->sites[order[i]];
        if (repeated ? tn_serving_repeated(c) == 0 : c->first_uses == 0 || tn_serving_repeated(c) > 0)
            continue;
        if (lines++ == 0) {
            fputs(repeated ? "Sites that allocated again while serving\n" : "Sites that allocated once, for the first time\n", out);
            fprintf(out, "  %8s %6s %7s %10s  %-16s  %s\n", "repeated", "first", "retries", "bytes", "key", "site");
        }
        if (lines > top)
            continue;
        fprintf(out, "  %8" PRIu64 " %6" PRIu64 " %7" PRIu64 " %10s", tn_serving_repeated(c), c->first_uses, c->retries, tn_format_bytes(c->requested_bytes, bytes));
        print_site(r, order[i], out);
    }
    if (lines > top)
        fprintf(out, "  %zu more (--top N)\n", lines - top);
    if (lines)
        fputc('\n', out);
}

static void print_excess(const findings *f, size_t top, FILE *out)
{
    char bytes[TN_FIGURE];
    if (f->excess_count)
        fprintf(out, "Sites that hold more %s than at the flip to serving\n  %8s %10s  %-16s  %s\n", f->alive.drained ? "when the requests are done" : "at the end",
                "blocks", "bytes", "key", "site");
    for (size_t i = 0; i < f->excess_count && i < top; i++) {
        const excess *e = &f->excess[i];
        fprintf(out, "  %8" PRId64 " %10s", e->blocks, tn_format_bytes((uint64_t)(e->backed > 0 ? e->backed : 0), bytes));
        print_site(f->report, f->report->rows[e->row].site, out);
    }
    if (f->excess_count > top)
        fprintf(out, "  %zu more (--top N)\n", f->excess_count - top);
    if (f->excess_count)
        fputc('\n', out);
}

static tn_soak_verdict inconclusive(tn_report *r, FILE *out)
{
    const char *warning = tn_report_warning(r, 0);
    if (!tn_report_complete(r))
        fprintf(out, "Inconclusive: the record is not complete%s%s\n", warning ? ": " : ".", warning ? warning : "");
    else
        fputs("Inconclusive: no process came to serve.\n", out);
    return TN_SOAK_INCONCLUSIVE;
}

tn_soak_verdict tn_report_soak(tn_report *r, const tn_soak_options *options, FILE *out)
{
    findings f = {.report = r, .options = options};
    uint32_t *order = NULL;
    size_t count = 0;
    char bytes[TN_FIGURE];
    if (r->serving->processes_served == 0 || !tn_report_complete(r))
        return inconclusive(r, out);
    if (find(&f) != TN_OK || tn_serving_order(r, &order, &count) != TN_OK) {
        fputs("Inconclusive: no memory is left.\n", out);
        free(f.excess);
        return TN_SOAK_INCONCLUSIVE;
    }
    if (f.excess_count)
        qsort(f.excess, f.excess_count, sizeof(*f.excess), by_bytes);
    for (size_t i = 0; i < count; i++)
        tn_stack_want(r, order[i]);
    for (size_t i = 0; i < f.excess_count; i++)
        tn_stack_want(r, r->rows[f.excess[i].row].site);
    const tn_serving_counts *c = &r->serving->total;
    uint64_t repeated = tn_serving_repeated(c);
    tn_soak_verdict planned = TN_SOAK_HOLDS;
    if (options->planned)
        planned = tn_soak_plan(r, options, &f.alive, out);
    int fails = options->planned ? planned == TN_SOAK_FALLS_SHORT : repeated > 0 || f.blocks > 0 || (options->strict && (c->first_uses > 0 || f.kept > 0));
    int unknown = planned == TN_SOAK_INCONCLUSIVE;
    if (options->broken)
        fprintf(out, "Inconclusive: %s. Until then:\n", options->broken);
    fprintf(out, "%s%" PRIu64 " driver allocation%s while serving, %" PRIu64 " repeated and %" PRIu64 " first use%s (%" PRIu64 " retr%s, %" PRIu64 " refused);\n",
            options->broken ? "  " : fails ? "Falls short: " : unknown ? "Inconclusive: " : "Holds: ", c->driver_allocations, TN_PLURAL(c->driver_allocations), repeated, c->first_uses, TN_PLURAL(c->first_uses),
            c->retries, c->retries == 1 ? "y" : "ies", c->refused);
    fprintf(out, "  %" PRId64 " block%s (%s) more %s than at the flip to serving; %zu first use%s kept.\n\n", f.blocks, TN_PLURAL(f.blocks),
            tn_format_bytes((uint64_t)(f.backed > 0 ? f.backed : 0), bytes), f.alive.drained ? "when the requests are done" : "at the end", f.kept, TN_PLURAL(f.kept));
    print_sites(r, order, count, 1, options->top, out);
    print_sites(r, order, count, 0, options->top, out);
    print_excess(&f, options->top, out);
    free(order);
    free(f.excess);
    return options->broken || (unknown && !fails) ? TN_SOAK_INCONCLUSIVE : fails ? TN_SOAK_FALLS_SHORT : TN_SOAK_HOLDS;
}
