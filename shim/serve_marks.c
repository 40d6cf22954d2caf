/* What the marks are told by the hooks, and how contexts are waited for. */
#include "shim/serve_marks.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/tn_hot_data.h"
#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/map.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_info.h"

#define CONTEXTS 1024u  /* at once; one beyond cannot be waited for */
#define NEAR 8u         /* places that are looked at for one */
#define STREAMS 65536u  /* by number; of one beyond it is not known whether it blocks, so it does */

TN_HOT_DATA tn_marks *tn_serving_marks;

static _Atomic uint64_t nonblocking[STREAMS / 64];
static tn_map shared = TN_MAP_INIT; /* (event, 0) */
static _Atomic uint32_t shared_count;
static _Atomic int events_end;

/* ---- waiting for contexts */

typedef struct context {
    _Atomic uint32_t number; /* 0: nobody's. Whose it is, until that has ended and another comes */
    void *_Atomic handle; /* NULL: not known, ending or gone */
    _Atomic int waits;    /* of ours, under way */
    _Atomic int ending;
    _Atomic int used;     /* had work: to wait for one that had none might make it */
    _Atomic uint32_t green; /* 1 + its device */
} context;
static context contexts[CONTEXTS];
static _Atomic uint32_t context_end; /* places beyond were never anybody's */
static _Atomic int unknown; /* a context found no place: to wait for all of them cannot be done */

/* By the remainder of its number, or shortly behind that; NULL. */
static context *find(uint32_t number)
{
    for (uint32_t i = 0; number && i < NEAR; i++)
        if (atomic_load(&contexts[(number + i) % CONTEXTS].number) == number) return &contexts[(number + i) % CONTEXTS];
    return NULL;
}

static void rest(void) { syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL); /* libc's is a cancellation point */ }

static CUresult synchronize(void *context)
{
    CUcontext current = NULL, popped;
    if (!tn_real.cuCtxGetCurrent || !tn_real.cuCtxSynchronize || tn_real.cuCtxGetCurrent(&current) != 0) return CUDA_ERROR_NOT_INITIALIZED;
    if (current == context) return tn_real.cuCtxSynchronize();
    if (!tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2) return CUDA_ERROR_NOT_INITIALIZED;
    CUresult r = tn_real.cuCtxPushCurrent_v2(context);
    if (r != 0) return r;
    r = tn_real.cuCtxSynchronize();
    (void)tn_real.cuCtxPopCurrent_v2(&popped);
    return r;
}

static tn_mem_error wait_for_one(context *c)
{
    /* A green context may be gone without our having seen its end; its device's primary context waits for it too. */
    uint32_t green = c ? atomic_load(&c->green) : 0;
    if (green) c = find(tn_context_number(tn_context_primary((int)green - 1)));
    if (!c) return TN_MEM_E_NO_CONTEXT;
    atomic_fetch_add(&c->waits, 1);
    void *handle = atomic_load(&c->handle);
    CUresult r = handle ? synchronize(handle) : CUDA_ERROR_INVALID_CONTEXT;
    atomic_fetch_sub(&c->waits, 1);
    return !handle ? TN_MEM_E_NO_CONTEXT : r == 0 ? TN_MEM_OK : TN_MEM_E_DRIVER;
}

static tn_mem_error wait_for_all(void)
{
    if (atomic_load(&unknown)) return TN_MEM_E_NO_CONTEXT;
    uint32_t end = atomic_load(&context_end);
    for (context *c = contexts; c < contexts + end; c++) {
        if (!atomic_load(&c->number) || atomic_load(&c->green) || !atomic_load(&c->used)) continue;
        if (!atomic_load(&c->handle)) {
            if (atomic_load(&c->ending)) return TN_MEM_E_NO_CONTEXT; /* or not: its end may be refused */
            continue;
        }
        tn_mem_error error = wait_for_one(c);
        if (error != TN_MEM_OK) return error;
    }
    return TN_MEM_OK;
}

/* Any wait for a context ends every capture, whoever makes it (seen on an H200). */
static tn_mem_error wait_for(void *self, uint32_t number)
{
    (void)self;
    if (!tn_capture_gate_wait()) return TN_MEM_E_CAPTURING;
    tn_mem_error error = number == 0 ? wait_for_all() : wait_for_one(find(number));
    tn_capture_gate_waited();
    return error;
}

void tn_serve_marks_context_known(uint32_t number, void *handle)
{
    for (uint32_t i = 0; i < NEAR; i++) {
        context *c = &contexts[(number + i) % CONTEXTS];
        uint32_t nobody = 0;
        if (!atomic_compare_exchange_strong(&c->number, &nobody, number)) continue;
        uint32_t end = atomic_load(&context_end), at = (uint32_t)(c - contexts);
        while (end <= at && !atomic_compare_exchange_weak(&context_end, &end, at + 1)) {
        }
        atomic_store(&c->handle, handle);
        return;
    }
    atomic_store(&unknown, 1);
}

void tn_serve_marks_context_green(uint32_t number, uint8_t device)
{
    context *c = find(number);
    if (c) atomic_store(&c->green, 1u + device);
}

void tn_serve_marks_context_ends(uint32_t number)
{
    context *c = find(number);
    if (!c) return;
    atomic_store(&c->ending, 1);
    atomic_store(&c->handle, NULL);
    while (atomic_load(&c->waits)) rest();
}

void tn_serve_marks_context_stays(uint32_t number, void *handle)
{
    context *c = find(number);
    if (!c) return;
    atomic_store(&c->handle, handle);
    atomic_store(&c->ending, 0);
}

void tn_serve_marks_context_ended(uint32_t number)
{
    context *c = find(number);
    if (c) { /* who counts a wait here still finds no handle, or the next one's, which it may wait for as well */
        atomic_store(&c->handle, NULL);
        atomic_store(&c->ending, 0);
        atomic_store(&c->used, 0);
        atomic_store(&c->green, 0);
        atomic_store(&c->number, 0);
    }
    if (number && TN_SERVES()) tn_marks_context_ended(tn_serve_marks(), number);
}

/* ---- streams */

void tn_serve_stream_made(uint32_t number, uint64_t flags)
{
    if (number < STREAMS && (flags & CU_STREAM_NON_BLOCKING)) atomic_fetch_or(&nonblocking[number / 64], (uint64_t)1 << number % 64);
}

void tn_serve_stream_ended(uint32_t number)
{
    if (number && TN_SERVES()) tn_marks_stream_ended(tn_serve_marks(), number);
}

/* Its own context, which need not be the current one, and whether it blocks: once a stream, before the marks are told of it. Returns the
 * context's number, where it was needed. */
static uint32_t announce(tn_hook_frame *f, tn_marks *m, uint32_t number, void *stream)
{
    uint32_t ctx = 0;
    unsigned what = 0;
    if (!number || tn_marks_knows(m, number)) return 0;
    if (stream == CU_STREAM_PER_THREAD || (!stream && f->ptds)) {
        ctx = tn_context_current(f).number;
    } else if (!stream || stream == CU_STREAM_LEGACY) {
        ctx = tn_context_current(f).number;
        what = TN_MARKS_LEGACY;
    } else {
        CUcontext c = NULL;
        if (tn_real.cuStreamGetCtx && tn_real.cuStreamGetCtx(stream, &c) == 0) ctx = tn_context_number(c);
        if (number < STREAMS && (atomic_load(&nonblocking[number / 64]) >> number % 64 & 1)) what = TN_MARKS_NONBLOCKING;
    }
    context *at_work = find(ctx ? ctx : tn_context_current(f).number);
    if (at_work) atomic_store(&at_work->used, 1);
    tn_marks_stream(m, ctx, number, what);
    return ctx;
}

tn_work_mark tn_serve_stream_mark(tn_hook_frame *f, void *stream)
{
    tn_marks *m = tn_serve_marks();
    uint32_t number = tn_stream_number(f, stream);
    announce(f, m, number, stream);
    return tn_marks_of_stream(m, number);
}

/* ---- what is told */

void tn_serve_tell_work(tn_hook_frame *f, uint32_t number, void *stream, uint64_t stamp)
{
    tn_marks *m = tn_serve_marks();
    uint32_t ctx = announce(f, m, number, stream);
    tn_marks_work(m, ctx, number, stamp);
}

void tn_serve_tell_wait(tn_hook_frame *f, int what, uint32_t ctx, uint32_t number, uint64_t event)
{
    tn_marks *m = tn_serve_marks();
    if (f->nested || !f->begun) return;
    tn_serve_pools_wait();
    switch (what) {
    case TN_WAIT_CONTEXT:
    case TN_WAIT_FREE:
        if (ctx) tn_marks_waited_context(m, ctx, f->begun);
        break;
    case TN_WAIT_EVENT:
    case TN_WAIT_EVENT_QUERY:
        tn_marks_waited_event(m, event, f->begun);
        break;
    case TN_WAIT_STREAM:
    case TN_WAIT_STREAM_QUERY:
    case TN_WAIT_COPY:
        if (number) tn_marks_waited_stream(m, number, f->begun);
        break;
    default:
        break;
    }
}

/* ---- events */

/* f->handle: NULL where nothing was told, else the answer and this. */
#define TOLD 2u

void tn_serve_record_begin(tn_hook_frame *f, const void *event, int external)
{
    if (!TN_SERVES()) return;
    if (f->nested) { /* it may have come while this thread held what the marks must hold */
        tn_serve_events_end();
        return;
    }
    if (external) tn_serve_event_shared(event); /* a node of a graph, which records it at each launch, where the stream is captured */
    f->begun = tn_serve_begin();
    f->handle = (void *)(uintptr_t)(tn_marks_event_begins(tn_serve_marks(), (uint64_t)event) + TOLD);
    f->freed_space = rec_captures() != 0;
}

/* Whether the call that has just returned was captured, and not done. Only a stream that the program made, or a thread's own, can be. */
static int is_captured(const tn_hook_frame *f, void *stream)
{
    if (!rec_captures() || stream == TN_STREAM_NONE || stream == CU_STREAM_LEGACY || (!stream && !f->ptds)) return 0;
    return rec_is_capturing(stream ? stream : CU_STREAM_PER_THREAD);
}

static int is_shared(const void *event) { return atomic_load(&shared_count) && tn_map_get(&shared, (uint64_t)event, 0, NULL); }

void tn_serve_record_end(tn_hook_frame *f, int r, const void *event, uint32_t number, void *stream)
{
    if (!f->handle || f->nested) return;
    tn_marks *m = tn_serve_marks();
    uint64_t answer = (uint64_t)(uintptr_t)f->handle - TOLD;
    if (r == 0 && number) announce(f, m, number, stream);
    int captured = rec_captures() ? is_captured(f, stream) : f->freed_space;
    if (r != 0 || !number || captured || is_shared(event)) tn_marks_event_lost(m, (uint64_t)event, answer);
    else tn_marks_event_recorded(m, (uint64_t)event, answer, number, f->begun, tn_serve_tick());
}

void tn_serve_join(tn_hook_frame *f, uint32_t ctx, uint32_t number, void *stream, const void *event)
{
    if (!TN_SERVES()) return;
    tn_marks *m = tn_serve_marks();
    uint64_t stamp = tn_serve_tick();
    if (!f->nested && is_captured(f, stream)) return;
    if (number) ctx = announce(f, m, number, stream);
    if (f->nested || !f->begun) tn_marks_work(m, ctx, number, stamp); /* as late as can be */
    else tn_marks_joined(m, ctx, number, (uint64_t)event, f->begun, stamp);
}

void tn_serve_event_fresh(tn_hook_frame *f, const void *event)
{
    if (!event) return;
    if (f->nested) {
        if (TN_SERVES()) tn_serve_events_end();
        return;
    }
    if (is_shared(event) && tn_map_remove(&shared, (uint64_t)event, 0, NULL)) atomic_fetch_sub(&shared_count, 1);
    if (TN_SERVES()) tn_marks_event_destroyed(tn_serve_marks(), (uint64_t)event);
}

void tn_serve_event_shared(const void *event)
{
    uint64_t one = 1;
    if (!event) return;
    atomic_fetch_add(&shared_count, 1); /* first: who sees none does not look */
    int added = tn_map_add(&shared, (uint64_t)event, 0, &one);
    if (added == 0) atomic_fetch_sub(&shared_count, 1);
    if (added < 0) tn_serve_events_end();
    if (TN_SERVES()) tn_marks_event_destroyed(tn_serve_marks(), (uint64_t)event);
}

void tn_serve_events_end(void)
{
    atomic_store(&events_end, 1);
    if (TN_SERVES()) tn_marks_events_end(tn_serve_marks());
}

/* ---- start */

static uint64_t stamp_now(void) { return tn_stamp(); }

int tn_serve_marks_start(void)
{
    tn_marks *m;
    tn_marks_options o = {.now = stamp_now, .wait = wait_for, .tick = &tn_hot_page->tick, .metadata = &tn_serve_metadata, .zeroed = true};
    if (tn_serve_marks()) return 0;
    if (tn_marks_create(&o, &m) != TN_MEM_OK) return -1;
    __atomic_store_n(&tn_serving_marks, m, __ATOMIC_RELEASE);
    if (atomic_load(&events_end)) tn_marks_events_end(m); /* after: it may end meanwhile */
    return 0;
}
