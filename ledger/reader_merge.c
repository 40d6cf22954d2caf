/* The events of all threads in one order: (stamp, thread, position). Each thread's rising events are a stream, the stragglers of all
 * are one more, and a heap says whose next event is the oldest. So every event is looked at twice, however
 * many there are, and memory grows with the chunks alone. */
#include <stdlib.h>

#include "ledger/reader_internal.h"

static int before(const tn_stream *a, const tn_stream *b)
{
    if (a->tsc != b->tsc)
        return a->tsc < b->tsc;
    if (a->thread != b->thread)
        return a->thread < b->thread;
    return a->ordinal < b->ordinal;
}

static void sift_down(tn_stream *heap, size_t count, size_t i)
{
    tn_stream moved = heap[i];
    for (size_t child; (child = 2 * i + 1) < count; i = child) {
        child += child + 1 < count && before(&heap[child + 1], &heap[child]);
        if (!before(&heap[child], &moved))
            break;
        heap[i] = heap[child];
    }
    heap[i] = moved;
}

static int next_straggler(const tn_reader *r, tn_stream *s)
{
    if (s->chunk == s->chunk_end)
        return 0;
    const tn_straggler *next = &r->stragglers[s->chunk++];
    s->tsc = next->tsc;
    s->ordinal = next->ordinal;
    s->thread = next->thread;
    s->ref = next->ref;
    return 1;
}

/* Goes to the stream's next event; 0 at its end. */
static int advance(const tn_reader *r, tn_stream *s)
{
    if (s->straggler)
        return next_straggler(r, s);
    for (; s->chunk < s->chunk_end; s->chunk++, s->slot = 0) {
        const tn_event_chunk *chunk = &r->event_chunks[s->chunk];
        while (s->slot < TN_EVENTS_PER_CHUNK) {
            uint64_t left = chunk->rising[s->slot / 64] >> s->slot % 64;
            if (left == 0) {
                s->slot = (s->slot / 64 + 1) * 64;
                continue;
            }
            s->slot += (uint32_t)__builtin_ctzll(left);
            s->ref = (uint32_t)((chunk->offset + sizeof(tn_chunk_header)) / sizeof(tn_event) + s->slot);
            s->ordinal = chunk->first_ordinal + s->slot++;
            s->tsc = tn_reader_event_at(r, s->ref)->tsc;
            __builtin_prefetch(tn_reader_event_at(r, s->ref + 8)); /* a page ends what the machine foresees */
            return 1;
        }
    }
    return 0;
}

void tn_reader_rewind(tn_reader *r)
{
    size_t count = 0;
    for (size_t c = 0, end; c < r->event_chunk_count; c = end) {
        for (end = c + 1; end < r->event_chunk_count && r->event_chunks[end].thread == r->event_chunks[c].thread; end++)
            ;
        r->heap[count] = (tn_stream){.thread = r->event_chunks[c].thread, .chunk = c, .chunk_end = end};
        count += (size_t)advance(r, &r->heap[count]);
    }
    r->heap[count] = (tn_stream){.straggler = 1, .chunk_end = r->straggler_count};
    count += (size_t)advance(r, &r->heap[count]);
    r->heap_count = count;
    for (size_t i = count / 2; i-- > 0;)
        sift_down(r->heap, count, i);
}

tn_error tn_reader_merge_begin(tn_reader *r)
{
    r->heap = calloc(r->thread_count + 1, sizeof *r->heap);
    if (r->heap == NULL)
        return TN_E_NOMEM;
    tn_reader_rewind(r);
    return TN_OK;
}

const tn_event *tn_reader_next(tn_reader *r, uint32_t *thread)
{
    if (r->heap_count == 0)
        return NULL;
    tn_stream *top = &r->heap[0];
    const tn_event *e = tn_reader_event_at(r, top->ref);
    if (thread != NULL)
        *thread = top->thread;
    if (!advance(r, top))
        *top = r->heap[--r->heap_count];
    sift_down(r->heap, r->heap_count, 0);
    return e;
}
