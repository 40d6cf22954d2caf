/* From the mapped file to chunks in order, and from each thread's events to a rising stream and the few that break it. Chunks of a thread
 * follow one another by their sequence, but neither lie in order in the file nor hold strictly rising stamps: a
 * call is stamped before or after the driver's work, and a signal handler's events come in between. */
#include <stdlib.h>
#include <string.h>

#include "ledger/reader_internal.h"

static int by_thread_and_sequence(const void *a, const void *b)
{
    const tn_event_chunk *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->sequence != y->sequence)
        return x->sequence < y->sequence ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* An event whose numbers could be used as indices by whoever reads it. */
static int event_is_sound(const tn_event *e)
{
    if (e->type >= TN_EV_TYPE_COUNT || e->phase > TN_PHASE_SERVING || e->api >= TN_API_MAX || e->outer_api >= TN_API_MAX)
        return 0;
    return (e->type != TN_EV_ALLOC && e->type != TN_EV_FREE) || e->kind < TN_KIND_COUNT;
}

static void add_counters(tn_reader *r, const unsigned char *chunk)
{
    const uint64_t *blocks = (const uint64_t *)(chunk + sizeof(tn_chunk_header));
    for (uint32_t slot = 0; slot < TN_COUNTER_SLOTS; slot++)
        for (uint32_t i = 0; i < TN_COUNTERS; i++)
            r->counters[i] += blocks[slot * TN_COUNTERS + i];
}

/* Launches that were counted in their event alone: by row `api` in the low half of `addr`, by row `result` in the high one. */
static void add_calls(tn_reader *r, const tn_event *e)
{
    r->counters[e->api] += (uint32_t)e->addr;
    if (e->result > 0 && (uint32_t)e->result < TN_API_MAX)
        r->counters[e->result] += e->addr >> 32;
}

static tn_error take_event_chunk(tn_reader *r, uint64_t offset, const tn_chunk_header *head, size_t *room)
{
    if (r->event_chunk_count == *room) {
        size_t more = *room == 0 ? 64 : *room * 2;
        tn_event_chunk *chunks = realloc(r->event_chunks, more * sizeof *chunks);
        if (chunks == NULL)
            return TN_E_NOMEM;
        r->event_chunks = chunks;
        *room = more;
    }
    tn_event_chunk *c = &r->event_chunks[r->event_chunk_count++];
    c->offset = offset;
    c->sequence = head->sequence;
    c->thread = head->thread;
    memset(c->rising, 0, sizeof c->rising);
    return TN_OK;
}

static tn_error take_straggler(tn_reader *r, const tn_straggler *straggler, size_t *room)
{
    if (r->straggler_count == *room) {
        size_t more = *room == 0 ? 64 : *room * 2;
        tn_straggler *grown = realloc(r->stragglers, more * sizeof *grown);
        if (grown == NULL)
            return TN_E_NOMEM;
        r->stragglers = grown;
        *room = more;
    }
    r->stragglers[r->straggler_count++] = *straggler;
    return TN_OK;
}

static int by_stamp(const void *a, const void *b)
{
    const tn_straggler *x = a, *y = b;
    if (x->tsc != y->tsc)
        return x->tsc < y->tsc ? -1 : 1;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

/* Marks each thread's rising events in their chunks, and keeps those that are older than one before them apart. What is committed
 * later, by a writer that is running still, has no mark and is not read. */
static tn_error split_events(tn_reader *r)
{
    size_t room = 0;
    uint64_t latest = 0, ordinal = 0;
    for (size_t c = 0; c < r->event_chunk_count; c++) {
        tn_event_chunk *chunk = &r->event_chunks[c];
        uint64_t first = (chunk->offset + sizeof(tn_chunk_header)) / sizeof(tn_event);
        if (c == 0 || r->event_chunks[c - 1].thread != chunk->thread)
            latest = 0;
        chunk->first_ordinal = ordinal;
        for (uint32_t i = 0; i < TN_EVENTS_PER_CHUNK; i++) {
            const tn_event *e = tn_reader_event_at(r, (uint32_t)(first + i));
            /* Acquire: the writer may be running still. */
            if (__atomic_load_n(&e->type, __ATOMIC_ACQUIRE) == TN_EV_NONE)
                continue;
            if (!event_is_sound(e)) {
                r->bad_events++;
                continue;
            }
            r->event_count++;
            if (e->type == TN_EV_WORK)
                add_calls(r, e);
            if (e->tsc >= latest) {
                latest = e->tsc;
                chunk->rising[i / 64] |= (uint64_t)1 << i % 64;
                continue;
            }
            tn_straggler straggler = {.tsc = e->tsc, .ordinal = ordinal + i, .thread = chunk->thread, .ref = (uint32_t)(first + i)};
            tn_error error = take_straggler(r, &straggler, &room);
            if (error != TN_OK)
                return error;
        }
        ordinal += TN_EVENTS_PER_CHUNK;
    }
    if (r->straggler_count > 0)
        qsort(r->stragglers, r->straggler_count, sizeof *r->stragglers, by_stamp);
    return TN_OK;
}

tn_error tn_reader_index(tn_reader *r)
{
    size_t room = 0;
    tn_error e = TN_OK;
    for (uint64_t i = 0; i < r->chunk_count && e == TN_OK; i++) {
        uint64_t offset = tn_reader_chunk_offset(i);
        const tn_chunk_header *head = (const tn_chunk_header *)(r->map + offset);
        uint32_t magic = __atomic_load_n(&head->magic, __ATOMIC_ACQUIRE);
        if (magic == 0)
            continue; /* preallocated and never opened, or buffered and never written */
        if (magic != TN_CHUNK_MAGIC) {
            r->bad_chunks++;
        } else if (head->type == TN_CHUNK_EVENTS && head->thread != 0) {
            e = take_event_chunk(r, offset, head, &room);
        } else if (head->type == TN_CHUNK_RECORDS) {
            e = tn_reader_take_records(r, offset);
        } else if (head->type == TN_CHUNK_COUNTERS) {
            add_counters(r, r->map + offset);
        } else {
            r->bad_chunks++;
        }
    }
    if (e != TN_OK)
        return e;
    if (r->event_chunk_count > 0)
        qsort(r->event_chunks, r->event_chunk_count, sizeof *r->event_chunks, by_thread_and_sequence);
    for (size_t i = 0; i < r->event_chunk_count; i++)
        r->thread_count += i == 0 || r->event_chunks[i].thread != r->event_chunks[i - 1].thread;
    e = split_events(r);
    return e == TN_OK ? tn_reader_merge_begin(r) : e;
}

size_t tn_reader_event_count(const tn_reader *r)
{
    return r->event_count;
}

size_t tn_reader_thread_count(const tn_reader *r)
{
    return r->thread_count;
}
