/* From the mapped file to an ordered list of events. Chunks of a thread follow one another by their
 * sequence, but neither lie in order in the file nor hold strictly rising stamps: a call is stamped before or
 * after the driver's work, and a signal handler's events come in between. */
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

static const tn_event *event_at(const tn_reader *r, uint32_t ref)
{
    return (const tn_event *)(r->map + (uint64_t)ref * sizeof(tn_event));
}

static size_t run_end(const tn_reader *r, const uint32_t *refs, size_t from, size_t n)
{
    while (from + 1 < n && event_at(r, refs[from])->tsc <= event_at(r, refs[from + 1])->tsc)
        from++;
    return from + 1;
}

/* Natural merge sort by stamp. Stable, so events with equal stamps keep their (thread, position) order; each
 * thread's events are nearly one rising run, so the passes are about log2(threads). */
static tn_error sort_by_stamp(tn_reader *r)
{
    size_t n = r->event_count;
    uint32_t *from = r->order;
    if (n < 2 || run_end(r, from, 0, n) == n)
        return TN_OK;
    uint32_t *to = malloc(n * sizeof *to);
    if (to == NULL)
        return TN_E_NOMEM;
    for (size_t runs = 2; runs > 1;) {
        runs = 0;
        for (size_t start = 0; start < n; runs++) {
            size_t middle = run_end(r, from, start, n);
            size_t end = middle < n ? run_end(r, from, middle, n) : n;
            size_t a = start, b = middle, out = start;
            while (a < middle && b < end)
                to[out++] = event_at(r, from[b])->tsc < event_at(r, from[a])->tsc ? from[b++] : from[a++];
            while (a < middle)
                to[out++] = from[a++];
            while (b < end)
                to[out++] = from[b++];
            start = end;
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    r->order = from;
    free(to);
    return TN_OK;
}

static void add_counters(tn_reader *r, const unsigned char *chunk)
{
    const uint64_t *blocks = (const uint64_t *)(chunk + sizeof(tn_chunk_header));
    for (uint32_t slot = 0; slot < TN_COUNTER_SLOTS; slot++)
        for (uint32_t i = 0; i < TN_COUNTERS; i++)
            r->counters[i] += blocks[slot * TN_COUNTERS + i];
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
    return TN_OK;
}

/* Committed events of all chunks; their refs go to r->order where that exists. */
static void walk_events(tn_reader *r)
{
    size_t count = 0;
    uint64_t bad = 0;
    for (size_t c = 0; c < r->event_chunk_count; c++) {
        uint64_t first = (r->event_chunks[c].offset + sizeof(tn_chunk_header)) / sizeof(tn_event);
        for (uint32_t i = 0; i < TN_EVENTS_PER_CHUNK; i++) {
            const tn_event *e = event_at(r, (uint32_t)(first + i));
            /* Acquire: the writer may be running still. */
            if (__atomic_load_n(&e->type, __ATOMIC_ACQUIRE) == TN_EV_NONE)
                continue;
            if (!event_is_sound(e)) {
                bad++;
                continue;
            }
            if (r->order != NULL) {
                if (count == r->event_count)
                    return; /* committed since they were counted */
                r->order[count] = (uint32_t)(first + i);
            }
            count++;
        }
    }
    r->event_count = count;
    r->bad_events = bad;
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
    walk_events(r);
    if (r->event_count == 0)
        return TN_OK;
    r->order = malloc(r->event_count * sizeof *r->order);
    if (r->order == NULL)
        return TN_E_NOMEM;
    walk_events(r);
    return sort_by_stamp(r);
}

size_t tn_reader_event_count(const tn_reader *r)
{
    return r->event_count;
}

size_t tn_reader_thread_count(const tn_reader *r)
{
    return r->thread_count;
}

void tn_reader_rewind(tn_reader *r)
{
    r->cursor = 0;
}

const tn_event *tn_reader_next(tn_reader *r, uint32_t *thread)
{
    if (r->cursor >= r->event_count)
        return NULL;
    uint64_t offset = (uint64_t)r->order[r->cursor++] * sizeof(tn_event);
    if (thread != NULL) {
        uint64_t chunk = tn_reader_chunk_offset((offset - TN_HEADER_BYTES) / TN_CHUNK_BYTES);
        *thread = ((const tn_chunk_header *)(r->map + chunk))->thread;
    }
    return (const tn_event *)(r->map + offset);
}
