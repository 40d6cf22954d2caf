/* Charges: what a reading after a call has more than the one before it, less what the model knows of, belongs to that call where nothing
 * else ran meanwhile. Where something did, it waits for the next quiet reading, and then gets no more than that reading shows. What neither
 * model nor charges explain stays in the open, with its sign. */
#include <stdlib.h>

#include "report/report_device_state.h"

#define FIRST_USE_MAX (8 * 1048576)
#define FIRST_TOUCH ((int64_t)128 * 1048576) /* the driver takes at least that for the first managed page */

static uint8_t line_kind(uint8_t charge)
{
    switch (charge) {
    case TN_CHARGE_CONTEXT: return TN_LINE_CONTEXT;
    case TN_CHARGE_MODULE: return TN_LINE_MODULE;
    case TN_CHARGE_LAUNCH: return TN_LINE_LAUNCH;
    case TN_CHARGE_STREAM: return TN_LINE_STREAM;
    case TN_CHARGE_EVENT: return TN_LINE_EVENT;
    case TN_CHARGE_GRAPH: return TN_LINE_GRAPH;
    case TN_CHARGE_LIMIT: return TN_LINE_LIMIT;
    case TN_CHARGE_MANAGED: return TN_LINE_MANAGED;
    case TN_CHARGE_FIRST_USE: return TN_LINE_FIRST_USE;
    case TN_CHARGE_PEER: return TN_LINE_PEER;
    case TN_CHARGE_PINNED: return TN_LINE_PINNED;
    case TN_CHARGE_ARRAY: return TN_LINE_ARRAY;
    default: return TN_LINE_GROWTH;
    }
}

/* Takes up to -bytes (negative) from the lines of a kind, the youngest first; returns what is left to take. */
static int64_t take_from(tn_device_state *d, uint8_t kind, uint32_t site, uint32_t process, int64_t bytes)
{
    for (size_t i = d->account.line_count; bytes < 0 && i-- > 0;) {
        const tn_line *l = &d->account.lines[i];
        if (l->kind != kind || l->process != process || l->bytes <= 0 || (site != TN_NO_INDEX && l->site != site))
            continue;
        int64_t part = l->bytes < -bytes ? -l->bytes : bytes;
        tn_device_add(d, (uint32_t)i, part);
        bytes -= part;
    }
    return bytes;
}

/* What else goes when something of that kind ends: a module's code was loaded at its functions' first launches; a context takes all along. */
static const uint8_t also[TN_LINE_KINDS][10] = {
    [TN_LINE_MODULE] = {TN_LINE_LAUNCH},
    [TN_LINE_GROWTH] = {TN_LINE_MANAGED},
};
static const uint8_t all_kinds[] = {TN_LINE_GROWTH, TN_LINE_FIRST_USE, TN_LINE_PEER, TN_LINE_PINNED, TN_LINE_ARRAY, TN_LINE_MANAGED, TN_LINE_LIMIT, TN_LINE_GRAPH, TN_LINE_EVENT,
                                    TN_LINE_STREAM, TN_LINE_LAUNCH, TN_LINE_MODULE, TN_LINE_CONTEXT};

static tn_error attribute(tn_device_state *d, uint8_t kind, uint32_t site, uint32_t process, int64_t bytes, int context_ended)
{
    if (bytes < 0) {
        for (size_t i = 0; context_ended && i < sizeof(all_kinds); i++)
            bytes = take_from(d, all_kinds[i], TN_NO_INDEX, process, bytes);
        bytes = take_from(d, kind, site, process, bytes);
        bytes = take_from(d, kind, TN_NO_INDEX, process, bytes);
        for (size_t i = 0; also[kind][i]; i++)
            bytes = take_from(d, also[kind][i], TN_NO_INDEX, process, bytes);
        return TN_OK; /* what nothing was charged for cannot be given back: a rest is unexplained */
    }
    if (bytes == 0)
        return TN_OK;
    uint32_t line = tn_device_line(d, kind, site, TN_NO_INDEX, process, 0);
    if (line == TN_NO_INDEX)
        return TN_E_NOMEM;
    tn_device_add(d, line, bytes);
    return TN_OK;
}

/* ---- pending */

static tn_error put_off(tn_device_state *d, uint8_t kind, uint32_t site, uint32_t process, int64_t bytes)
{
    if (d->pending_count == d->pending_capacity) {
        size_t capacity = d->pending_capacity ? d->pending_capacity * 2 : 32;
        tn_pending *grown = realloc(d->pending, capacity * sizeof(*grown));
        if (!grown)
            return TN_E_NOMEM;
        d->pending = grown;
        d->pending_capacity = capacity;
    }
    d->pending[d->pending_count++] = (tn_pending){kind, site, process, bytes};
    return TN_OK;
}

/* What a quiet reading shows since the one before goes to the charges that waited, in their order: to each no more than it measured itself. */
static tn_error share_out(tn_device_state *d, int64_t jump)
{
    tn_error error = TN_OK;
    for (size_t i = 0; i < d->pending_count && jump != 0 && error == TN_OK; i++) {
        const tn_pending *p = &d->pending[i];
        if ((jump > 0) != (p->bytes > 0))
            continue;
        int64_t part = llabs(p->bytes) < llabs(jump) ? p->bytes : jump;
        error = attribute(d, p->kind, p->site, p->process, part, 0);
        jump -= part;
    }
    d->pending_count = 0;
    return error;
}

/* ---- readings */

static int64_t own_growth_of_neighbours(const tn_device_account *a)
{
    return a->has_neighbours ? a->neighbours - a->neighbours_then : 0;
}

static tn_error add_mark(tn_device_account *a, const tn_reading_view *view)
{
    tn_reading_view *grown = realloc(a->marks, (a->mark_count + 1) * sizeof(*grown));
    if (!grown)
        return TN_E_NOMEM;
    a->marks = grown;
    grown[a->mark_count++] = *view;
    return TN_OK;
}

/* Kernels that run on touch managed memory at any time, outside every window: growth between readings is that, as far as there is managed
 * memory alive that has not been charged. */
static tn_error touched(tn_device_state *d, uint32_t process, int64_t own)
{
    int64_t jump = own - d->modelled - d->charged - d->residual;
    int64_t whole = d->managed_bytes > FIRST_TOUCH ? d->managed_bytes : FIRST_TOUCH, room = whole - d->kinds[TN_LINE_MANAGED];
    if (d->managed_blocks == 0 || jump <= 0 || room <= 0)
        return TN_OK;
    return attribute(d, TN_LINE_MANAGED, d->managed_site, process, jump < room ? jump : room, 0);
}

static tn_error settle(const tn_moment *m, tn_device_state *d, int64_t used, uint32_t cause)
{
    tn_device_account *a = &d->account;
    int64_t own = used - a->baseline - own_growth_of_neighbours(a);
    tn_error error = TN_OK;
    if (d->pending_count)
        error = share_out(d, own - d->modelled - d->charged - d->residual);
    if (error == TN_OK)
        error = touched(d, m->process, own);
    int64_t accounted = d->modelled + d->charged;
    d->residual = own - accounted;
    a->has_readings = 1;
    a->readings++;
    a->last = (tn_reading_view){.at_ns = m->ns, .cause = cause, .process = m->process, .used = used, .own_used = own, .accounted = accounted,
                                .unattributed = d->residual, .pool_reserved = d->pool_reserved, .pool_used = d->pool_used};
    for (int k = 0; k < TN_LINE_KINDS; k++)
        a->last.kinds[k] = d->kinds[k];
    if (llabs(d->residual) > llabs(a->worst_unattributed)) {
        a->worst_unattributed = d->residual;
        a->worst_ns = m->ns;
    }
    d->generation++;
    const tn_devices *all = m->report->devices;
    if ((cause == TN_READ_MARK || cause == TN_READ_PHASE) && all->label_process == m->process)
        a->last.label = all->label;
    if (error == TN_OK && (cause == TN_READ_MARK || cause == TN_READ_PHASE))
        error = add_mark(a, &a->last);
    return error;
}

static uint32_t site_of(const tn_moment *m)
{
    const tn_process *p = &m->report->processes[m->process];
    return m->event->site < p->site_end ? p->site_of[m->event->site] : TN_NO_INDEX;
}

static uint64_t begun_ns(const tn_moment *m)
{
    tn_reader *reader = m->report->processes[m->process].reader;
    uint64_t now = tn_reader_ns(reader, m->event->tsc), begun = tn_reader_ns(reader, m->event->addr);
    return now - begun < m->ns ? m->ns - (now - begun) : 0;
}

static void neighbour(const tn_moment *m, tn_device_state *d)
{
    const tn_event *e = m->event;
    tn_device_account *a = &d->account;
    int own = 0;
    for (size_t i = 0; i < m->report->process_count; i++)
        own |= tn_reader_header(m->report->processes[i].reader)->pid == (uint32_t)e->addr;
    if (e->aux == 0)
        d->neighbour_sum = 0;
    if (!own)
        d->neighbour_sum += (int64_t)e->bytes;
    if (e->aux + 1 != e->aux2)
        return;
    if (!a->has_neighbours)
        a->neighbours_then = d->neighbour_sum;
    a->neighbours = d->neighbour_sum;
    a->has_neighbours = 1;
}

/* The first sight of a device without NVML: what was there before cannot be told from the context. */
static tn_error without_baseline(const tn_moment *m, tn_device_state *d)
{
    d->account.context_and_baseline = 1;
    return attribute(d, TN_LINE_CONTEXT, site_of(m), m->process, (int64_t)m->event->aux - d->modelled - d->charged, 0);
}

tn_error tn_device_charge(const tn_moment *m, tn_device_state *d)
{
    const tn_event *e = m->event;
    tn_device_account *a = &d->account;
    tn_error error = TN_OK;
    if (e->kind == TN_CHARGE_NEIGHBOUR) {
        neighbour(m, d);
        return TN_OK;
    }
    if (e->kind == TN_CHARGE_BASELINE) {
        if (!a->has_baseline && !a->has_readings) {
            a->has_baseline = 1;
            a->baseline = (int64_t)e->bytes;
        }
        return TN_OK;
    }
    if (e->kind == TN_CHARGE_READING) {
        if (!(e->aux2 & TN_CHARGE_QUIET_AFTER)) {
            a->unquiet++;
            return TN_OK;
        }
        if (!a->has_baseline && !a->has_readings)
            error = without_baseline(m, d);
        return error == TN_OK ? settle(m, d, (int64_t)e->aux, (uint32_t)e->addr) : error;
    }
    if (e->aux2 & TN_CHARGE_NO_BEFORE || (!a->has_baseline && !a->has_readings)) {
        if (!a->has_readings)
            error = without_baseline(m, d);
    } else {
        int64_t bytes = (int64_t)(e->aux - e->bytes) - (d->modelled - tn_device_modelled_at(d, begun_ns(m)));
        uint8_t kind = line_kind(e->kind);
        if (d->managed_blocks == 0 && kind == TN_LINE_MANAGED && bytes > 0)
            kind = TN_LINE_FIRST_USE;
        else if (d->managed_blocks > 0 && (kind == TN_LINE_GROWTH || kind == TN_LINE_FIRST_USE))
            kind = TN_LINE_MANAGED; /* moved in by a touch that was put off */
        if (kind == TN_LINE_FIRST_USE && bytes > FIRST_USE_MAX)
            bytes = 0; /* no call is known that takes so much at its first use: it is something else, and unexplained */
        if (e->aux2 & TN_CHARGE_BLIND)
            ; /* a call of which there is no record ran meanwhile: whose this is cannot be known */
        else if (e->aux2 & TN_CHARGE_ALONE)
            error = attribute(d, kind, site_of(m), m->process, bytes, e->kind == TN_CHARGE_CONTEXT && e->result == 1);
        else if (bytes != 0)
            error = put_off(d, kind, site_of(m), m->process, bytes);
    }
    if (error == TN_OK && e->aux2 & TN_CHARGE_QUIET_AFTER)
        error = settle(m, d, (int64_t)e->aux, 0);
    return error;
}

/* What a process was charged goes with it; its blocks have gone before. */
void tn_device_process_end(const tn_moment *m)
{
    tn_report *report = m->report;
    uint32_t process = m->process;
    for (size_t p = 0; p < report->devices->count; p++) {
        tn_device_state *d = &report->devices->each[p];
        for (size_t i = 0; i < d->account.line_count; i++)
            if (d->account.lines[i].process == process && d->account.lines[i].bytes != 0)
                tn_device_add(d, (uint32_t)i, -d->account.lines[i].bytes);
        for (size_t i = 0; i < report->devices->group_count; i++) {
            tn_pools *g = &report->devices->groups[i];
            if (g->process != process || g->place != p)
                continue;
            d->pool_reserved -= g->reserved;
            d->pool_used -= g->used;
            g->reserved = g->used = g->unknown = 0;
        }
        /* What comes next is measured against a device without it: else its pools would be charged to the next context. */
        tn_device_remember(d, m->ns);
    }
}
