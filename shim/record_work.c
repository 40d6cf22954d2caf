/* What enqueues work, what orders it and what waits for it: the events from which a planner knows when a freed block is
 * clean, and which write came first. */
#include <stdatomic.h>

#include "shim/identity.h"
#include "shim/map.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve_marks.h"
#include "shim/serve_short.h"
#include "shim/short.h"

/* Functions whose first launch was seen: a table that is read without a lock at every launch, and a map for what finds no place
 * there. */
#define LAUNCHED 8192u
#define PLACES 8u
static _Atomic uint64_t launched[LAUNCHED];
static tn_map launched_too = TN_MAP_INIT; /* (function, 0) */

/* Whether this call is the first with this function. */
static int is_first_launch(uint64_t function)
{
    uint64_t one = 1;
    unsigned at = (unsigned)((function >> 4) * 0x9e3779b97f4a7c15u >> 40);
    for (unsigned i = 0; i < PLACES; i++) {
        _Atomic uint64_t *place = &launched[(at + i) % LAUNCHED];
        uint64_t there = atomic_load_explicit(place, memory_order_relaxed);
        if (!there && atomic_compare_exchange_strong(place, &there, function)) return 1;
        if (there == function) return 0;
    }
    return tn_map_add(&launched_too, function, 0, &one) == 1;
}

static int is_short_row(int api)
{
    switch (api) {
#define TN_DRIVER(...)
#define TN_LAUNCH(variant, name, ...) case TN_API_##name:
#include "shim/api_driver_work.def"
#undef TN_DRIVER
        return 1;
    default:
        return 0;
    }
}

int rec_launch_part(tn_thread *t, tn_event *e)
{
    const uint32_t full = UINT32_MAX - TN_LAUNCH_PART;
    void *c;
    /* A context whose making passed us by would not have been asked for (keep_for_launches()). */
    if ((t->work.stream == CU_STREAM_LEGACY || t->work.stream == CU_STREAM_PER_THREAD) && tn_hot_page->get_current(&c) == 0 && c != t->known.handle) return 0;
    if (__atomic_load_n(tn_hot_page->attention, __ATOMIC_RELAXED) || (uint32_t)e->addr > full || e->addr >> 32 > full) return 0;
    e->aux = t->stamp = tn_stamp();
    return 1;
}

/* What shim/launch.h adds the next launch into the same stream to. */
static void keep_for_launches(tn_hook_frame *f, tn_event *e, void *stream, uint64_t generation, uint64_t tick)
{
    tn_thread *t = f->thread;
    if (f->nested) return;
    const void *key = tn_launch_stream(stream, f->ptds);
    int is_default = key == CU_STREAM_LEGACY || key == CU_STREAM_PER_THREAD;
    t->work.event = NULL;
    if (!tn_hot_page->get_current) return;
    if (stream == TN_STREAM_NONE || !e->stream || (is_default && (t->known.generation != generation || t->known.number != e->ctx))) return;
    t->work.stream = key;
    t->work.context = is_default && !tn_context_is_alone() ? t->known.handle : NULL; /* tn_stream_number() has just asked for it */
    t->work.generation = generation;
    t->work.tick = tick;
    t->work_is.ctx = e->ctx;
    t->work_is.number = e->stream;
    t->work_is.device = e->device;
    t->work_is.capturing = (uint8_t)e->aux2;
    t->work.event = e;
    if (f->api != e->api && !e->result && is_short_row(f->api)) e->result = f->api;
}

/* Calls of one thread into one stream with nothing between them are one event with a count and two times: a serving
 * engine launches 10^5 kernels a second, and the planner only asks whether the stream had work. */
static void work(tn_hook_frame *f, int r, int what, void *stream, int is_done)
{
    if (r != 0) return;
    uint64_t generation = atomic_load(&tn_hot_page->generation); /* before all that it stands for is asked */
    uint64_t tick = tn_serve_tick(), now = tn_stamp(), capturing = rec_captures() != 0;
    uint32_t number = tn_stream_number(f, stream);
    if (!is_done) tn_serve_work(f, number, stream, tick);
    else if (tick) tick = TN_UNMARKED;
    tn_event *last = f->nested || !f->thread->journal ? NULL : tn_journal_last(f->thread->journal);
    if (last && last->type == TN_EV_WORK && last->stream == number && last->aux2 == capturing) {
        last->aux = f->thread->stamp = now;
        last->bytes++;
        keep_for_launches(f, last, stream, generation, tick);
        return;
    }
    tn_context c = tn_context_current(f);
    tn_event *e = tn_event_new(f, now);
    if (!e) return;
    e->kind = (uint8_t)what;
    e->device = c.device;
    e->ctx = c.number;
    e->stream = number;
    e->bytes = 1;
    e->aux = now;
    e->aux2 = capturing; /* a capture was active somewhere: this may have been captured, not enqueued */
    tn_journal_commit(e, TN_EV_WORK);
    keep_for_launches(f, e, stream, generation, tick);
}

void rec_work(tn_hook_frame *f, int r, int what, void *stream) { work(f, r, what, stream, 0); }

void rec_launch_late(int api, int ptds, const void *caller, const void *frame, int r, const void *function, void *stream)
{
    tn_hook_frame f;
    if (r == 0 && rec_work_again(api, TN_WORK_KERNEL, tn_launch_stream(stream, ptds))) return;
    tn_enter(&f, api, ptds, caller, frame);
    f.window.warm = 1;
    if (f.on) rec_launch(&f, r, function, stream);
    tn_leave(&f);
}

void rec_launch(tn_hook_frame *f, int r, const void *function, void *stream)
{
    if (r != 0) {
        tn_note_failure(r); /* its call may have gone the short way */
        rec_launch_refused(f, function);
        return;
    }
    if (!f->nested && function && !f->window.warm && is_first_launch((uint64_t)function)) {
        uint32_t site = tn_frame_site(f);
        tn_context c = tn_context_current(f);
        tn_event *e = tn_event_new(f, tn_stamp());
        if (e) {
            e->device = c.device;
            e->ctx = c.number;
            e->site = site;
            e->addr = (uint64_t)function;
            tn_journal_commit(e, TN_EV_FIRST_LAUNCH);
        }
    }
    rec_work(f, r, TN_WORK_KERNEL, stream);
}

void rec_launch_each(tn_hook_frame *f, int r, const CUDA_LAUNCH_PARAMS *each, unsigned count)
{
    if (r != 0) {
        rec_launch_refused(f, each && count ? each->function : NULL);
        return;
    }
    f->window.warm = 0; /* it is the first one's */
    for (unsigned i = 0; each && i < count; i++) rec_launch(f, r, each[i].function, each[i].hStream);
}

/* What tn_short_is_written() then finds. */
static void keep_written(tn_thread *t, const tn_written *w)
{
    if (!w->bytes) return;
    for (unsigned i = TN_WRITTEN - 1; i; i--) t->written[i] = t->written[i - 1];
    t->written[0] = *w;
}

static void first_write(tn_hook_frame *f, uint64_t dst, uint64_t src, int write)
{
    tn_entry e;
    tn_written w = {0};
    if (f->nested || !dst || tn_short_is_written(f->thread, dst, 0, write)) return;
    if (write == TN_WRITE_AUTO) {
        tn_entry from;
        int device = (tn_ledger_find(TN_SPACE_ADDRESS, src, &from) && from.kind != TN_KIND_PINNED && from.kind != TN_KIND_REGISTERED) ||
                     tn_ledger_find(TN_SPACE_MAPPING, src, &from);
        write = device ? TN_WRITE_D2D : TN_WRITE_H2D;
    }
    int is_first = tn_ledger_mark_write_at(dst, (uint8_t)write, &e, &w);
    keep_written(f->thread, &w);
    if (!is_first) return;
    tn_event *v = tn_event_new(f, tn_stamp());
    if (!v) return;
    v->kind = (uint8_t)(write == TN_WRITE_H2D && (e.kind == TN_KIND_PINNED || e.kind == TN_KIND_REGISTERED) ? TN_WRITE_H2H : write);
    v->device = e.device;
    v->ctx = e.ctx;
    v->addr = e.addr;
    v->bytes = e.bytes;
    v->aux2 = e.site;
    tn_journal_commit(v, TN_EV_FIRST_WRITE);
}

/* A program that polls asks a million times a second, and each answer would be 64 bytes. The first wait stands by itself; the
 * same one again, with nothing of this thread between, goes into one event that keeps the last times and counts, for at most
 * POLL_TICKS: so a wait is journalled no later than that, and a poller writes a thousand events a second. */
#define POLL_TICKS 3000000u /* 1 ms at 3 GHz */

static int merged(tn_hook_frame *f, int what, uint32_t ctx, uint32_t stream, uint64_t event, uint64_t now, int *again)
{
    tn_event *last = f->nested || !f->thread->journal ? NULL : tn_journal_last(f->thread->journal);
    *again = last && last->type == TN_EV_WAIT && last->kind == what && last->ctx == ctx && last->stream == stream && last->addr == event;
    if (!*again || !last->bytes || now - last->aux2 > POLL_TICKS) return 0;
    last->tsc = f->thread->stamp = now; /* before aux: a wait that covers less than it could is still true */
    last->aux = f->begun;
    last->bytes++;
    return 1;
}

static void wait_event(tn_hook_frame *f, int what, uint32_t ctx, uint32_t stream, uint64_t event)
{
    int again;
    uint64_t now = tn_stamp();
    tn_serve_wait(f, what, ctx, stream, event);
    if (merged(f, what, ctx, stream, event, now, &again)) return;
    tn_event *e = tn_event_new(f, now);
    if (!e) return;
    e->bytes = (uint64_t)again;
    e->aux2 = again ? now : 0;
    e->kind = (uint8_t)what;
    e->ctx = ctx;
    e->stream = stream;
    e->addr = event;
    e->aux = f->begun;
    tn_journal_commit(e, TN_EV_WAIT);
}

/* Of an address that the ledger does not know: a module's variable is none of its blocks. */
static int is_device_pointer(uint64_t addr)
{
    unsigned type = 0;
    return tn_real.cuPointerGetAttribute && tn_real.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)addr) == 0 &&
           type != CU_MEMORYTYPE_HOST;
}

void rec_copy(tn_hook_frame *f, int r, uint64_t dst, uint64_t src, int write, void *stream, int sync)
{
    if (r != 0) return;
    first_write(f, dst, src, write);
    /* Only a copy that ends in host memory is certain to have waited for the stream's work, and to be done itself. */
    tn_entry e;
    int to_host = sync && write == TN_WRITE_D2H;
    if (sync && write == TN_WRITE_AUTO && !f->nested)
        to_host = tn_ledger_find(TN_SPACE_ADDRESS, dst, &e) ? e.kind == TN_KIND_PINNED || e.kind == TN_KIND_REGISTERED
                                                            : !tn_ledger_find(TN_SPACE_MAPPING, dst, &e) && !is_device_pointer(dst);
    work(f, r, write == TN_WRITE_MEMSET ? TN_WORK_MEMSET : TN_WORK_COPY, stream, to_host);
    if (to_host) wait_event(f, TN_WAIT_COPY, tn_context_current(f).number, tn_stream_number(f, stream), 0);
}

void rec_copy_struct(tn_hook_frame *f, int r, uint64_t dst, uint64_t src, int dst_type, int src_type, void *stream, int sync)
{
    int write = dst_type == CU_MEMORYTYPE_HOST      ? TN_WRITE_D2H
                : dst_type == CU_MEMORYTYPE_UNIFIED ? TN_WRITE_AUTO
                : src_type == CU_MEMORYTYPE_HOST    ? TN_WRITE_H2D
                : src_type == CU_MEMORYTYPE_UNIFIED ? TN_WRITE_AUTO
                                                    : TN_WRITE_D2D;
    rec_copy(f, r, dst, src, write, stream, sync);
}

void rec_copy_batch(tn_hook_frame *f, int r, const CUdeviceptr *dst, const CUdeviceptr *src, size_t count, void *stream)
{
    if (r != 0) return;
    for (size_t i = 0; dst && src && i < count; i++) first_write(f, dst[i], src[i], TN_WRITE_AUTO);
    rec_work(f, r, TN_WORK_COPY, stream);
}

void rec_stream(tn_hook_frame *f, int r, int what, void *stream, uint64_t flags, int priority)
{
    (void)what;
    if (r != 0) return;
    f->thread->told++;
    tn_stream_created(f, stream, flags, priority);
}

void rec_stream_destroy_begin(tn_hook_frame *f, void *stream)
{
    rec_begin(f);
    f->handle = stream;
    f->stream = f->nested ? 0 : tn_stream_gone(stream);
}

void rec_stream_destroy(tn_hook_frame *f, int r)
{
    if (r == 0) f->thread->told++;
    if (r == 0) tn_serve_stream_ended(f->stream);
    if (r != 0) tn_stream_back(f->handle, f->stream);
    else if (f->stream) rec_capture_gone(f->stream);
    tn_event *e = r == 0 && f->stream ? tn_event_new(f, f->begun) : NULL;
    if (!e) return;
    e->kind = TN_STREAM_DESTROY;
    e->stream = f->stream;
    e->addr = (uint64_t)f->handle;
    tn_journal_commit(e, TN_EV_STREAM);
}

void rec_event_begin(tn_hook_frame *f, const void *event, int external) { tn_serve_record_begin(f, event, external); }

void rec_join_begin(tn_hook_frame *f)
{
    if (TN_SERVES()) f->begun = tn_serve_begin();
}

void rec_event_made(tn_hook_frame *f, int r, const void *event)
{
    if (r == 0) tn_serve_event_fresh(f, event);
}

void rec_event_destroy_begin(tn_hook_frame *f, const void *event)
{
    rec_begin(f);
    tn_serve_event_fresh(f, event);
}

void rec_event_shared(const void *event) { tn_serve_event_shared(event); }

/* A launch may record an event when it begins or ends, in no order that a record of its stream would have. */
CUstream rec_config_stream(const CUlaunchConfig *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) tn_serve_event_shared(a->value.programmaticEvent.event);
        else if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT) tn_serve_event_shared(a->value.launchCompletionEvent.event);
    }
    return config->hStream;
}

static void serve_event(tn_hook_frame *f, int r, tn_event_type type, const void *event, uint32_t ctx, uint32_t number, void *stream)
{
    if (type == TN_EV_EVENT_RECORD) tn_serve_record_end(f, r, event, number, stream);
    else if (r == 0) tn_serve_join(f, ctx, number, stream, event);
}

static void event_of(tn_hook_frame *f, tn_event_type type, const void *event, uint32_t ctx, uint32_t stream)
{
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->ctx = ctx;
    e->stream = stream;
    e->addr = (uint64_t)event;
    e->aux2 = rec_captures() != 0; /* as for WORK: this may belong to a capture */
    tn_journal_commit(e, type);
}

void rec_event(tn_hook_frame *f, int r, tn_event_type type, const void *event, void *stream)
{
    uint32_t number = r == 0 ? tn_stream_number(f, stream) : 0;
    if (TN_SERVES()) serve_event(f, r, type, event, 0, number, stream);
    if (r == 0) event_of(f, type, event, 0, number);
}

void rec_ctx_event(tn_hook_frame *f, int r, tn_event_type type, const void *event, void *context)
{
    uint32_t number = r == 0 ? tn_context_of(f, context, (int)TN_DEVICE_NONE).number : 0;
    if (TN_SERVES()) serve_event(f, r, type, event, number, 0, TN_STREAM_NONE);
    if (r == 0) event_of(f, type, event, number, 0);
}

void rec_event_destroy(tn_hook_frame *f, int r, const void *event)
{
    tn_event *e = r == 0 ? tn_event_new(f, rec_stamp(f)) : NULL;
    if (!e) return;
    e->addr = (uint64_t)event;
    tn_journal_commit(e, TN_EV_EVENT_DESTROY);
}

void rec_wait(tn_hook_frame *f, int r, int what, void *context, uint64_t event)
{
    if (r != 0) return; /* not ready, or an error: nothing was waited for */
    uint32_t ctx = context ? tn_context_of(f, context, (int)TN_DEVICE_NONE).number : tn_context_current(f).number;
    wait_event(f, what, what == TN_WAIT_CONTEXT ? ctx : 0, 0, event);
}

void rec_wait_stream(tn_hook_frame *f, int r, int what, void *stream)
{
    if (r == 0) wait_event(f, what, 0, tn_stream_number(f, stream), 0);
}

void rec_wait_on(tn_hook_frame *f, int r, int what, void *stream, uint64_t event)
{
    if (stream == TN_STREAM_NONE) rec_wait(f, r, what, NULL, event);
    else rec_wait_stream(f, r, what, stream);
}
