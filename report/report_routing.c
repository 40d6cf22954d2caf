/* Counts routes. Whether a process has a plan shows only by its first routed call, so calls without a route wait until its end. */
#define _GNU_SOURCE
#include "report/report_routing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "phaseguard/serving.h"
#include "report/report_names.h"

static tn_error begin(tn_report *report)
{
    tn_routing *all = report->routing = calloc(1, sizeof(*all));
    if (!all || !(all->processes = calloc(report->process_count + 1, sizeof(*all->processes))))
        return TN_E_NOMEM;
    return TN_OK;
}

/* Zeroed room up to and with `index`. */
static int grow(void **array, size_t *count, size_t index, size_t size)
{
    size_t room = *count ? *count : 64;
    if (index < *count)
        return 1;
    while (room <= index)
        room *= 2;
    char *grown = realloc(*array, room * size);
    if (!grown)
        return 0;
    memset(grown + *count * size, 0, (room - *count) * size);
    *array = grown;
    *count = room;
    return 1;
}

static tn_routing_tier *tier_of(tn_routing *all, uint32_t place, unsigned tier)
{
    return grow((void **)&all->places, &all->place_count, place, sizeof *all->places) ? &all->places[place][tier] : NULL;
}

static void add(tn_routing_counts *c, unsigned tier, uint32_t route)
{
    if (tier)
        c->served++;
    else if (tn_route_cause(route) && tn_route_cause(route) < TN_ROUTE_CAUSES)
        c->causes[tn_route_cause(route)]++, c->spilled++;
    else if (route & TN_ROUTE_UNPLANNED)
        c->unplanned++;
    else
        c->native++;
    c->waited += tier && route & TN_ROUTE_WAITED;
}

static tn_error event(const tn_moment *now)
{
    const tn_event *e = now->event;
    tn_routing *all = now->report->routing;
    struct tn_routing_process *p = &all->processes[now->process];
    if (e->type == TN_EV_ARENA) {
        p->planned = 1;
        all->planned = 1;
        return TN_OK;
    }
    unsigned tier = tn_serving_tier(e);
    int can = e->kind == TN_KIND_DEVICE || e->kind == TN_KIND_ASYNC || e->kind == TN_KIND_PINNED || e->kind == TN_KIND_VMM_HANDLE;
    uint32_t route = can ? tn_route_of(e->aux2) : 0;
    if (tier >= TN_ROUTE_TIERS || !tn_serving_counts_kind(e->kind) || now->row == TN_NO_INDEX || (e->result != 0 && !tn_route_cause(route)))
        return TN_OK;
    size_t tiers = all->row_count;
    if (!grow((void **)&all->row_tiers, &tiers, now->row, sizeof *all->row_tiers) || !grow((void **)&all->rows, &all->row_count, now->row, sizeof *all->rows))
        return TN_E_NOMEM;
    add(&all->rows[now->row], tier, route);
    all->row_tiers[now->row] |= (uint8_t)(tier ? 1u << tier : 0);
    p->planned |= route != 0;
    all->planned |= route != 0;
    if (route == 0)
        p->native++;
    else
        add(&all->total, tier, route);
    return TN_OK;
}

/* What a tier served, and what it has to serve from. */
static tn_error change(const tn_moment *now, const tn_change *c)
{
    if (!c->tier || c->tier >= TN_ROUTE_TIERS)
        return TN_OK;
    tn_routing_tier *t = tier_of(now->report->routing, c->place, c->tier);
    if (!t)
        return TN_E_NOMEM;
    uint64_t *held = c->arena ? &t->capacity : &t->live, *peak = c->arena ? &t->arena_peak : &t->peak, bytes = c->arena ? c->backed : c->requested;
    *held += c->sign > 0 ? bytes : -bytes;
    if (*held > *peak)
        *peak = *held;
    if (c->sign < 0 && c->cause == TN_CHANGE_PROCESS_END)
        *(c->arena ? &t->arena_left : &t->left) += bytes;
    t->served += c->sign > 0 && !c->arena;
    return TN_OK;
}

static tn_error end(tn_report *report)
{
    tn_routing *all = report->routing;
    uint8_t *sites = calloc(report->site_count + 1, 1);
    if (!sites)
        return TN_E_NOMEM;
    for (size_t i = 0; i < report->process_count; i++)
        all->total.native += all->processes[i].planned ? all->processes[i].native : 0;
    for (size_t i = 0; i < all->row_count && i < report->row_count; i++)
        if ((all->rows[i].served || all->rows[i].spilled) && !sites[report->rows[i].site]++)
            all->planned_sites++;
    for (size_t i = 0; i < all->place_count; i++)
        for (unsigned k = 0; k < TN_ROUTE_TIERS; k++) {
            tn_routing_tier *t = &all->places[i][k];
            t->live += t->left;
            t->capacity += t->arena_left;
            t->left = t->arena_left = 0;
        }
    free(sites);
    return TN_OK;
}

static void drop(tn_report *report)
{
    tn_routing *all = report->routing;
    if (all) {
        free(all->rows);
        free(all->row_tiers);
        free(all->places);
        free(all->processes);
    }
    free(all);
    report->routing = NULL;
}

const tn_watcher tn_routing_watcher = {
    .types = TN_WATCH(TN_EV_ALLOC) | TN_WATCH(TN_EV_ARENA), .begin = begin, .event = event, .change = change, .end = end, .drop = drop};

const tn_routing_counts *tn_routing_of(const tn_report *report, uint32_t row)
{
    const tn_routing *all = report->routing;
    return all->planned && row < all->row_count && !report->sites[report->rows[row].site].tier ? &all->rows[row] : NULL;
}

const char *tn_routing_words(const tn_report *report, uint32_t row, char out[64])
{
    const tn_routing_counts *c = tn_routing_of(report, row);
    size_t used = 0;
    out[0] = 0;
    for (unsigned t = 1; c && t < TN_ROUTE_TIERS; t++)
        if (report->routing->row_tiers[row] & 1u << t)
            used += (size_t)snprintf(out + used, 64 - used, "%s%s", used ? " " : "", tn_tier_name(t));
    if (c && !used)
        snprintf(out, 64, "%s", c->spilled ? "spilled" : c->unplanned ? "unplanned" : c->native ? "native" : "");
    return out;
}
