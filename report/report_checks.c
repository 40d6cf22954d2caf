/* Sums up CHECK events, and the canaries that the routes of allocations tell of. */
#include "report/report_checks.h"

#include <stdlib.h>

static tn_error begin(tn_report *report)
{
    report->checks = calloc(1, sizeof(*report->checks));
    return report->checks ? TN_OK : TN_E_NOMEM;
}

static void drop(tn_report *report)
{
    if (report->checks)
        free(report->checks->each);
    free(report->checks);
    report->checks = NULL;
}

static uint32_t site_of(const tn_report *r, uint32_t process, uint32_t id)
{
    const tn_process *p = &r->processes[process];
    return id != TN_SITE_NONE && id < p->site_end ? p->site_of[id] : TN_NO_INDEX;
}

static tn_error overwritten(const tn_moment *now)
{
    const tn_event *e = now->event;
    tn_checks *c = now->report->checks;
    uint32_t site = site_of(now->report, now->process, (uint32_t)e->aux2), free_site = site_of(now->report, now->process, e->site);
    for (size_t i = 0; i < c->count; i++)
        if (c->each[i].process == now->process && c->each[i].site == site && c->each[i].free_site == free_site) {
            c->each[i].count++;
            return TN_OK;
        }
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 16;
        tn_overwrite *grown = realloc(c->each, capacity * sizeof *grown);
        if (!grown)
            return TN_E_NOMEM;
        c->each = grown;
        c->capacity = capacity;
    }
    c->each[c->count++] = (tn_overwrite){.process = now->process, .site = site, .free_site = free_site, .count = 1, .address = e->addr, .bytes = e->bytes,
                                         .first = (uint32_t)e->aux, .overwritten = e->aux >> 32};
    return TN_OK;
}

static tn_error event(const tn_moment *now)
{
    const tn_event *e = now->event;
    tn_checks *c = now->report->checks;
    if (e->type == TN_EV_ALLOC) {
        int can = e->result == 0 && (e->kind == TN_KIND_DEVICE || e->kind == TN_KIND_ASYNC || e->kind == TN_KIND_PINNED);
        c->guarded += can && tn_route_of(e->aux2) & TN_ROUTE_CANARY;
        c->bare += can && tn_route_of(e->aux2) & TN_ROUTE_NO_CANARY;
        return TN_OK;
    }
    uint32_t flags = (uint32_t)(e->aux2 >> 32);
    int at_exit = flags & TN_CHECK_AT_EXIT;
    c->waits += flags & TN_CHECK_WAITED ? 1 : 0;
    c->poisoned += flags & TN_CHECK_POISONED ? 1 : 0;
    c->at_exit += at_exit ? 1 : 0;
    switch (e->kind) {
    case TN_CHECK_INTACT: c->intact += !at_exit; break;
    case TN_CHECK_OVERWRITTEN:
        *(at_exit ? &c->at_exit_overwritten : &c->overwritten) += 1;
        return overwritten(now);
    case TN_CHECK_NOT_DONE:
        c->not_done++;
        c->seen += flags & TN_CHECK_GUARDED ? 1 : 0;
        break;
    default: break;
    }
    return TN_OK;
}

static int by_count(const void *a, const void *b)
{
    const tn_overwrite *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->free_site < y->free_site ? -1 : x->free_site > y->free_site;
}

static tn_error end(tn_report *report)
{
    tn_checks *c = report->checks;
    c->seen += c->intact + c->overwritten + c->at_exit;
    c->unseen = c->guarded > c->seen ? c->guarded - c->seen : 0; /* one that is looked at when the process ends may be freed after that */
    if (c->count)
        qsort(c->each, c->count, sizeof *c->each, by_count);
    return TN_OK;
}

const tn_watcher tn_checks_watcher = {.types = TN_WATCH(TN_EV_ALLOC) | TN_WATCH(TN_EV_CHECK), .begin = begin, .event = event, .end = end, .drop = drop};

int tn_checks_any(const tn_checks *c)
{
    return c->guarded || c->bare || c->intact || c->overwritten || c->not_done || c->poisoned || c->at_exit;
}
