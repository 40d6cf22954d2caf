/* The short way of a launch. An eager decode step launches hundreds of kernels with ten microseconds of the program's own work between
 * them, and nearly all only add one to the WORK event that the launch before has made. By then nothing of ours is in the first cache and
 * little in the second: a launch costs what it fetches, data and code (a whole hook 300 ns, by 20 lines of data; seen in PyTorch on an
 * H200's host). So the short way is straight and short code, at one place, and its data are five lines: two of shim/hot.h, where the
 * thread's own stand, those, and the event; no stamp, which is 22 ns there. A launch of a function not launched lately, one
 * while managed memory lives, and whatever makes an event goes the long way. Per thread; a signal handler may come between
 * any two lines. */
#ifndef TENURE_SHIM_LAUNCH_H
#define TENURE_SHIM_LAUNCH_H

#include "shim/cuda_abi.h"
#include "serve/marks.h"
#include "shim/hook.h"

#define TN_LAUNCH_PART 64u /* so many launches go by without a stamp, or a look at the word by which commands come: a page of its own */

/* A stream as tn_thread's `work` names it: a default one by its special handle. */
static inline const void *tn_launch_stream(const void *stream, int ptds)
{
    return stream ? stream : (const void *)(ptds ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY);
}

#define TN_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* tn_self; in a process that has bound the driver. */
static inline __attribute__((always_inline)) tn_thread *tn_launch_self(const tn_hot *hot) { return (tn_thread *)((char *)__builtin_thread_pointer() + hot->self); }

/* The real function where the short way is open, else NULL; NULL may also be a known function, which the driver refuses. Fetches what
 * tn_launch_add() will need while the driver is at work. */
static inline __attribute__((always_inline)) void (*tn_launch_short(unsigned row, const void *function))(void)
{
    const tn_hot *hot = tn_hot_page;
    if (!TN_LIKELY(atomic_load_explicit(&hot->known[tn_known_place((uint64_t)function)], memory_order_relaxed) == (uint64_t)function)) return NULL;
    __builtin_prefetch(tn_launch_self(hot)->work.event, 1);
    return hot->launch[row];
}

/* Every TN_LAUNCH_PART launches, before one more is added: stamps the event, and says whether it may be. */
int rec_launch_part(tn_thread *t, tn_event *e) __attribute__((hot));

/* A default stream is one for each context (and thread), so there the context is asked for, where the process has had more than one; not under
 * errno's protection, which a launch that has just been made may have changed itself. */
static inline __attribute__((always_inline)) int tn_launch_same_context(const tn_thread *t, const tn_hot *hot)
{
    void *c;
    return TN_LIKELY(!t->work.context) || (TN_LIKELY(hot->get_current(&c) == 0) && TN_LIKELY(c == t->work.context));
}

/* While a plan serves: tells the marks that the stream of the thread's last work has had more of it. 0: the long way has to. */
int rec_launch_mark(tn_thread *t) __attribute__((hot));
#define TN_UNMARKED 1u /* a tick that never is the present one */

/* Whether the marks know of work that has just been given to the stream of the thread's last: one word, which waits alone change. */
static inline __attribute__((always_inline)) int tn_launch_is_marked(tn_thread *t, const tn_hot *hot)
{
    return TN_LIKELY(!t->work.tick) || TN_LIKELY(t->work.tick == tn_marks_tick(&hot->tick)) || rec_launch_mark(t);
}

/* After the real call has succeeded: adds it to the thread's last event where that is work of the same stream. 0: it is not. The call is
 * counted in the event's `addr`, for two rows: the journal's counters would be a line and a page more. */
static inline __attribute__((always_inline)) int tn_launch_add(int api, const void *stream)
{
    const tn_hot *hot = tn_hot_page;
    tn_thread *t = tn_launch_self(hot);
    int added = 0;
    if (!TN_LIKELY(!(t->busy | (int)t->marks))) return 0;
    t->busy = 1; /* a handler's event may put the chunk away that the event is in */
    atomic_signal_fence(memory_order_seq_cst);
    tn_event *e = t->work.event;
    uint64_t differs = ((uint64_t)t->work.stream ^ (uint64_t)stream) | (t->work.generation ^ atomic_load_explicit(&hot->generation, memory_order_relaxed));
    if (TN_LIKELY(e) && TN_LIKELY(!differs) && TN_LIKELY(tn_launch_same_context(t, hot)) && tn_launch_is_marked(t, hot) &&
        (TN_LIKELY(e->bytes % TN_LAUNCH_PART) || rec_launch_part(t, e))) {
        uint64_t one = (e->api == api) | (uint64_t)(e->result == api) << 32;
        if (TN_LIKELY(one)) {
            e->bytes++;
            __asm__ volatile("" ::: "memory"); /* the compiler would add both at once, with a constant from yet another line */
            e->addr += one;
            added = 1;
        }
    }
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    return added;
}

/* The thread makes another event, or ends: what was added to its last one was launched before `stamp`. */
static inline void tn_launches_end(tn_thread *t, uint64_t stamp)
{
    tn_event *e = t->work.event;
    t->work.event = NULL;
    if (e && e->aux < stamp) e->aux = stamp;
}

/* After the first call behind a wait, or whatever else is no work, into the stream of the thread's last work: makes the event, which counts the
 * call as well. 0: something is not as it was. */
int rec_work_again(int api, int kind, const void *stream) __attribute__((hot));

/* A launch whose real call was made the short way and that needs more than that: r is its result. */
void rec_launch_late(int api, int ptds, const void *caller, const void *frame, int r, const void *function, void *stream) __attribute__((hot));

#endif
