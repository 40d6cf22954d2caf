/* Where streams and contexts have their places: making and taking apart, who gets one and who leaves it. */
#define _DEFAULT_SOURCE
#include "serve/marks_state.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STREAMS 4096u
#define EVENTS 16384u
#define MOST ((size_t)1 << 20)

void tn_marks_hold_slowly(_Atomic uint32_t *held)
{
    for (unsigned round = 0;; round++) {
        if (atomic_load_explicit(held, memory_order_relaxed) == 0 && tn_marks_try(held)) return;
        if (round < 64) {
#ifdef __x86_64__
            __builtin_ia32_pause();
#endif
        } else if (round < 96) {
            sched_yield();
        } else {
            /* Whoever holds it may have the lower priority. libc's own is a cancellation point. */
            syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL);
        }
    }
}

/* ---- making and taking apart */

static void *by_malloc(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    (void)old_bytes;
    if (new_bytes) return realloc(block, new_bytes);
    free(block);
    return NULL;
}

/* The exponent of the first power of two that is not below. */
static unsigned exponent(size_t n)
{
    unsigned e = 0;
    while (((size_t)1 << e) < n) e++;
    return e;
}

static void *part(uintptr_t *at, size_t count, size_t size)
{
    void *here = (void *)*at;
    *at += (count * size + 63) & ~(uintptr_t)63;
    return here;
}

tn_mem_error tn_marks_create(const tn_marks_options *o, tn_marks **out)
{
    size_t streams = o->streams ? o->streams : STREAMS, events = o->events ? o->events : EVENTS;
    if (!o->now || streams > MOST || events > MOST) return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = o->metadata ? *o->metadata : (tn_metadata){.resize = by_malloc};
    /* A quarter full at most, the ways of a hash are all taken for no more than one in 10^9. */
    unsigned index = exponent(4 * streams), event = exponent(events) + 1;
    size_t index_size = (size_t)1 << index, event_size = (size_t)1 << event;
    tn_marks m = {.streams = (uint32_t)streams, .now = o->now, .wait = o->wait, .self = o->self, .metadata = metadata};
    m.index_shift = 32 - index;
    m.event_shift = 32 - event;
    m.index_mask = (uint32_t)index_size - 1;
    m.event_mask = (uint32_t)event_size - 1;
    tn_marks *self = NULL;
    for (int pass = 0; pass < 2; pass++) { /* counts, then places */
        uintptr_t at = ((uintptr_t)m.block + 63) & ~(uintptr_t)63, from = at;
        self = part(&at, 1, sizeof *self);
        m.contexts = part(&at, TN_MARKS_CONTEXTS + 1, sizeof *m.contexts);
        m.index = part(&at, index_size, sizeof *m.index);
        m.places = part(&at, streams, sizeof *m.places);
        m.left = part(&at, streams, sizeof *m.left);
        m.ended = part(&at, TN_MARKS_ENDED, sizeof *m.ended);
        m.joins = part(&at, streams, sizeof *m.joins);
        m.events = part(&at, event_size, sizeof *m.events);
        if (pass) break;
        m.bytes = at - from + 64;
        m.block = metadata.resize(metadata.self, NULL, 0, m.bytes);
        if (!m.block) return TN_MEM_E_HOST_MEMORY;
        if (!o->metadata || !o->zeroed) memset(m.block, 0, m.bytes);
    }
    m.context_count = 1;
    memcpy(self, &m, sizeof m);
    atomic_init(&m.contexts[TN_MARKS_CONTEXTS].covered, UINT64_MAX);
    self->tick = o->tick ? o->tick : &self->own_tick;
    tn_marks_raise(self->tick, o->now()); /* no stamp is 0 */
    *out = self;
    return TN_MEM_OK;
}

void tn_marks_destroy(tn_marks **marks)
{
    tn_marks *m = *marks;
    *marks = NULL;
    if (!m) return;
    tn_metadata metadata = m->metadata;
    (void)metadata.resize(metadata.self, m->block, m->bytes, 0);
}

/* ---- contexts */

/* With the lock held: gives the context its place, where it has none. A context that has ended leaves its own: who still looks for it finds nothing, which
 * says that it has ended. Words that somebody raises who had found it before are stamps of then, and what comes later is not covered by them. */
static tn_marks_context *context_place(tn_marks *m, uint32_t ctx)
{
    tn_marks_context *c = tn_marks_context_find(m, ctx);
    for (uint32_t way = 0; !c && way < TN_MARKS_NEAR; way++) {
        tn_marks_context *there = tn_marks_context_near(m, ctx, way);
        if (!atomic_load_explicit(&there->number, memory_order_relaxed) || tn_marks_read(&there->covered) == UINT64_MAX) c = there;
    }
    if (!c || atomic_load_explicit(&c->number, memory_order_relaxed) == ctx) return c;
    atomic_store_explicit(&c->number, 0, memory_order_release);
    atomic_store_explicit(&c->covered, 0, memory_order_release);
    atomic_store_explicit(&c->settled, 0, memory_order_release);
    atomic_store_explicit(&c->loose, 0, memory_order_release);
    atomic_store_explicit(&c->touched, 0, memory_order_release);
    atomic_store_explicit(&c->legacy, 0, memory_order_release);
    atomic_store_explicit(&c->blocking, 0, memory_order_release);
    atomic_store_explicit(&c->number, ctx, memory_order_release);
    uint32_t at = (uint32_t)(c - m->contexts);
    if (atomic_load_explicit(&m->context_count, memory_order_relaxed) <= at) atomic_store_explicit(&m->context_count, at + 1, memory_order_release);
    return c;
}

void tn_marks_loosen(tn_marks *m, uint32_t ctx, uint64_t stamp)
{
    tn_marks_context *c = tn_marks_context_find(m, ctx);
    if (!c) {
        tn_marks_hold(&m->held);
        c = context_place(m, ctx);
        tn_marks_let_go(&m->held);
    }
    tn_marks_raise(c ? &c->loose : &m->contexts[0].loose, stamp);
}

/* ---- places: all with the lock held */

static uint32_t at_of(const tn_marks *m, uint32_t stream, uint32_t way)
{
    return ((tn_marks_hash(stream) >> m->index_shift) + way) & m->index_mask;
}

/* A place without an owner. Those that were left come again late, and not before all others are taken or enough lie in the ring: a
 * thread may be about to write into one that its stream has left under its hands. */
static uint32_t take_left(tn_marks *m)
{
    uint32_t used = atomic_load_explicit(&m->used, memory_order_relaxed);
    if (m->left_count > TN_MARKS_REST || (used == m->streams && m->left_count)) {
        uint32_t n = m->left[m->left_first];
        m->left_first = (m->left_first + 1) % m->streams;
        m->left_count--;
        return n;
    }
    if (used == m->streams) return UINT32_MAX;
    atomic_store_explicit(&m->used, used + 1, memory_order_release);
    return used;
}

static void store(_Atomic uint64_t *word, uint64_t to) { atomic_store_explicit(word, to, memory_order_release); }

static void reset(tn_marks *m, tn_marks_place *p, unsigned what)
{
    tn_marks_joins *j = tn_marks_joins_of(m, p);
    store(&p->covered, 1);
    store(&p->last[0], 0);
    store(&p->last[1], 0);
    store(&p->last_of_others, 0);
    store(&p->thread[0], 0);
    store(&p->thread[1], 0);
    atomic_store_explicit(&p->what, what, memory_order_release); /* who sees the new owner's, without its JOINED, sees that the key has changed */
    atomic_store_explicit(&j->count, 0, memory_order_relaxed);
    store(&j->joined, 0);
}

tn_marks_place *tn_marks_place_of(tn_marks *m, uint32_t ctx, uint32_t stream, unsigned what)
{
    tn_marks_place *p = tn_marks_find(m, stream);
    if (p) return p;
    tn_marks_hold(&m->held);
    tn_marks_context *c = context_place(m, ctx);
    if (!c) {
        ctx = 0;
        c = &m->contexts[0];
    }
    p = tn_marks_find(m, stream);
    for (uint32_t way = 0; !p && way < TN_MARKS_WAYS; way++) {
        _Atomic uint32_t *at = &m->index[at_of(m, stream, way)];
        if (atomic_load_explicit(at, memory_order_relaxed)) continue;
        uint32_t n = take_left(m);
        if (n == UINT32_MAX) break;
        p = &m->places[n];
        tn_marks_joins *j = tn_marks_joins_of(m, p);
        tn_marks_hold(&j->held);
        reset(m, p, what);
        store(&p->key, tn_marks_queue(ctx, stream));
        tn_marks_let_go(&j->held);
        atomic_store_explicit(at, n + 1, memory_order_release);
        if (!(what & (TN_MARKS_LEGACY | TN_MARKS_NONBLOCKING))) atomic_fetch_add_explicit(&c->blocking, 1, memory_order_release);
        if (what & TN_MARKS_LEGACY && ctx) atomic_store_explicit(&c->legacy, n + 1, memory_order_release);
    }
    if (!p) atomic_store_explicit(&m->crowded, 1, memory_order_release);
    tn_marks_let_go(&m->held);
    return p;
}

/* What it has goes to its context before its key does, so that who no longer finds it there finds it here. */
static void leave(tn_marks *m, tn_marks_place *p)
{
    uint64_t key = tn_marks_read(&p->key), last;
    uint32_t ctx = tn_marks_queue_context(key), stream = tn_marks_queue_stream(key), n = (uint32_t)(p - m->places);
    tn_marks_joins *j = tn_marks_joins_of(m, p);
    tn_marks_context *c = tn_marks_context_of(m, ctx); /* which has its place as long as a stream of it has one */
    tn_marks_hold(&j->held);
    uint64_t covered = tn_marks_greater(tn_marks_read(&p->covered), tn_marks_covered_context(m, ctx));
    tn_marks_ended *e = &m->ended[tn_marks_hash(stream) % TN_MARKS_ENDED];
    store(&e->stream, 0);
    store(&e->covered, covered);
    store(&e->stream, stream);
    last = tn_marks_last_in_order(m, p);
    if (last >= covered) tn_marks_loosen(m, ctx, last);
    atomic_fetch_add_explicit(&m->left_ever, 1, memory_order_release);
    store(&p->key, 0);
    tn_marks_let_go(&j->held);
    if (!(atomic_load_explicit(&p->what, memory_order_relaxed) & (TN_MARKS_LEGACY | TN_MARKS_NONBLOCKING)))
        atomic_fetch_sub_explicit(&c->blocking, 1, memory_order_release);
    uint32_t legacy = n + 1;
    atomic_compare_exchange_strong_explicit(&c->legacy, &legacy, 0, memory_order_release, memory_order_relaxed);
    for (uint32_t way = 0; way < TN_MARKS_WAYS; way++) {
        _Atomic uint32_t *at = &m->index[at_of(m, stream, way)];
        if (atomic_load_explicit(at, memory_order_relaxed) == n + 1) atomic_store_explicit(at, 0, memory_order_release);
    }
    m->left[(m->left_first + m->left_count++) % m->streams] = n;
}

bool tn_marks_knows(const tn_marks *m, uint32_t stream) { return stream && tn_marks_find(m, stream); }

void tn_marks_stream(tn_marks *m, uint32_t ctx, uint32_t stream, unsigned what)
{
    if (stream) (void)tn_marks_place_of(m, ctx, stream, what);
}

void tn_marks_stream_ended(tn_marks *m, uint32_t stream)
{
    tn_marks_hold(&m->held);
    tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    if (p) leave(m, p);
    tn_marks_let_go(&m->held);
}

void tn_marks_context_ended(tn_marks *m, uint32_t ctx)
{
    if (!ctx) return;
    tn_marks_hold(&m->held);
    tn_marks_context *c = tn_marks_context_find(m, ctx);
    if (c) tn_marks_raise(&c->covered, UINT64_MAX);
    uint32_t used = atomic_load_explicit(&m->used, memory_order_relaxed);
    for (uint32_t i = 0; c && i < used; i++) {
        uint64_t key = tn_marks_read(&m->places[i].key);
        if (key && tn_marks_queue_context(key) == ctx) leave(m, &m->places[i]);
    }
    tn_marks_let_go(&m->held);
}
