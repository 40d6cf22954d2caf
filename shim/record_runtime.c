/* What the runtime's own rows record: what no driver row beneath them has. Nearly always one has; not where the runtime calls the driver past
 * us, in libtenure_wrap.a without the libraries and under a tool that takes the driver's place (Nsight Compute gives the runtime functions of
 * its own, whatever the driver's resolver had answered). What a driver row has recorded of this very call its thread's counters say
 * (`recorded`, `told`): that holds for each copy of the runtime and each call by itself, whatever other copies do. What we remember of a
 * handle must end with it, above all where the driver is asked by it (charge_reading.c): it faults on some that have ended. */
#include <stdatomic.h>
#include <stdio.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/record_memory.h"
#include "shim/serve.h"
#include "shim/serve_marks.h"

/* Bit k: calls of copy k were seen that reached the driver past us; the highest one: of a runtime that is no copy we know. */
static _Atomic uint32_t out_of_sight;

static void say_out_of_sight(const tn_runtime_functions *rt)
{
#ifndef TENURE_WRAP /* there the journal says itself that it is a linked program's */
    char text[480];
    snprintf(text, sizeof text, "%.300s calls the driver past the hooks, as under a tool in the driver's place: of its calls only memory is "
             "recorded, no work and no waits", rt ? ((const tn_cudart *)(const void *)rt)->path : "a CUDA runtime");
    tn_coverage(TN_COV_BYPASS, text);
#else
    (void)rt;
#endif
}

/* This call has reached the driver, and no driver row has seen it. */
static void past_us(tn_hook_frame *f)
{
    const tn_runtime_functions *rt = tn_cudart_of(f->thread->outer.caller);
    uint32_t bit = rt ? 1u << ((const tn_cudart *)(const void *)rt - tn_cudarts) : 1u << 31;
    if (!tn_real.cuCtxGetCurrent) tn_driver_bind(NULL, NULL);
    if (atomic_load_explicit(&out_of_sight, memory_order_relaxed) & bit || f->nested) return;
    if (!(atomic_fetch_or(&out_of_sight, bit) & bit)) say_out_of_sight(rt);
    if (tn_serving) tn_serve_stop();
}

/* Whether refusals may have gone past us as well. */
static int is_alone(void)
{
#ifdef TENURE_WRAP
    if (!tn_record_level()) return 1;
#endif
    return atomic_load_explicit(&out_of_sight, memory_order_relaxed) != 0;
}

/* Whether this runtime call ended without a driver row's record, and a refusal of it is ours to record. A runtime refuses
 * invalid values mostly by itself; every other error it has from the driver. */
static int unrecorded(const tn_hook_frame *f, int r)
{
    return f->thread->recorded == f->recorded && (r == 0 || (r != cudaErrorInvalidValue && is_alone()));
}

static tn_context runtime_context(tn_hook_frame *f)
{
    if (!tn_real.cuCtxGetCurrent) tn_driver_bind(NULL, NULL); /* nothing has asked a resolver of ours yet */
    tn_context c = tn_context_current(f);
    const tn_runtime_functions *rt = c.number ? NULL : tn_cudart_of(f->thread->outer.caller);
    int device;
    if (rt && rt->cudaGetDevice && rt->cudaGetDevice(&device) == 0) c.device = (uint8_t)device;
    return c;
}

/* ---- memory */

void rt_alloc_on(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra, void *stream)
{
    CUdeviceptr base;
    size_t size;
    if (!unrecorded(f, r) || (r == 0 && !addr)) return;
    if (r == 0) past_us(f);
    tn_context c = runtime_context(f);
    if (r == 0 && tn_record_is_captured(f, stream)) kind = TN_KIND_GRAPH; /* the begin of the capture may not have been seen */
    if (r == 0 && kind == TN_KIND_IMPORTED && !bytes && tn_real.cuMemGetAddressRange_v2 && tn_real.cuMemGetAddressRange_v2(&base, &size, addr) == 0)
        bytes = size;
    tn_record_alloc(f, r, kind, addr, bytes, extra, c, stream);
}

void rt_alloc(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra)
{
    rt_alloc_on(f, r, kind, addr, bytes, extra, TN_STREAM_NONE);
}

void rt_free_begin(tn_hook_frame *f, const void *real, tn_space space, uint64_t addr)
{
    /* Below a function that has come past a driver row that row stamps, 12 ns saved; no runtime frees in two ways. */
    f->handle = (void *)(uintptr_t)real;
    if (f->thread->frees[f->api % 4] != real) f->begun = tn_serve_begin();
    f->freed_addr = addr;
    f->freed_space = (uint8_t)space;
    (void)tn_frame_site(f);
}

void rt_free_end(tn_hook_frame *f, int r, void *stream)
{
    if (f->thread->recorded != f->recorded) {
        if (!f->nested) f->thread->frees[f->api % 4] = f->handle;
        return;
    }
    /* A bad address is the driver's to refuse, unlike a bad size. */
    if (f->nested || !f->freed_addr || !unrecorded(f, r == cudaErrorInvalidValue ? cudaErrorUnknown : r)) return;
    if (!f->begun) f->begun = tn_serve_begin();
    /* The driver row that takes a block out before the real call did not run, so this is after it: an entry
     * younger than the call is another thread's new block at the same address and stays. */
    f->freed_known = (uint8_t)tn_ledger_remove((tn_space)f->freed_space, f->freed_addr, &f->freed);
    if (f->freed_known && (r != 0 || f->freed.tsc > f->begun)) {
        tn_ledger_insert((tn_space)f->freed_space, &f->freed, NULL);
        f->freed_known = r != 0;
    }
    if (r == 0 && f->freed_known && f->freed.kind == TN_KIND_MANAGED) rec_charge_managed(-1);
    tn_record_free(f, r, stream);
}

/* ---- handles */

void rt_begin(tn_hook_frame *f)
{
    (void)tn_frame_site(f);
    f->told = f->thread->told;
}

/* Whether what this call began or ended is ours to tell. */
static int untold(tn_hook_frame *f, int r)
{
    if (r != 0 || f->nested || f->thread->told != f->told) return 0;
    past_us(f);
    return 1;
}

void rt_graph_free(tn_hook_frame *f, int r, void *graph, uint64_t addr)
{
    if (untold(f, r)) rec_graph_free(f, r, graph, addr);
}

void rt_pool_made(tn_hook_frame *f, int r, uint64_t pool, int imported, int device)
{
    if (untold(f, r)) rec_pool(f, r, TN_POOL_CREATE, pool, (uint64_t)imported, (uint64_t)(unsigned)device);
}

/* Before every real call, since nobody can know whether a driver row will come: where one does it finds the pool ended already. */
void rt_pool_end_begin(tn_hook_frame *f, uint64_t pool)
{
    rt_begin(f);
    rec_pool_end_begin(f, pool);
}

void rt_pool_end(tn_hook_frame *f, int r, uint64_t pool)
{
    if (r != 0 || untold(f, r)) rec_pool(f, r, TN_POOL_DESTROY, pool, 0, 0);
}

void rt_stream(tn_hook_frame *f, int r, void *stream, uint64_t flags, int priority)
{
    if (untold(f, r)) rec_stream(f, r, TN_STREAM_CREATE, stream, flags, priority);
}

void rt_stream_destroy_begin(tn_hook_frame *f, void *stream)
{
    rt_begin(f);
    rec_begin(f);
    f->handle = stream;
}

/* After the real call: no making was seen either, so another thread that has been given the handle meanwhile has no number of it yet. */
void rt_stream_destroy(tn_hook_frame *f, int r)
{
    if (!untold(f, r)) return;
    f->stream = tn_stream_gone(f->handle);
    rec_stream_destroy(f, r);
}

void rt_capture_end(tn_hook_frame *f, int r, void *stream, void *graph)
{
    if (!f->nested && f->thread->told == f->told && rec_captures()) rec_capture_end(f, r, stream, graph);
}

/* A reset ends the primary context of the thread's device. The reading's is taken away before it where driver rows are known to be passed by;
 * where one comes after all, the only loss is its reading. */
void rt_reset_begin(tn_hook_frame *f)
{
    CUcontext now = NULL;
    rt_begin(f);
    rec_begin(f);
    if (f->nested || !tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&now) != 0) return;
    f->handle = now;
    if (!is_alone()) return;
    uint8_t device = runtime_context(f).device;
    void *primary = tn_context_primary(device);
    if (!primary && (!now || tn_context_is_made(now))) primary = tn_reading_context_of(device);
    if (primary) f->handle = primary;
    f->window.device = device;
    if (f->handle && !tn_context_is_made(f->handle)) tn_reading_context_ends(f->handle);
}

void rt_reset_end(tn_hook_frame *f, int r)
{
    if (!f->handle || f->nested || tn_context_is_made(f->handle)) return;
    if (untold(f, r)) {
        tn_reading_context_ends(f->handle);
        rec_ctx_reset(f, f->handle);
    } else if (r != 0 && is_alone()) {
        tn_reading_context(f->window.device, f->handle);
    }
}
