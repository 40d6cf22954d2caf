/* The short way of a launch. An eager decode step launches hundreds of kernels with ten microseconds of the program's own work between
 * them, and nearly all only add one to the WORK event that the launch before has made. By then little of ours is in any cache, so
 * what a launch costs is the lines and pages that it touches: 290 ns where a whole hook touched twenty (seen in PyTorch on an
 * H200's host), and the short way touches five: the thread's first, the page of shim/hot.h twice, the event, and the offset of
 * the thread's. A launch of a function not launched lately, one while managed memory lives, and whatever makes an event goes
 * the long way. Per thread; a signal handler may come between any two lines. */
#ifndef TENURE_SHIM_LAUNCH_H
#define TENURE_SHIM_LAUNCH_H

#include "shim/cuda_abi.h"
#include "shim/hook.h"

#define TN_ATTENTION_EVERY 64u /* a command waits for so many launches at most: the word is on a page of its own */

/* A stream as tn_thread's `work` names it: a default one by its special handle. */
static inline const void *tn_launch_stream(const void *stream, int ptds)
{
    return stream ? stream : (const void *)(ptds ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}

/* Before the real call: whether the short way is open. It implies that this process records. */
static inline int tn_launch_is_short(const tn_thread *t, const void *function)
{
    const tn_hot *hot = t->hot;
    return __builtin_expect(hot && function && !t->busy && !t->marks &&
                            atomic_load_explicit(&hot->known[tn_known_place(function)], memory_order_relaxed) == (uint64_t)function &&
                            !atomic_load_explicit(&hot->managed, memory_order_relaxed), 1);
}

/* What counts the call in the event's `addr`, for two rows: the journal's counters would be a line and a page more. 0: it is neither's. */
static inline __attribute__((always_inline)) uint64_t tn_launch_one(tn_event *e, int api)
{
    if (e->api == api) return (uint32_t)e->addr != UINT32_MAX;
    if (!e->result) e->result = api;
    return e->result == api && e->addr >> 32 != UINT32_MAX ? (uint64_t)1 << 32 : 0;
}

/* After the real call has succeeded: adds it to the thread's last event where that is work of the same stream. 0: it is not. A default
 * stream is one for each context (and thread), so there the context is asked for; not under errno's protection, which a launch that has
 * just been made may have changed itself. */
static inline __attribute__((always_inline)) int tn_launch_add(tn_thread *t, int api, const void *stream)
{
    const tn_hot *hot = t->hot;
    void *c;
    t->busy = 1; /* a handler's event may put the chunk away that the event is in */
    atomic_signal_fence(memory_order_seq_cst);
    tn_event *e = t->work.event;
    uint64_t one = 0;
    if (__builtin_expect(e && t->work.stream == stream && t->work.generation == atomic_load_explicit(&hot->generation, memory_order_relaxed), 1) &&
        e->aux2 == (atomic_load_explicit(&hot->captures, memory_order_relaxed) != 0) &&
        (!t->work.context || (hot->get_current && hot->get_current(&c) == 0 && c == t->work.context)) &&
        (e->bytes % TN_ATTENTION_EVERY || !__atomic_load_n(hot->attention, __ATOMIC_RELAXED)) && (one = tn_launch_one(e, api)) != 0) {
        e->aux = t->stamp = tn_stamp();
        e->bytes++;
        e->addr += one;
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    return one != 0;
}

/* A launch whose real call was made the short way and that needs more than that: r is its result. */
void rec_launch_late(int api, int ptds, const void *caller, const void *frame, int r, const void *function, void *stream);

#endif
