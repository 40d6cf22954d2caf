/* What blocks cost on the device, by the driver's rounding as seen on a card: plain blocks of less than 2 MiB share pages of that size where
 * they fit, at 512 bytes' grain (one of 1.03 MiB too, in what a page has left), larger ones take whole pages, small arrays share pages of their own, stream-ordered blocks stand in what their pool has reserved, physical handles cost what they say. */
#include <stdlib.h>
#include <string.h>

#include "report/report_big.h"
#include "report/report_device_state.h"

#define GRAIN 512u

static int64_t round_up(uint64_t n, uint64_t to) { return (int64_t)((n + to - 1) / to * to); }

/* ---- shared pages: open addressing by (page, process) */

static tn_shared_page *page_slot(const tn_devices *all, uint64_t page, uint32_t process)
{
    size_t i = (size_t)((page ^ (uint64_t)process << 40) * 0x9e3779b97f4a7c15u >> 24) & all->page_mask;
    tn_shared_page *free_slot = NULL;
    while (all->pages[i].page) {
        if (all->pages[i].page == page && all->pages[i].process == process)
            return &all->pages[i];
        if (!all->pages[i].blocks && !free_slot)
            free_slot = &all->pages[i];
        i = (i + 1) & all->page_mask;
    }
    return free_slot ? free_slot : &all->pages[i];
}

static tn_error grow_pages(tn_devices *all)
{
    if (all->pages && all->page_used * 2 <= all->page_mask)
        return TN_OK;
    tn_devices old = *all;
    size_t size = all->pages ? (all->page_mask + 1) * 2 : 256;
    tn_shared_page *pages = tn_big_alloc(size * sizeof(*pages));
    if (!pages)
        return TN_E_NOMEM;
    memset(pages, 0, size * sizeof(*pages));
    all->pages = pages;
    all->page_mask = size - 1;
    all->page_used = 0;
    for (size_t i = 0; old.pages && i <= old.page_mask; i++)
        if (old.pages[i].blocks) {
            *page_slot(all, old.pages[i].page, old.pages[i].process) = old.pages[i];
            all->page_used++;
        }
    free(old.pages);
    return TN_OK;
}

/* A small block comes to its page or leaves it: the page's rest is on a line of whoever opened it. */
static tn_error share(const tn_moment *m, tn_device_state *d, const tn_change *c, int64_t bytes)
{
    tn_devices *all = m->report->devices;
    tn_error error = grow_pages(all);
    if (error != TN_OK)
        return error;
    uint64_t page = c->addr / TN_PAGE_BYTES;
    tn_shared_page *p = page_slot(all, page, m->process);
    if (p->page != page || p->process != m->process || !p->blocks) {
        if (c->sign < 0)
            return TN_OK;
        all->page_used += !p->page;
        uint32_t site = c->row == TN_NO_INDEX ? TN_NO_INDEX : m->report->rows[c->row].site;
        uint32_t line = tn_device_line(d, TN_LINE_SHARED, site, TN_NO_INDEX, m->process, 0);
        if (line == TN_NO_INDEX)
            return TN_E_NOMEM;
        *p = (tn_shared_page){.page = page, .process = m->process, .place = c->place, .line = line};
        tn_device_add(d, line, TN_PAGE_BYTES);
    }
    p->blocks += (uint32_t)(int32_t)c->sign;
    p->bytes += c->sign * bytes;
    tn_device_add(d, p->line, -c->sign * bytes);
    if (!p->blocks)
        tn_device_add(d, p->line, -(int64_t)TN_PAGE_BYTES);
    return TN_OK;
}

/* An array's handle says nothing of where it stands: small ones fill pages one behind the other. What tiling adds to an array is a charge of
 * its creation. */
static tn_error share_arrays(const tn_moment *m, tn_device_state *d, const tn_change *c, int64_t bytes)
{
    uint32_t line = tn_device_line(d, TN_LINE_SHARED, TN_NO_INDEX, TN_NO_INDEX, m->process, 1);
    if (line == TN_NO_INDEX)
        return TN_E_NOMEM;
    int64_t before = d->small_arrays, after = before + c->sign * bytes;
    d->small_arrays = after;
    tn_device_add(d, line, round_up((uint64_t)after, TN_PAGE_BYTES) - round_up((uint64_t)before, TN_PAGE_BYTES) - (after - before));
    return TN_OK;
}

/* ---- pools */

static tn_pools *group_of(tn_devices *all, uint32_t process, uint32_t place)
{
    for (size_t i = 0; i < all->group_count; i++)
        if (all->groups[i].process == process && all->groups[i].place == place)
            return &all->groups[i];
    tn_pools *grown = realloc(all->groups, (all->group_count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    all->groups = grown;
    grown[all->group_count] = (tn_pools){.process = process, .place = place, .line = TN_NO_INDEX};
    return &grown[all->group_count++];
}

/* The pools take what they have reserved: what blocks of ours do not fill of it, less what is used and unknown, is slack. */
static tn_error update_slack(tn_device_state *d, tn_pools *g)
{
    int64_t slack = g->reserved - g->unknown - g->live;
    if (g->line == TN_NO_INDEX)
        g->line = tn_device_line(d, TN_LINE_POOL_SLACK, d->async_site, TN_NO_INDEX, g->process, 0);
    if (g->line == TN_NO_INDEX)
        return TN_E_NOMEM;
    tn_device_add(d, g->line, (slack > 0 ? slack : 0) - d->account.lines[g->line].bytes);
    return TN_OK;
}

/* What was asked of the driver. */
static uint64_t size_of(const tn_change *c)
{
    return c->arena ? c->backed : c->requested;
}

static tn_error in_pool(const tn_moment *m, tn_device_state *d, const tn_change *c)
{
    tn_pools *g = group_of(m->report->devices, m->process, c->place);
    if (!g)
        return TN_E_NOMEM;
    d->async_site = m->report->rows[c->row].site;
    g->live += c->sign * (int64_t)size_of(c); /* as the pool's used figure counts */
    /* A block of a pool that a plain free ended stays in that figure for good. */
    if (c->sign < 0 && m->event->type == TN_EV_FREE && m->event->stream == 0)
        g->lost += (int64_t)size_of(c);
    return update_slack(d, g);
}

/* ---- blocks */

static tn_error row_line(const tn_moment *m, tn_device_state *d, uint32_t row, uint32_t *out)
{
    tn_devices *all = m->report->devices;
    if (row >= all->row_capacity) {
        size_t capacity = m->report->row_count * 2;
        uint32_t *grown = realloc(all->line_of_row, capacity * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        memset(grown + all->row_capacity, 0xff, (capacity - all->row_capacity) * sizeof(*grown));
        all->line_of_row = grown;
        all->row_capacity = capacity;
    }
    if (all->line_of_row[row] == TN_NO_INDEX)
        all->line_of_row[row] = tn_device_line(d, TN_LINE_BLOCKS, m->report->rows[row].site, row, TN_NO_INDEX, 0);
    *out = all->line_of_row[row];
    return *out == TN_NO_INDEX ? TN_E_NOMEM : TN_OK;
}

/* One line a tier of a process. */
static tn_error arena_line(const tn_moment *m, tn_device_state *d, const tn_change *c, uint32_t *out)
{
    *out = tn_device_line(d, TN_LINE_ARENAS, tn_tier_site(m->report, c->tier), TN_NO_INDEX, m->process, 0);
    return *out == TN_NO_INDEX ? TN_E_NOMEM : TN_OK;
}

tn_error tn_device_change(const tn_moment *m, const tn_change *c)
{
    int64_t bytes = 0;
    uint64_t size = size_of(c);
    tn_error error = TN_OK;
    if (c->place == TN_PLACE_HOST || tn_kind_is_host(c->kind) || c->row == TN_NO_INDEX || (c->tier && !c->arena))
        return TN_OK;
    tn_device_state *d = tn_device_state_of(m->report, c->place);
    if (!d)
        return TN_E_NOMEM;
    switch (c->kind) {
    case TN_KIND_DEVICE:
    case TN_KIND_PITCH:
        bytes = round_up(size, size < TN_PAGE_BYTES ? GRAIN : TN_PAGE_BYTES);
        if (size < TN_PAGE_BYTES)
            error = share(m, d, c, bytes);
        break;
    case TN_KIND_ARRAY:
    case TN_KIND_MIPMAP:
        bytes = round_up(size, size < TN_PAGE_BYTES ? GRAIN : TN_PAGE_BYTES);
        if (size < TN_PAGE_BYTES)
            error = share_arrays(m, d, c, bytes);
        break;
    case TN_KIND_ASYNC:
    case TN_KIND_POOL:
        bytes = (int64_t)size;
        error = in_pool(m, d, c);
        break;
    case TN_KIND_VMM_HANDLE:
        bytes = round_up(size, TN_PAGE_BYTES);
        break;
    case TN_KIND_MANAGED: /* costs by touch: a charge */
        d->managed_blocks += (uint64_t)(int64_t)c->sign;
        d->managed_bytes += c->sign * round_up(size, TN_PAGE_BYTES);
        d->managed_site = m->report->rows[c->row].site;
        return TN_OK;
    case TN_KIND_GRAPH: /* by what the graphs' pool has reserved */
        d->graph_site = m->report->rows[c->row].site;
        return TN_OK;
    default:
        return TN_OK;
    }
    uint32_t line;
    if (error == TN_OK)
        error = c->arena ? arena_line(m, d, c, &line) : row_line(m, d, c->row, &line);
    if (error != TN_OK)
        return error;
    tn_device_add(d, line, c->sign * bytes);
    tn_device_remember(d, m->ns);
    return TN_OK;
}

/* ---- what pools and graphs hold */

tn_error tn_device_held(const tn_moment *m, tn_device_state *d, uint32_t place)
{
    const tn_event *e = m->event;
    tn_devices *all = m->report->devices;
    int graph = e->kind == TN_CHARGE_GRAPH_MEMORY;
    uint64_t handle = graph ? 0 : e->addr;
    size_t i = 0;
    while (i < all->pool_count && (all->pools[i].handle != handle || all->pools[i].process != m->process || all->pools[i].place != place))
        i++;
    if (i == all->pool_count) {
        tn_pool *grown = realloc(all->pools, (i + 1) * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        all->pools = grown;
        all->pools[all->pool_count++] = (tn_pool){.handle = handle, .process = m->process, .place = place};
    }
    tn_pool *p = &all->pools[i];
    int64_t reserved = (int64_t)e->bytes - p->reserved, used = (int64_t)e->aux - p->used;
    p->reserved += reserved;
    p->used += used;
    if (graph) {
        uint32_t line = tn_device_line(d, TN_LINE_GRAPH_MEMORY, d->graph_site, TN_NO_INDEX, m->process, 0);
        if (line == TN_NO_INDEX)
            return TN_E_NOMEM;
        tn_device_add(d, line, reserved);
    } else {
        tn_pools *g = group_of(all, m->process, place);
        if (!g)
            return TN_E_NOMEM;
        g->reserved += reserved;
        g->used += used;
        g->unknown = g->used > g->live + g->lost ? g->used - g->live - g->lost : 0;
        d->pool_reserved += reserved;
        d->pool_used += used;
        if (update_slack(d, g) != TN_OK)
            return TN_E_NOMEM;
    }
    tn_device_remember(d, m->ns);
    return TN_OK;
}
