/* Where a device's memory went, at the last reading: a table that adds up to what the device says is in use. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "report/report_device_owners.h"
#include "report/report_text_parts.h"

#define OWNERS_SHOWN 12

static const char *signed_bytes(int64_t bytes, char out[TN_FIGURE])
{
    char figure[TN_FIGURE];
    tn_format_bytes((uint64_t)llabs(bytes), figure);
    snprintf(out, TN_FIGURE, "%s%.24s", bytes < 0 ? "-" : "", figure);
    return out;
}

static void print_row(FILE *out, const char *name, int64_t bytes, int64_t whole)
{
    char figure[TN_FIGURE];
    fprintf(out, "  %-44s %12s", name, signed_bytes(bytes, figure));
    if (whole > 0)
        fprintf(out, " %7.2f %%", 100.0 * (double)bytes / (double)whole);
    fputc('\n', out);
}

static const char *const labels[TN_LINE_KINDS] = {
    [TN_LINE_BLOCKS] = "allocations of the program and its libraries",
    [TN_LINE_ARENAS] = "tenure arenas",
    [TN_LINE_SHARED] = "rest of pages that small blocks share",
    [TN_LINE_POOL_SLACK] = "pools: reserved, not used",
    [TN_LINE_GRAPH_MEMORY] = "graphs: reserved for memory nodes",
    [TN_LINE_CONTEXT] = "context",
    [TN_LINE_MODULE] = "modules",
    [TN_LINE_LAUNCH] = "code and stacks at first launches",
    [TN_LINE_STREAM] = "streams",
    [TN_LINE_EVENT] = "events",
    [TN_LINE_GRAPH] = "graphs",
    [TN_LINE_LIMIT] = "limits (stack, heap, printf)",
    [TN_LINE_MANAGED] = "managed memory that was touched",
    [TN_LINE_FIRST_USE] = "first use of a call",
    [TN_LINE_PEER] = "peers",
    [TN_LINE_PINNED] = "page tables of pinned memory",
    [TN_LINE_ARRAY] = "tiling of arrays",
    [TN_LINE_GROWTH] = "growth in calls that wait",
};

static void print_owners(tn_report *r, const tn_device_account *a, int full, FILE *out)
{
    size_t count;
    tn_owner_sum *sums = tn_device_owners(r, a, &count);
    int64_t rest = 0;
    fputs("  by library\n", out);
    for (size_t i = 0; i < count; i++) {
        char figure[TN_FIGURE], blocks[TN_FIGURE];
        if (!full && i >= OWNERS_SHOWN) {
            rest += sums[i].bytes;
            continue;
        }
        fprintf(out, "    %12s  ", signed_bytes(sums[i].bytes, figure));
        tn_text_clean(out, sums[i].name, 46);
        if (sums[i].kinds[TN_LINE_BLOCKS] && sums[i].kinds[TN_LINE_BLOCKS] != sums[i].bytes)
            fprintf(out, "  (allocations %s)", signed_bytes(sums[i].kinds[TN_LINE_BLOCKS], blocks));
        fputc('\n', out);
    }
    if (rest) {
        char figure[TN_FIGURE];
        fprintf(out, "    %12s  %zu others\n", signed_bytes(rest, figure), count - OWNERS_SHOWN);
    }
    free(sums);
}

void tn_text_device_account(tn_report *r, uint32_t place, const tn_report_options *options, FILE *out)
{
    const tn_device_account *a = tn_device_account_of(r, place);
    char f[3][TN_FIGURE];
    if (!a)
        return;
    const tn_reading_view *v = &a->last;
    fprintf(out, "  at the last reading (%s after the start):\n", tn_format_duration(v->at_ns, f[0]));
    fprintf(out, "  %-44s %12s\n", "used on the device", signed_bytes(v->used, f[0]));
    if (a->has_baseline)
        fprintf(out, "  %-44s %12s\n", "in use before this run", signed_bytes(a->baseline, f[0]));
    if (a->has_neighbours)
        fprintf(out, "  %-44s %12s\n", "other processes", signed_bytes(a->neighbours, f[0]));
    print_row(out, a->has_neighbours ? "used by this run" : "used by this run (if alone)", v->own_used, v->own_used);
    for (int k = 0; k < TN_LINE_KINDS; k++)
        if (v->kinds[k])
            print_row(out, k == TN_LINE_CONTEXT && a->context_and_baseline ? "context+baseline" : labels[k], v->kinds[k], v->own_used);
    print_row(out, "unattributed", v->unattributed, v->own_used);
    if (v->pool_reserved)
        fprintf(out, "  pools have reserved %s, of which %s is used\n", signed_bytes(v->pool_reserved, f[0]), signed_bytes(v->pool_used, f[1]));
    const tn_stat *pinned = &r->places[TN_PLACE_HOST].kinds[TN_KIND_PINNED];
    if (pinned->allocs)
        fprintf(out, "  %-44s %12s  (at most; on the host)\n", "pinned memory", signed_bytes((int64_t)pinned->peak_backed, f[0]));
    print_owners(r, a, options->full, out);
    if (a->mark_count) {
        fputs("  at marks and phases\n", out);
        fprintf(out, "    %12s %12s %12s %9s\n", "after", "used", "unattributed", "ratio");
        for (size_t i = 0; i < a->mark_count; i++) {
            const tn_reading_view *m = &a->marks[i];
            fprintf(out, "    %12s %12s %12s %9.4f  ", tn_format_duration(m->at_ns, f[0]), signed_bytes(m->own_used, f[1]),
                    signed_bytes(m->unattributed, f[2]), m->own_used > 0 ? (double)m->accounted / (double)m->own_used : 0.0);
            tn_text_clean(out, m->label ? m->label : "", 40);
            fputc('\n', out);
        }
    }
    fputc('\n', out);
}
