/* What grows, what is left at the end, and what an unload leaves. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_growth.h"
#include "report/report_stack.h"
#include "report/report_text_parts.h"

enum { LEFT_LINES = 10 };

static void print_site(tn_report *r, uint32_t site, size_t column, FILE *out)
{
    char words[256];
    fprintf(out, "  %016" PRIx64 "  ", r->sites[site].key);
    tn_text_clean(out, tn_stack_words(r, site, words, sizeof(words)), TN_TEXT_COLUMNS - column - 20);
    fputc('\n', out);
}

static void print_growth(tn_report *r, const tn_growth_site *g, FILE *out)
{
    char a[TN_FIGURE], b[TN_FIGURE];
    fprintf(out, "  %-13s +%9s", tn_growth_kind_name(g->kind), tn_format_bytes(g->bytes, a));
    print_site(r, r->rows[g->row].site, 25, out);
    char text[256];
    int used;
    if (g->kind != TN_GROWTH_POOL)
        used = snprintf(text, sizeof(text), "%" PRIu64 " more block%s after %" PRIu64 " allocation%s and %" PRIu64 " free%s", g->blocks,
                        TN_PLURAL(g->blocks), g->allocs, TN_PLURAL(g->allocs), g->frees, TN_PLURAL(g->frees));
    else
        used = snprintf(text, sizeof(text), "as many blocks as before, %s at first, %s at last; %" PRIu64 " allocation%s, %" PRIu64 " free%s",
                        tn_format_bytes(g->first_bytes, a), tn_format_bytes(g->last_bytes, b), g->allocs, TN_PLURAL(g->allocs), g->frees,
                        TN_PLURAL(g->frees));
    if (r->process_count > 1)
        snprintf(text + used, sizeof(text) - (size_t)used, "; process %" PRIu32, tn_reader_header(r->processes[g->process].reader)->pid);
    tn_text_wrap(out, "                ", "                ", text);
}

void tn_text_growth(tn_report *r, const tn_report_options *options, FILE *out)
{
    const tn_growth *g = r->growth;
    size_t shown = g->count < options->top ? g->count : options->top;
    if (!g->count)
        return;
    fprintf(out, "Growth %s (sites whose live bytes rose and never fell)\n", g->serving ? "while serving" : "over the run, which has no Serving phase");
    for (size_t i = 0; i < shown; i++)
        tn_stack_want(r, r->rows[g->sites[i].row].site);
    for (size_t i = 0; i < shown; i++)
        print_growth(r, &g->sites[i], out);
    if (shown < g->count)
        fprintf(out, "  %zu more (--top N).\n", g->count - shown);
    tn_text_wrap(out, "  ", "  ", "Pool growth: a buffer is replaced by larger ones, the old ones are freed. Lost pointers: blocks come and are "
                                  "never freed, as where a pointer is overwritten. Kept blocks: freed at the very end.");
    fputc('\n', out);
}

/* ---- what is left ---- */

static uint64_t live_of(const tn_stat *s)
{
    return s->live_backed;
}

static uint64_t low_of(const tn_stat *s)
{
    return s->at_low;
}

typedef struct left_line { uint32_t row; uint64_t bytes; } left_line;

static int by_bytes(const void *a, const void *b)
{
    const left_line *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static void print_left(tn_report *r, uint32_t place, uint64_t (*bytes_of)(const tn_stat *), size_t top, FILE *out)
{
    char a[TN_FIGURE];
    size_t count = 0, most = top < LEFT_LINES ? top : LEFT_LINES;
    left_line *lines = malloc((r->row_count + 1) * sizeof(*lines));
    for (uint32_t i = 0; lines && i < r->row_count; i++)
        if (r->rows[i].place == place && bytes_of(&r->rows[i].stat) > 0 && tn_kind_is_summed(r->rows[i].kind))
            lines[count++] = (left_line){i, bytes_of(&r->rows[i].stat)};
    if (count)
        qsort(lines, count, sizeof(*lines), by_bytes);
    size_t shown = most && count <= most + 1 ? count : most < count ? most : count;
    for (size_t i = 0; i < shown; i++)
        tn_stack_want(r, r->rows[lines[i].row].site);
    for (size_t i = 0; i < shown; i++) {
        const tn_row *row = &r->rows[lines[i].row];
        fprintf(out, "  %10s  %-10s", tn_format_bytes(lines[i].bytes, a), tn_kind_name(row->kind));
        print_site(r, row->site, 24, out);
    }
    uint64_t rest = 0;
    for (size_t i = shown; i < count; i++)
        rest += lines[i].bytes;
    if (shown < count)
        fprintf(out, "  %10s  at %zu more sites\n", tn_format_bytes(rest, a), count - shown);
    free(lines);
}

static int unload_is_end(const tn_report *r, uint32_t place)
{
    for (size_t i = 0; i < r->row_count; i++)
        if (r->rows[i].place == place && r->rows[i].stat.at_low != r->rows[i].stat.live_backed)
            return 0;
    return 1;
}

void tn_text_left(tn_report *r, const tn_report_options *options, FILE *out)
{
    char where[TN_FIGURE], a[TN_FIGURE], b[TN_FIGURE], c[TN_FIGURE];
    for (uint32_t i = 1; i <= r->place_count; i++) {
        uint32_t index = i < r->place_count ? i : TN_PLACE_HOST;
        const tn_place *p = &r->places[index];
        tn_text_place(p, index == TN_PLACE_HOST, where);
        if (p->moments.low_epoch && !unload_is_end(r, index)) {
            fprintf(out, "After the largest unload, %s: %s (%s had been freed in all, %s after the start)\n", where,
                    tn_format_bytes(p->total.at_low, c), tn_format_bytes(p->moments.drop, a), tn_format_duration(p->moments.low_ns, b));
            print_left(r, index, low_of, options->top, out);
            fputc('\n', out);
        }
        if (p->total.live_backed && !r->stop.reached) {
            fprintf(out, "Never freed, %s: %s\n", where, tn_format_bytes(p->total.live_backed, a));
            print_left(r, index, live_of, options->top, out);
            fputc('\n', out);
        }
    }
}
