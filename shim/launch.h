/* The short way of a launch. An eager decode step launches hundreds of kernels, each a microsecond or two of the program's own, and
 * nearly all of them only add one to the WORK event that the launch before has made: what that needs is on seven cache lines, where
 * a whole hook touches some twenty, and none of those is warm when the program comes back from its own work. A launch of a
 * function not launched lately, one under a capture, managed memory or a phase trigger, and whatever makes an event goes
 * the long way. Per thread; a signal handler may come between any two lines. */
#ifndef TENURE_SHIM_LAUNCH_H
#define TENURE_SHIM_LAUNCH_H

#include "shim/hook.h"
#include "shim/real.h"

/* A stream as tn_thread's `work` names it: a default one by its special handle. */
static inline const void *tn_launch_stream(const void *stream, int ptds)
{
    return stream ? stream : (const void *)(ptds ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}

/* Before the real call: whether the short way is open. It implies that this process records. */
static inline int tn_launch_is_short(const tn_thread *t, const void *function)
{
    const tn_hot *hot = t->hot;
    return __builtin_expect(hot && function && !t->busy && !t->marks, 1) &&
           atomic_load_explicit(tn_known_place(function), memory_order_relaxed) == (uint64_t)function &&
           !atomic_load_explicit(&hot->managed, memory_order_relaxed) && !__atomic_load_n(hot->attention, __ATOMIC_RELAXED);
}

/* A default stream is one per context (and thread): only then the context is asked for. */
static inline int tn_launch_same_context(const tn_thread *t)
{
    CUcontext c = NULL;
    int errno_in = *t->error;
    int same = tn_real.cuCtxGetCurrent && tn_real.cuCtxGetCurrent(&c) == 0 && c == t->work.context;
    *t->error = errno_in;
    return same;
}

/* After the real call has succeeded: adds it to the thread's last event where that is work of the same stream. 0: it is not. */
static inline int tn_launch_add(tn_thread *t, int api, const void *stream)
{
    t->busy = 1; /* a handler's event may put the chunk away that the event is in */
    atomic_signal_fence(memory_order_seq_cst);
    tn_event *e = t->work.event;
    int added = e && t->work.stream == stream &&
                t->work.generation == atomic_load_explicit(&t->hot->generation, memory_order_relaxed) &&
                e->aux2 == (atomic_load_explicit(&t->hot->captures, memory_order_relaxed) != 0) &&
                (!t->work.context || tn_launch_same_context(t));
    if (added) {
        e->aux = t->stamp = tn_stamp();
        e->bytes++;
        t->counters[api]++;
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    return added;
}

/* A launch whose real call was made the short way and that needs more than that: r is its result. */
void rec_launch_late(int api, int ptds, const void *caller, const void *frame, int r, const void *function, void *stream);

#endif
