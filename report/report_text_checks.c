/* What the debugging options of a served run found, for people. */
#define _GNU_SOURCE
#include <inttypes.h>

#include "report/report_checks.h"
#include "report/report_stack.h"
#include "report/report_text_parts.h"

static void print_site(tn_report *r, const char *what, uint32_t site, FILE *out)
{
    char words[256];
    if (site == TN_NO_INDEX) {
        fprintf(out, "        %-10s nowhere: it was live when the process ended\n", what);
        return;
    }
    fprintf(out, "        %-10s %016" PRIx64 "  ", what, r->sites[site].key);
    tn_text_clean(out, tn_stack_words(r, site, words, sizeof words), TN_TEXT_COLUMNS - 37);
    fputc('\n', out);
}

void tn_text_checks(tn_report *r, const tn_report_options *options, FILE *out)
{
    const tn_checks *c = r->checks;
    char a[TN_FIGURE];
    size_t shown = c->count < options->top ? c->count : options->top;
    if (!tn_checks_any(c))
        return;
    fputs("Canaries and poison (options of the served run)\n", out);
    if (c->guarded || c->bare)
        fprintf(out, "  %" PRIu64 " served block%s had a canary, %" PRIu64 " had no room for one\n", c->guarded, TN_PLURAL(c->guarded), c->bare);
    fprintf(out, "  when freed: %" PRIu64 " intact, %" PRIu64 " overwritten, %" PRIu64 " not looked at; at the end: %" PRIu64 " live, %" PRIu64 " of them overwritten\n",
            c->intact, c->overwritten, c->not_done, c->at_exit, c->at_exit_overwritten);
    if (c->unseen)
        fprintf(out, "  %" PRIu64 " w%s never looked at: context or process ended before\n", c->unseen, c->unseen == 1 ? "as" : "ere");
    fprintf(out, "  %" PRIu64 " block%s poisoned; %" PRIu64 " free%s waited for the device\n", c->poisoned, TN_PLURAL(c->poisoned), c->waits, TN_PLURAL(c->waits));
    for (size_t i = 0; i < shown; i++) {
        if (c->each[i].site != TN_NO_INDEX)
            tn_stack_want(r, c->each[i].site);
        if (c->each[i].free_site != TN_NO_INDEX)
            tn_stack_want(r, c->each[i].free_site);
    }
    for (size_t i = 0; i < shown; i++) {
        const tn_overwrite *o = &c->each[i];
        fprintf(out, "  %5" PRIu64 " block%s written past the end; the first: %s at 0x%" PRIx64 ", from byte %" PRIu64 " behind it, %" PRIu64 " byte%s\n", o->count,
                TN_PLURAL(o->count), tn_format_bytes(o->bytes, a), o->address, o->first, o->overwritten, TN_PLURAL(o->overwritten));
        print_site(r, "allocated", o->site, out);
        print_site(r, "freed", o->free_site, out);
    }
    if (shown < c->count)
        fprintf(out, "  %zu more (--top N)\n", c->count - shown);
    fputc('\n', out);
}
