/* Three looks at an event on its way: at 16 events for its slot and site, at 10 for its block and row, at 4 for the row of a block that
 * is freed. Where a look is wrong, because something comes in between, nothing is lost but the look. */
#include "report/report_ahead.h"

enum { SECOND_LOOK = 10, THIRD_LOOK = 4 };

static int is_plain(const tn_event *e)
{
    return (e->type == TN_EV_ALLOC || e->type == TN_EV_FREE) && e->kind != TN_KIND_NONE && e->kind < TN_KIND_ARRAY;
}

static void fetch(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i, 1);
}

static const tn_site *site_of(const tn_report *report, const tn_moment *m)
{
    const tn_process *p = &report->processes[m->process];
    uint32_t site = m->event->site < p->site_end ? p->site_of[m->event->site] : TN_NO_INDEX;
    return site == TN_NO_INDEX ? NULL : &report->sites[site];
}

static uint32_t block_of(const tn_blocks *blocks, const tn_moment *m)
{
    const uint32_t *slot = tn_blocks_slot(blocks, m->process, TN_BLOCK_ADDRESS, m->event->addr);
    return slot ? *slot : TN_BLOCK_NONE;
}

static void look(const tn_report *report, const tn_blocks *blocks, const tn_moment *m, int stage)
{
    if (!is_plain(m->event))
        return;
    if (m->event->type == TN_EV_ALLOC && stage < 2) {
        const tn_site *site = site_of(report, m);
        if (site && stage == 0)
            __builtin_prefetch(site);
        else if (site && site->first_row != TN_NO_INDEX)
            fetch(&report->rows[site->first_row], sizeof(tn_row));
    }
    if (stage == 0) {
        __builtin_prefetch(tn_blocks_slot(blocks, m->process, TN_BLOCK_ADDRESS, m->event->addr));
        return;
    }
    uint32_t block = m->event->type == TN_EV_FREE ? block_of(blocks, m) : TN_BLOCK_NONE;
    if (block == TN_BLOCK_NONE)
        return;
    if (stage == 1)
        fetch(&blocks->blocks[block], sizeof(tn_block));
    else if (blocks->blocks[block].used && blocks->blocks[block].row != TN_NO_INDEX)
        fetch(&report->rows[blocks->blocks[block].row], sizeof(tn_row));
}

int tn_ahead_next(tn_ahead *a, tn_report *report, const tn_blocks *blocks, tn_moment *now)
{
    while (!a->drained && a->end - a->next < TN_AHEAD) {
        tn_moment *m = &a->ring[a->end % TN_AHEAD];
        m->report = report;
        m->row = TN_NO_INDEX;
        m->event = tn_order_next(a->order, &m->process, &m->thread, &m->ns);
        a->drained = m->event == NULL;
        if (a->drained)
            break;
        look(report, blocks, m, 0);
        a->end++;
    }
    if (a->next == a->end)
        return 0;
    if (a->end - a->next > SECOND_LOOK)
        look(report, blocks, &a->ring[(a->next + SECOND_LOOK) % TN_AHEAD], 1);
    if (a->end - a->next > THIRD_LOOK)
        look(report, blocks, &a->ring[(a->next + THIRD_LOOK) % TN_AHEAD], 2);
    *now = a->ring[a->next++ % TN_AHEAD];
    return 1;
}
