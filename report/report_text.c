/* The report for people: at most 100 columns, sizes with one decimal, what is wrong first. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_model.h"
#include "report/report_names.h"
#include "report/report_run.h"
#include "report/report_text_parts.h"

void tn_text_clean(FILE *out, const char *text, size_t limit)
{
    /* Paths and arguments are the program's own: no control character of theirs reaches the terminal. */
    size_t length = strlen(text);
    size_t shown = length > limit && limit > 3 ? limit - 3 : length;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)text[i];
        fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
    }
    if (shown < length)
        fputs("...", out);
}

void tn_text_wrap(FILE *out, const char *first_indent, const char *indent, const char *text)
{
    size_t column = strlen(first_indent);
    int line_empty = 1;
    fputs(first_indent, out);
    while (*text) {
        size_t word = strcspn(text, " \n");
        if (word && !line_empty && column + 1 + word > TN_TEXT_COLUMNS) {
            fprintf(out, "\n%s", indent);
            column = strlen(indent);
            line_empty = 1;
        }
        if (word) {
            if (!line_empty) {
                fputc(' ', out);
                column++;
            }
            for (size_t i = 0; i < word; i++)
                fputc((unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i], out);
            column += word;
            line_empty = 0;
        }
        text += word;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

void tn_text_place(const tn_place *place, int is_host, char out[TN_FIGURE])
{
    if (is_host)
        snprintf(out, TN_FIGURE, "host");
    else if (place->ordinal == TN_DEVICE_NONE)
        snprintf(out, TN_FIGURE, "no device");
    else
        snprintf(out, TN_FIGURE, "device %" PRIu32, place->ordinal);
}

static void print_head(const tn_report *r, FILE *out)
{
    char a[TN_FIGURE], b[TN_FIGURE];
    tn_run run;
    tn_run_collect(r, &run);
    fputs("Tenure report\n\n", out);
    char *command = tn_run_command_text(r);
    tn_text_wrap(out, "  command    ", "             ", command ? command : "unknown");
    free(command);
    fputs("  host       ", out);
    tn_text_clean(out, run.host ? run.host : "unknown", 64);
    fprintf(out, "; CUDA driver %s", tn_format_version(run.driver_version, a));
    if (run.runtime_version) /* a program may call the driver alone */
        fprintf(out, ", CUDA runtime %s", tn_format_version(run.runtime_version, b));
    fputc('\n', out);
    fprintf(out, "  started    %s, ran %s", tn_format_time(run.start_ns, a), tn_format_duration(run.duration_ns, b));
    if (run.has_signal)
        fprintf(out, ", ended by signal %d\n", run.signal);
    else if (run.has_status)
        fprintf(out, ", exit status %d\n", run.status);
    else
        fputc('\n', out);
    size_t ended = 0, gone = 0, buffered = 0, wrapped = 0, own_walk = 0;
    uint64_t events = 0;
    for (size_t i = 0; i < r->process_count; i++) {
        uint32_t flags = tn_reader_header(r->processes[i].reader)->flags;
        ended += (flags & TN_HF_ENDED) != 0;
        gone += r->processes[i].ended != 0;
        buffered += (flags & TN_HF_BUFFERED) != 0;
        wrapped += (flags & TN_HF_WRAP) != 0;
        own_walk += (flags & TN_HF_UNWIND_OWN) != 0;
        events += tn_reader_event_count(r->processes[i].reader);
    }
    fprintf(out, "  processes  %zu with CUDA: %zu ended, %zu killed or gone by _exit, %zu running\n", r->process_count, ended,
            gone - ended, r->process_count - gone);
    fprintf(out, "  events     %" PRIu64 ", %" PRIu64 " dropped\n", events, r->dropped_events);
    if (wrapped)
        fprintf(out, "             %zu linked with --wrap: calls inside its libraries are covered only if it exports dlsym\n", wrapped);
    if (buffered)
        fprintf(out, "             %zu with buffered journals: being killed may lose each thread's last events\n", buffered);
    if (own_walk)
        fprintf(out, "             %zu without libunwind: stacks end at the first frame without a frame pointer\n", own_walk);
    fputs("  Below, live is what each process had not freed at its end (or so far), all processes together;\n"
          "  peak is the most that was there at one time.\n", out);
    fputc('\n', out);
}

static void print_warnings(const tn_report *r, FILE *out)
{
    for (size_t i = 0; i < r->warning_count; i++)
        tn_text_wrap(out, "WARNING: ", "         ", r->warnings[i]);
    if (r->warning_count)
        fputc('\n', out);
}

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
    if (stat_used(&p->kinds[TN_KIND_GRAPH]) || stat_used(&p->kinds[TN_KIND_IMPORTED]))
        fputs("  Graph-owned and imported memory is not in the sum.\n", out);
    if (p->ended_with_context)
        print_ended(p, out);
    fputc('\n', out);
}

static void print_host(const tn_report *r, FILE *out)
{
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

static void print_apis(const tn_report *r, FILE *out)
{
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

int tn_report_text(tn_report *report, const tn_report_options *options, FILE *out)
{
    print_warnings(report, out);
    print_head(report, out);
    for (size_t i = TN_PLACE_HOST + 1; i < report->place_count; i++)
        print_device(&report->places[i], out);
    print_host(report, out);
    tn_text_sites(report, options, out);
    print_apis(report, out);
    tn_text_coverage(report, options, out);
    return fflush(out) != 0 || ferror(out) ? -1 : 0;
}
