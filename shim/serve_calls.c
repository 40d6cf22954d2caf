/* Allocations and frees by a plan. */
#include "shim/serve_calls.h"

#include <string.h>

#include "shim/phase.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_checks.h"
#include "shim/serve_graphs.h"
#include "shim/serve_info.h"
#include "shim/serve_marks.h"
#include "shim/serve_barrier.h"
#include "shim/serve_pending.h"
#include "shim/serve_short.h"

enum { DRIVER = 0, SERVED, REFUSED }; /* what becomes of a request */

static void begin(tn_hook_frame *f)
{
    f->thread->busy = 1;
    tn_serve_frame(f);
}

static void end(tn_hook_frame *f)
{
    tn_serve_frame(NULL);
    *f->thread->error = f->errno_in; /* what is ours leaves no trace in errno */
    f->thread->busy = 0;
}

/* The contexts of streams that this thread was lately served in: a number is never another stream's. */
static __thread struct { uint32_t number, ctx; } known[4] __attribute__((tls_model("initial-exec")));

int tn_serve_is_of_context(uint32_t number, uint32_t ctx) { return known[number % 4].number == number && known[number % 4].ctx == ctx; }

/* The arenas of a context. They are acquired in it, also where the stream of another one than the current has asked. */
static tn_place *place_for(tn_hook_frame *f, tn_context c, const tn_serve_section *s, void *stream, int *misfit)
{
    CUcontext of = NULL, popped;
    *misfit = 0;
    if (c.number == tn_context_current(f).number) return tn_serve_place(f, c, s, misfit);
    if (!tn_real.cuStreamGetCtx || !tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2) return NULL;
    if (tn_real.cuStreamGetCtx(stream, &of) != 0 || tn_real.cuCtxPushCurrent_v2(of) != 0) return NULL;
    tn_place *place = tn_serve_place(f, c, s, misfit);
    (void)tn_real.cuCtxPopCurrent_v2(&popped);
    return place;
}

static CUstreamCaptureStatus capture_of(const tn_hook_frame *f, void *stream)
{
    CUstreamCaptureStatus s = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!rec_captures() || stream == TN_STREAM_NONE || stream == CU_STREAM_LEGACY || (!stream && !f->ptds)) return s;
    if (!tn_real.cuStreamIsCapturing || tn_real.cuStreamIsCapturing(stream ? stream : CU_STREAM_PER_THREAD, &s) != 0) return CU_STREAM_CAPTURE_STATUS_NONE;
    return s;
}

/* Also one whose capture is lost, and has not been ended yet: there too the call is the capture's. */
static int is_capturing(const tn_hook_frame *f, void *stream) { return capture_of(f, stream) != CU_STREAM_CAPTURE_STATUS_NONE; }

/* While a capture is active a stream-ordered call on another stream is refused, and ends the capture, where the capture's mode says so: the free
 * of nothing on that stream is asked, which does and is answered the same (seen on an H200). 0: the call would be taken, or the driver is to say. */
static CUresult refused_by_a_capture(tn_hook_frame *f, CUstream stream)
{
    if (!rec_captures() || !tn_real.cuMemFreeAsync || is_capturing(f, stream)) return CUDA_SUCCESS;
    if (!stream) stream = f->ptds ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    return tn_real.cuMemFreeAsync(0, stream);
}

CUresult tn_serve_lost(void)
{
    size_t free_bytes, total;
    return tn_fault_is_seen() && tn_real.cuMemGetInfo_v2 ? tn_real.cuMemGetInfo_v2(&free_bytes, &total) : CUDA_SUCCESS;
}

static int not_here(tn_hook_frame *f, uint32_t route)
{
    f->route = (uint16_t)route;
    return DRIVER;
}

static int spilled(tn_hook_frame *f, unsigned cause)
{
    f->route = (uint16_t)(cause << TN_ROUTE_CAUSE_SHIFT);
    return tn_serve_is_strict() && cause != TN_ROUTE_CAPTURE ? REFUSED : DRIVER;
}

_Static_assert((int)TN_PLACE_T5B == (int)TN_ROUTE_T5B && (int)TN_PLACE_NOT_CLEAN == (int)TN_ROUTE_NOT_CLEAN, "one set of numbers");

static int ask_plan(tn_hook_frame *f, tn_family family, uint32_t flags, size_t bytes, void *stream, void **out)
{
    tn_context c = stream == TN_STREAM_NONE ? tn_context_current(f) : tn_context_of_stream(f, stream);
    const tn_serve_section *s = c.number ? tn_serve_section_of(c.device) : NULL;
    if (!s || tn_serve_is_stopped() || is_capturing(f, stream) || tn_serve_lost() != 0) return DRIVER;
    uint32_t site = tn_frame_site(f), index = tn_serve_row(s, site);
    if (index == TN_SERVE_NO_ROW) return not_here(f, TN_ROUTE_UNPLANNED);
    const tn_plan_row *row = &s->plan->rows[index];
    if (row->discipline == TN_D_NATIVE || row->discipline == TN_D_T5A) return not_here(f, TN_ROUTE_PLANNED_NATIVE);
    if (row->family != family || (family == TN_FAMILY_PINNED && row->detail != flags)) return not_here(f, TN_ROUTE_UNPLANNED);
    if (family == TN_FAMILY_ASYNC && tn_serve_pool_is_own(c.device)) return not_here(f, TN_ROUTE_UNPLANNED);
    if (rec_captures() && family != TN_FAMILY_ASYNC) return spilled(f, TN_ROUTE_CAPTURE);
    uint32_t number = stream == TN_STREAM_NONE ? 0 : tn_stream_number(f, stream);
    int misfit;
    tn_place *place = place_for(f, c, s, stream, &misfit);
    if (!place && tn_serve_is_stopped()) return DRIVER;
    if (!place) return misfit && !tn_serve_misfit_is_native() ? REFUSED : spilled(f, rec_captures() ? TN_ROUTE_CAPTURE : TN_ROUTE_NO_ROOM);
    tn_place_answer answer;
    uint64_t asked = tn_serve_asked(s, bytes);
    tn_place_take(place, index, asked, number, tn_phase_now(), !rec_captures(), &answer);
    if (!answer.address) return spilled(f, answer.spill);
    if (family == TN_FAMILY_ASYNC) tn_serve_pooled(c.device, bytes, TN_POOLED_TAKEN);
    f->route = (uint16_t)(answer.tier | (answer.waits ? TN_ROUTE_WAITED : 0));
    if (__builtin_expect(tn_serve_checks, 0)) tn_serve_check_taken(f, c, row, asked, answer.address, bytes, stream);
    if (number) {
        known[number % 4].number = number;
        known[number % 4].ctx = c.number;
    }
    *out = answer.address;
    return SERVED;
}

/* Not inside a signal handler that came into a hook: there nothing of ours may be touched, and the driver serves. */
static int allocate(tn_hook_frame *f, tn_family family, uint32_t flags, size_t bytes, void *stream, void **out)
{
    begin(f);
    int became = ask_plan(f, family, flags, bytes, stream, out);
    if (became == DRIVER && !is_capturing(f, stream) && tn_guard_refuses(f, bytes)) became = REFUSED;
    end(f);
    return became;
}

CUresult tn_serve_cuMemAlloc_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, size_t), CUdeviceptr *out, size_t bytes)
{
    void *address;
    if (f->nested || !out || !bytes) return call(out, bytes);
    int became = allocate(f, TN_FAMILY_DEVICE, 0, bytes, TN_STREAM_NONE, &address);
    if (became == DRIVER) return call(out, bytes);
    *out = became == SERVED ? (CUdeviceptr)(uintptr_t)address : 0;
    return became == SERVED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult tn_serve_cuMemAllocAsync(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *out, size_t bytes, CUstream stream)
{
    void *address;
    if (f->nested || !out || !bytes) return call(out, bytes, stream);
    CUresult refused = refused_by_a_capture(f, stream);
    if (refused != 0) {
        *out = 0;
        return refused;
    }
    int became = allocate(f, TN_FAMILY_ASYNC, 0, bytes, stream, &address);
    if (became == DRIVER) return call(out, bytes, stream);
    *out = became == SERVED ? (CUdeviceptr)(uintptr_t)address : 0;
    return became == SERVED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Pinned memory comes zeroed from the driver, as far as anybody has seen; so does ours. */
static CUresult pinned(int became, void *address, void **out, size_t bytes)
{
    *out = became == SERVED ? memset(address, 0, bytes) : NULL;
    return became == SERVED ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult tn_serve_cuMemHostAlloc(tn_hook_frame *f, CUresult (*call)(void **, size_t, unsigned), void **out, size_t bytes, unsigned flags)
{
    void *address;
    if (f->nested || !out || !bytes || flags >= TN_PLACE_PINNED_SETS) return call(out, bytes, flags);
    int became = allocate(f, TN_FAMILY_PINNED, flags, bytes, TN_STREAM_NONE, &address);
    return became == DRIVER ? call(out, bytes, flags) : pinned(became, address, out, bytes);
}

CUresult tn_serve_cuMemAllocHost_v2(tn_hook_frame *f, CUresult (*call)(void **, size_t), void **out, size_t bytes)
{
    void *address;
    if (f->nested || !out || !bytes) return call(out, bytes);
    int became = allocate(f, TN_FAMILY_PINNED, 0, bytes, TN_STREAM_NONE, &address);
    return became == DRIVER ? call(out, bytes) : pinned(became, address, out, bytes);
}

/* ---- frees */

/* After the driver has gone, at the process's end, every call has its answer and no other. */
static int driver_is_there(void)
{
    CUcontext c;
    return tn_real.cuCtxGetCurrent && tn_real.cuCtxGetCurrent(&c) == 0;
}

static CUresult give(tn_hook_frame *f, void *address, void *stream)
{
    tn_place *place = tn_serve_place_of(f->freed.ctx);
    const tn_serve_section *s = tn_serve_section_of(f->freed.device);
    uint32_t row = s ? tn_serve_row(s, f->freed.site) : TN_SERVE_NO_ROW;
    tn_work_set uncovered = {0};
    tn_work_mark passed = {0};
    if (!place || row == TN_SERVE_NO_ROW) return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_expect(tn_serve_checks, 0)) tn_serve_check_given(f, &s->plan->rows[row], tn_serve_asked(s, f->freed.bytes), stream);
    if (stream == TN_STREAM_NONE) {
        /* As the driver's free waits, by what is plain or pinned; one that cannot be made is not worth a failed free. */
        if (tn_serve_frees_wait() && f->freed.kind != TN_KIND_ASYNC && !rec_captures()) {
            tn_work all = tn_marks_work_table(tn_serving_marks, f->freed.kind == TN_KIND_PINNED ? 0 : f->freed.ctx);
            (void)(all.table->wait(all.self, all.table->all(all.self)) == TN_MEM_OK);
        }
        tn_marks_uncovered(tn_serving_marks, f->freed.kind == TN_KIND_PINNED || tn_serve_has_peers() ? 0 : f->freed.ctx, &uncovered);
    } else {
        tn_work work = tn_marks_work_table(tn_serving_marks, f->freed.ctx);
        passed = tn_serve_stream_mark(f, stream);
        tn_work_set_add(&uncovered, &work, passed);
    }
    if (f->freed.kind == TN_KIND_ASYNC) tn_serve_pooled(f->freed.device, f->freed.bytes, stream != TN_STREAM_NONE ? TN_POOLED_FREED : TN_POOLED_FREED_PLAINLY);
    tn_serve_kept block = {.place = place, .address = address, .uncovered = uncovered, .row = row, .stream = f->freed.stream};
    if (!tn_serve_keep(&block) && tn_place_give(place, row, address, f->freed.stream, &uncovered) != TN_MEM_OK) return CUDA_ERROR_INVALID_VALUE;
    if (stream != TN_STREAM_NONE) {
        if (f->freed.kind == TN_KIND_DEVICE) tn_serve_pending_add(f, &f->freed, stream, tn_marks_alone(tn_serving_marks, passed));
        tn_serve_barrier(f, stream);
    }
    return CUDA_SUCCESS;
}

enum { LOST = 2 };

/* The hook has taken the block out of the ledger before this, and puts it back where the answer is not 0. LOST: freed, as far as the program can
 * tell. 1 with the answer in *r: the address is ours to free, or to refuse. While a capture is active the callers free nothing by the driver
 * first, which it refuses, ending the capture, where it would refuse the free of a block. */
static int free_by_plan(tn_hook_frame *f, void *address, int wants_pinned, CUresult *r)
{
    if (f->nested) { /* the handler came into a hook: the block stays where it is, lost to its tier */
        *r = CUDA_SUCCESS;
        return tn_serve_owns((uint64_t)(uintptr_t)address) ? LOST : 0;
    }
    begin(f);
    int ours = f->freed_known && tn_is_served(&f->freed), inside = !ours && tn_serve_owns((uint64_t)(uintptr_t)address);
    int there = ours || inside ? driver_is_there() : 0;
    *r = CUDA_ERROR_INVALID_VALUE;
    if (ours && there && (f->freed.kind == TN_KIND_PINNED) == wants_pinned) *r = tn_serve_lost();
    end(f);
    return there;
}

CUresult tn_serve_cuMemFree_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr), CUdeviceptr address)
{
    CUresult r;
    int ours = address ? free_by_plan(f, (void *)(uintptr_t)address, 0, &r) : 0;
    if (!ours) return call(address);
    if (ours == LOST) return r;
    CUresult refused = rec_captures() ? call(0) : CUDA_SUCCESS;
    if (refused != 0 || r != 0) return refused != 0 ? refused : r;
    begin(f);
    r = give(f, (void *)(uintptr_t)address, TN_STREAM_NONE);
    end(f);
    return r;
}

CUresult tn_serve_cuMemFreeHost(tn_hook_frame *f, CUresult (*call)(void *), void *address)
{
    CUresult r;
    int ours = address ? free_by_plan(f, address, 1, &r) : 0;
    if (!ours) return call(address);
    if (ours == LOST) return r;
    CUresult refused = rec_captures() ? call(NULL) : CUDA_SUCCESS;
    if (refused != 0 || r != 0) return refused != 0 ? refused : r;
    begin(f);
    r = give(f, address, TN_STREAM_NONE);
    end(f);
    return r;
}

CUresult tn_serve_cuMemFreeAsync(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, CUstream), CUdeviceptr address, CUstream stream)
{
    CUresult r;
    int ours = address ? free_by_plan(f, (void *)(uintptr_t)address, 0, &r) : 0;
    if (!ours) return call(address, stream);
    if (ours == LOST) return r;
    CUresult refused = refused_by_a_capture(f, stream);
    if (refused != 0 || r != 0) return refused != 0 ? refused : r;
    begin(f);
    CUstreamCaptureStatus capture = capture_of(f, stream); /* the driver's answers to the free of a block from before it (tests/gpu, tests/generator) */
    r = capture == CU_STREAM_CAPTURE_STATUS_NONE       ? give(f, (void *)(uintptr_t)address, stream)
        : capture == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CUDA_ERROR_INVALID_VALUE
                                                     : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    end(f);
    return r;
}
