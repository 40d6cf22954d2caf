/* Tables that add up: where the memory of a device or of the host is, by library, by site, by kind or by phase. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_owner.h"
#include "report/report_stack.h"
#include "report/report_text_parts.h"

typedef struct by_line {
    const char *name;    /* NULL: of the site */
    uint32_t site;
    const tn_stat *stat;
} by_line;

typedef struct by_table {
    by_line *lines;
    size_t count;
} by_table;

static int by_size(const void *a, const void *b)
{
    const tn_stat *x = ((const by_line *)a)->stat, *y = ((const by_line *)b)->stat;
    if (x->at_peak != y->at_peak)
        return x->at_peak > y->at_peak ? -1 : 1;
    if (x->live_backed != y->live_backed)
        return x->live_backed > y->live_backed ? -1 : 1;
    if (x->peak_backed != y->peak_backed)
        return x->peak_backed > y->peak_backed ? -1 : 1;
    if (x->allocs + x->refused != y->allocs + y->refused)
        return x->allocs + x->refused > y->allocs + y->refused ? -1 : 1;
    return x < y ? -1 : x > y; /* lines of one table are elements of one array */
}

static void add(by_table *t, const char *name, uint32_t site, const tn_stat *stat)
{
    if (stat->allocs || stat->frees || stat->refused)
        t->lines[t->count++] = (by_line){name, site, stat};
}

/* The lines of one place, each of them in its total. */
static int collect(const tn_report *r, uint32_t index, tn_report_by by, by_table *t)
{
    const tn_place *p = &r->places[index];
    size_t most = r->owner_count + r->row_count + TN_KIND_COUNT + TN_PHASE_SERVING + 1;
    t->count = 0;
    t->lines = malloc(most * sizeof(*t->lines));
    if (!t->lines)
        return 0;
    for (size_t i = 0; by == TN_BY_LIBRARY && p->owners && i < r->owner_count; i++)
        add(t, r->owners[i], TN_NO_INDEX, &p->owners[i]);
    for (size_t i = 0; by == TN_BY_SITE && i < r->row_count; i++)
        if (r->rows[i].place == index && tn_kind_is_summed(r->rows[i].kind))
            add(t, NULL, r->rows[i].site, &r->rows[i].stat);
    for (unsigned i = 0; by == TN_BY_KIND && i < TN_KIND_COUNT; i++)
        if (tn_kind_is_summed((uint8_t)i))
            add(t, tn_kind_name(i), TN_NO_INDEX, &p->kinds[i]);
    for (unsigned i = 0; by == TN_BY_PHASE && i <= TN_PHASE_SERVING; i++)
        add(t, tn_phase_name(i), TN_NO_INDEX, &p->phases[i]);
    if (by != TN_BY_PHASE) /* phases stay in their order */
        qsort(t->lines, t->count, sizeof(*t->lines), by_size);
    return 1;
}

/* One line; a name that is too long keeps its end, where the function's own name is. */
static void print_line(FILE *out, const char *name, const tn_stat *s)
{
    enum { WIDTH = 38 };
    char live[TN_FIGURE], at_peak[TN_FIGURE], own[TN_FIGURE], shown[WIDTH + 1];
    size_t length = strlen(name);
    snprintf(shown, sizeof(shown), length > WIDTH ? "...%s" : "%s", length > WIDTH ? name + length - (WIDTH - 3) : name);
    for (char *c = shown; *c; c++)
        *c = (unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c;
    fprintf(out, "  %-*s %10s %10s %10s %8" PRIu64 " %8" PRIu64 " %7" PRIu64 "\n", WIDTH, shown, tn_format_bytes(s->live_backed, live),
            tn_format_bytes(s->at_peak, at_peak), tn_format_bytes(s->peak_backed, own), s->allocs, s->frees, s->refused);
}

static void print_rest(FILE *out, const by_table *t, size_t from)
{
    tn_stat rest = {0};
    char name[40];
    uint64_t live = 0, at_peak = 0;
    for (size_t i = from; i < t->count; i++) {
        live += t->lines[i].stat->live_backed;
        at_peak += t->lines[i].stat->at_peak;
        rest.allocs += t->lines[i].stat->allocs;
        rest.frees += t->lines[i].stat->frees;
        rest.refused += t->lines[i].stat->refused;
    }
    char a[TN_FIGURE], b[TN_FIGURE];
    snprintf(name, sizeof(name), "%zu more", t->count - from);
    fprintf(out, "  %-38s %10s %10s %10s %8" PRIu64 " %8" PRIu64 " %7" PRIu64 "\n", name, tn_format_bytes(live, a), tn_format_bytes(at_peak, b), "",
            rest.allocs, rest.frees, rest.refused);
}

static void print_place(tn_report *r, uint32_t index, tn_report_by by, size_t top, FILE *out)
{
    static const char *const titles[] = {[TN_BY_LIBRARY] = "library", [TN_BY_SITE] = "site", [TN_BY_KIND] = "kind",
                                         [TN_BY_PHASE] = "phase in which it came"};
    const tn_place *p = &r->places[index];
    char where[TN_FIGURE], words[256];
    by_table t;
    if (!collect(r, index, by, &t) || t.count == 0) {
        if (!t.lines)
            fputs("  (no memory left for this table)\n", out);
        free(t.lines);
        return;
    }
    tn_text_place(p, index == TN_PLACE_HOST, where);
    fprintf(out, "By %s, %s (backed bytes)\n", titles[by], where);
    fprintf(out, "  %-38s %10s %10s %10s %8s %8s %7s\n", titles[by], "live", "at peak", "own peak", "allocs", "frees", "refused");
    size_t shown = t.count <= top + 1 ? t.count : top; /* "1 more" takes the line that the one would */
    for (size_t i = 0; i < shown; i++)
        if (t.lines[i].site != TN_NO_INDEX)
            tn_stack_want(r, t.lines[i].site);
    for (size_t i = 0; i < shown; i++)
        print_line(out, t.lines[i].name ? t.lines[i].name : tn_stack_words(r, t.lines[i].site, words, sizeof(words)), t.lines[i].stat);
    if (shown < t.count)
        print_rest(out, &t, shown);
    print_line(out, "total", &p->total);
    fputc('\n', out);
    free(t.lines);
}

void tn_text_by(tn_report *r, const tn_report_options *options, FILE *out)
{
    /* With stacks the libraries come first: most runs have a handful. */
    tn_report_by by = options->by == TN_BY_STACKS ? TN_BY_LIBRARY : options->by;
    for (uint32_t i = 1; i <= r->place_count; i++) /* devices, then the host */
        print_place(r, i < r->place_count ? i : TN_PLACE_HOST, by, options->top ? options->top : SIZE_MAX - 1, out);
}
