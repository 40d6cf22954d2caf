/* Phases, marks and what was counted while serving, as text. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "phaseguard/phase.h"
#include "report/report_serving.h"
#include "report/report_short_name.h"
#include "report/report_stack.h"
#include "report/report_steps.h"
#include "report/report_text_parts.h"

enum { LINES_A_STEP = 4, FIRST_STEPS = 200, LAST_STEPS = 40, OWNER_WIDTH = 20 };

/* "+3.9 GiB", "-2.0 MiB", "0 B". */
static const char *signed_bytes(int64_t bytes, char out[TN_FIGURE])
{
    char figure[TN_FIGURE];
    uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
    snprintf(out, TN_FIGURE, "%s%.24s", bytes > 0 ? "+" : bytes < 0 ? "-" : "", tn_format_bytes(size, figure));
    return out;
}

void tn_text_site_line(tn_report *r, uint32_t site, char *out, size_t size)
{
    static tn_stack stack; /* large; one thread a report */
    char name[200];
    tn_stack_of(r, site, 1, &stack);
    const tn_stack_line *where = tn_stack_where(&stack);
    if (where && where->function && where->file)
        snprintf(out, size, "%s:%" PRIu32 " %s", tn_base_name(where->file), where->line, tn_short_name(where->function, name, sizeof(name)));
    else
        tn_stack_words(r, site, out, size);
}

typedef struct span {
    tn_report *report;
    const tn_step *from;
    tn_step_sum sum;
} span;

static void step_name(const tn_step *step, char *out, size_t size)
{
    switch (step->type) {
    case TN_STEP_BEGIN:
        snprintf(out, size, "begin");
        break;
    case TN_STEP_PHASE:
        if (step->swap)
            snprintf(out, size, "phase %s (%s): swap %" PRIu64 " %s", tn_phase_name(step->phase), tn_cause_word(step->cause), step->swap,
                     step->phase == TN_PHASE_PLANNING ? "begins" : "ends");
        else
            snprintf(out, size, "phase %s (%s)", tn_phase_name(step->phase), tn_cause_word(step->cause));
        break;
    case TN_STEP_MARK:
        snprintf(out, size, "%s", step->name ? step->name : "(its text was dropped)");
        break;
    default:
        snprintf(out, size, "end");
    }
}

/* A line of figures for each device at which something of the process's is or was; in a run with several they say which. */
static void print_figures(const span *s, const tn_step *step, FILE *out)
{
    char a[TN_FIGURE], b[TN_FIGURE], c[TN_FIGURE];
    int printed = 0, several = s->report->place_count > TN_PLACE_HOST + 2;
    for (uint32_t i = TN_PLACE_HOST + 1; i < step->place_count; i++) {
        const tn_step_place *p = &step->places[i], *before = tn_step_place_of(s->from, i);
        if (!p->live && !p->has_used && !(before && before->live))
            continue;
        if (printed)
            fprintf(out, "\n  %9s ", "");
        fprintf(out, "%10s %11s %11s  ", tn_format_bytes(p->live, a), signed_bytes((int64_t)(p->live - (before ? before->live : 0)), b),
                p->has_used ? tn_format_bytes(p->used, c) : "-");
        if (several) {
            tn_text_place(&s->report->places[i], 0, a);
            fputs(a, out);
        }
        printed = 1;
    }
    if (printed && several)
        fputs(": ", out);
    if (!printed)
        fprintf(out, "%10s %11s %11s  ", "0 B", "0 B", "-");
}

/* Who made most of what came: sites that gained at least a fiftieth of the largest gain. With `out` NULL their names are only
 * asked for, so that all are read at once. */
static void print_gains(const span *s, FILE *out)
{
    tn_step_line *lines;
    size_t count;
    char figure[TN_FIGURE], name[160];
    if (tn_step_lines(s->report, &s->sum, 0, 0, &lines, &count) != TN_OK)
        return;
    size_t shown = 0;
    while (shown < count && shown < LINES_A_STEP && lines[shown].backed > 0 && lines[shown].backed >= lines[0].backed / 50)
        shown++;
    int64_t rest = 0;
    for (size_t i = 0; !out && i < shown; i++)
        tn_stack_want(s->report, lines[i].site);
    if (!out) {
        free(lines);
        return;
    }
    for (size_t i = shown; i < count; i++)
        rest += lines[i].backed;
    for (size_t i = 0; i < shown; i++) {
        tn_text_site_line(s->report, lines[i].site, name, sizeof(name));
        fprintf(out, "  %20s %11s  %13s", "", signed_bytes(lines[i].backed, figure), "");
        tn_text_clean(out, lines[i].owner, OWNER_WIDTH);
        fputs(": ", out);
        size_t owner = strlen(lines[i].owner) < OWNER_WIDTH ? strlen(lines[i].owner) : OWNER_WIDTH;
        tn_text_clean(out, name, TN_TEXT_COLUMNS - 50 - owner);
        fputc('\n', out);
    }
    if (shown && rest)
        fprintf(out, "  %20s %11s  %13s%zu other site%s\n", "", signed_bytes(rest, figure), "", count - shown, TN_PLURAL(count - shown));
    free(lines);
}

/* One line of a step. `hidden`: marks that were left out before it and count with it. */
static void print_step(const span *s, const tn_step *step, size_t hidden, FILE *out)
{
    char name[300], at[TN_FIGURE];
    if (hidden)
        fprintf(out, "  ... %zu marks more (--full shows all)\n", hidden);
    step_name(step, name, sizeof(name));
    fprintf(out, "  %9s ", tn_format_duration(step->at_ns, at));
    print_figures(s, step, out);
    tn_text_clean(out, name, TN_TEXT_COLUMNS - 49 - (s->report->place_count > TN_PLACE_HOST + 2 ? 12 : 0));
    if (step->untaken)
        fputs(" (not taken)", out);
    fputc('\n', out);
}

static void print_process(tn_report *r, uint32_t process, int full, FILE *out)
{
    span s = {.report = r};
    size_t hidden = 0;
    if (tn_step_sum_begin(&s.sum, r) != TN_OK)
        return;
    for (size_t i = 0; i < r->steps->count; i++) {
        const tn_step *step = &r->steps->steps[i];
        if (step->process != process)
            continue;
        tn_step_sum_add(&s.sum, step);
        if (step->type == TN_STEP_MARK && !full && i > FIRST_STEPS && i + LAST_STEPS < r->steps->count) {
            hidden++;
            continue;
        }
        if (out)
            print_step(&s, step, hidden, out);
        hidden = 0;
        if (s.from)
            print_gains(&s, out);
        tn_step_sum_clear(&s.sum);
        s.from = step;
    }
    tn_step_sum_free(&s.sum);
}

static int has_steps(const tn_report *r, uint32_t process)
{
    for (size_t i = 0; i < r->steps->count; i++)
        if (r->steps->steps[i].process == process && (r->steps->steps[i].type == TN_STEP_PHASE || r->steps->steps[i].type == TN_STEP_MARK))
            return 1;
    return 0;
}

void tn_text_phases(tn_report *r, const tn_report_options *options, FILE *out)
{
    int any = 0;
    for (uint32_t p = 0; p < r->process_count; p++)
        if (has_steps(r, p))
            print_process(r, p, options->full, NULL);
    for (uint32_t p = 0; p < r->process_count; p++) {
        if (!has_steps(r, p))
            continue;
        if (!any++)
            fputs("Phases and marks (device memory in allocations, backed; what came since the line before, by site)\n", out);
        if (r->process_count > 1)
            fprintf(out, "  process %" PRIu32 "\n", tn_reader_header(r->processes[p].reader)->pid);
        fprintf(out, "  %9s %10s %11s %11s  %s\n", "at", "live", "change", "device used", "step");
        print_process(r, p, options->full, out);
    }
    if (any)
        fputc('\n', out);
}

static void print_growth(FILE *out, const tn_serving *s, const tn_serving_counts *c)
{
    if (s->charges_read)
        fprintf(out, "  Growth without a call: pools %" PRIu64 ", graphs %" PRIu64 ", other charges %" PRIu64 ".\n", c->pool_growths, c->graph_growths,
                c->charge_growths);
    else
        fputs("  Growth without a call of pools, graphs and other charges: unknown, it was not read.\n", out);
}

void tn_text_serving(tn_report *r, const tn_report_options *options, FILE *out)
{
    const tn_serving *s = r->serving;
    uint32_t *order;
    size_t count, allocating = 0;
    char bytes[TN_FIGURE], name[160];
    if (!s->processes_served || tn_serving_order(r, &order, &count) != TN_OK)
        return;
    const tn_serving_counts *c = &s->total;
    fputs("While serving\n", out);
    fprintf(out, "  %" PRIu64 " driver allocation%s: %" PRIu64 " repeated, %" PRIu64 " the first of %s site; %" PRIu64 " retr%s, %" PRIu64 " refused; %s.\n",
            c->driver_allocations, TN_PLURAL(c->driver_allocations), tn_serving_repeated(c), c->first_uses, c->first_uses == 1 ? "its" : "their",
            c->retries, c->retries == 1 ? "y" : "ies", c->refused, tn_format_bytes(c->requested_bytes, bytes));
    print_growth(out, s, c);
    for (size_t i = 0; i < count; i++)
        allocating += s->sites[order[i]].driver_allocations > 0;
    size_t shown = options->top < allocating ? options->top : allocating;
    for (size_t i = 0, n = 0; i < count && n < shown; i++)
        if (s->sites[order[i]].driver_allocations) {
            tn_stack_want(r, order[i]);
            n++;
        }
    if (shown)
        fprintf(out, "  %8s %8s %8s %10s  %-16s  %s\n", "repeated", "first", "retries", "bytes", "key", "site");
    for (size_t i = 0, n = 0; i < count && n < shown; i++) {
        const tn_serving_counts *line = &s->sites[order[i]];
        if (!line->driver_allocations)
            continue;
        n++;
        tn_text_site_line(r, order[i], name, sizeof(name));
        fprintf(out, "  %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %10s  %016" PRIx64 "  ", tn_serving_repeated(line), line->first_uses, line->retries,
                tn_format_bytes(line->requested_bytes, bytes), r->sites[order[i]].key);
        tn_text_clean(out, name, 40);
        fputc('\n', out);
    }
    if (shown < allocating)
        fprintf(out, "  %zu more site%s allocated (--top N).\n", allocating - shown, TN_PLURAL(allocating - shown));
    fputc('\n', out);
    free(order);
}
