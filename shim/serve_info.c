/* How much memory there is, as a program under a plan is told. Its own account, not the device's: what is in use beyond what others had before it came,
 * with the arenas taken out and the blocks in them put in as the driver would have backed them. From the query by which the program sizes its largest
 * pool, the device is not asked any more: what is alive and what the plan knows will still be claimed are taken off the budget, so that the same
 * program gets the same number at every start. */
#include <stdatomic.h>
#include <string.h>

#include "shim/callsite_keys.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/record_memory.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_handles.h"
#include "shim/serve_info.h"

static struct { _Atomic uint32_t queries, reached; } sizing[TN_SERVE_DEVICES];

static uint64_t up(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/* ---- the device */

typedef struct account {
    const tn_serve_section *section;
    uint64_t plain;         /* served plain blocks, as the driver would have backed them */
    uint64_t live, sized;   /* all blocks; those of the sites that the sizing query sizes */
    uint64_t unplanned;     /* those of sites that the plan does not know */
    uint8_t device;
} account;

static int is_sized(const tn_plan_section *s, uint32_t site)
{
    uint64_t key = site < TN_SITE_KEYS_MAX ? tn_site_keys[site].key : 0;
    for (size_t i = 0; i < s->sizing.sized_count; i++)
        if (s->sizing.sized[i] == key) return 1;
    return 0;
}

/* Looks at every block, and drops none. */
static int count_block(const tn_entry *e, void *arg)
{
    account *a = arg;
    /* A handle, and the mapping of one that is released already: it counts until it is unmapped. */
    int is_mapping = e->kind == TN_KIND_VMM_HANDLE && e->stream == TN_STREAM_OF_MAPPING;
    if (e->device == a->device && e->kind == TN_KIND_VMM_HANDLE && !(is_mapping && tn_ledger_find(TN_SPACE_VMM_HANDLE, e->extra, NULL))) {
        a->live += up(e->bytes, 2u << 20);
        if (is_sized(a->section->plan, e->site)) a->sized += up(e->bytes, 2u << 20);
        else if (tn_serve_row(a->section, e->site) == TN_SERVE_NO_ROW) a->unplanned += up(e->bytes, 2u << 20);
    }
    if (e->device != a->device || (e->kind != TN_KIND_DEVICE && e->kind != TN_KIND_ASYNC && e->kind != TN_KIND_PITCH)) return 0;
    uint64_t bytes = e->kind == TN_KIND_ASYNC ? up(e->bytes, 512) : up(e->bytes, e->bytes > (1u << 20) ? 2u << 20 : 512);
    int served = tn_is_served(e);
    a->live += bytes;
    if (served && e->kind != TN_KIND_ASYNC) a->plain += bytes;
    if (is_sized(a->section->plan, e->site)) a->sized += bytes;
    else if (tn_serve_row(a->section, e->site) == TN_SERVE_NO_ROW) a->unplanned += bytes;
    return 0;
}

/* What this query, if it is the one that sizes the largest pool, and all that follow say is free. UINT64_MAX: that query has not come, or there is none. */
static uint64_t bound(tn_hook_frame *f, const account *a, uint64_t budget)
{
    const tn_plan_section *s = a->section->plan;
    if (!s->sizing.known) return UINT64_MAX;
    uint32_t native = tn_frame_site(f) < TN_SITE_KEYS_MAX ? f->thread->outer.native : 0;
    if (native && native < TN_SITE_KEYS_MAX && tn_site_keys[native].key == s->sizing.key &&
        atomic_fetch_add(&sizing[a->device].queries, 1) + 1 == s->sizing.ordinal)
        atomic_store(&sizing[a->device].reached, 1);
    if (!atomic_load(&sizing[a->device].reached)) return UINT64_MAX;
    uint64_t sized = a->sized, rest = s->total, own = a->live;
    for (size_t i = 0; i < s->charge_count; i++) own += s->charges[i].bytes;
    for (size_t i = 0; i < s->row_count; i++)
        for (size_t k = 0; k < s->sizing.sized_count; k++)
            if (s->rows[i].key == s->sizing.sized[k]) rest -= s->rows[i].capacity < rest ? s->rows[i].capacity : rest;
    if (own < rest + sized + a->unplanned) own = rest + sized + a->unplanned; /* else more is alive than the plan foresaw */
    return own < budget ? budget - own : 0;
}

/* What a context takes by itself: no program is told that all of a device is free. */
static uint64_t context_bytes(const tn_plan_section *s)
{
    for (size_t i = 0; i < s->charge_count; i++)
        if (strcmp(s->charges[i].name, "context") == 0) return s->charges[i].bytes;
    return 0;
}

CUresult tn_serve_cuMemGetInfo_v2(tn_hook_frame *f, CUresult (*call)(size_t *, size_t *), size_t *free_bytes, size_t *total_bytes)
{
    size_t free_now = 0, total = 0;
    CUresult r = call(&free_now, &total);
    if (r != 0 || f->nested) return call(free_bytes, total_bytes); /* the outputs as the driver leaves them */
    static _Atomic int looked;
    f->thread->busy = 1;
    if (!atomic_load_explicit(&looked, memory_order_relaxed) && !atomic_exchange(&looked, 1)) (void)tn_serve_finds_sanitizer();
    tn_context c = tn_context_current(f);
    int is_native = tn_serve_is_stopped() && !tn_serve_has_arenas() && !tn_serve_handles_ready(c.device);
    account a = {.section = c.number && !is_native ? tn_serve_section_of(c.device) : NULL, .device = c.device};
    if (a.section) {
        uint64_t arenas_plain, arenas_pooled, pools, handles;
        tn_serve_handles_held(c.device, &pools, &handles);
        tn_ledger_sweep(count_block, NULL, &a);
        uint64_t used = total - free_now, budget = tn_serve_budget() && tn_serve_budget() < total ? tn_serve_budget() : total;
        uint64_t not_theirs = tn_serve_held(c.device, &arenas_plain, &arenas_pooled) + rec_charge_baseline(c.device);
        used = (used > not_theirs ? used - not_theirs : 0) + a.plain + tn_serve_pool_reserved(c.device) + handles;
        uint64_t own = a.live + context_bytes(a.section->plan);
        if (used < own) used = own; /* others had more before than now */
        free_now = bound(f, &a, budget);
        if (free_now == UINT64_MAX) free_now = used < budget ? budget - used : 0;
        total = budget;
    }
    *f->thread->error = f->errno_in;
    f->thread->busy = 0;
    if (free_bytes) *free_bytes = free_now;
    if (total_bytes) *total_bytes = total;
    return r;
}
