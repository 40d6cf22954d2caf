/* Sites with their stacks. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_routing.h"
#include "report/report_short_name.h"
#include "report/report_stack.h"
#include "report/report_text_parts.h"

enum { SHORT_STACK = 6 };

/* Why something is missing: each reason gets a letter where it is met first, and one line at the end. */
typedef struct reasons {
    size_t frames[TN_SYMBOL_STATE_COUNT];
    tn_symbol_state in_order[TN_SYMBOL_STATE_COUNT];
    unsigned count;
} reasons;

static char letter_for(reasons *known, tn_symbol_state state)
{
    unsigned i = 0;
    while (i < known->count && known->in_order[i] != state)
        i++;
    if (i == known->count)
        known->in_order[known->count++] = state;
    known->frames[state]++;
    return (char)('a' + i);
}

/* The whole of a line, for --full: as many columns as it takes. */
static void print_full_line(const tn_stack_line *line, const char *base, const char *at, FILE *out)
{
    if (line->inlined)
        fputs("       | ", out);
    else
        fprintf(out, "       %s%s  ", base, at);
    tn_text_clean(out, line->function, SIZE_MAX);
    if (line->inlined)
        fputs(" (inlined)", out);
    else
        fprintf(out, "+0x%" PRIx64, line->delta);
    if (line->file) {
        fputs("  ", out);
        tn_text_clean(out, line->file, SIZE_MAX);
        fprintf(out, ":%" PRIu32, line->line);
    }
    fputc('\n', out);
}

static void print_line(const tn_stack_line *line, int full, reasons *names, reasons *lines, FILE *out)
{
    char at[24] = "", base[64], where[64] = "", name[1024];
    snprintf(base, sizeof(base), "%.48s", line->jit ? "[code in no file]" : line->module ? line->module : "[unknown module]");
    for (char *c = base; *c; c++)
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
    if (!line->jit && (full || !line->function))
        snprintf(at, sizeof(at), "+0x%" PRIx64, line->offset);
    if (line->layer && !full) {
        fprintf(out, "       %s  ... %" PRIu32 " frame%s of %s\n", base, line->frames, TN_PLURAL(line->frames), line->layer);
        return;
    }
    if (!line->function) {
        fprintf(out, "       %s%s  (%c)\n", base, at, letter_for(names, line->state));
        return;
    }
    if (line->line_state != TN_SYMBOL_FOUND)
        (void)letter_for(lines, line->line_state);
    if (full) {
        print_full_line(line, base, at, out);
        return;
    }
    if (line->file)
        snprintf(where, sizeof(where), "  %.40s:%" PRIu32, tn_base_name(line->file), line->line);
    size_t room = TN_TEXT_COLUMNS - 7 - strlen(base) - 2 - strlen(where);
    fprintf(out, "       %s  ", base);
    tn_text_clean(out, tn_short_name(line->function, name, sizeof(name)), room);
    tn_text_clean(out, where, SIZE_MAX);
    fputc('\n', out);
}

static void print_stack(tn_report *r, const tn_row *row, int full, reasons *names, reasons *lines, FILE *out)
{
    const tn_site *site = &r->sites[row->site];
    if (site->tier) {
        fputs("       memory that the tier serves from\n", out);
        return;
    }
    if (!site->record) {
        fputs(site->key == TN_SITE_NO_STACK ? "       no stack: called from a signal handler inside a hook\n"
                                            : "       no stack was recorded\n", out);
        return;
    }
    tn_text_python(r, site, full, out);
    tn_stack stack;
    tn_stack_of(r, row->site, !full, &stack);
    uint32_t shown = full || stack.count <= SHORT_STACK ? stack.count : SHORT_STACK - 1;
    for (uint32_t i = 0; i < shown; i++)
        print_line(&stack.lines[i], full, names, lines, out);
    if (shown < stack.count)
        fprintf(out, "       ... %" PRIu32 " more\n", stack.count - shown);
    else if (site->record->flags & TN_SF_CUT)
        fputs("       ... deeper frames were not recorded\n", out);
    if (site->record->flags & TN_SF_TOO_MANY)
        fputs("       only the caller is known: there were more call sites than are kept\n", out);
    else if (site->record->flags & TN_SF_CALLER_ONLY)
        fputs("       only the caller is known\n", out);
}

static void print_row(tn_report *r, const tn_row *row, size_t number, FILE *out)
{
    char where[64], a[TN_FIGURE], b[TN_FIGURE], c[TN_FIGURE], d[TN_FIGURE];
    const tn_site *site = &r->sites[row->site];
    const tn_stat *s = &row->stat;
    tn_text_place(&r->places[row->place], row->place == TN_PLACE_HOST, where);
    fprintf(out, "%4zu. %016" PRIx64, number, site->key);
    if (site->python)
        fprintf(out, "/%016" PRIx64, site->python->key);
    fprintf(out, "  %s, %s", where, tn_kind_name(row->kind));
    for (unsigned i = 0; i < row->api_count; i++)
        fprintf(out, "%s%s", i ? " " : ", ", r->apis[row->apis[i]].name);
    if (site->tier)
        fprintf(out, ", tier %s", tn_tier_name(site->tier));
    fprintf(out, "\n      peak %s (backed %s), live %s (backed %s); %" PRIu64 " alloc%s, %" PRIu64 " free%s", tn_format_bytes(s->peak_requested, a),
            tn_format_bytes(s->peak_backed, b), tn_format_bytes(s->live_requested, c), tn_format_bytes(s->live_backed, d),
            s->allocs, TN_PLURAL(s->allocs), s->frees, TN_PLURAL(s->frees));
    if (s->refused)
        fprintf(out, ", %" PRIu64 " refused", s->refused);
    const tn_routing_counts *routed = tn_routing_of(r, (uint32_t)(row - r->rows));
    if (routed)
        fprintf(out, "; %s", tn_routing_words(r, (uint32_t)(row - r->rows), where));
    if (routed && routed->spilled && routed->served)
        fprintf(out, ", %" PRIu64 " spilled", routed->spilled);
    fputc('\n', out);
}

static void print_reasons(const reasons *known, FILE *out)
{
    for (unsigned i = 0; i < known->count; i++) {
        size_t frames = known->frames[known->in_order[i]];
        fprintf(out, "  (%c) %zu frame%s without a name: %s.\n", 'a' + i, frames, TN_PLURAL(frames), tn_symbol_state_text(known->in_order[i]));
    }
}

void tn_text_sites(tn_report *r, const tn_report_options *options, FILE *out)
{
    size_t shown = options->top < r->row_count ? options->top : r->row_count;
    reasons names = {0}, lines = {0};
    if (options->by != TN_BY_STACKS)
        return;
    if (shown == r->row_count)
        fprintf(out, "Sites (%zu, by peak backed bytes)\n", shown);
    else
        fprintf(out, "Sites (%zu of %zu, by peak backed bytes)\n", shown, r->row_count);
    for (size_t i = 0; i < shown; i++)
        tn_stack_want(r, r->rows[r->row_order[i]].site);
    for (size_t i = 0; i < shown; i++) {
        const tn_row *row = &r->rows[r->row_order[i]];
        print_row(r, row, i + 1, out);
        print_stack(r, row, options->full, &names, &lines, out);
    }
    print_reasons(&names, out);
    for (unsigned i = 0; i < lines.count; i++) {
        size_t frames = lines.frames[lines.in_order[i]];
        char text[160];
        snprintf(text, sizeof(text), "%zu frame%s without file and line: %s.", frames, TN_PLURAL(frames), tn_symbol_state_text(lines.in_order[i]));
        tn_text_wrap(out, "  ", "  ", text);
    }
    fputc('\n', out);
}
