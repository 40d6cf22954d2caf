/* What is done once the replay is over: live bytes of all processes, and the order of the sites. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "report/report_stat.h"

static void add_left(tn_stat *s, size_t count, const tn_moments *m)
{
    for (size_t i = 0; i < count; i++) {
        tn_stat_settle(&s[i], m);
        s[i].live_requested += s[i].left_requested;
        s[i].live_backed += s[i].left_backed;
    }
}

/* From here on live means what was never freed, whether its process has ended or not. */
static void finish_live(tn_report *report)
{
    static const tn_moments none;
    for (size_t i = 0; i < report->place_count; i++) {
        tn_place *p = &report->places[i];
        add_left(&p->total, 1, &p->moments);
        add_left(p->kinds, TN_KIND_COUNT, &p->moments);
        add_left(p->phases, TN_PHASE_SERVING + 1, &p->moments);
        if (p->apis) {
            add_left(p->apis, report->api_count * TN_KIND_COUNT, &p->moments);
            add_left(p->owners, report->owner_count, &p->moments);
        }
    }
    for (size_t i = 0; i < report->row_count; i++)
        add_left(&report->rows[i].stat, 1, &report->places[report->rows[i].place].moments);
    add_left(&report->reserved, 1, &none);
    add_left(&report->mapped, 1, &none);
}

static int by_size(const void *a, const void *b, void *rows)
{
    const tn_row *x = (const tn_row *)rows + *(const uint32_t *)a, *y = (const tn_row *)rows + *(const uint32_t *)b;
    if (x->stat.peak_backed != y->stat.peak_backed)
        return x->stat.peak_backed > y->stat.peak_backed ? -1 : 1;
    if (x->stat.peak_requested != y->stat.peak_requested)
        return x->stat.peak_requested > y->stat.peak_requested ? -1 : 1;
    uint64_t calls_x = x->stat.allocs + x->stat.refused, calls_y = y->stat.allocs + y->stat.refused;
    if (calls_x != calls_y)
        return calls_x > calls_y ? -1 : 1;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

tn_error tn_replay_finish(tn_report *report)
{
    finish_live(report);
    report->row_order = malloc((report->row_count + 1) * sizeof(uint32_t));
    if (!report->row_order)
        return TN_E_NOMEM;
    for (size_t i = 0; i < report->row_count; i++)
        report->row_order[i] = (uint32_t)i;
    qsort_r(report->row_order, report->row_count, sizeof(uint32_t), by_size, report->rows);
    return TN_OK;
}
