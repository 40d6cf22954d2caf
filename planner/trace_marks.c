/* Streams with the spans of work that no wait has covered yet, and queues of freed blocks. Frees come in the order of their stamps and a
 * block is clean once the oldest uncovered work is younger than its free, so each queue is emptied from its front. */
#include "planner/trace_marks.h"

#include <stdlib.h>
#include <string.h>

/* Uncovered work of a stream is kept apart in at most this many spans; beyond them the youngest one grows, which can make blocks look busy
 * for longer than they are and never for shorter. */
#define SPANS_MAX 1024u

/* A stream remembers at most this many joins; older ones are forgotten first, with the same effect. */
#define JOINS_MAX 1024u

typedef struct span { uint64_t first, last; int is_mixed; /* of several calls of tn_marks_work() */ } span;
typedef struct join { uint64_t at, upto; uint32_t from; } join;
typedef struct target { uint32_t stream; uint64_t upto; } target;
typedef struct freed { uint64_t stamp; uint32_t block; } freed;

typedef struct queue { /* head to count; what lies before head is done with */
    freed *at;
    size_t head, count, room;
} queue;

typedef struct stream {
    span *spans;
    size_t head, count, room;
    uint32_t ctx;
    uint32_t next_dirty; /* chain of the context's streams with uncovered work or a queue */
    uint8_t dirty;
    uint64_t covered;    /* done up to here */
    queue queue;         /* stream-ordered blocks freed on it */
    join *joins;         /* not yet covered, by rising `at` */
    size_t join_head, join_count, join_room;
} stream;

typedef struct context {
    uint32_t first_dirty; /* 0: none */
    uint32_t next_dirty;  /* chain of contexts with dirty streams */
    uint8_t dirty;
    queue queue;
} context;

struct tn_marks {
    stream *streams;
    size_t stream_count;
    context *contexts;  /* [0]: the queue of blocks that every context's work keeps busy */
    size_t context_count;
    uint32_t first_dirty; /* context; NONE: none */
    size_t numbers;     /* one beyond these comes from damage */
    target *targets;    /* streams that a wait has still to cover */
    size_t target_count, target_room;
    tn_marks_clean clean;
    void *user;
};

#define NONE UINT32_MAX

tn_marks *tn_marks_new(size_t numbers, tn_marks_clean clean, void *user)
{
    tn_marks *m = calloc(1, sizeof *m);
    if (m) {
        m->numbers = numbers;
        m->clean = clean;
        m->first_dirty = NONE;
        m->user = user;
    }
    return m;
}

void tn_marks_free(tn_marks *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->stream_count; i++) {
        free(m->streams[i].spans);
        free(m->streams[i].queue.at);
        free(m->streams[i].joins);
    }
    free(m->targets);
    for (size_t i = 0; i < m->context_count; i++)
        free(m->contexts[i].queue.at);
    free(m->streams);
    free(m->contexts);
    free(m);
}

static tn_error make_room(const tn_marks *m, void **array, size_t *count, size_t size, uint32_t number)
{
    if (number < *count)
        return TN_OK;
    if (number >= m->numbers)
        return TN_E_LIMIT;
    size_t room = *count ? *count : 16;
    while (room <= number)
        room *= 2;
    char *grown = realloc(*array, room * size);
    if (!grown)
        return TN_E_NOMEM;
    memset(grown + *count * size, 0, (room - *count) * size);
    *array = grown;
    *count = room;
    return TN_OK;
}

static tn_error context_of(tn_marks *m, uint32_t ctx, context **out)
{
    tn_error e = make_room(m, (void **)&m->contexts, &m->context_count, sizeof(context), ctx);
    *out = e == TN_OK ? &m->contexts[ctx] : NULL;
    return e;
}

static tn_error stream_of(tn_marks *m, uint32_t number, stream **out)
{
    tn_error e = make_room(m, (void **)&m->streams, &m->stream_count, sizeof(stream), number);
    *out = e == TN_OK ? &m->streams[number] : NULL;
    return e;
}

tn_error tn_marks_stream(tn_marks *m, uint32_t number, uint32_t ctx)
{
    stream *s;
    context *c;
    tn_error e = number ? stream_of(m, number, &s) : TN_OK;
    if (!number || e != TN_OK)
        return e;
    e = context_of(m, ctx, &c);
    if (e == TN_OK && s->ctx == 0 && !s->dirty)
        s->ctx = ctx;
    return e;
}

/* The array with room for one more behind `count`; what lies before `head` is done with and given up first. NULL: no memory left, and nothing
 * has changed. */
static void *with_room(void *at, size_t size, size_t least, size_t *head, size_t *count, size_t *room)
{
    if (*head == *count)
        *head = *count = 0;
    if (*count < *room)
        return at;
    if (*head > *room / 2) {
        memmove(at, (char *)at + *head * size, (*count - *head) * size);
        *count -= *head;
        *head = 0;
        return at;
    }
    size_t grown = *room ? *room * 2 : least;
    at = realloc(at, grown * size);
    if (at)
        *room = grown;
    return at;
}

/* ---- queues ---- */

static tn_error queue_push(queue *q, uint32_t block, uint64_t stamp)
{
    freed *at = with_room(q->at, sizeof *at, 64, &q->head, &q->count, &q->room);
    if (!at)
        return TN_E_NOMEM;
    q->at = at;
    q->at[q->count++] = (freed){.stamp = stamp, .block = block};
    return TN_OK;
}

/* All that were freed before the work at `oldest` are clean. */
static void queue_clean(tn_marks *m, queue *q, uint64_t oldest)
{
    while (q->head < q->count && q->at[q->head].stamp < oldest)
        m->clean(m->user, q->at[q->head++].block);
}

/* ---- work ---- */

static uint64_t oldest_in(const stream *s)
{
    return s->head < s->count ? s->spans[s->head].first : UINT64_MAX;
}

/* The oldest uncovered work of a context; streams with none, and none to clean, leave its chain. */
static uint64_t oldest_of(tn_marks *m, context *c)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t *link = &c->first_dirty; *link;) {
        stream *s = &m->streams[*link];
        uint64_t at = oldest_in(s);
        if (at == UINT64_MAX && s->queue.head == s->queue.count) {
            s->dirty = 0;
            *link = s->next_dirty;
            continue;
        }
        if (at < oldest)
            oldest = at;
        link = &s->next_dirty;
    }
    return oldest;
}

static uint64_t oldest_anywhere(tn_marks *m)
{
    uint64_t oldest = UINT64_MAX;
    for (uint32_t *link = &m->first_dirty; *link != NONE;) {
        context *c = &m->contexts[*link];
        uint64_t at = oldest_of(m, c);
        if (!c->first_dirty) {
            c->dirty = 0;
            *link = c->next_dirty;
            continue;
        }
        if (at < oldest)
            oldest = at;
        link = &c->next_dirty;
    }
    return oldest;
}

static tn_error make_dirty(tn_marks *m, uint32_t number)
{
    stream *s = &m->streams[number];
    context *c;
    tn_error e = s->dirty ? TN_OK : context_of(m, s->ctx, &c);
    if (s->dirty || e != TN_OK)
        return e;
    s->dirty = 1;
    s->next_dirty = c->first_dirty;
    c->first_dirty = number;
    if (!c->dirty) {
        c->dirty = 1;
        c->next_dirty = m->first_dirty;
        m->first_dirty = s->ctx;
    }
    return TN_OK;
}

tn_error tn_marks_work(tn_marks *m, uint32_t number, uint64_t first, uint64_t last)
{
    stream *s;
    tn_error e = stream_of(m, number, &s);
    if (e != TN_OK || number == 0)
        return e;
    if (last < first)
        last = first;
    e = make_dirty(m, number);
    if (e != TN_OK)
        return e;
    if (s->count - s->head >= SPANS_MAX) {
        if (s->spans[s->count - 1].last < last)
            s->spans[s->count - 1].last = last;
        s->spans[s->count - 1].is_mixed = 1;
        return TN_OK;
    }
    span *at = with_room(s->spans, sizeof *at, 16, &s->head, &s->count, &s->room);
    if (!at)
        return TN_E_NOMEM;
    s->spans = at;
    s->spans[s->count++] = (span){.first = first, .last = last};
    return TN_OK;
}

/* ---- waits ---- */

tn_error tn_marks_join(tn_marks *m, uint32_t to, uint64_t at, uint32_t from, uint64_t upto)
{
    stream *s;
    tn_error e = to && from ? stream_of(m, from, &s) : TN_OK;
    if (e == TN_OK && to && from)
        e = stream_of(m, to, &s);
    if (e != TN_OK || !to || !from || to == from || upto <= m->streams[from].covered)
        return e;
    if (s->join_count > s->join_head && s->joins[s->join_count - 1].from == from && s->joins[s->join_count - 1].upto == upto)
        return TN_OK;
    if (s->join_count - s->join_head >= JOINS_MAX)
        s->join_head++;
    join *joins = with_room(s->joins, sizeof *joins, 4, &s->join_head, &s->join_count, &s->join_room);
    if (!joins)
        return TN_E_NOMEM;
    s->joins = joins;
    s->joins[s->join_count++] = (join){.at = at, .upto = upto, .from = from};
    return TN_OK;
}

static tn_error aim(tn_marks *m, uint32_t stream, uint64_t upto)
{
    size_t head = 0;
    target *at = with_room(m->targets, sizeof *at, 16, &head, &m->target_count, &m->target_room);
    if (!at)
        return TN_E_NOMEM;
    m->targets = at;
    m->targets[m->target_count++] = (target){.stream = stream, .upto = upto};
    return TN_OK;
}

/* What the stream had waited for when what is covered was enqueued is done too. */
static tn_error cover(tn_marks *m, stream *s, uint64_t upto)
{
    tn_error e = TN_OK;
    if (upto <= s->covered)
        return TN_OK;
    s->covered = upto;
    while (s->head < s->count && s->spans[s->head].last <= upto)
        s->head++;
    /* Of a span that was begun before and went on behind, the rest may have been enqueued right behind. */
    if (s->head < s->count && s->spans[s->head].first <= upto)
        s->spans[s->head].first = upto + 1;
    for (; e == TN_OK && s->join_head < s->join_count && s->joins[s->join_head].at <= upto; s->join_head++)
        e = aim(m, s->joins[s->join_head].from, s->joins[s->join_head].upto);
    queue_clean(m, &s->queue, upto == UINT64_MAX ? upto : upto + 1);
    return e;
}

static void settle(tn_marks *m, context *c)
{
    if (c != &m->contexts[0] && c->queue.head < c->queue.count)
        queue_clean(m, &c->queue, oldest_of(m, c));
    if (m->contexts[0].queue.head < m->contexts[0].queue.count)
        queue_clean(m, &m->contexts[0].queue, oldest_anywhere(m));
}

/* Covers what is aimed at, and what that leads to. */
static tn_error cover_targets(tn_marks *m)
{
    tn_error e = TN_OK;
    while (e == TN_OK && m->target_count > 0) {
        target t = m->targets[--m->target_count];
        stream *s = &m->streams[t.stream];
        context *c;
        if (t.upto <= s->covered)
            continue;
        e = context_of(m, s->ctx, &c);
        if (e == TN_OK)
            e = cover(m, s, t.upto);
        if (e == TN_OK)
            settle(m, c);
    }
    m->target_count = 0;
    return e;
}

tn_error tn_marks_wait_stream(tn_marks *m, uint32_t number, uint64_t upto)
{
    stream *s;
    context *c;
    tn_error e = stream_of(m, number, &s);
    if (e == TN_OK)
        e = context_of(m, s->ctx, &c);
    if (e != TN_OK || number == 0)
        return e;
    e = cover(m, s, upto);
    settle(m, c);
    return e == TN_OK ? cover_targets(m) : e;
}

tn_error tn_marks_done(tn_marks *m, uint32_t number, uint64_t last)
{
    stream *s;
    context *c;
    tn_error e = stream_of(m, number, &s);
    if (e == TN_OK)
        e = context_of(m, s->ctx, &c);
    if (e != TN_OK || number == 0)
        return e;
    for (size_t i = s->count; i > s->head; i--) {
        if (s->spans[i - 1].last != last || s->spans[i - 1].is_mixed)
            continue;
        memmove(&s->spans[i - 1], &s->spans[i], (s->count - i) * sizeof(span));
        s->count--;
        settle(m, c);
        break;
    }
    return TN_OK;
}

tn_error tn_marks_wait_context(tn_marks *m, uint32_t ctx, uint64_t upto)
{
    context *c;
    tn_error e = context_of(m, ctx, &c);
    for (uint32_t i = e == TN_OK ? c->first_dirty : 0; i && e == TN_OK; i = m->streams[i].next_dirty)
        e = cover(m, &m->streams[i], upto);
    if (e != TN_OK)
        return e;
    oldest_of(m, c); /* so that what has nothing left is not looked at again */
    settle(m, c);
    return cover_targets(m);
}

tn_error tn_marks_context_gone(tn_marks *m, uint32_t ctx, uint64_t stamp)
{
    return tn_marks_wait_context(m, ctx, stamp);
}

/* ---- frees ---- */

tn_error tn_marks_freed(tn_marks *m, uint32_t block, uint32_t ctx, uint64_t stamp)
{
    context *c;
    tn_error e = context_of(m, ctx, &c);
    if (e != TN_OK)
        return e;
    if (c->queue.head == c->queue.count && (ctx ? oldest_of(m, c) : oldest_anywhere(m)) > stamp) {
        m->clean(m->user, block);
        return TN_OK;
    }
    return queue_push(&c->queue, block, stamp);
}

tn_error tn_marks_freed_on(tn_marks *m, uint32_t block, uint32_t number, uint64_t stamp)
{
    stream *s;
    tn_error e = stream_of(m, number, &s);
    if (e == TN_OK && number)
        e = make_dirty(m, number);
    return e == TN_OK ? queue_push(&s->queue, block, stamp) : e;
}
