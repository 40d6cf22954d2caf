/* Requests that CUDA refused, and what stood in their way. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <string.h>

#include "report/report_refusals.h"
#include "report/report_stack.h"
#include "report/report_text_parts.h"

enum { OUT_OF_MEMORY = 2 };

static void print_refusal(tn_report *r, const tn_refusal *f, FILE *out)
{
    char a[TN_FIGURE], b[TN_FIGURE], c[TN_FIGURE], words[256];
    const tn_row *row = &r->rows[f->row];
    const tn_place *p = &r->places[row->place];
    fprintf(out, "  %5" PRIu64 " %11s  error %-3" PRIi32 " %-7s ", f->count, tn_format_bytes(f->requested, a), f->result, f->granted_later ? "granted" : "");
    fprintf(out, "%016" PRIx64 "  ", r->sites[row->site].key);
    tn_text_clean(out, tn_stack_words(r, row->site, words, sizeof(words)), TN_TEXT_COLUMNS - 57);
    fputc('\n', out);
    if (f->result != OUT_OF_MEMORY || row->place == TN_PLACE_HOST)
        return;
    char text[256];
    int used = snprintf(text, sizeof(text), "%s of this run's were live then", tn_format_bytes(f->live, a));
    if (p->total_bytes)
        used += snprintf(text + used, sizeof(text) - (size_t)used, ", of %s", tn_format_bytes(p->total_bytes, b));
    /* Only where those bytes could have made room: programs ask for 4 TiB to see what happens. */
    if (f->idle && f->live + f->requested <= p->total_bytes && row->kind != TN_KIND_ASYNC && row->kind != TN_KIND_POOL)
        used += snprintf(text + used, sizeof(text) - (size_t)used,
                         "; up to %s lay idle in its stream-ordered pools, which a plain allocation gets only after a synchronisation",
                         tn_format_bytes(f->idle, c));
    snprintf(text + used, sizeof(text) - (size_t)used, ".");
    tn_text_wrap(out, "        ", "        ", text);
}

void tn_text_refusals(tn_report *r, const tn_report_options *options, FILE *out)
{
    const tn_refusals *f = r->refusals;
    size_t shown = f->count < options->top ? f->count : options->top;
    if (!f->count)
        return;
    for (size_t i = 0; i < shown; i++)
        tn_stack_want(r, r->rows[f->each[i].row].site);
    fputs("Refused requests (of each site the largest; granted: a later one of the same site was)\n", out);
    fprintf(out, "  %5s %11s  %-9s %-7s %-16s  %s\n", "calls", "largest", "answer", "later", "key", "site");
    for (size_t i = 0; i < shown; i++)
        print_refusal(r, &f->each[i], out);
    if (shown < f->count)
        fprintf(out, "  %zu more sites (--top N).\n", f->count - shown);
    fputc('\n', out);
}
