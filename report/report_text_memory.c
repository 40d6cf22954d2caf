/* Tables of counts and bytes: of each device, of the host, of address ranges, of each call. */
#define _GNU_SOURCE
#include <inttypes.h>

#include "report/report_text_parts.h"

static void print_stat(FILE *out, const char *name, const tn_stat *s)
{
    char f[4][TN_FIGURE];
    fprintf(out, "  %-14s %11s %11s %11s %11s %9" PRIu64 " %9" PRIu64 " %8" PRIu64 "\n", name,
            tn_format_bytes(s->live_requested, f[0]), tn_format_bytes(s->peak_requested, f[1]),
            tn_format_bytes(s->live_backed, f[2]), tn_format_bytes(s->peak_backed, f[3]), s->allocs, s->frees, s->refused);
}

static void print_stat_head(FILE *out, const char *first)
{
    fprintf(out, "  %-14s %23s %23s\n", "", "requested", "backed");
    fprintf(out, "  %-14s %11s %11s %11s %11s %9s %9s %8s\n", first, "live", "peak", "live", "peak", "allocs", "frees", "refused");
}

static int stat_used(const tn_stat *s)
{
    return s->allocs || s->frees || s->refused;
}

static void print_ended(const tn_place *p, FILE *out)
{
    fprintf(out, "  %" PRIu64 " block%s ended by a device reset or a destroyed context, not by a free.\n", p->ended_with_context,
            p->ended_with_context == 1 ? " was" : "s were");
}

static void print_device(const tn_place *p, FILE *out)
{
    char where[TN_FIGURE], uuid[TN_UUID_TEXT], size[TN_FIGURE];
    tn_text_place(p, 0, where);
    where[0] = where[0] == 'd' ? 'D' : 'N';
    fputs(where, out);
    if (p->name) {
        fputs("  ", out);
        tn_text_clean(out, p->name, 40);
    }
    if (p->has_uuid)
        fprintf(out, "  %s", tn_format_uuid(p->uuid, uuid));
    if (p->total_bytes)
        fprintf(out, "  %s", tn_format_bytes(p->total_bytes, size));
    fputc('\n', out);
    print_stat_head(out, "kind");
    for (unsigned k = 0; k < TN_KIND_COUNT; k++)
        if (tn_kind_is_summed((uint8_t)k) && stat_used(&p->kinds[k]))
            print_stat(out, tn_kind_name(k), &p->kinds[k]);
    print_stat(out, "all of these", &p->total);
    if (stat_used(&p->kinds[TN_KIND_GRAPH]))
        print_stat(out, "graph-owned", &p->kinds[TN_KIND_GRAPH]);
    if (stat_used(&p->kinds[TN_KIND_IMPORTED]))
        print_stat(out, "imported", &p->kinds[TN_KIND_IMPORTED]);
    if (stat_used(&p->kinds[TN_KIND_HANDED])) {
        print_stat(out, "handed out", &p->kinds[TN_KIND_HANDED]);
        fputs("  What the program's own tiers handed out lies in memory that is in the sum already.\n", out);
    }
    if (stat_used(&p->kinds[TN_KIND_GRAPH]) || stat_used(&p->kinds[TN_KIND_IMPORTED]))
        fputs("  Graph-owned and imported memory is not in the sum.\n", out);
    if (p->ended_with_context)
        print_ended(p, out);
    fputc('\n', out);
}

void tn_text_devices(tn_report *r, const tn_report_options *options, FILE *out)
{
    for (size_t i = TN_PLACE_HOST + 1; i < r->place_count; i++) {
        print_device(&r->places[i], out);
        tn_text_device_account(r, (uint32_t)i, options, out);
    }
}

void tn_text_host(tn_report *r, const tn_report_options *options, FILE *out)
{
    (void)options;
    const tn_place *host = &r->places[TN_PLACE_HOST];
    fputs("Host memory\n", out);
    print_stat_head(out, "kind");
    print_stat(out, "pinned", &host->kinds[TN_KIND_PINNED]);
    print_stat(out, "registered", &host->kinds[TN_KIND_REGISTERED]);
    if (host->ended_with_context)
        print_ended(host, out);
    fputc('\n', out);
    if (!stat_used(&r->reserved) && !stat_used(&r->mapped))
        return;
    fputs("Address ranges (no memory of their own)\n", out);
    print_stat_head(out, "range");
    print_stat(out, "reserved", &r->reserved);
    print_stat(out, "mapped", &r->mapped);
    fputc('\n', out);
}

void tn_text_apis(tn_report *r, const tn_report_options *options, FILE *out)
{
    (void)options;
    char live[TN_FIGURE], peak[TN_FIGURE], where[TN_FIGURE];
    fputs("Calls by API and kind (each counted once, at the outermost call; bytes requested)\n", out);
    fprintf(out, "  %-30s %-10s %-9s %8s %8s %7s %9s %9s\n", "call", "kind", "where", "allocs", "frees", "refused", "live", "peak");
    for (size_t i = 0; i < r->place_count; i++) {
        const tn_place *p = &r->places[i];
        if (!p->apis)
            continue;
        tn_text_place(p, i == TN_PLACE_HOST, where);
        for (size_t k = 0; k < r->api_count * TN_KIND_COUNT; k++) {
            const tn_stat *s = &p->apis[k];
            if (stat_used(s))
                fprintf(out, "  %-30s %-10s %-9s %8" PRIu64 " %8" PRIu64 " %7" PRIu64 " %9s %9s\n", r->apis[k / TN_KIND_COUNT].name,
                        tn_kind_name(k % TN_KIND_COUNT), where, s->allocs, s->frees, s->refused,
                        tn_format_bytes(s->live_requested, live), tn_format_bytes(s->peak_requested, peak));
        }
    }
    uint64_t unknown = 0, failed = 0, replaced = 0;
    for (size_t i = 0; i < r->process_count; i++) {
        unknown += r->processes[i].frees_unknown;
        failed += r->processes[i].frees_failed;
        replaced += r->processes[i].replaced;
    }
    if (unknown)
        fprintf(out, "  %" PRIu64 " free%s of a block that no journal knows.\n", unknown, unknown == 1 ? " was" : "s were");
    if (failed)
        fprintf(out, "  %" PRIu64 " free%s refused by CUDA, which freed nothing.\n", failed, failed == 1 ? " was" : "s were");
    if (replaced)
        fprintf(out, "  %" PRIu64 " address%s handed out again although no free of it was seen.\n", replaced, replaced == 1 ? " was" : "es were");
    fputc('\n', out);
}
