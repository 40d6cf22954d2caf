/* One process's events to lifetimes: blocks by address, what ended them, and what was learnt about them on the way. What orders the
 * program's work goes to trace_marks.c, which says when a freed block's memory is free for another. */
#include <stdlib.h>
#include <string.h>

#include "planner/discipline.h"
#include "planner/trace_replay.h"

/* What a kill took from a buffered journal is not counted: so many numbers may be named in any case. */
#define NUMBERS_MIN 65536u
/* Of those that were dropped, as many may have named new ones. What a journal says of how many it dropped may be damage, too. */
#define NUMBERS_DROPPED_MAX 1048576u
#define BLOCK_MAX ((uint64_t)1 << 48) /* bytes: no address space is larger */
#define SYNC_MEMOPS_ATTRIBUTE 6u /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */

static void became_clean(void *user, uint32_t block)
{
    tn_replay *r = user;
    r->p->lives[block].clean = r->at;
}

/* ---- blocks ---- */

static tn_index *index_of_kind(tn_replay *r, uint8_t kind)
{
    if (kind == TN_KIND_VMM_HANDLE)
        return &r->handles;
    return kind == TN_KIND_ARRAY || kind == TN_KIND_MIPMAP ? &r->arrays : &r->addresses;
}

static int is_stream_ordered(uint8_t kind)
{
    return kind == TN_KIND_ASYNC || kind == TN_KIND_POOL;
}

/* Of the kinds that a plan may place: for others the end is the end. */
static int waits_for_work(uint8_t kind)
{
    return kind == TN_KIND_DEVICE || kind == TN_KIND_PITCH || kind == TN_KIND_PINNED;
}

/* In the order of the journal a block's free comes before anything that could be given its address, so one that is there still
 * was freed unseen. */
static void displace(tn_replay *r, tn_index *t, uint64_t key)
{
    uint32_t old = tn_index_take(t, key);
    if (old != TN_INDEX_NONE)
        tn_replay_end(r, old);
}

static void note_first(tn_replay *r, uint32_t site)
{
    if (r->seen_site[site])
        return;
    r->seen_site[site] = 1;
    tn_trace_first *f = TN_TRACE_PUSH(r->p->firsts, r->p->first_count);
    if (!f)
        r->error = TN_E_NOMEM;
    else
        *f = (tn_trace_first){.site = site, .at = r->at, .thread = r->thread};
}

/* By the driver. A block that a tier served was backed by none: then as the driver would have. */
static uint64_t backed_units(const tn_event *e)
{
    uint64_t bytes = e->aux > e->bytes ? e->aux : e->bytes;
    if (e->aux == 0 && tn_family_of_kind(e->kind) != TN_FAMILY_COUNT && tn_route_tier(tn_route_of(e->aux2)))
        bytes = tn_round_up(bytes, tn_native_alignment(tn_family_of_kind(e->kind), bytes));
    return bytes / TN_LIFE_UNIT + (bytes % TN_LIFE_UNIT != 0);
}

static void take_alloc(tn_replay *r)
{
    const tn_event *e = r->e;
    if (e->kind == TN_KIND_NONE || e->kind == TN_KIND_IMPORTED)
        return;
    if (e->result != 0) {
        r->p->refused++;
        return;
    }
    if (e->addr == 0 || e->bytes == 0)
        return;
    if (e->bytes > BLOCK_MAX) {
        r->p->damage = "it holds a block larger than any memory, which is passed over";
        return;
    }
    /* Out of the current pool, which may be one that a request could have named. */
    uint8_t kind = e->kind == TN_KIND_ASYNC && r->current_pool[e->device] ? TN_KIND_POOL : e->kind;
    uint32_t site = tn_replay_site(r, e->site);
    note_first(r, site);
    tn_index *t = index_of_kind(r, e->kind);
    displace(r, t, e->addr);
    if (r->p->life_count >= TN_LIFE_OPEN) {
        r->error = TN_E_LIMIT;
        return;
    }
    uint32_t index = (uint32_t)r->p->life_count;
    tn_life *l = TN_TRACE_PUSH(r->p->lives, r->p->life_count);
    if (!l) {
        r->error = TN_E_NOMEM;
        return;
    }
    uint64_t backed = backed_units(e);
    *l = (tn_life){.bytes = e->bytes, .backed = backed > UINT32_MAX ? UINT32_MAX : (uint32_t)backed, .site = site, .begin = r->at, .freed = TN_LIFE_OPEN,
                   .clean = TN_LIFE_OPEN, .stream = is_stream_ordered(e->kind) ? e->stream : 0, .ctx = e->ctx, .kind = kind,
                   .detail = e->kind == TN_KIND_PINNED || e->kind == TN_KIND_VMM_HANDLE ? (uint32_t)e->aux2 : 0, .device = e->device, .phase = e->phase,
                   .thread = r->thread < UINT8_MAX ? (uint8_t)r->thread : UINT8_MAX};
    if (r->captures && e->kind != TN_KIND_GRAPH)
        l->flags |= TN_LF_IN_CAPTURE;
    r->p->no_context += e->ctx == 0;
    if (e->kind == TN_KIND_VMM_HANDLE) {
        struct handle_state *s = TN_TRACE_PUSH(r->states, r->state_count);
        if (!s) {
            r->error = TN_E_NOMEM;
            return;
        }
        *s = (struct handle_state){.refs = 1};
        tn_replay_check(r, tn_index_set(&r->handle_state, index, (uint32_t)r->state_count - 1));
    }
    tn_replay_check(r, tn_index_set(t, e->addr, index));
}

static void take_free(tn_replay *r)
{
    const tn_event *e = r->e;
    if (r->thread < r->thread_room)
        r->threads[r->thread].freed_kind = e->kind;
    if (e->result != 0 || e->addr == 0 || e->kind == TN_KIND_IMPORTED)
        return;
    tn_index *t = index_of_kind(r, e->kind);
    uint32_t index = tn_index_find(t, e->addr);
    if (index == TN_INDEX_NONE) {
        r->p->frees_unknown++;
        return;
    }
    struct handle_state *s = e->kind == TN_KIND_VMM_HANDLE ? tn_replay_handle(r, index) : NULL;
    if (s && --s->refs > 0)
        return;
    tn_index_take(t, e->addr);
    if (s && s->maps > 0) /* its memory stays until the last mapping is gone */
        return;
    if (s) {
        tn_replay_end_handle(r, index, s);
        return;
    }
    tn_life *l = &r->p->lives[index];
    l->freed = r->at;
    l->free_phase = e->phase;
    if (is_stream_ordered(l->kind) && e->stream) {
        l->free_stream = e->stream;
        if (e->stream != l->stream)
            l->flags |= TN_LF_OTHER_FREE_STREAM;
        tn_replay_check(r, tn_marks_stream(r->marks, e->stream, l->ctx));
        tn_replay_check(r, tn_marks_freed_on(r->marks, index, e->stream, e->tsc));
    } else if (is_stream_ordered(l->kind) || waits_for_work(l->kind)) {
        if (is_stream_ordered(l->kind))
            l->flags |= TN_LF_OTHER_FREE;
        if (!is_stream_ordered(l->kind) && e->stream) {
            /* A stream-ordered free of a plain block is itself work that has to be waited for. */
            l->flags |= TN_LF_OTHER_FREE;
            tn_replay_check(r, tn_marks_stream(r->marks, e->stream, l->ctx));
            tn_replay_check(r, tn_marks_work(r->marks, e->stream, e->tsc, e->tsc));
        }
        tn_replay_check(r, tn_marks_freed(r->marks, index, l->kind == TN_KIND_PINNED ? 0 : l->ctx, e->tsc));
    } else {
        l->clean = r->at;
    }
}

/* ---- order ---- */

static void take_stream(tn_replay *r)
{
    if (r->e->stream && r->e->kind != TN_STREAM_DESTROY)
        tn_replay_check(r, tn_marks_stream(r->marks, r->e->stream, r->e->ctx));
    if (r->e->stream < UINT32_MAX && r->e->stream >= r->p->stream_end)
        r->p->stream_end = r->e->stream + 1;
}

static void take_work(tn_replay *r)
{
    if (!r->e->stream)
        return;
    if (r->e->ctx)
        tn_replay_check(r, tn_marks_stream(r->marks, r->e->stream, r->e->ctx));
    tn_replay_check(r, tn_marks_work(r->marks, r->e->stream, r->e->tsc, r->e->aux));
    if (r->thread < r->thread_room) {
        r->threads[r->thread].work_stream = r->e->stream;
        r->threads[r->thread].work_last = r->e->aux;
    }
}

static recorded *event_record(tn_replay *r, uint64_t handle)
{
    uint32_t i = tn_index_find(&r->events, handle);
    return i == TN_INDEX_NONE ? NULL : &r->records[i];
}

static void take_event_record(tn_replay *r)
{
    recorded *known = event_record(r, r->e->addr);
    if (!known) {
        known = TN_TRACE_PUSH(r->records, r->record_count);
        if (!known) {
            r->error = TN_E_NOMEM;
            return;
        }
        tn_replay_check(r, tn_index_set(&r->events, r->e->addr, (uint32_t)r->record_count - 1));
    }
    *known = (recorded){.stamp = r->e->tsc, .at = r->at, .stream = r->e->stream, .ctx = r->e->ctx, .captured = r->e->aux2 == 1};
}

static void take_stream_wait(tn_replay *r)
{
    const recorded *from = event_record(r, r->e->addr);
    if (r->e->result != 0 || r->e->aux2 == 1 || !from || from->captured || !from->stream || !r->e->stream || from->stream == r->e->stream)
        return;
    tn_trace_join *j = TN_TRACE_PUSH(r->p->joins, r->p->join_count);
    if (!j)
        r->error = TN_E_NOMEM;
    else
        *j = (tn_trace_join){.at = r->at, .to = r->e->stream, .from = from->stream, .upto = from->at};
    tn_replay_check(r, tn_marks_join(r->marks, r->e->stream, r->e->tsc, from->stream, from->stamp));
}

static void take_wait(tn_replay *r)
{
    const tn_event *e = r->e;
    const recorded *event;
    switch (e->kind) {
    case TN_WAIT_CONTEXT:
        tn_replay_check(r, tn_marks_wait_context(r->marks, e->ctx, e->aux));
        break;
    case TN_WAIT_STREAM:
    case TN_WAIT_STREAM_QUERY:
        tn_replay_check(r, tn_marks_wait_stream(r->marks, e->stream, e->aux));
        break;
    case TN_WAIT_COPY:
        tn_replay_check(r, tn_marks_wait_stream(r->marks, e->stream, e->aux));
        /* The copy itself, which this thread enqueued in the call that waited, is done too. */
        if (r->thread < r->thread_room && r->threads[r->thread].work_stream == e->stream && r->threads[r->thread].work_last > e->aux)
            tn_replay_check(r, tn_marks_done(r->marks, e->stream, r->threads[r->thread].work_last));
        break;
    case TN_WAIT_EVENT:
    case TN_WAIT_EVENT_QUERY:
        event = event_record(r, e->addr);
        /* One that was recorded again after the wait had begun may not be the one that was waited for. */
        if (event && !event->captured && event->stamp <= e->aux) {
            if (event->stream)
                tn_replay_check(r, tn_marks_wait_stream(r->marks, event->stream, event->stamp));
            else
                tn_replay_check(r, tn_marks_wait_context(r->marks, event->ctx, event->stamp));
        }
        break;
    case TN_WAIT_FREE:
        /* A plan may re-place the block, and then its free does not wait. */
        if (r->thread < r->thread_room && !waits_for_work(r->threads[r->thread].freed_kind) && !is_stream_ordered(r->threads[r->thread].freed_kind))
            tn_replay_check(r, tn_marks_wait_context(r->marks, e->ctx, e->aux));
        break;
    default:
        break;
    }
}

static void take_context(tn_replay *r)
{
    const tn_event *e = r->e;
    if (e->result != 0 || e->ctx == 0 || (e->kind != TN_CTX_RESET && e->kind != TN_CTX_DESTROY))
        return;
    tn_index *tables[] = {&r->addresses, &r->arrays};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; tables[k]->slots && i <= tables[k]->mask;) {
            const tn_index_slot s = tables[k]->slots[i];
            const tn_life *l = &r->p->lives[s.value];
            if (!s.used || l->ctx != e->ctx || is_stream_ordered(l->kind)) {
                i++;
                continue;
            }
            tn_replay_end(r, s.value);
            r->p->lives[s.value].flags |= TN_LF_RESET;
            tn_index_take(tables[k], s.key); /* another may have moved up to i */
        }
    }
    tn_replay_check(r, tn_marks_context_gone(r->marks, e->ctx, e->tsc));
}

/* ---- the rest ---- */

static void take_query(tn_replay *r)
{
    const tn_event *e = r->e;
    if (e->result != 0 || e->device == TN_DEVICE_NONE || e->bytes == 0)
        return;
    tn_trace_query *q = TN_TRACE_PUSH(r->p->queries, r->p->query_count);
    if (!q) {
        r->error = TN_E_NOMEM;
        return;
    }
    *q = (tn_trace_query){.free_bytes = e->bytes, .total_bytes = e->aux, .at = r->at, .site = tn_replay_site(r, e->site), .thread = r->thread,
                          .ordinal = (uint32_t)e->aux2, .device = e->device};
}

static void take_phase(tn_replay *r)
{
    if (r->e->kind > TN_PHASE_SERVING) /* of a later journal */
        return;
    tn_trace_phase *p = TN_TRACE_PUSH(r->p->phases, r->p->phase_count);
    if (!p)
        r->error = TN_E_NOMEM;
    else
        *p = (tn_trace_phase){.at = r->at, .phase = r->e->kind};
}

static void take_event(tn_replay *r)
{
    switch (r->e->type) {
    case TN_EV_ALLOC: take_alloc(r); break;
    case TN_EV_FREE: take_free(r); break;
    case TN_EV_VMM_MAP: tn_replay_map(r); break;
    case TN_EV_VMM_UNMAP: tn_replay_unmap(r); break;
    case TN_EV_WORK: take_work(r); break;
    case TN_EV_FIRST_WRITE: tn_replay_first_write(r); break;
    case TN_EV_WAIT: take_wait(r); break;
    case TN_EV_EVENT_RECORD: take_event_record(r); break;
    case TN_EV_STREAM_WAIT: take_stream_wait(r); break;
    case TN_EV_EVENT_DESTROY: tn_index_take(&r->events, r->e->addr); break;
    case TN_EV_CONTEXT: take_context(r); break;
    case TN_EV_STREAM: take_stream(r); break;
    case TN_EV_CAPTURE:
        if (r->e->kind == TN_CAPTURE_BEGIN && r->e->result == 0)
            r->captures++;
        else if (r->e->kind == TN_CAPTURE_END && r->captures)
            r->captures--;
        break;
    case TN_EV_GRAPH: tn_replay_graph(r); break;
    case TN_EV_GRAPH_NODE: tn_replay_node(r); break;
    case TN_EV_QUERY: take_query(r); break;
    case TN_EV_EXPORT: tn_replay_export(r); break;
    case TN_EV_ATTRIBUTE:
        if (r->e->result == 0 && r->e->bytes == SYNC_MEMOPS_ATTRIBUTE && r->e->aux)
            tn_replay_flag(r, r->e->addr, TN_LF_SYNC_MEMOPS);
        break;
    case TN_EV_PHASE: take_phase(r); break;
    case TN_EV_POOL: tn_replay_pool(r); break;
    case TN_EV_CHARGE: r->p->charges++; break;
    default: break;
    }
}

tn_error tn_trace_replay(tn_trace *trace, tn_trace_process *p, const uint32_t *site_of, uint32_t site_end)
{
    tn_replay r = {.trace = trace, .p = p, .site_of = site_of, .site_end = site_end};
    r.thread_room = 0;
    /* Numbers are given out one by one, with an event each, so that damage to one costs neither memory nor time. */
    size_t numbers = tn_reader_event_count(p->reader) + (p->dropped < NUMBERS_DROPPED_MAX ? (size_t)p->dropped : NUMBERS_DROPPED_MAX);
    r.marks = tn_marks_new(numbers > NUMBERS_MIN ? numbers : NUMBERS_MIN, became_clean, &r);
    r.seen_site = calloc(trace->site_count + 1, 1);
    if (!r.marks || !r.seen_site)
        r.error = TN_E_NOMEM;
    p->stream_end = 1;
    tn_reader_rewind(p->reader);
    while (r.error == TN_OK && (r.e = tn_reader_next(p->reader, &r.thread))) {
        if (r.at == TN_LIFE_OPEN - 1) {
            r.error = TN_E_LIMIT;
            break;
        }
        r.at++;
        if (r.thread >= r.thread_room && r.thread < (1u << 20)) {
            size_t room = r.thread_room ? r.thread_room : 64;
            while (room <= r.thread)
                room *= 2;
            struct thread_state *grown = realloc(r.threads, room * sizeof *grown);
            if (!grown) {
                r.error = TN_E_NOMEM;
                break;
            }
            memset(grown + r.thread_room, 0, (room - r.thread_room) * sizeof *grown);
            r.threads = grown;
            r.thread_room = room;
        }
        take_event(&r);
    }
    p->events = r.at;
    tn_marks_free(r.marks);
    tn_index *tables[] = {&r.addresses, &r.handles, &r.arrays, &r.mapped, &r.events, &r.execs, &r.pools, &r.handle_state};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
        tn_index_free(tables[i]);
    free(r.mappings);
    free(r.records);
    free(r.threads);
    free(r.seen_site);
    free(r.states);
    return r.error;
}
