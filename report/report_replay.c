/* Replays the events of all processes in one order and keeps the counts: what was alive, how high it got, where
 * it came from. What the program did wrong, or the journal does not know, is counted and never invented. */
#include <stdlib.h>
#include <string.h>

#include "phaseguard/serving.h"
#include "report/report_ahead.h"
#include "report/report_at.h"
#include "report/report_big.h"
#include "report/report_blocks.h"
#include "report/report_merge.h"
#include "report/report_stat.h"
#include "report/report_watch.h"

typedef struct replay {
    tn_report *report;
    tn_blocks blocks;
    tn_moment now;    /* the event that is being replayed */
    size_t row_capacity;
    tn_moments no_moments; /* of address ranges, which have none */
    tn_error error;   /* the first; TN_E_NOMEM, or TN_E_NOTFOUND for a mark that never came */
} replay;

static uint32_t api_index(const replay *r, uint32_t id)
{
    const tn_process *p = &r->report->processes[r->now.process];
    return id < p->api_end ? p->api_of[id] : TN_NO_INDEX;
}

/* The call that the program made: the outermost one. */
static uint32_t event_api(const replay *r, const tn_event *e)
{
    return api_index(r, e->outer_api ? e->outer_api : e->api);
}

static uint32_t event_place(replay *r, const tn_event *e, uint8_t kind)
{
    uint32_t place = TN_PLACE_HOST;
    if (!tn_kind_is_host(kind))
        r->error = tn_merge_place(r->report, r->now.process, e->device, &place);
    tn_place *p = &r->report->places[place];
    if (r->error == TN_OK && !p->apis) {
        p->apis = calloc(r->report->api_count * TN_KIND_COUNT + 1, sizeof(tn_stat));
        p->owners = calloc(r->report->owner_count + 1, sizeof(tn_stat));
        if (!p->apis || !p->owners)
            r->error = TN_E_NOMEM;
    }
    return place;
}

static uint32_t event_site(const replay *r, const tn_event *e)
{
    const tn_process *p = &r->report->processes[r->now.process];
    uint32_t site = e->site < p->site_end ? p->site_of[e->site] : TN_NO_INDEX;
    return site == TN_NO_INDEX ? p->site_of[TN_SITE_NONE] : site; /* its SITE record was dropped */
}

static uint32_t row_of(replay *r, const tn_event *e, uint32_t site, uint32_t place, uint32_t api)
{
    tn_report *report = r->report;
    uint32_t i = report->sites[site].first_row;
    while (i != TN_NO_INDEX && (report->rows[i].place != place || report->rows[i].kind != e->kind))
        i = report->rows[i].next;
    if (i == TN_NO_INDEX) {
        if (report->row_count == r->row_capacity) {
            size_t capacity = r->row_capacity ? r->row_capacity * 2 : 256;
            tn_row *grown = tn_big_grow(report->rows, report->row_count * sizeof(*grown), capacity * sizeof(*grown));
            if (!grown) {
                r->error = TN_E_NOMEM;
                return TN_NO_INDEX;
            }
            report->rows = grown;
            r->row_capacity = capacity;
        }
        i = (uint32_t)report->row_count++;
        report->rows[i] = (tn_row){.site = site, .place = place, .kind = e->kind, .next = report->sites[site].first_row};
        report->sites[site].first_row = i;
    }
    tn_row *row = &report->rows[i];
    unsigned k = 0;
    while (k < row->api_count && row->apis[k] != api)
        k++;
    if (k == row->api_count && k < TN_ROW_APIS && api != TN_NO_INDEX)
        row->apis[row->api_count++] = api;
    return i;
}

/* The lines that one block or call counts in; NULL where it counts in none. */
enum { LINES = 6 };
typedef struct lines { tn_stat *each[LINES]; tn_moments *moments; } lines;

static lines lines_of(const tn_report *report, uint32_t place, uint8_t kind, uint8_t phase, uint32_t row, uint32_t api)
{
    tn_place *p = &report->places[place];
    lines l = {{&p->kinds[kind]}, &p->moments};
    if (tn_kind_is_summed(kind)) {
        l.each[1] = &p->total;
        l.each[2] = &p->phases[phase];
        if (row != TN_NO_INDEX)
            l.each[3] = &p->owners[report->sites[report->rows[row].site].owner];
    }
    if (row != TN_NO_INDEX)
        l.each[4] = &report->rows[row].stat;
    if (api != TN_NO_INDEX)
        l.each[5] = &p->apis[(size_t)api * TN_KIND_COUNT + kind];
    return l;
}

static lines lines_of_block(const tn_report *report, const tn_block *b)
{
    return lines_of(report, b->place, b->kind, b->phase, b->row, b->api);
}

static void lines_changed(const replay *r, const lines *l, uint32_t place)
{
    if (l->each[1])
        tn_moments_after(l->moments, r->report->places[place].total.live_backed, r->now.ns);
}

static void tell_watchers(replay *r, const tn_block *b, int8_t sign, tn_change_cause cause)
{
    tn_change change = {.row = b->row, .place = b->place, .kind = b->kind, .sign = sign, .cause = (uint8_t)cause, .addr = b->addr,
                        .tier = b->tier, .arena = b->space == TN_BLOCK_ARENA, .requested = b->requested, .backed = b->backed, .born_ns = b->born_ns};
    if (r->error == TN_OK)
        r->error = tn_watch_change(&r->now, &change);
}

/* Takes a block's bytes out of every line and forgets it. */
static void end_block(replay *r, uint32_t index, tn_change_cause cause)
{
    const tn_block *b = &r->blocks.blocks[index];
    tell_watchers(r, b, -1, cause);
    lines l = lines_of_block(r->report, b);
    for (int i = 0; i < LINES; i++)
        if (l.each[i])
            tn_stat_take(l.each[i], l.moments, b->requested, b->backed);
    lines_changed(r, &l, b->place);
    tn_blocks_remove(&r->blocks, index);
}

/* Which numbers a kind's blocks are known by. Imported memory, and blocks that the shim did not know, have
 * only the call to tell it from. */
static uint8_t event_space(const replay *r, const tn_event *e)
{
    if (e->kind == TN_KIND_VMM_HANDLE)
        return TN_BLOCK_VMM_HANDLE;
    if (e->kind == TN_KIND_ARRAY || e->kind == TN_KIND_MIPMAP)
        return TN_BLOCK_ARRAY;
    if (e->kind != TN_KIND_IMPORTED && e->kind != TN_KIND_NONE)
        return TN_BLOCK_ADDRESS;
    uint32_t api = api_index(r, e->api);
    const char *name = api == TN_NO_INDEX ? "" : r->report->apis[api].name;
    if (strstr(name, "ShareableHandle") || strcmp(name, "cuMemRelease") == 0)
        return TN_BLOCK_VMM_HANDLE;
    if (strstr(name, "ImportExternalMemory") || strstr(name, "DestroyExternalMemory"))
        return TN_BLOCK_EXTERNAL;
    if (strstr(name, "Array") || strstr(name, "Mipmap"))
        return TN_BLOCK_ARRAY;
    return TN_BLOCK_ADDRESS;
}

/* A free counts in the block's lines and in its own call's. */
static void count_free(replay *r, const tn_block *b, uint32_t api)
{
    lines l = lines_of(r->report, b->place, b->kind, b->phase, b->row, api);
    for (int i = 0; i < LINES; i++)
        if (l.each[i])
            l.each[i]->frees++;
}

/* Adds a block that came to its lines, and to what is alive. */
static void begin_block(replay *r, const tn_block *b, const lines *l)
{
    uint32_t index;
    r->error = tn_blocks_add(&r->blocks, b, &index);
    for (int i = 0; i < LINES && r->error == TN_OK; i++)
        if (l->each[i])
            tn_stat_add(l->each[i], l->moments, b->requested, b->backed);
    lines_changed(r, l, b->place);
    tell_watchers(r, b, 1, TN_CHANGE_CALL);
}

static void replay_alloc(replay *r, const tn_event *e)
{
    if (e->kind == TN_KIND_NONE || e->kind >= TN_KIND_COUNT)
        return;
    uint32_t api = event_api(r, e);
    uint32_t place = event_place(r, e, e->kind);
    uint32_t row = r->error == TN_OK ? row_of(r, e, event_site(r, e), place, api) : TN_NO_INDEX;
    r->now.row = row;
    if (r->error != TN_OK)
        return;
    lines l = lines_of(r->report, place, e->kind, e->phase, row, api);
    for (int i = 0; i < LINES; i++) {
        if (!l.each[i])
            continue;
        if (e->result != 0)
            l.each[i]->refused++;
        else
            l.each[i]->allocs++;
    }
    if (e->result != 0 || e->addr == 0) /* a granted request of size 0 has no block */
        return;
    uint8_t space = event_space(r, e);
    uint32_t old = tn_blocks_find(&r->blocks, r->now.process, space, e->addr);
    if (old != TN_BLOCK_NONE) {
        r->report->processes[r->now.process].replaced++;
        end_block(r, old, TN_CHANGE_REPLACED);
    }
    tn_block block = {.addr = e->addr, .requested = e->bytes, .backed = e->aux, .process = r->now.process, .ctx = e->ctx,
                      .place = place, .row = row, .api = api, .handle = TN_NO_INDEX, .refs = 1, .space = space, .kind = e->kind, .phase = e->phase,
                      .tier = (uint8_t)tn_serving_tier(e), .born_ns = r->now.ns};
    begin_block(r, &block, &l);
}

/* Memory of a tier: it costs what it costs, and is no request of the program's. */
static void replay_arena(replay *r, const tn_event *e)
{
    unsigned tier = tn_serving_tier(e);
    uint32_t old = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_ARENA, e->addr);
    if (tier == 0 || tier >= TN_ROUTE_TIERS || e->kind == TN_KIND_NONE || e->kind >= TN_KIND_COUNT || e->addr == 0)
        return;
    if (e->result != 0 && old != TN_BLOCK_NONE)
        count_free(r, &r->blocks.blocks[old], TN_NO_INDEX);
    if (old != TN_BLOCK_NONE)
        end_block(r, old, e->result != 0 ? TN_CHANGE_CALL : TN_CHANGE_REPLACED);
    if (e->result != 0 || r->error != TN_OK)
        return;
    uint32_t place = event_place(r, e, e->kind);
    uint32_t row = r->error == TN_OK ? row_of(r, e, tn_tier_site(r->report, tier), place, TN_NO_INDEX) : TN_NO_INDEX;
    if (r->error != TN_OK)
        return;
    lines l = lines_of(r->report, place, e->kind, e->phase, row, TN_NO_INDEX);
    for (int i = 0; i < LINES; i++)
        if (l.each[i])
            l.each[i]->allocs++;
    tn_block block = {.addr = e->addr, .backed = e->aux ? e->aux : e->bytes, .process = r->now.process, .ctx = e->ctx, .place = place, .row = row,
                      .api = TN_NO_INDEX, .handle = TN_NO_INDEX, .refs = 1, .space = TN_BLOCK_ARENA, .kind = e->kind, .phase = e->phase,
                      .tier = (uint8_t)tier, .born_ns = r->now.ns};
    begin_block(r, &block, &l);
}

/* A block of the program's own tiers costs nothing: the memory that it lies in is told of by itself. */
static void replay_handout(replay *r, const tn_event *e)
{
    if (e->kind != TN_KIND_HANDED && e->kind != TN_KIND_HANDED_HOST)
        return;
    for (uint32_t i = 0; e->result == 2 && i < r->blocks.count && r->error == TN_OK; i++) {
        const tn_block *b = &r->blocks.blocks[i];
        if (!b->used || b->space != TN_BLOCK_HANDED || b->process != r->now.process || b->ctx != e->ctx)
            continue;
        count_free(r, b, TN_NO_INDEX);
        end_block(r, i, TN_CHANGE_CALL);
    }
    if (e->result == 2 || e->addr == 0)
        return;
    uint32_t old = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_HANDED, e->addr);
    if (old != TN_BLOCK_NONE) {
        if (e->result != 0)
            count_free(r, &r->blocks.blocks[old], TN_NO_INDEX);
        end_block(r, old, e->result != 0 ? TN_CHANGE_CALL : TN_CHANGE_REPLACED);
    }
    if (e->result != 0 || r->error != TN_OK)
        return;
    uint32_t place = event_place(r, e, e->kind);
    uint32_t row = r->error == TN_OK ? row_of(r, e, event_site(r, e), place, TN_NO_INDEX) : TN_NO_INDEX;
    if (r->error != TN_OK)
        return;
    lines l = lines_of(r->report, place, e->kind, e->phase, row, TN_NO_INDEX);
    for (int i = 0; i < LINES; i++)
        if (l.each[i])
            l.each[i]->allocs++;
    tn_block block = {.addr = e->addr, .requested = e->bytes, .process = r->now.process, .ctx = e->ctx, .place = place, .row = row, .api = TN_NO_INDEX,
                      .handle = TN_NO_INDEX, .refs = 1, .space = TN_BLOCK_HANDED, .kind = e->kind, .phase = e->phase, .born_ns = r->now.ns};
    begin_block(r, &block, &l);
}

static void replay_free(replay *r, const tn_event *e)
{
    tn_process *p = &r->report->processes[r->now.process];
    if (e->addr == 0) /* freeing NULL is legal and frees nothing */
        return;
    if (e->result != 0) {
        p->frees_failed++;
        return;
    }
    uint32_t index = tn_blocks_find(&r->blocks, r->now.process, event_space(r, e), e->addr);
    if (index == TN_BLOCK_NONE) {
        p->frees_unknown++;
        return;
    }
    tn_block *b = &r->blocks.blocks[index];
    if (--b->refs > 0) /* a handle that was retained needs as many releases */
        return;
    count_free(r, b, event_api(r, e));
    /* A released handle keeps its memory until the last mapping of it is gone. */
    if (b->maps > 0)
        tn_blocks_unindex(&r->blocks, index);
    else
        end_block(r, index, TN_CHANGE_CALL);
}

/* ---- address ranges: reservations and mappings, which are no memory ---- */

static void add_range(replay *r, const tn_event *e, uint8_t space, tn_stat *stat)
{
    if (e->result != 0) {
        stat->refused++;
        return;
    }
    stat->allocs++;
    uint32_t old = tn_blocks_find(&r->blocks, r->now.process, space, e->addr);
    if (old != TN_BLOCK_NONE) {
        tn_stat_take(stat, &r->no_moments, r->blocks.blocks[old].requested, 0);
        tn_blocks_remove(&r->blocks, old);
    }
    tn_block block = {.addr = e->addr, .requested = e->bytes, .process = r->now.process, .handle = TN_NO_INDEX, .space = space};
    if (space == TN_BLOCK_MAPPING) {
        block.handle = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_VMM_HANDLE, e->aux);
        if (block.handle != TN_BLOCK_NONE)
            r->blocks.blocks[block.handle].maps++;
    }
    uint32_t index;
    r->error = tn_blocks_add(&r->blocks, &block, &index);
    tn_stat_add(stat, &r->no_moments, e->bytes, 0);
}

static void drop_range(replay *r, uint32_t index, tn_stat *stat)
{
    tn_block b = r->blocks.blocks[index];
    stat->frees++;
    tn_stat_take(stat, &r->no_moments, b.requested, 0);
    tn_blocks_remove(&r->blocks, index);
    if (b.handle == TN_NO_INDEX)
        return;
    tn_block *handle = &r->blocks.blocks[b.handle];
    if (--handle->maps == 0 && !handle->indexed)
        end_block(r, b.handle, TN_CHANGE_CALL);
}

static void replay_unmap(replay *r, const tn_event *e)
{
    if (e->result != 0)
        return;
    /* One unmap may cover many mappings, mostly one behind the other. */
    uint64_t at = e->addr, left = e->bytes;
    uint32_t index;
    while ((index = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_MAPPING, at)) != TN_BLOCK_NONE) {
        uint64_t width = r->blocks.blocks[index].requested;
        drop_range(r, index, &r->report->mapped);
        if (width == 0 || width >= left)
            return;
        at += width;
        left -= width;
    }
    /* A gap: only looking at every block finds what lies behind it. */
    for (uint32_t i = 0; i < r->blocks.count; i++) {
        const tn_block *b = &r->blocks.blocks[i];
        if (b->used && b->space == TN_BLOCK_MAPPING && b->process == r->now.process && b->addr >= at && b->addr - at < left)
            drop_range(r, i, &r->report->mapped);
    }
}

/* The program asks for the handle of what is mapped at an address: one more release is due. A handle that was released
 * while it was mapped can be had back in this way. */
static void replay_retain(replay *r, const tn_event *e)
{
    if (e->result != 0)
        return;
    uint32_t handle = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_VMM_HANDLE, e->aux);
    if (handle != TN_BLOCK_NONE) {
        r->blocks.blocks[handle].refs++;
        return;
    }
    uint32_t mapping = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_MAPPING, e->addr);
    handle = mapping == TN_BLOCK_NONE ? TN_NO_INDEX : r->blocks.blocks[mapping].handle;
    if (handle != TN_NO_INDEX && !r->blocks.blocks[handle].indexed) {
        r->blocks.blocks[handle].refs = 1;
        r->error = tn_blocks_reindex(&r->blocks, handle, e->aux);
    }
}

/* A graph's own free node ends the block that its allocation node began. */
static void replay_graph_free(replay *r, const tn_event *e)
{
    uint32_t index = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_ADDRESS, e->bytes);
    if (e->result != 0 || index == TN_BLOCK_NONE || r->blocks.blocks[index].kind != TN_KIND_GRAPH)
        return;
    const tn_block *b = &r->blocks.blocks[index];
    count_free(r, b, event_api(r, e));
    end_block(r, index, TN_CHANGE_CALL);
}

static void replay_unreserve(replay *r, const tn_event *e)
{
    uint32_t index = tn_blocks_find(&r->blocks, r->now.process, TN_BLOCK_RESERVATION, e->addr);
    if (e->result == 0 && index != TN_BLOCK_NONE)
        drop_range(r, index, &r->report->reserved);
}

/* ---- contexts ---- */

/* What dies with its context. Stream-ordered blocks belong to a pool of the device and physical handles to the
 * process: a reset leaves both. */
static int dies_with_context(const tn_block *b)
{
    return (b->space <= TN_BLOCK_EXTERNAL || b->space == TN_BLOCK_ARENA) && b->space != TN_BLOCK_VMM_HANDLE && b->kind != TN_KIND_VMM_HANDLE &&
           b->kind != TN_KIND_ASYNC && b->kind != TN_KIND_POOL;
}

static void replay_context(replay *r, const tn_event *e)
{
    if (e->result != 0 || e->ctx == 0 || (e->kind != TN_CTX_RESET && e->kind != TN_CTX_DESTROY))
        return;
    for (uint32_t i = 0; i < r->blocks.count; i++) {
        const tn_block *b = &r->blocks.blocks[i];
        if (!b->used || b->process != r->now.process || b->ctx != e->ctx || !dies_with_context(b))
            continue;
        r->report->places[b->place].ended_with_context += b->space != TN_BLOCK_ARENA;
        end_block(r, i, TN_CHANGE_CONTEXT);
    }
}

static void replay_process_end(replay *r)
{
    for (uint32_t i = 0; i < r->blocks.count; i++) {
        const tn_block *b = &r->blocks.blocks[i];
        if (!b->used || b->process != r->now.process)
            continue;
        lines l = {{b->space == TN_BLOCK_RESERVATION ? &r->report->reserved : &r->report->mapped}, &r->no_moments};
        if (b->space != TN_BLOCK_RESERVATION && b->space != TN_BLOCK_MAPPING) {
            l = lines_of_block(r->report, b);
            tell_watchers(r, b, -1, TN_CHANGE_PROCESS_END);
        }
        for (int k = 0; k < LINES; k++)
            if (l.each[k])
                tn_stat_leave(l.each[k], l.moments, b->requested, b->backed);
        if (l.each[1])
            tn_moments_leave(l.moments, b->backed);
        tn_blocks_remove(&r->blocks, i);
    }
}

static void replay_event(replay *r, const tn_event *e)
{
    switch (e->type) {
    case TN_EV_NONE:
        replay_process_end(r);
        break;
    case TN_EV_ALLOC:
        replay_alloc(r, e);
        break;
    case TN_EV_FREE:
        replay_free(r, e);
        break;
    case TN_EV_ARENA:
        replay_arena(r, e);
        break;
    case TN_EV_HANDOUT:
        replay_handout(r, e);
        break;
    case TN_EV_VMM_RESERVE:
        add_range(r, e, TN_BLOCK_RESERVATION, &r->report->reserved);
        break;
    case TN_EV_VMM_UNRESERVE:
        replay_unreserve(r, e);
        break;
    case TN_EV_VMM_MAP:
        add_range(r, e, TN_BLOCK_MAPPING, &r->report->mapped);
        break;
    case TN_EV_VMM_UNMAP:
        replay_unmap(r, e);
        break;
    case TN_EV_EXPORT:
        if (e->kind == TN_EXPORT_RETAIN)
            replay_retain(r, e);
        break;
    case TN_EV_GRAPH_NODE:
        if (e->kind == TN_NODE_FREE)
            replay_graph_free(r, e);
        break;
    case TN_EV_CONTEXT:
        replay_context(r, e);
        break;
    default: /* work, waits, graphs and the rest move no bytes */
        break;
    }
}

tn_error tn_replay(tn_report *report)
{
    replay r = {.report = report};
    tn_order order;
    tn_error error = tn_order_begin(&order, report);
    if (error != TN_OK)
        return error;
    tn_ahead ahead = {.order = &order};
    r.error = tn_watch_begin(report);
    while (r.error == TN_OK && tn_ahead_next(&ahead, report, &r.blocks, &r.now)) {
        replay_event(&r, r.now.event);
        if (r.error == TN_OK)
            r.error = tn_watch_event(&r.now);
        if (tn_at_reached(&r.now))
            break;
    }
    if (r.error == TN_OK && report->stop.wanted && !report->stop.reached)
        r.error = TN_E_NOTFOUND;
    if (r.error == TN_OK)
        r.error = tn_watch_end(report);
    tn_order_end(&order);
    tn_blocks_free(&r.blocks);
    return r.error == TN_OK ? tn_replay_finish(report) : r.error;
}
