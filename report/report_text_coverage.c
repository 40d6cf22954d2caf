/* What was hooked and called, and what the hooks could not reach. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "report/report_text_parts.h"

static int says(const tn_report *r, size_t process, size_t before, const tn_rec_coverage *what, const char *text)
{
    const char *other = NULL;
    const tn_rec_coverage *record;
    for (size_t i = 0; i < before && (record = tn_reader_coverage(r->processes[process].reader, i, &other)); i++)
        if (record->what == what->what && strcmp(other ? other : "", text ? text : "") == 0)
            return 1;
    return 0;
}

/* Forked workers find the same things: one line for all of them. */
static int said_before(const tn_report *r, size_t process, size_t note, const tn_rec_coverage *what, const char *text)
{
    for (size_t p = 0; p < process; p++)
        if (says(r, p, SIZE_MAX, what, text))
            return 1;
    return says(r, process, note, what, text);
}

static size_t processes_saying(const tn_report *r, const tn_rec_coverage *what, const char *text)
{
    size_t count = 0;
    for (size_t p = 0; p < r->process_count; p++)
        count += (size_t)says(r, p, SIZE_MAX, what, text);
    return count;
}

void tn_text_coverage(tn_report *r, const tn_report_options *options, FILE *out)
{
    size_t resolved = 0, called = 0, silent = 0, notes = 0;
    for (size_t i = 0; i < r->api_count; i++) {
        resolved += r->apis[i].resolved > 0;
        called += r->apis[i].calls > 0;
        silent += r->apis[i].resolved > 0 && r->apis[i].calls == 0;
    }
    fputs("Coverage\n", out);
    fprintf(out, "  %zu name%s hooked; %zu handed out by a resolver, %zu called.\n", r->api_count, TN_PLURAL(r->api_count), resolved, called);
    fprintf(out, "  %-42s %-8s %-10s %12s %12s\n", "name", "level", "class", "resolved", "calls");
    for (size_t i = 0; i < r->api_count; i++) {
        const tn_api *a = &r->apis[i];
        if (a->calls || options->full)
            fprintf(out, "  %-42s %-8s %-10s %12" PRIu64 " %12" PRIu64 "\n", a->name, tn_level_name(a->level), tn_class_name(a->klass),
                    a->resolved, a->calls);
    }
    if (silent && !options->full)
        fprintf(out, "  %zu more %s resolved and never called.\n", silent, silent == 1 ? "was" : "were");
    for (size_t p = 0; p < r->process_count; p++) {
        const char *text = NULL;
        const tn_rec_coverage *record;
        for (size_t i = 0; (record = tn_reader_coverage(r->processes[p].reader, i, &text)); i++) {
            if (said_before(r, p, i, record, text))
                continue;
            if (notes++ == 0)
                fputs("  Not reached, turned off, or worth knowing:\n", out);
            char indent[64];
            snprintf(indent, sizeof(indent), "    %s, %zu of %zu process%s: ", tn_coverage_name(record->what),
                     processes_saying(r, record, text), r->process_count, r->process_count == 1 ? "" : "es");
            tn_text_wrap(out, indent, "      ", text ? text : "");
        }
    }
    if (notes == 0)
        fputs("  Nothing was found that the hooks could not reach.\n", out);
}
