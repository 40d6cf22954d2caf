/* Events and joins: what a wait for an event covers, and what a stream is ordered after. Each keeps pairs of (stream, up to which stamp). A
 * record takes those of its stream along, a join those of the event, so that orders through several streams are kept where there is room. */
#include "serve/marks_state.h"

#include <string.h>

/* ---- joins of a stream */

uint32_t tn_marks_joins_before(const tn_marks *m, const tn_marks_place *p, uint64_t begun, tn_marks_pair *out)
{
    tn_marks_joins *j = tn_marks_joins_of(m, p);
    uint64_t key = tn_marks_read(&p->key);
    uint32_t count = 0;
    if (!atomic_load_explicit(&j->count, memory_order_relaxed)) return 0;
    /* Asked with an allocator's lock held: rather nothing than to wait. */
    if (!tn_marks_try(&j->held)) return 0;
    uint32_t there = key && tn_marks_read(&p->key) == key ? atomic_load_explicit(&j->count, memory_order_relaxed) : 0;
    for (uint32_t i = 0; i < there; i++)
        if (j->pairs[i].since < begun) out[count++] = j->pairs[i];
    tn_marks_let_go(&j->held);
    return count;
}

/* The pair to put another one in: that of the same stream, a new one, one that is done, or the oldest. */
static tn_marks_pair *room_for(const tn_marks *m, tn_marks_joins *j, uint32_t stream)
{
    uint32_t count = atomic_load_explicit(&j->count, memory_order_relaxed);
    tn_marks_pair *oldest = &j->pairs[0];
    for (uint32_t i = 0; i < count; i++)
        if (j->pairs[i].stream == stream) return &j->pairs[i];
    if (count < TN_MARKS_PAIRS) {
        atomic_store_explicit(&j->count, count + 1, memory_order_relaxed);
        j->pairs[count] = (tn_marks_pair){.stream = stream};
        return &j->pairs[count];
    }
    for (uint32_t i = 0; i < count; i++) {
        if (tn_marks_is_covered(m, j->pairs[i].stream, j->pairs[i].upto)) oldest = &j->pairs[i];
        else if (j->pairs[i].upto < oldest->upto) oldest = &j->pairs[i];
    }
    *oldest = (tn_marks_pair){.stream = stream};
    return oldest;
}

/* The stream has joined: for a block that is given back in its order that is as good as work. For a plain one it is none as long as what the stream
 * waits for is of the same context, whose marks it has to wait for anyway. */
static void add_joins(tn_marks *m, tn_marks_place *p, uint32_t stream, const tn_marks_pair *pairs, uint32_t count, uint64_t stamp)
{
    tn_marks_joins *j = tn_marks_joins_of(m, p);
    tn_marks_hold(&j->held);
    if ((uint32_t)tn_marks_read(&p->key) == stream) {
        tn_marks_raise(&j->joined, stamp);
        atomic_fetch_or_explicit(&p->what, TN_MARKS_JOINED, memory_order_release);
    }
    for (uint32_t i = 0; (uint32_t)tn_marks_read(&p->key) == stream && i < count; i++) {
        if (pairs[i].stream == stream || tn_marks_is_covered(m, pairs[i].stream, pairs[i].upto)) continue;
        tn_marks_pair *to = room_for(m, j, pairs[i].stream);
        if (to->upto >= pairs[i].upto) continue;
        to->upto = pairs[i].upto;
        to->since = stamp;
    }
    tn_marks_let_go(&j->held);
}

/* ---- events */

static tn_marks_event *find_event(const tn_marks *m, uint64_t event)
{
    uint32_t at = tn_marks_hash(event) >> m->event_shift;
    for (uint32_t i = 0; event && i < TN_MARKS_WAYS; i++) {
        tn_marks_event *e = &m->events[(at + i) & m->event_mask];
        if (tn_marks_read(&e->key) == event) return e;
    }
    return NULL;
}

/* With its lock held, or NULL; the key is the event's as long as that is held. */
static tn_marks_event *hold_event(const tn_marks *m, uint64_t event)
{
    tn_marks_event *e = find_event(m, event);
    if (!e) return NULL;
    tn_marks_hold(&e->held);
    if (tn_marks_read(&e->key) == event) return e;
    tn_marks_let_go(&e->held);
    return NULL;
}

static void add_event(tn_marks *m, uint64_t event)
{
    uint32_t at = tn_marks_hash(event) >> m->event_shift;
    tn_marks_hold(&m->held);
    for (uint32_t i = 0; !find_event(m, event) && i < TN_MARKS_WAYS; i++) {
        tn_marks_event *e = &m->events[(at + i) & m->event_mask];
        if (tn_marks_read(&e->key)) continue;
        e->count = e->flying = 0; /* nobody holds what has no key, but to see that */
        atomic_store_explicit(&e->key, event, memory_order_release);
    }
    tn_marks_let_go(&m->held);
}

uint64_t tn_marks_event_begins(tn_marks *m, uint64_t event)
{
    tn_marks_event *e = hold_event(m, event);
    if (!e) {
        add_event(m, event);
        e = hold_event(m, event);
    }
    if (!e) { /* as long as it lasts, the event might get a place by another thread's record, which would not see this one */
        atomic_fetch_add(&m->astray, 1);
        return 0;
    }
    uint64_t answer = e->flying++ || atomic_load(&m->astray) ? UINT64_MAX : (uint64_t)e->version + 1;
    e->version++;
    e->count = 0;
    tn_marks_let_go(&e->held);
    return answer;
}

/* The record that `answer` was given to ends: the event with its lock held, or NULL. */
static tn_marks_event *land(tn_marks *m, uint64_t event, uint64_t answer)
{
    if (!answer) {
        atomic_fetch_sub(&m->astray, 1);
        return NULL;
    }
    tn_marks_event *e = hold_event(m, event);
    if (e && e->flying) e->flying--;
    return e;
}

void tn_marks_event_lost(tn_marks *m, uint64_t event, uint64_t answer)
{
    tn_marks_event *e = land(m, event, answer);
    if (e) tn_marks_let_go(&e->held);
}

void tn_marks_event_recorded(tn_marks *m, uint64_t event, uint64_t answer, uint32_t stream, uint64_t begun, uint64_t stamp)
{
    tn_marks_pair joined[TN_MARKS_PAIRS];
    const tn_marks_place *p = stream ? tn_marks_find(m, stream) : NULL;
    uint32_t count = p ? tn_marks_joins_before(m, p, begun, joined) : 0;
    tn_marks_touch(m, p, stamp);
    tn_marks_event *e = land(m, event, answer);
    if (!e) return;
    if (!e->flying && answer == e->version && begun && stream) {
        e->pairs[0] = (tn_marks_pair){.stream = stream, .upto = begun};
        memcpy(&e->pairs[1], joined, count * sizeof *joined);
        e->count = 1 + count;
        e->since = stamp;
    }
    tn_marks_let_go(&e->held);
}

void tn_marks_event_destroyed(tn_marks *m, uint64_t event)
{
    tn_marks_hold(&m->held);
    tn_marks_event *e = hold_event(m, event);
    if (e) {
        e->version++;
        e->count = 0;
        if (!e->flying) atomic_store_explicit(&e->key, 0, memory_order_release); /* else it would not be known to be recorded by two */
        tn_marks_let_go(&e->held);
    }
    tn_marks_let_go(&m->held);
}

void tn_marks_events_end(tn_marks *m) { atomic_store(&m->events_end, 1); }

/* What a wait or join that began at `begun` came after; returns how many were put into `out`, 0: it is not known. */
static uint32_t pairs_of(const tn_marks *m, uint64_t event, uint64_t begun, tn_marks_pair *out)
{
    uint32_t count = 0;
    tn_marks_event *e = hold_event(m, event);
    if (!e) return 0;
    if (e->count && e->since < begun && !atomic_load(&m->events_end)) {
        count = e->count;
        memcpy(out, e->pairs, count * sizeof *out);
    }
    tn_marks_let_go(&e->held);
    return count;
}

void tn_marks_waited_event(tn_marks *m, uint64_t event, uint64_t begun)
{
    tn_marks_pair pairs[1 + TN_MARKS_PAIRS];
    uint32_t count = pairs_of(m, event, begun, pairs);
    for (uint32_t i = 0; i < count; i++) tn_marks_cover(m, pairs[i].stream, pairs[i].upto);
}

static bool is_of_its_context(const tn_marks *m, const tn_marks_place *p, uint32_t stream)
{
    const tn_marks_place *other = tn_marks_find(m, stream);
    uint64_t key = other ? tn_marks_read(&other->key) : 0;
    uint32_t ctx = tn_marks_queue_context(key);
    return (uint32_t)key == stream && ctx && ctx == tn_marks_queue_context(tn_marks_read(&p->key));
}

void tn_marks_joined(tn_marks *m, uint32_t ctx, uint32_t stream, uint64_t event, uint64_t begun, uint64_t stamp)
{
    tn_marks_pair pairs[1 + TN_MARKS_PAIRS];
    uint32_t count = stream ? pairs_of(m, event, begun, pairs) : 0;
    /* What it waits for is done: it waits for nothing. The first pair is the event's own stream, and what that had joined is done before it. */
    if (count && tn_marks_is_covered(m, pairs[0].stream, pairs[0].upto)) {
        tn_marks_touch(m, tn_marks_find(m, stream), stamp);
        return;
    }
    tn_marks_place *p = stream ? tn_marks_place_of(m, ctx, stream, 0) : NULL;
    if (!p) {
        tn_marks_loosen(m, ctx, stamp);
        return;
    }
    /* A plain block that the other context's work uses is freed when this context's is done, and that is not before the other's. */
    if (!count || !is_of_its_context(m, p, pairs[0].stream)) tn_marks_work(m, ctx, stream, stamp);
    add_joins(m, p, stream, pairs, count, stamp);
    tn_marks_touch(m, p, stamp);
}
