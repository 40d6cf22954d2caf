/* Counts what happens while serving. */
#include "report/report_serving.h"

#include <stdlib.h>
#include <string.h>

#include "phaseguard/phase.h"
#include "report/report_steps.h"

struct tn_serving_process {
    tn_phase_state phase;
    int served;
    uint8_t *seen;              /* [site_end]: the site has allocated */
    tn_serving_thread *threads; /* by the journal's thread number */
    size_t thread_room;
    struct held { uint64_t pool; uint8_t kind, device; tn_serving_held held; } *pools; /* a process has few */
    size_t pool_count;
};

static tn_error begin(tn_report *report)
{
    tn_serving *s = calloc(1, sizeof(*s));
    report->serving = s;
    if (!s)
        return TN_E_NOMEM;
    s->sites = calloc(report->site_count + 1, sizeof(*s->sites));
    s->processes = calloc(report->process_count + 1, sizeof(*s->processes));
    if (!s->sites || !s->processes)
        return TN_E_NOMEM;
    for (size_t i = 0; i < report->process_count; i++)
        if (!(s->processes[i].seen = calloc(report->processes[i].site_end + 1u, 1)))
            return TN_E_NOMEM;
    return TN_OK;
}

static tn_serving_thread *thread_of(struct tn_serving_process *p, uint32_t number)
{
    if (number >= p->thread_room) {
        size_t room = p->thread_room ? p->thread_room : 16;
        while (room <= number)
            room *= 2;
        tn_serving_thread *grown = realloc(p->threads, room * sizeof(*grown));
        if (!grown)
            return NULL;
        memset(grown + p->thread_room, 0, (room - p->thread_room) * sizeof(*grown));
        p->threads = grown;
        p->thread_room = room;
    }
    return &p->threads[number];
}

/* A reading of a pool: nobody's site. */
static tn_error pool(tn_serving *all, struct tn_serving_process *p, const tn_event *e)
{
    size_t i = 0;
    while (i < p->pool_count && (p->pools[i].pool != e->addr || p->pools[i].kind != e->kind || p->pools[i].device != e->device))
        i++;
    if (i == p->pool_count) {
        struct held *grown = realloc(p->pools, (i + 1) * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        p->pools = grown;
        grown[p->pool_count++] = (struct held){.pool = e->addr, .kind = e->kind, .device = e->device};
    }
    tn_serving_what what = tn_serving_pool(&p->pools[i].held, e);
    if (tn_phase_of(&p->phase) == TN_PHASE_SERVING)
        tn_serving_add(&all->total, what, e, 0);
    return TN_OK;
}

static tn_error event(const tn_moment *now)
{
    const tn_event *e = now->event;
    tn_report *report = now->report;
    tn_serving *all = report->serving;
    struct tn_serving_process *p = &all->processes[now->process];
    const tn_process *q = &report->processes[now->process];
    if (e->type == TN_EV_PHASE) {
        tn_phase_set(&p->phase, e->kind);
        if (tn_phase_of(&p->phase) == TN_PHASE_SERVING && !p->served) {
            p->served = 1;
            all->processes_served++;
        }
        return TN_OK;
    }
    tn_serving_thread *t = thread_of(p, now->thread);
    if (!t)
        return TN_E_NOMEM;
    if (e->type == TN_EV_THREAD) {
        *t = (tn_serving_thread){0}; /* a number is handed on from thread to thread */
        return TN_OK;
    }
    if (e->type == TN_EV_CHARGE && (e->kind == TN_CHARGE_POOL || e->kind == TN_CHARGE_GRAPH_MEMORY))
        return pool(all, p, e);
    all->charges_read |= e->type == TN_EV_CHARGE && e->kind != TN_CHARGE_READING && e->kind != TN_CHARGE_BASELINE && e->kind != TN_CHARGE_NEIGHBOUR;
    tn_serving_what what = tn_serving_event(t, e);
    if (what == TN_SERVING_NOTHING)
        return TN_OK;
    uint32_t id = e->site < q->site_end ? e->site : TN_SITE_NONE, site = q->site_of[id];
    if (site == TN_NO_INDEX)
        site = q->site_of[TN_SITE_NONE];
    if (e->type == TN_EV_ARENA && tn_serving_tier(e) > 0 && tn_serving_tier(e) < TN_ROUTE_TIERS)
        site = tn_tier_site(report, tn_serving_tier(e)); /* whatever call it happened in */
    int first = 0;
    if (e->type != TN_EV_ARENA && (what == TN_SERVING_ALLOCATION || what == TN_SERVING_RETRY || what == TN_SERVING_SERVED)) {
        first = !p->seen[id];
        p->seen[id] = 1;
    }
    if (tn_phase_of(&p->phase) != TN_PHASE_SERVING)
        return TN_OK;
    tn_serving_add(&all->total, what, e, first);
    tn_serving_add(&all->sites[site], what, e, first);
    return TN_OK;
}

/* A process that was told and made no CUDA call any more served all the same. The steps' watcher comes before this one. */
static tn_error end(tn_report *report)
{
    tn_serving *all = report->serving;
    for (size_t i = 0; i < report->steps->count; i++) {
        const tn_step *step = &report->steps->steps[i];
        struct tn_serving_process *p = &all->processes[step->process];
        if (step->untaken && step->phase == TN_PHASE_SERVING && !p->served) {
            p->served = 1;
            all->processes_served++;
        }
    }
    return TN_OK;
}

static void drop(tn_report *report)
{
    tn_serving *s = report->serving;
    for (size_t i = 0; s && s->processes && i < report->process_count; i++) {
        free(s->processes[i].seen);
        free(s->processes[i].threads);
        free(s->processes[i].pools);
    }
    if (s) {
        free(s->processes);
        free(s->sites);
    }
    free(s);
    report->serving = NULL;
}

const tn_watcher tn_serving_watcher = {
    .types = TN_WATCH(TN_EV_ALLOC) | TN_WATCH(TN_EV_ARENA) | TN_WATCH(TN_EV_CHARGE) | TN_WATCH(TN_EV_PHASE) | TN_WATCH(TN_EV_THREAD),
    .begin = begin,
    .event = event,
    .end = end,
    .drop = drop,
};

static const tn_serving_counts *sorted; /* qsort has no argument for it; one thread a report */

static int by_repetition(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const tn_serving_counts *p = &sorted[x], *q = &sorted[y];
    if (tn_serving_repeated(p) != tn_serving_repeated(q))
        return tn_serving_repeated(p) > tn_serving_repeated(q) ? -1 : 1;
    if (p->driver_allocations != q->driver_allocations)
        return p->driver_allocations > q->driver_allocations ? -1 : 1;
    return (x > y) - (x < y);
}

tn_error tn_serving_order(const tn_report *report, uint32_t **out, size_t *count)
{
    static const tn_serving_counts nothing;
    uint32_t *order = malloc((report->site_count + 1) * sizeof(*order));
    *out = order;
    *count = 0;
    if (!order)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < report->site_count; i++)
        if (memcmp(&report->serving->sites[i], &nothing, sizeof(nothing)) != 0)
            order[(*count)++] = i;
    sorted = report->serving->sites;
    if (*count)
        qsort(order, *count, sizeof(*order), by_repetition);
    return TN_OK;
}
