/* Ranges while the journals are replayed. */
#include "report/report_ranges.h"

#include <stdlib.h>
#include <string.h>

struct tn_open_range {
    uint32_t process, thread, range; /* range: index in each */
    uint64_t number;                 /* 0: the innermost of its thread ends first */
    uint64_t began_ns, allocs, bytes;
};

static tn_error begin(tn_report *report)
{
    report->ranges = calloc(1, sizeof(*report->ranges));
    return report->ranges ? TN_OK : TN_E_NOMEM;
}

/* Few texts are usual; many mean that a program numbers them, and then each is found by its place in the journal's strings. */
static tn_error range_of(tn_ranges *all, const char *name, uint32_t *out)
{
    for (size_t i = all->count; i-- > 0;) { /* what came last comes again */
        const char *other = all->each[i].name;
        if (other == name || (other && name && strcmp(other, name) == 0)) {
            *out = (uint32_t)i;
            return TN_OK;
        }
    }
    if (all->count == all->room) {
        size_t room = all->room ? all->room * 2 : 16;
        tn_range *grown = realloc(all->each, room * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        all->each = grown;
        all->room = room;
    }
    all->each[all->count] = (tn_range){.name = name};
    *out = (uint32_t)all->count++;
    return TN_OK;
}

static tn_error open_range(const tn_moment *now)
{
    tn_ranges *all = now->report->ranges;
    const tn_event *e = now->event;
    struct tn_open_range o = {.process = now->process, .thread = now->thread, .number = e->aux, .began_ns = now->ns};
    tn_error error = range_of(all, tn_reader_string(now->report->processes[now->process].reader, (uint32_t)e->addr), &o.range);
    if (error != TN_OK)
        return error;
    if (all->open_count == all->open_room) {
        size_t room = all->open_room ? all->open_room * 2 : 16;
        struct tn_open_range *grown = realloc(all->open, room * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        all->open = grown;
        all->open_room = room;
    }
    all->open[all->open_count++] = o;
    all->each[o.range].open++;
    return TN_OK;
}

static void close_range(const tn_moment *now)
{
    tn_ranges *all = now->report->ranges;
    for (size_t i = all->open_count; i-- > 0;) {
        const struct tn_open_range *o = &all->open[i];
        if (o->process != now->process || o->number != now->event->aux || (o->number == 0 && o->thread != now->thread))
            continue;
        tn_range *r = &all->each[o->range];
        r->count++;
        r->open--;
        r->total_ns += now->ns - o->began_ns;
        r->allocs += o->allocs;
        r->requested_bytes += o->bytes;
        memmove(&all->open[i], &all->open[i + 1], (all->open_count - i - 1) * sizeof(*o));
        all->open_count--;
        return;
    }
}

static tn_error event(const tn_moment *now)
{
    tn_ranges *all = now->report->ranges;
    const tn_event *e = now->event;
    if (e->type == TN_EV_MARK && e->kind == TN_MARK_RANGE_BEGIN)
        return open_range(now);
    if (e->type == TN_EV_MARK && e->kind == TN_MARK_RANGE_END)
        close_range(now);
    for (size_t i = 0; e->type == TN_EV_ALLOC && e->result == 0 && i < all->open_count; i++) {
        struct tn_open_range *o = &all->open[i];
        if (o->process == now->process && o->thread == now->thread) {
            o->allocs++;
            o->bytes += e->bytes;
        }
    }
    return TN_OK;
}

static void drop(tn_report *report)
{
    if (report->ranges) {
        free(report->ranges->each);
        free(report->ranges->open);
    }
    free(report->ranges);
    report->ranges = NULL;
}

const tn_watcher tn_ranges_watcher = {
    .types = TN_WATCH(TN_EV_MARK) | TN_WATCH(TN_EV_ALLOC),
    .begin = begin,
    .event = event,
    .drop = drop,
};
