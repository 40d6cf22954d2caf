/* The hooks' side of the marks, and how a context is waited for. */
#include "shim/serve_marks.h"

#include "ledger/tn_hot_data.h"
#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/launch.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"

#define CONTEXTS 64u

TN_HOT_DATA tn_marks *tn_serving_marks;
static struct { _Atomic uint32_t number; void *_Atomic handle; } contexts[CONTEXTS]; /* that have had a stream */

static uint64_t now(void) { return tn_stamp(); }

static void remember(uint32_t number, void *handle)
{
    for (unsigned i = 0; number && handle && i < CONTEXTS; i++) {
        uint32_t there = 0;
        if (!atomic_compare_exchange_strong(&contexts[i].number, &there, number)) {
            if (there == number) return;
            continue;
        }
        atomic_store(&contexts[i].handle, handle);
        return;
    }
}

/* Of one context, made current for it if it is not; what waits natively does it in the context of its memory too. */
static tn_mem_error wait_one(uint32_t number, void *handle)
{
    CUcontext current = NULL, back;
    uint64_t begun = tn_stamp();
    if (!handle || !tn_real.cuCtxSynchronize || !tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&current) != 0) return TN_MEM_E_NO_CONTEXT;
    if (current != handle && (!tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2 || tn_real.cuCtxPushCurrent_v2(handle) != 0))
        return TN_MEM_E_NO_CONTEXT;
    CUresult r = tn_real.cuCtxSynchronize();
    if (current != handle) (void)tn_real.cuCtxPopCurrent_v2(&back);
    if (r != 0) return TN_MEM_E_DRIVER;
    tn_marks_waited_context(tn_serving_marks, number, begun);
    return TN_MEM_OK;
}

/* Never while a capture is active anywhere: a context's wait would end it. */
static tn_mem_error wait_for(void *self, uint32_t ctx)
{
    tn_mem_error error = TN_MEM_OK;
    (void)self;
    if (!tn_capture_gate_wait()) return TN_MEM_E_CAPTURING;
    for (unsigned i = 0; i < CONTEXTS && error == TN_MEM_OK; i++) {
        uint32_t number = atomic_load(&contexts[i].number);
        void *handle = atomic_load(&contexts[i].handle);
        if (number && handle && (!ctx || number == ctx)) error = wait_one(number, handle);
    }
    tn_capture_gate_waited();
    return error;
}

int tn_serve_marks_start(void)
{
    tn_marks_options o = {.now = now, .wait = wait_for, .metadata = &tn_serve_metadata, .zeroed = true};
    tn_known_close();
    return tn_marks_create(&o, &tn_serving_marks) == TN_MEM_OK ? 0 : -1;
}

/* A stream gets its number. One that was not seen to be made may belong to another context than the current one. */
void tn_serve_told_stream(tn_hook_frame *f, int kind, uint32_t number, uint32_t ctx, void *handle, uint64_t flags)
{
    CUcontext of = NULL;
    if (kind == TN_STREAM_SEEN) ctx = tn_real.cuStreamGetCtx && tn_real.cuStreamGetCtx(handle, &of) == 0 ? tn_context_of(f, of, (int)TN_DEVICE_NONE).number : 0;
    else if (!tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&of) != 0) of = NULL;
    remember(ctx, of);
    unsigned what = kind == TN_STREAM_LEGACY ? TN_MARKS_LEGACY : kind == TN_STREAM_CREATE && flags & CU_STREAM_NON_BLOCKING ? TN_MARKS_NONBLOCKING : 0;
    tn_marks_stream(tn_serving_marks, ctx, number, what);
}

void tn_serve_told_work(tn_hook_frame *f, uint32_t stream, uint64_t stamp)
{
    tn_marks_work(tn_serving_marks, stream ? 0 : tn_context_current(f).number, stream, stamp);
}

void tn_serve_told_wait(tn_hook_frame *f, int what, uint32_t ctx, uint32_t stream, uint64_t event)
{
    if (!f->begun) return;
    if (what == TN_WAIT_CONTEXT || what == TN_WAIT_FREE) {
        if (ctx) tn_marks_waited_context(tn_serving_marks, ctx, f->begun);
    } else if (what == TN_WAIT_EVENT || what == TN_WAIT_EVENT_QUERY) {
        tn_marks_waited_event(tn_serving_marks, event, f->begun);
    } else if (stream) {
        tn_marks_waited_stream(tn_serving_marks, stream, f->begun);
    }
}

void tn_serve_event_begins(tn_hook_frame *f, uint64_t event)
{
    f->begun = tn_stamp();
    if (!f->nested) f->handle = (void *)(uintptr_t)tn_marks_event_begins(tn_serving_marks, event);
}

void tn_serve_event_recorded(tn_hook_frame *f, int r, uint64_t event, uint32_t stream, int captured)
{
    uint64_t answer = (uint64_t)(uintptr_t)f->handle;
    if (f->nested) tn_marks_events_end(tn_serving_marks); /* what was begun under it has no answer of ours */
    else if (r != 0 || captured || !stream) tn_marks_event_lost(tn_serving_marks, event, answer);
    else tn_marks_event_recorded(tn_serving_marks, event, answer, stream, f->begun, tn_stamp());
}

void tn_serve_told_join(tn_hook_frame *f, uint32_t ctx, uint32_t stream, uint64_t event)
{
    uint64_t stamp = tn_stamp();
    tn_marks_joined(tn_serving_marks, ctx, stream, event, f->begun ? f->begun : stamp, stamp);
}
