/* Where a plan sent the program's requests, and what the tiers held. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "report/report_routing.h"
#include "report/report_stack.h"
#include "report/report_text_parts.h"

static const char *const phrases[TN_ROUTE_CAUSES] = {
    [TN_ROUTE_TOO_LARGE] = "larger than planned",
    [TN_ROUTE_TOO_MANY] = "more alive than planned",
    [TN_ROUTE_IN_THE_WAY] = "another block or a graph has the addresses",
    [TN_ROUTE_NO_ROOM] = "no room in the tier",
    [TN_ROUTE_CAPTURE] = "a capture was active",
    [TN_ROUTE_NOT_CLEAN] = "what was freed is not clean",
};

static void print_tiers(tn_report *r, FILE *out)
{
    const tn_routing *all = r->routing;
    char where[TN_FIGURE], a[TN_FIGURE], b[TN_FIGURE], c[TN_FIGURE];
    int head = 0;
    for (size_t i = 0; i < all->place_count && i < r->place_count; i++)
        for (unsigned tier = 1; tier < TN_ROUTE_TIERS; tier++) {
            const tn_routing_tier *t = &all->places[i][tier];
            if (!tn_routing_tier_used(t))
                continue;
            if (!head++)
                fprintf(out, "  %-10s %-8s %12s %12s %12s %12s\n", "where", "tier", "arenas", "peak served", "live", "calls");
            tn_text_place(&r->places[i], i == TN_PLACE_HOST, where);
            /* Slots of T3 stand where all slots do. */
            fprintf(out, "  %-10s %-8s %12s %12s %12s %12" PRIu64 "\n", where, tn_tier_name(tier),
                    tier == TN_ROUTE_T3 && !t->arena_peak ? "in packed" : tn_format_bytes(t->arena_peak, a),
                    tn_format_bytes(t->peak, b), tn_format_bytes(t->live, c), t->served);
        }
}

typedef struct line { uint32_t row; uint64_t calls; } line;

static int by_calls(const void *a, const void *b)
{
    const line *x = a, *y = b;
    if (x->calls != y->calls)
        return x->calls > y->calls ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The sites that spilled, or that the plan does not name, those with the most calls first. */
static void print_sites(tn_report *r, int spilled, size_t top, FILE *out)
{
    const tn_routing *all = r->routing;
    line *lines = malloc((all->row_count + 1) * sizeof *lines);
    size_t count = 0;
    for (uint32_t i = 0; lines && i < all->row_count && i < r->row_count; i++) {
        uint64_t calls = spilled ? all->rows[i].spilled : all->rows[i].unplanned;
        if (calls)
            lines[count++] = (line){i, calls};
    }
    if (count) {
        fprintf(out, "  %s\n  %8s  %-16s  %s\n", spilled ? "sites that spilled" : "sites that the plan does not name", "calls", "key", "site");
        qsort(lines, count, sizeof *lines, by_calls);
    }
    size_t shown = top < count ? top : count;
    for (size_t i = 0; i < shown; i++)
        tn_stack_want(r, r->rows[lines[i].row].site);
    for (size_t i = 0; i < shown; i++) {
        char name[160];
        uint32_t site = r->rows[lines[i].row].site;
        tn_text_site_line(r, site, name, sizeof name);
        fprintf(out, "  %8" PRIu64 "  %016" PRIx64 "  ", lines[i].calls, r->sites[site].key);
        tn_text_clean(out, name, TN_TEXT_COLUMNS - 30);
        fputc('\n', out);
    }
    if (shown < count)
        fprintf(out, "  %zu more (--top N)\n", count - shown);
    free(lines);
}

void tn_text_routing(tn_report *r, const tn_report_options *options, FILE *out)
{
    const tn_routing *all = r->routing;
    const tn_routing_counts *c = &all->total;
    if (!all->planned)
        return;
    fputs("Routing by the plan\n", out);
    fprintf(out, "  %" PRIu64 " call%s served, of %zu planned site%s; %" PRIu64 " spilled, %" PRIu64 " unplanned, %" PRIu64 " left to the driver\n", c->served,
            TN_PLURAL(c->served), all->planned_sites, TN_PLURAL(all->planned_sites), c->spilled, c->unplanned, c->native);
    for (unsigned i = 1; i < TN_ROUTE_CAUSES; i++)
        if (c->causes[i])
            fprintf(out, "  spilled: %s, %" PRIu64 "\n", phrases[i], c->causes[i]);
    if (c->waited)
        fprintf(out, "  %" PRIu64 " after a wait, %.2f per 1000 served\n", c->waited, c->served ? 1000.0 * (double)c->waited / (double)c->served : 0.0);
    print_tiers(r, out);
    print_sites(r, 1, options->top, out);
    print_sites(r, 0, options->top, out);
    fputc('\n', out);
}
