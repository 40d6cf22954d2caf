/* What the short ways of short.h do out of line. */
#include "shim/short.h"

#include <stdatomic.h>

#include "shim/phase.h"
#define TN_PLANTS_OF_MARKS
#include "shim/plant.h"
#include "shim/record_charge.h"
#include "shim/serve_info.h"
#include "shim/serve_short.h"

/* Whether nothing that a frame would look at asks for one. */
static inline int is_bare(const tn_thread *t, const tn_hot *hot)
{
    return !tn_short_is_closed(t, hot) && !t->outer.frame && t->hot && __atomic_load_n(hot->attention, __ATOMIC_RELAXED) == 0;
}

/* A slot with what every event has that is made without a frame. */
static inline tn_event *bare_event(tn_thread *t, const tn_hot *hot, int api, int kind, uint64_t tsc)
{
    t->stamp = tsc;
    tn_event *e = tn_journal_slot(hot->journal, t->journal, 0);
    if (!e) return NULL;
    e->tsc = tsc;
    e->phase = tn_phase_now();
    e->api = (uint16_t)api;
    e->kind = (uint8_t)kind;
    return e;
}

int rec_launch_mark(tn_thread *t)
{
    tn_marks *m = tn_serve_marks();
    uint64_t tick = tn_serve_tick();
    if (!m || !tn_marks_knows(m, t->work_is.number)) return 0; /* whose it is, the long way asks */
    TN_PLANT_POINT(mark, t);
    tn_marks_work(m, 0, t->work_is.number, tick);
    t->work.tick = tick;
    return 1;
}

int rec_work_again(int api, int kind, const void *stream)
{
    tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    tn_event *e;
    uint64_t now = tn_stamp();
    if (!is_bare(t, hot) || tn_charge_tick_is_due(now)) return 0;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    int again = !t->work.event && tn_short_same_stream(t, hot, stream) && tn_launch_is_marked(t, hot) && (e = bare_event(t, hot, api, kind, now)) != NULL;
    if (again) {
        e->device = t->work_is.device;
        e->ctx = t->work_is.ctx;
        e->stream = t->work_is.number;
        e->addr = e->bytes = 1;
        e->aux = now;
        e->aux2 = t->work_is.capturing;
        tn_journal_commit(e, TN_EV_WORK);
        t->work.event = e;
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    return again;
}

/* ---- copies */

int rec_copy_part(tn_thread *t, tn_event *e) { return rec_launch_part(t, e) && !tn_charge_tick_is_due(t->stamp); }

void rec_copy_late(int api, int ptds, const void *caller, const void *frame, int r, uint64_t dst, uint64_t src, int write, void *stream)
{
    tn_hook_frame f;
    if (r == 0 && rec_work_again(api, write == TN_WRITE_MEMSET ? TN_WORK_MEMSET : TN_WORK_COPY, tn_launch_stream(stream, ptds))) return;
    tn_enter(&f, api, ptds, caller, frame);
    if (f.on) rec_copy(&f, r, dst, src, write, stream, 0);
    tn_leave(&f);
}

void rec_copy_open(tn_hook_frame *f, unsigned row, void (*real)(void))
{
    if (f->nested || atomic_load_explicit(&tn_hot_page->copy[row], memory_order_relaxed) || tn_charge_is_young(f->api)) return;
    atomic_store_explicit(&tn_hot_page->copy[row], real, memory_order_relaxed);
}

/* ---- waits */

static const uint8_t wait_row[TN_API_COUNT] = { /* 1 + the row's number */
#define TN_DRIVER(...)
#define TN_WAIT(variant, name, ...) [TN_API_##name] = 1 + TN_WAITS_##name,
#include "shim/api_driver_order.def"
#undef TN_DRIVER
};

void rec_wait_due(int api, uint64_t stamp)
{
    if (wait_row[api]) atomic_store(&tn_hot_page->wait[wait_row[api] - 1].due, stamp);
}

void rec_waits_due(void)
{
    for (unsigned i = 0; i < TN_WAITS_COUNT; i++) atomic_store(&tn_hot_page->wait[i].due, 0);
}

void rec_wait_open(tn_hook_frame *f, unsigned row, void (*real)(void))
{
    if (f->nested) return;
    /* Of a row that never has a reading nobody else says when. A launch may put one off to it, and then it passes here again. */
    if (!tn_charge_bits(f->api)) atomic_store(&tn_hot_page->wait[row].due, UINT64_MAX);
    atomic_store_explicit(&tn_hot_page->wait[row].real, real, memory_order_relaxed);
}

static __attribute__((noinline)) void wait_late(int api, int ptds, const void *caller, const void *frame, int what, void *stream,
                                                uint64_t event, uint64_t begun)
{
    tn_hook_frame f;
    tn_enter(&f, api, ptds, caller, frame);
    f.begun = begun;
    if (f.on) rec_wait_on(&f, 0, what, stream, event);
    tn_leave(&f);
}

/* The same wait again behind this one goes the long way, which counts it (record_work.c: merged()). */
void rec_wait_short(int api, int ptds, const void *caller, const void *frame, int r, int what, void *stream, uint64_t event, uint64_t begun)
{
    tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    if (r != 0) tn_note_failure(r);
    if (r != 0 && !t->busy) { /* not ready, or an error: nothing was waited for */
        t->counters[api]++;
        return;
    }
    uint64_t now = tn_stamp();
    int was = t->busy;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    const tn_event *last = was || t->work.event ? NULL : tn_journal_last(t->journal);
    if (was || (last && last->type == TN_EV_WAIT) ||
        (stream != TN_STREAM_NONE && !tn_short_same_stream(t, hot, tn_launch_stream(stream, ptds)))) {
        t->busy = was;
        wait_late(api, ptds, caller, frame, what, stream, event, begun);
        return;
    }
    t->counters[api]++;
    tn_launches_end(t, begun);
    if (TN_SERVES()) tn_serve_pools_wait();
    if (TN_SERVES() && stream != TN_STREAM_NONE) tn_marks_waited_stream(tn_serve_marks(), t->work_is.number, begun);
    else if (TN_SERVES()) tn_marks_waited_event(tn_serve_marks(), event, begun);
    tn_event *e = bare_event(t, hot, api, what, now);
    if (TN_LIKELY(e)) {
        e->device = (uint8_t)TN_DEVICE_NONE;
        e->stream = stream != TN_STREAM_NONE ? t->work_is.number : 0;
        e->addr = event;
        e->aux = begun;
        tn_journal_commit(e, TN_EV_WAIT);
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
}
