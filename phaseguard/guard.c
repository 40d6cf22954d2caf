/* Counters by site and by tier. A counter is shared between threads only while the process serves and only with those that allocate
 * at the same site, where the driver's own call costs hundreds of times as much. */
#define _GNU_SOURCE
#include "phaseguard/guard.h"

#include <stddef.h>

#include "ledger/tn_sys.h"

static __attribute__((hot)) tn_guard_site *site_of(tn_guard *g, uint32_t site)
{
    uint32_t at = site / TN_GUARD_PAGE_SITES;
    if (at >= TN_GUARD_PAGES)
        return NULL;
    tn_guard_site *page = __atomic_load_n(&g->page[at], __ATOMIC_ACQUIRE);
    if (page == NULL) {
        size_t bytes = TN_GUARD_PAGE_SITES * sizeof *page;
        tn_guard_site *made = tn_sys_map_own(bytes);
        if (made == NULL)
            return NULL;
        if (__atomic_compare_exchange_n(&g->page[at], &page, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            page = made;
        else
            tn_sys_unmap(made, bytes);
    }
    return &page[site % TN_GUARD_PAGE_SITES];
}

static void add(tn_serving_counts *to, tn_serving_what what, const tn_event *e, int first)
{
    /* The rules stand once, in tn_serving_add(); what they made of this event is added word by word. */
    tn_serving_counts one = {0};
    tn_serving_add(&one, what, e, first);
    const uint64_t *from = (const uint64_t *)&one;
    uint64_t *words = (uint64_t *)to;
    for (size_t i = 0; i < sizeof one / sizeof *from; i++)
        if (from[i] != 0)
            __atomic_fetch_add(&words[i], from[i], __ATOMIC_RELAXED);
}

static tn_serving_counts read_counts(const tn_serving_counts *from)
{
    tn_serving_counts out;
    uint64_t *words = (uint64_t *)&out;
    for (size_t i = 0; i < sizeof out / sizeof *words; i++)
        words[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
    return out;
}

tn_guard_noted tn_guard_note(tn_guard *g, tn_serving_thread *t, const tn_event *e, unsigned tier)
{
    tn_guard_noted noted = {.what = tn_serving_event(t, e)};
    int serving = tn_phase_of(&g->phase) == TN_PHASE_SERVING;
    if (noted.what == TN_SERVING_NOTHING || tier >= TN_GUARD_TIERS)
        return noted;
    tn_guard_site *s = site_of(g, e->site);
    int allocates = noted.what == TN_SERVING_ALLOCATION || noted.what == TN_SERVING_RETRY || noted.what == TN_SERVING_SERVED, first = 0;
    if (s != NULL && allocates && !__atomic_load_n(&s->seen, __ATOMIC_RELAXED))
        first = !__atomic_exchange_n(&s->seen, 1u, __ATOMIC_RELAXED);
    if (!serving)
        return noted;
    add(&g->tier[tier], noted.what, e, first);
    if (s != NULL)
        add(&s->counts, noted.what, e, first);
    else
        __atomic_fetch_add(&g->sites_lost, 1u, __ATOMIC_RELAXED);
    noted.repeated = noted.what == TN_SERVING_ALLOCATION && !first;
    noted.warn = g->mode >= TN_GUARD_WARN && noted.what == TN_SERVING_ALLOCATION && s != NULL &&
                 !__atomic_exchange_n(&s->warned, 1u, __ATOMIC_RELAXED);
    return noted;
}

void tn_guard_seen(tn_guard *g, uint32_t site)
{
    tn_guard_site *s = site_of(g, site);
    if (s != NULL && !__atomic_load_n(&s->seen, __ATOMIC_RELAXED))
        __atomic_store_n(&s->seen, 1u, __ATOMIC_RELAXED);
}

tn_serving_counts tn_guard_site_counts(const tn_guard *g, uint32_t site)
{
    uint32_t at = site / TN_GUARD_PAGE_SITES;
    const tn_guard_site *page = at < TN_GUARD_PAGES ? __atomic_load_n(&g->page[at], __ATOMIC_ACQUIRE) : NULL;
    return page == NULL ? (tn_serving_counts){0} : read_counts(&page[site % TN_GUARD_PAGE_SITES].counts);
}

tn_serving_counts tn_guard_tier_counts(const tn_guard *g, unsigned tier)
{
    tn_serving_counts sum = {0};
    for (unsigned i = 0; i < TN_GUARD_TIERS; i++) {
        if (tier != TN_GUARD_TIERS && tier != i)
            continue;
        tn_serving_counts one = read_counts(&g->tier[i]);
        for (size_t w = 0; w < sizeof sum / sizeof(uint64_t); w++)
            ((uint64_t *)&sum)[w] += ((const uint64_t *)&one)[w];
    }
    return sum;
}
