/* Work and waits, and what the allocators ask about them. */
#include "serve/marks_state.h"

#include <string.h>

/* ---- work */

/* A thread is known by where its thread-local storage is: that of a thread that has ended may come to another one, after it. */
static inline uint64_t this_thread(void) { return (uint64_t)(uintptr_t)__builtin_thread_pointer(); }

static __attribute__((noinline)) void work_seldom(tn_marks *m, tn_marks_place *p, uint32_t ctx, uint32_t stream, uint64_t stamp)
{
    if (!p && stream) p = tn_marks_place_of(m, ctx, stream, 0);
    if (!p) {
        tn_marks_loosen(m, ctx, stamp);
        return;
    }
    uint64_t me = this_thread();
    for (int i = 0; i < 2; i++) {
        uint64_t nobody = 0;
        if (!atomic_compare_exchange_strong_explicit(&p->thread[i], &nobody, me, memory_order_relaxed, memory_order_relaxed)) continue;
        tn_marks_raise(&p->last[i], stamp);
        return;
    }
    tn_marks_raise(&p->last_of_others, stamp);
}

void tn_marks_work(tn_marks *m, uint32_t ctx, uint32_t stream, uint64_t stamp)
{
    tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    uint64_t me = this_thread();
    if (__builtin_expect(p != NULL, 1)) {
        for (int i = 0; i < 2; i++) {
            if (atomic_load_explicit(&p->thread[i], memory_order_relaxed) != me) continue;
            if (atomic_load_explicit(&p->last[i], memory_order_relaxed) < stamp) atomic_store_explicit(&p->last[i], stamp, memory_order_release);
            return;
        }
    }
    work_seldom(m, p, ctx, stream, stamp);
}

/* ---- waits */

uint64_t tn_marks_begin(tn_marks *m, uint64_t now)
{
    uint64_t there = atomic_load_explicit(m->tick, memory_order_acquire); /* where another's is enough, too, the call comes after it */
    while (there < now)
        if (atomic_compare_exchange_weak(m->tick, &there, now)) return now; /* a full barrier: the call comes after it */
    return there;
}

void tn_marks_cover(tn_marks *m, uint32_t stream, uint64_t upto)
{
    tn_marks_place *p = tn_marks_find(m, stream);
    if (!p) return;
    tn_marks_joins *j = tn_marks_joins_of(m, p);
    tn_marks_hold(&j->held); /* or another stream might get the place now, and what was waited for would be its */
    if ((uint32_t)tn_marks_read(&p->key) == stream) tn_marks_raise(&p->covered, upto);
    tn_marks_let_go(&j->held);
}

bool tn_marks_is_covered(const tn_marks *m, uint32_t stream, uint64_t upto)
{
    const tn_marks_place *p = tn_marks_find(m, stream);
    if (!p) return false;
    uint64_t key = tn_marks_read(&p->key);
    uint64_t covered = tn_marks_greater(tn_marks_read(&p->covered), tn_marks_covered_context(m, tn_marks_queue_context(key)));
    return covered >= upto && (uint32_t)key == stream && tn_marks_read(&p->key) == key;
}

void tn_marks_waited_stream(tn_marks *m, uint32_t stream, uint64_t begun)
{
    tn_marks_pair pairs[TN_MARKS_PAIRS];
    const tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    if (!p) return;
    /* What it had joined before is done too, or it would still be waiting for that. */
    uint32_t count = tn_marks_joins_before(m, p, begun, pairs);
    for (uint32_t i = 0; i < count; i++) tn_marks_cover(m, pairs[i].stream, pairs[i].upto);
    tn_marks_cover(m, stream, begun);
}

void tn_marks_waited_context(tn_marks *m, uint32_t ctx, uint64_t begun)
{
    tn_marks_context *c = tn_marks_context_find(m, ctx);
    if (c) tn_marks_raise(&c->covered, begun);
}

/* ---- questions */

/* Whether the place has work of its stream that nothing covers, and which; `base` is what context waits cover. */
static inline bool is_uncovered(const tn_marks_place *p, uint64_t base, uint64_t *last)
{
    uint64_t covered = tn_marks_greater(tn_marks_read(&p->covered), base);
    *last = tn_marks_last(p);
    return *last >= covered;
}

/* The same, joins too. */
static inline bool is_uncovered_in_order(const tn_marks *m, const tn_marks_place *p, uint64_t base)
{
    return tn_marks_last_in_order(m, p) >= tn_marks_greater(tn_marks_read(&p->covered), base);
}

/* Up to where context waits cover the owner of a place. */
static inline uint64_t base_of(const tn_marks *m, uint64_t key) { return tn_marks_covered_context(m, tn_marks_queue_context(key)); }

/* The context's work that has no place, where it is uncovered; 0: none is. */
static __attribute__((hot)) uint64_t uncovered_loose_in(const tn_marks *m, const tn_marks_context *c)
{
    uint64_t loose = tn_marks_read(&c->loose);
    return loose && loose >= tn_marks_greater(tn_marks_read(&m->contexts[0].covered), tn_marks_read(&c->covered)) ? loose : 0;
}

static __attribute__((hot)) uint64_t uncovered_loose(const tn_marks *m, uint32_t ctx) { return uncovered_loose_in(m, tn_marks_context_of(m, ctx)); }

static uint32_t contexts_of(const tn_marks *m) { return atomic_load_explicit(&m->context_count, memory_order_acquire); }

/* Any context's, also of those not known. */
static bool is_any_loose(const tn_marks *m)
{
    uint32_t count = contexts_of(m);
    for (uint32_t i = 0; i < count; i++)
        if (uncovered_loose_in(m, &m->contexts[i])) return true;
    return false;
}

static tn_work_mark wide(const tn_marks *m, uint32_t ctx, uint32_t stream)
{
    return (tn_work_mark){TN_MARKS_WIDE | tn_marks_queue(ctx, stream), tn_marks_greater(m->now(), tn_marks_read(m->tick))};
}

/* Puts what is uncovered into the set; returns how many there are, or more than there is room for. */
static size_t gather(const tn_marks *m, uint32_t ctx, tn_work_set *set)
{
    const tn_marks_place *end = m->places + atomic_load_explicit(&m->used, memory_order_acquire);
    uint64_t unknown = tn_marks_read(&m->contexts[0].covered), base = tn_marks_covered_context(m, ctx), last;
    size_t count = 0;
    for (const tn_marks_place *p = m->places; p < end; p++) {
        uint64_t key = tn_marks_read(&p->key), upto = base;
        if (key >> 32 != ctx || !ctx) { /* of a stream whose context is not known, too */
            if (!key || (ctx && key >> 32)) continue;
            upto = key >> 32 ? base_of(m, key) : unknown;
        }
        /* Most have been idle since the last context wait: a comparison each. */
        if (tn_marks_read(&p->last[0]) < upto && tn_marks_read(&p->last[1]) < upto && tn_marks_read(&p->last_of_others) < upto) continue;
        if (!is_uncovered(p, upto, &last)) continue;
        if (count == TN_WORK_SET_MARKS) return count + 1;
        set->marks[count++] = (tn_work_mark){key, last};
    }
    return count;
}

void tn_marks_uncovered(tn_marks *m, uint32_t ctx, tn_work_set *set)
{
    uint64_t left;
    size_t count;
    do { /* a place that changes hands while it is looked at has been of neither */
        left = tn_marks_read(&m->left_ever);
        count = gather(m, ctx, set);
    } while (tn_marks_read(&m->left_ever) != left);
    /* After the places: what left one was loose by then. */
    bool unknown = uncovered_loose(m, 0) != 0;
    if (count > TN_WORK_SET_MARKS || unknown || (ctx ? uncovered_loose(m, ctx) != 0 : is_any_loose(m))) {
        /* A context without a place of its own has its streams among the unknown ones, and a mark of its would be done from the start. */
        set->marks[0] = wide(m, unknown || !ctx || !tn_marks_context_find(m, ctx) ? TN_MARKS_EVERYWHERE : ctx, 0);
        count = 1;
    }
    set->count = count;
}

tn_work_mark tn_marks_of_stream(tn_marks *m, uint32_t stream)
{
    const tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    uint64_t key = p ? tn_marks_read(&p->key) : 0;
    uint32_t ctx = tn_marks_queue_context(key), what = p ? atomic_load_explicit(&p->what, memory_order_relaxed) : 0;
    if ((uint32_t)key != stream || !ctx || uncovered_loose(m, 0)) return wide(m, TN_MARKS_EVERYWHERE, stream);
    /* The legacy default stream and those that block come after each other's work without any join. */
    if ((what & TN_MARKS_LEGACY) || uncovered_loose(m, ctx)) return wide(m, ctx, stream);
    const tn_marks_context *c = tn_marks_context_of(m, ctx);
    if (!(what & TN_MARKS_NONBLOCKING) && atomic_load_explicit(&m->crowded, memory_order_acquire)) return wide(m, ctx, stream);
    uint32_t legacy = what & TN_MARKS_NONBLOCKING ? 0 : atomic_load_explicit(&c->legacy, memory_order_acquire);
    uint64_t covered = legacy ? tn_marks_greater(tn_marks_read(&m->places[legacy - 1].covered), tn_marks_covered_context(m, ctx)) : 0;
    if (legacy && tn_marks_greater(tn_marks_last(&m->places[legacy - 1]), tn_marks_read(&c->touched)) >= covered) return wide(m, ctx, stream);
    uint64_t last = tn_marks_last_in_order(m, p);
    return last ? (tn_work_mark){key, last} : (tn_work_mark){0};
}

tn_work_mark tn_marks_alone(const tn_marks *m, tn_work_mark mark)
{
    uint32_t stream = tn_marks_queue_stream(mark.queue);
    const tn_marks_place *p = mark.queue & TN_MARKS_WIDE && stream ? tn_marks_find(m, stream) : NULL;
    uint64_t key = p ? tn_marks_read(&p->key) : 0;
    return key && (uint32_t)key == stream ? (tn_work_mark){key, mark.sequence} : mark;
}

bool tn_marks_is_barrier(const tn_marks *m, uint32_t stream)
{
    const tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    if (!p || !(atomic_load_explicit(&p->what, memory_order_relaxed) & TN_MARKS_LEGACY)) return false;
    uint32_t ctx = tn_marks_queue_context(tn_marks_read(&p->key));
    return atomic_load_explicit(&tn_marks_context_of(m, ctx)->blocking, memory_order_acquire) ||
           atomic_load_explicit(&m->contexts[0].blocking, memory_order_acquire) || atomic_load_explicit(&m->crowded, memory_order_acquire);
}

/* Whether all work of a context up to `sequence` is covered, stream by stream. */
static bool is_all_covered(const tn_marks *m, uint32_t ctx, uint64_t sequence)
{
    uint32_t used = atomic_load_explicit(&m->used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++) {
        const tn_marks_place *p = &m->places[i];
        uint64_t key = tn_marks_read(&p->key);
        uint32_t of = tn_marks_queue_context(key);
        if (!key || !(ctx == TN_MARKS_EVERYWHERE || of == ctx || of == 0)) continue;
        uint64_t base = base_of(m, key), covered = tn_marks_greater(tn_marks_read(&p->covered), base);
        bool is = covered > sequence || !is_uncovered_in_order(m, p, base);
        if (tn_marks_read(&p->key) != key) i--;
        else if (!is) return false;
    }
    if (ctx != TN_MARKS_EVERYWHERE) return !uncovered_loose(m, 0) && !uncovered_loose(m, ctx);
    uint32_t count = contexts_of(m);
    for (uint32_t i = 0; i < count; i++) {
        const tn_marks_context *c = &m->contexts[i];
        uint64_t covered = tn_marks_greater(tn_marks_read(&m->contexts[0].covered), tn_marks_read(&c->covered));
        if (covered <= sequence && uncovered_loose_in(m, c)) return false;
    }
    return true;
}

/* Of all that its context was given before it was made. Its sequence is the time of that, so that of two the later covers more; what has been
 * found done is kept, since work that comes later to a stream hides that its earlier is done. */
static bool is_wide_done(tn_marks *m, tn_work_mark mark)
{
    uint32_t ctx = tn_marks_queue_context(mark.queue), stream = tn_marks_queue_stream(mark.queue);
    bool everywhere = ctx == TN_MARKS_EVERYWHERE;
    if ((everywhere ? tn_marks_read(&m->contexts[0].covered) : tn_marks_covered_context(m, ctx)) > mark.sequence) return true;
    tn_marks_context *c = everywhere ? &m->contexts[0] : tn_marks_context_of(m, ctx);
    if (tn_marks_read(&c->settled) >= mark.sequence) return true;
    /* Mostly it is the stream's own work that is not done. */
    const tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    uint64_t key = p ? tn_marks_read(&p->key) : 0;
    if ((uint32_t)key == stream && key && tn_marks_read(&p->covered) <= mark.sequence && base_of(m, key) <= mark.sequence &&
        is_uncovered_in_order(m, p, base_of(m, key)) && tn_marks_read(&p->key) == key)
        return false;
    if (!is_all_covered(m, ctx, mark.sequence)) return false;
    tn_marks_raise(&c->settled, mark.sequence);
    return true;
}

static __attribute__((hot)) bool done(void *self, tn_work_mark mark)
{
    tn_marks *m = self;
    if (mark.queue & TN_MARKS_WIDE) return is_wide_done(m, mark);
    if (tn_marks_covered_context(m, tn_marks_queue_context(mark.queue)) > mark.sequence) return true;
    uint32_t stream = tn_marks_queue_stream(mark.queue);
    const tn_marks_place *p = tn_marks_find(m, stream);
    if (p) {
        uint64_t covered = tn_marks_read(&p->covered);
        return covered > mark.sequence && (uint32_t)tn_marks_read(&p->key) == stream;
    }
    const tn_marks_ended *e = &m->ended[tn_marks_hash(stream) % TN_MARKS_ENDED];
    if (tn_marks_read(&e->stream) != stream) return false;
    uint64_t covered = tn_marks_read(&e->covered);
    return covered > mark.sequence && tn_marks_read(&e->stream) == stream;
}

static __attribute__((hot)) bool ordered(void *self, tn_work_mark mark, uint64_t queue)
{
    tn_marks *m = self;
    uint32_t stream = tn_marks_queue_stream(mark.queue);
    if (mark.queue & TN_MARKS_WIDE) {
        /* The legacy stream comes after the others, but does it after one that has ended with work in it? Nobody says so. */
        uint32_t ctx = tn_marks_queue_context(mark.queue);
        if (uncovered_loose(m, 0) || (ctx == TN_MARKS_EVERYWHERE ? is_any_loose(m) : uncovered_loose(m, ctx) != 0)) return false;
    }
    if (stream && stream == queue) return true;
    const tn_marks_place *p = queue <= UINT32_MAX ? tn_marks_find(m, (uint32_t)queue) : NULL;
    tn_marks_pair pairs[TN_MARKS_PAIRS];
    uint32_t count = p ? tn_marks_joins_before(m, p, UINT64_MAX, pairs) : 0;
    for (uint32_t i = 0; i < count; i++)
        if (pairs[i].stream == stream && pairs[i].upto > mark.sequence) return true;
    return false;
}

static tn_work_mark all(void *self) { return wide(self, TN_MARKS_EVERYWHERE, 0); }

static tn_mem_error wait_for(void *self, tn_work_mark mark)
{
    tn_marks *m = self;
    if (!m->wait) return TN_MEM_E_ARGUMENT;
    uint32_t ctx = tn_marks_queue_context(mark.queue);
    if (!tn_marks_context_find(m, ctx)) ctx = 0;
    uint64_t begun = tn_marks_begin(m, m->now());
    tn_mem_error error = m->wait(m->self, ctx);
    if (error == TN_MEM_OK) tn_marks_waited_context(m, ctx, begun);
    return error;
}

tn_work tn_marks_work_table(tn_marks *m, uint32_t ctx)
{
    static const tn_work_table table = {.done = done, .ordered = ordered, .all = all, .wait = wait_for};
    (void)ctx; /* a set may hold marks of streams of any context, so the mark of all must cover every one's */
    return (tn_work){.table = &table, .self = m};
}
