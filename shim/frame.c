/* The frame of a hooked call: depth, site, errno, marks. Every call passes twice, in the runtime's hook and in the driver's below it, and
 * comes back from the program's own work with none of our lines in the first cache: so what is needed stands close together (shim/hot.h,
 * tn_thread), and what is needed seldom is in functions of its own. */
#include <errno.h>
#include <stdatomic.h>

#include "shim/charge_reading.h"
#include "shim/hook.h"
#include "shim/phase.h"
#include "shim/real.h"
#include "shim/record_charge.h"
#include "shim/serve_marks.h"
#include "shim/serve_short.h"

static inline uintptr_t height(const void *frame) { return (uintptr_t)frame; }

/* What a row asks for once its hook has been entered. */
static inline __attribute__((always_inline)) void charge(tn_hook_frame *f, unsigned row)
{
    if (row & TN_ROW_MARKED) tn_charge_mark(f);
    if (__builtin_expect(row & TN_ROW_WINDOW, 0)) tn_charge_enter(f);
}

static __attribute__((noinline)) void attend(tn_hook_frame *f, unsigned row)
{
    tn_phase_attend(f);
    charge(f, row);
}

static inline void set_outer(tn_hook_frame *f, tn_thread *t, unsigned row, const void *caller, const void *stack)
{
    t->outer.frame = f;
    t->outer.caller = caller;
    t->outer.stack = stack;
    t->outer.site = t->outer.native = TN_SITE_NONE;
    t->outer.api = f->api;
    t->outer.level = row & TN_ROW_LEVEL;
}

/* Where another hook is around this one, or was left by a longjmp, or none is and yet calls are marked. */
static __attribute__((noinline)) void enter_below(tn_hook_frame *f, tn_thread *t, unsigned row, const void *caller, const void *stack)
{
    /* A driver hook that a runtime calls below a runtime hook takes that one's site. Any other hook is a call of its own: also one below
     * a driver hook (a callback or a signal handler), one above the outer hook's frame, which a longjmp has left, and one that the
     * program makes itself, deeper in the stack than a hook that a longjmp has left. */
    int inherits = (row & TN_ROW_LEVEL) == TN_LEVEL_DRIVER && t->outer.level == TN_LEVEL_RUNTIME && height(f) < height(t->outer.frame) &&
                   tn_cudart_holds(caller);
    if (!inherits) {
        f->around = t->outer;
        f->outer = TN_OUTER_BACK;
        set_outer(f, t, row, caller, stack);
    }
    f->busy_held = 1;
    t->busy = 1;
    /* No hook is around this one, and yet calls are marked: a longjmp has left them. */
    if (!inherits && (!f->around.frame || height(f) >= height(f->around.frame)))
        for (; t->marks; t->marks--) tn_moving_end(t->moving);
    if (tn_phase_wants_attention()) tn_phase_attend(f);
    charge(f, row);
}

/* Before the first call of the process or the thread, in a signal handler, and for rows that a test hides. */
static __attribute__((noinline)) void enter_seldom(tn_hook_frame *f, const void *caller, const void *stack)
{
    tn_thread *t = f->thread;
    if (!t->error) t->error = &errno;
    f->errno_in = *t->error;
    f->on = f->stamped = 0;
    if (!tn_hook_prepare(f, f->api)) return;
    unsigned row = atomic_load_explicit(&tn_hot_page->row[f->api], memory_order_relaxed);
    if (row & TN_ROW_HIDDEN) {
        f->window.hidden = 1;
        atomic_fetch_add(&tn_unrecorded_begun, 1);
        tn_moving_begin(t->moving);
        return;
    }
    f->on = 1;
    f->stamped = (row & TN_ROW_STAMPED) != 0;
    f->recorded = t->recorded;
    if (t->counters) t->counters[f->api]++;
    if (f->nested) charge(f, row);
    else enter_below(f, t, row, caller, stack);
}

/* Whether this is the driver's hook below a runtime's, as half of all calls are. The first runtime's alone: for others enter_below() looks. */
static inline int is_below_runtime(const tn_hook_frame *f, const tn_thread *t, const tn_hot *hot, unsigned row, const void *caller)
{
    return (row & TN_ROW_LEVEL) == TN_LEVEL_DRIVER && t->outer.level == TN_LEVEL_RUNTIME && height(f) < height(t->outer.frame) &&
           (uint64_t)caller - atomic_load_explicit(&hot->runtime, memory_order_relaxed) <
               atomic_load_explicit(&hot->runtime_bytes, memory_order_relaxed);
}

/* Every way out of the common one is a call in last place, so that nothing is saved and restored for it. */
void tn_enter(tn_hook_frame *f, int api, int ptds, const void *caller, const void *stack)
{
    tn_thread *t = &tn_self;
    const tn_hot *hot = t->hot;
    f->thread = t;
    f->begun = 0;
    f->freed_addr = 0;
    f->handle = NULL;
    f->api = (uint16_t)api;
    f->ptds = (uint8_t)ptds;
    f->nested = f->busy_held = f->freed_known = f->outer = f->charged = 0;
    f->route = 0;
    f->window.kind = f->window.marked = f->window.making = f->window.hidden = f->window.warm = 0;
    if (__builtin_expect(!hot || t->busy || !atomic_load_explicit(&hot->own, memory_order_relaxed), 0)) return enter_seldom(f, caller, stack);
    unsigned row = atomic_load_explicit(&hot->row[api], memory_order_relaxed);
    if (__builtin_expect(row & TN_ROW_HIDDEN, 0)) return enter_seldom(f, caller, stack);
    f->errno_in = *t->error;
    f->on = 1;
    f->stamped = (row & TN_ROW_STAMPED) != 0;
    f->recorded = t->recorded;
    t->counters[api]++;
    if (!is_below_runtime(f, t, hot, row, caller)) {
        if (__builtin_expect(t->outer.frame != NULL || t->marks != 0, 0)) return enter_below(f, t, row, caller, stack);
        f->outer = TN_OUTER_EMPTY;
        set_outer(f, t, row, caller, stack);
    }
    f->busy_held = 1;
    t->busy = 1;
    if (__builtin_expect(__atomic_load_n(hot->attention, __ATOMIC_RELAXED) != 0, 0)) return attend(f, row);
    charge(f, row);
}

void tn_call(tn_hook_frame *f)
{
    if (f->stamped) f->begun = tn_serve_begin();
    if (f->busy_held) f->thread->busy = 0;
    *f->thread->error = f->errno_in;
}

void tn_returned(tn_hook_frame *f)
{
    f->errno_in = *f->thread->error;
    if (f->busy_held) f->thread->busy = 1;
}

/* The codes that stay with a context: those of CUresult, which cudaError_t has taken over. */
void tn_note_failure(int r)
{
    switch (r) {
    case 214: /* an uncorrectable memory error */
    case 220: /* one of NVLink's */
    case 226: /* an error that the device has contained */
    case 700: /* an illegal address */
    case 702: /* a launch took too long */
    case 710: /* an assertion in a kernel */
    case 714: /* its stack */
    case 715: /* an illegal instruction */
    case 716: /* a misaligned address */
    case 717: /* the wrong address space */
    case 718: /* an invalid program counter */
    case 719: /* anything else in a kernel */
    case 721: /* tensor memory that a kernel has kept */
    case 911: /* of a device that is not CUDA's */
        atomic_store_explicit(&tn_hot_page->faults, 1, memory_order_relaxed);
        break;
    default:
        break;
    }
}

static inline void leave(tn_hook_frame *f)
{
    tn_thread *t = f->thread;
    if (f->busy_held) {
        t->busy = 0;
        if (f->outer == TN_OUTER_EMPTY) {
            t->outer.frame = NULL;
            t->outer.level = 0;
        } else if (__builtin_expect(f->outer == TN_OUTER_BACK, 0)) {
            t->outer = f->around;
        }
    }
    *t->error = f->errno_in;
}

static __attribute__((noinline)) void leave_with_reading(tn_hook_frame *f)
{
    if (f->window.hidden) {
        tn_moving_end(f->thread->moving);
        atomic_fetch_add(&tn_unrecorded_ended, 1);
    }
    if (f->window.kind) tn_charge_window_end(f);
    tn_charge_unmark(f);
    if (f->on && f->charged && tn_charge_tick_is_due(f->thread->stamp)) tn_charge_tick(f);
    leave(f);
}

void tn_leave(tn_hook_frame *f)
{
    if (__builtin_expect(f->window.kind | f->window.hidden, 0)) return leave_with_reading(f);
    if (f->charged) {
        if (__builtin_expect(tn_charge_tick_is_due(f->thread->stamp), 0)) return leave_with_reading(f);
        tn_charge_unmark(f);
    }
    leave(f);
}
