/* The watcher of devices: lines and their sums, and who gets which event. */
#include "report/report_device.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_device_state.h"
#include "report/report_merge.h"
#include "report/report_names.h"

const char *tn_line_kind_name(tn_line_kind kind)
{
    static const char *const names[TN_LINE_KINDS] = {
        "blocks", "arenas", "shared_pages", "pool_slack", "graph_memory", "context", "modules", "first_launches", "streams",
        "events", "graphs", "limits", "managed", "first_use", "peers", "pinned", "arrays", "growth",
    };
    return kind < TN_LINE_KINDS ? names[kind] : "unknown";
}

tn_device_state *tn_device_state_of(tn_report *report, uint32_t place)
{
    tn_devices *all = report->devices;
    if (place >= all->count) {
        tn_device_state *grown = realloc(all->each, report->place_count * sizeof(*grown));
        if (!grown)
            return NULL;
        memset(grown + all->count, 0, (report->place_count - all->count) * sizeof(*grown));
        for (size_t i = all->count; i < report->place_count; i++)
            grown[i].async_site = grown[i].graph_site = grown[i].managed_site = TN_NO_INDEX;
        all->each = grown;
        all->count = report->place_count;
    }
    return &all->each[place];
}

static uint64_t line_hash(uint8_t kind, uint32_t site, uint32_t process, uint64_t handle)
{
    uint64_t h = ((uint64_t)site << 32 | (uint64_t)process << 8 | kind) * 0x9e3779b97f4a7c15u;
    h = (h ^ handle) * 0xff51afd7ed558ccdu;
    return h ^ h >> 32;
}

/* The slot that a line has or would have; there is a free one. */
static uint32_t *line_slot(const tn_device_state *d, uint8_t kind, uint32_t site, uint32_t process, uint64_t handle)
{
    size_t at = line_hash(kind, site, process, handle) & d->line_mask;
    for (; d->line_slots[at] != TN_NO_INDEX; at = (at + 1) & d->line_mask) {
        const tn_line *l = &d->account.lines[d->line_slots[at]];
        if (l->kind == kind && l->site == site && l->process == process && l->handle == handle)
            break;
    }
    return &d->line_slots[at];
}

/* Room for one more line; 0 without memory. */
static int grow_lines(tn_device_state *d)
{
    tn_device_account *a = &d->account;
    if (a->line_count < d->line_capacity)
        return 1;
    size_t capacity = d->line_capacity ? d->line_capacity * 2 : 64;
    tn_line *lines = realloc(a->lines, capacity * sizeof(*lines));
    if (lines)
        a->lines = lines;
    uint64_t *generations = realloc(d->line_generation, capacity * sizeof(*generations));
    if (generations)
        d->line_generation = generations;
    uint32_t *slots = malloc(2 * capacity * sizeof(*slots));
    if (!lines || !generations || !slots) {
        free(slots);
        return 0;
    }
    memset(slots, 0xff, 2 * capacity * sizeof(*slots));
    free(d->line_slots);
    d->line_slots = slots;
    d->line_mask = 2 * capacity - 1;
    d->line_capacity = capacity;
    for (size_t i = 0; i < a->line_count; i++)
        if (a->lines[i].row == TN_NO_INDEX)
            *line_slot(d, a->lines[i].kind, a->lines[i].site, a->lines[i].process, a->lines[i].handle) = (uint32_t)i;
    return 1;
}

uint32_t tn_device_line(tn_device_state *d, uint8_t kind, uint32_t site, uint32_t row, uint32_t process, uint64_t handle)
{
    tn_device_account *a = &d->account;
    if (!grow_lines(d))
        return TN_NO_INDEX;
    if (row == TN_NO_INDEX) { /* lines of rows are found by tn_devices.line_of_row */
        uint32_t *slot = line_slot(d, kind, site, process, handle);
        if (*slot != TN_NO_INDEX)
            return *slot;
        *slot = (uint32_t)a->line_count;
    }
    a->lines[a->line_count] = (tn_line){.kind = kind, .site = site, .row = row, .process = process, .handle = handle};
    d->line_generation[a->line_count] = d->generation;
    return (uint32_t)a->line_count++;
}

void tn_device_add(tn_device_state *d, uint32_t line, int64_t bytes)
{
    tn_line *l = &d->account.lines[line];
    if (d->line_generation[line] != d->generation) {
        d->line_generation[line] = d->generation;
        l->undo = 0;
    }
    l->bytes += bytes;
    l->undo += bytes;
    d->kinds[l->kind] += bytes;
    *(tn_line_is_modelled(l->kind) ? &d->modelled : &d->charged) += bytes;
}

void tn_device_remember(tn_device_state *d, uint64_t ns)
{
    if (!d->pasts)
        d->pasts = calloc(TN_PASTS, sizeof(*d->pasts)); /* without it windows beside other calls count as they were measured */
    if (!d->pasts)
        return;
    d->pasts[d->past_next] = (tn_past){ns, d->modelled};
    d->past_next = (d->past_next + 1) % TN_PASTS;
    d->past_count += d->past_count < TN_PASTS;
}

int64_t tn_device_modelled_at(const tn_device_state *d, uint64_t ns)
{
    for (size_t i = 1; i <= d->past_count; i++) {
        const tn_past *p = &d->pasts[(d->past_next + TN_PASTS - i) % TN_PASTS];
        if (p->ns <= ns)
            return p->modelled;
    }
    return d->past_count == 0 ? d->modelled : d->past_count < TN_PASTS ? 0 : d->pasts[d->past_next].modelled;
}

/* ---- the watcher */

static tn_error begin(tn_report *report)
{
    report->devices = calloc(1, sizeof(*report->devices));
    return report->devices ? TN_OK : TN_E_NOMEM;
}

static tn_error event(const tn_moment *moment)
{
    const tn_event *e = moment->event;
    if (e->type == TN_EV_NONE) {
        tn_device_process_end(moment);
        return TN_OK;
    }
    if (e->type != TN_EV_CHARGE) {
        moment->report->devices->label_process = moment->process;
        moment->report->devices->label =
            e->type == TN_EV_PHASE ? tn_phase_name(e->kind) : tn_reader_string(moment->report->processes[moment->process].reader, (uint32_t)e->addr);
        return TN_OK;
    }
    uint32_t place;
    tn_error error = tn_merge_place(moment->report, moment->process, e->device, &place);
    tn_device_state *d = error == TN_OK ? tn_device_state_of(moment->report, place) : NULL;
    if (!d)
        return TN_E_NOMEM;
    if (e->kind == TN_CHARGE_POOL || e->kind == TN_CHARGE_GRAPH_MEMORY)
        return tn_device_held(moment, d, place);
    return tn_device_charge(moment, d);
}

static tn_error end(tn_report *report)
{
    for (size_t i = 0; i < report->devices->count; i++) {
        tn_device_state *d = &report->devices->each[i];
        for (size_t k = 0; k < d->account.line_count; k++)
            if (d->line_generation[k] != d->generation)
                d->account.lines[k].undo = 0;
    }
    return TN_OK;
}

static void drop(tn_report *report)
{
    tn_devices *all = report->devices;
    for (size_t i = 0; all && i < all->count; i++) {
        free(all->each[i].account.lines);
        free(all->each[i].account.marks);
        free(all->each[i].line_generation);
        free(all->each[i].line_slots);
        free(all->each[i].pending);
        free(all->each[i].pasts);
    }
    if (all) {
        free(all->each);
        free(all->line_of_row);
        free(all->pages);
        free(all->pools);
        free(all->groups);
    }
    free(all);
    report->devices = NULL;
}

const tn_watcher tn_device_watcher = {
    .types = TN_WATCH(TN_EV_NONE) | TN_WATCH(TN_EV_CHARGE) | TN_WATCH(TN_EV_PHASE) | TN_WATCH(TN_EV_MARK), .begin = begin, .event = event, .change = tn_device_change, .end = end, .drop = drop};

const tn_device_account *tn_device_account_of(const tn_report *report, uint32_t place)
{
    if (!report->devices || place >= report->devices->count || !report->devices->each[place].account.has_readings)
        return NULL;
    return &report->devices->each[place].account;
}
