/* The criteria of `tenure soak --plan`. */
#define _GNU_SOURCE
#include "report/report_soak_plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_device.h"
#include "report/report_names.h"
#include "report/report_routing.h"
#include "report/report_serving.h"

/* Parts of a thousand. */
enum { BLOCKS_BACK = 10, UNATTRIBUTED = 5, NAMELESS = 10 };

typedef struct criteria { FILE *out; int fails, unknown; } criteria;

/* `holds`: 1, 0, or -1 where it cannot be told. */
static void say(criteria *c, int holds, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(criteria *c, int holds, const char *format, ...)
{
    va_list args;
    c->fails += holds == 0;
    c->unknown += holds < 0;
    fputs(holds > 0 ? "  holds        " : holds == 0 ? "  falls short  " : "  not known    ", c->out);
    va_start(args, format);
    vfprintf(c->out, format, args);
    va_end(args);
    fputc('\n', c->out);
}

/* The reading when the requests were done: afterwards the program gives back what it has, and the parts of little say little. */
static const tn_reading_view *reading_of(const tn_device_account *a, const tn_soak_options *options)
{
    for (size_t i = a->mark_count; i-- > 0;)
        if (a->marks[i].label && tn_soak_is_drained(options, a->marks[i].label))
            return &a->marks[i];
    return &a->last;
}

static void attribution(criteria *c, const tn_report *r, const tn_soak_options *options)
{
    int devices = 0;
    for (uint32_t i = TN_PLACE_HOST + 1; i < r->place_count; i++) {
        const tn_device_account *a = tn_device_account_of(r, i);
        const tn_reading_view *v = a ? reading_of(a, options) : NULL;
        if (!v || v->own_used <= 0)
            continue;
        int64_t rest = llabs(v->unattributed), nameless = llabs(v->kinds[TN_LINE_GROWTH]);
        devices++;
        say(c, rest * 1000 <= v->own_used * UNATTRIBUTED && nameless * 1000 <= v->own_used * NAMELESS,
            "attribution: %.2f %% of device %" PRIu32 "'s memory in no line (0.5 %% at most), %.2f %% growth without a name (1 %% at most)",
            100.0 * (double)rest / (double)v->own_used, r->places[i].ordinal, 100.0 * (double)nameless / (double)v->own_used);
    }
    if (!devices)
        say(c, -1, "attribution: no reading of a device was taken");
}

static void peak(criteria *c, const tn_report *r, uint64_t most)
{
    char a[TN_FIGURE], b[TN_FIGURE];
    int devices = 0;
    for (uint32_t i = TN_PLACE_HOST + 1; i < r->place_count && most; i++) {
        const tn_device_account *account = tn_device_account_of(r, i);
        if (!account)
            continue;
        int64_t own = account->last.own_used;
        for (size_t k = 0; k < account->mark_count; k++)
            own = account->marks[k].own_used > own ? account->marks[k].own_used : own;
        devices++;
        say(c, own <= 0 || (uint64_t)own <= most, "own peak: %s on device %" PRIu32 " at phases and marks (%s at most)", tn_format_bytes(own > 0 ? (uint64_t)own : 0, a),
            r->places[i].ordinal, tn_format_bytes(most, b));
    }
    if (most && !devices)
        say(c, -1, "own peak: no reading of a device was taken");
}

tn_soak_verdict tn_soak_plan(const tn_report *r, const tn_soak_options *options, const tn_soak_blocks *blocks, FILE *out)
{
    criteria c = {.out = out};
    const tn_serving_counts *s = &r->serving->total;
    const tn_routing_counts *routed = &r->routing->total;
    /* A program gives back at its end what it held all the time: without the mark only more than then says something. */
    int64_t more = blocks->now - blocks->then, apart = blocks->drained ? llabs(more) : more;
    fputs("Criteria\n", out);
    say(&c, routed->served > 0, "placed by the plan: %" PRIu64 " call%s, %" PRIu64 " of them while serving", routed->served, TN_PLURAL(routed->served), s->served_allocations);
    say(&c, s->driver_allocations == 0, "driver allocations while serving: %" PRIu64 " (0)", s->driver_allocations);
    say(&c, routed->spilled == 0, "spilled calls: %" PRIu64 " (0)", routed->spilled);
    say(&c, r->dropped_events == 0, "dropped events: %" PRIu64 " (0)", r->dropped_events);
    say(&c, apart * 1000 <= blocks->then * BLOCKS_BACK, "live blocks: %" PRId64 " at the flip to serving, %" PRId64 " %s", blocks->then, blocks->now,
        blocks->drained ? "when drained (within 1 %)" : "at the end (1 % more at most)");
    attribution(&c, r, options);
    peak(&c, r, options->peak_most);
    fputc('\n', out);
    return c.fails ? TN_SOAK_FALLS_SHORT : c.unknown ? TN_SOAK_INCONCLUSIVE : TN_SOAK_HOLDS;
}
