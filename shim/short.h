/* The short ways of an asynchronous copy and of a wait for a stream or an event, as launch.h has a launch's and for the same reason: between
 * the program's own work a hook costs what it fetches. A copy goes its way where it only adds one to the WORK event that the call before has
 * made, or makes the next one behind a wait: same stream, same context, into a block whose first writer is known. A wait goes its own where it
 * is a call by itself, no reading of the device is due, and nobody has sent a command: it makes the same event as on the long one, from the
 * same two stamps. What has to be so is looked at before the real call, with nothing written, so that whoever does not fit takes the whole long
 * way; after it, only what another thread or a signal handler may have changed. A row's first calls, and all while managed memory lives, go
 * the long way, which opens the short one. Per thread; a signal handler may come between any two lines. */
#ifndef TENURE_SHIM_SHORT_H
#define TENURE_SHIM_SHORT_H

#include "shim/launch.h"
#include "shim/record.h"
#include "shim/serve_marks.h"
#include "shim/serve_reach.h"

/* Whether the thread's last work was that stream's, in the current context. `stream` as of tn_launch_stream(). */
static inline __attribute__((always_inline)) int tn_short_same_stream(const tn_thread *t, const tn_hot *hot, const void *stream)
{
    return TN_LIKELY(t->work.stream == stream) &&
           TN_LIKELY(t->work.generation == atomic_load_explicit(&hot->generation, memory_order_relaxed)) && TN_LIKELY(tn_launch_same_context(t, hot));
}

static inline __attribute__((always_inline)) int tn_short_is_closed(const tn_thread *t, const tn_hot *hot)
{
    return t->busy | (int)t->marks | atomic_load_explicit(&hot->long_way, memory_order_relaxed);
}

/* Whether a copy's `bytes` bytes go to a block whose first writer is known; inside an arena all of them into the same one. */
static inline __attribute__((always_inline)) int tn_short_is_written(const tn_thread *t, uint64_t dst, uint64_t bytes, int write)
{
    if (write == TN_WRITE_D2H) return 1;
    for (unsigned i = 0; i < TN_WRITTEN; i++)
        if (TN_LIKELY(tn_ledger_is_written(&t->written[i], dst)))
            return TN_LIKELY(bytes <= t->written[i].bytes - (dst - t->written[i].start)) || !tn_serve_may_own(dst);
    return 0;
}

/* Of a source that lies between arenas: whether it is in none, or a block that this thread has lately met. */
int rec_copy_reads(const tn_thread *t, uint64_t src, uint64_t bytes) __attribute__((hot));

/* ---- copies */

/* The real function where this copy may go the short way, else NULL. */
static inline __attribute__((always_inline)) void (*tn_copy_short(unsigned row, uint64_t dst, uint64_t src, uint64_t bytes, int write,
                                                                           const void *stream))(void)
{
    const tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    void (*real)(void) = atomic_load_explicit(&hot->copy[row], memory_order_relaxed);
    __builtin_prefetch(t->work.event, 1);
    return TN_LIKELY(real) && TN_LIKELY(t->hot) && TN_LIKELY(!tn_short_is_closed(t, hot)) && TN_LIKELY(tn_short_is_written(t, dst, bytes, write)) &&
                   ((__builtin_constant_p(src) && !src) || TN_LIKELY(!tn_serve_may_own(src)) || rec_copy_reads(t, src, bytes)) &&
                   TN_LIKELY(tn_short_same_stream(t, hot, stream))
               ? real : NULL;
}

/* Every TN_LAUNCH_PART calls, as rec_launch_part(); 0 also where a reading is due. */
int rec_copy_part(tn_thread *t, tn_event *e) __attribute__((hot));

/* After the real call: counts it, and adds it to the event where it has succeeded. 0: neither, since something came between. */
static inline __attribute__((always_inline)) int tn_copy_add(int api, int r, const void *stream)
{
    tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    int added = 0;
    if (!TN_LIKELY(!t->busy)) return 0;
    t->busy = 1; /* a handler's event may put the chunk away that the event is in */
    atomic_signal_fence(memory_order_seq_cst);
    tn_event *e = t->work.event;
    if (!TN_LIKELY(r == 0)) {
        tn_note_failure(r);
        added = 1;
    } else if (TN_LIKELY(e) && TN_LIKELY(t->work.stream == stream) &&
               TN_LIKELY(t->work.generation == atomic_load_explicit(&hot->generation, memory_order_relaxed)) && tn_launch_is_marked(t, hot) &&
               (TN_LIKELY(e->bytes % TN_LAUNCH_PART) || rec_copy_part(t, e))) {
        e->bytes++;
        added = 1;
    }
    if (TN_LIKELY(added)) t->counters[api]++;
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    return added;
}

/* A copy whose real call was made the short way and that needs more than that. */
void rec_copy_late(int api, int ptds, const void *caller, const void *frame, int r, uint64_t dst, uint64_t src, int write, void *stream);
/* A call of the row has gone the long way, as far as it is: later ones need not. */
void rec_copy_open(tn_hook_frame *f, unsigned row, void (*real)(void));

/* ---- look-ups of kernels */

/* Whether this kernel was looked up before in the current context, so that the call takes no memory and tells the journal nothing. */
static inline __attribute__((always_inline)) int tn_kernel_is_known(const void *kernel)
{
    const tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    void *context = NULL;
    if (!TN_LIKELY(t->hot) || !TN_LIKELY(!tn_short_is_closed(t, hot)) || !TN_LIKELY(hot->get_current != NULL)) return 0;
    if (!TN_LIKELY(hot->get_current(&context) == 0) || !TN_LIKELY(context != NULL)) return 0;
    uint64_t known = tn_known_kernel(kernel, context);
    return TN_LIKELY(atomic_load_explicit(&hot->known[tn_known_place(known)], memory_order_relaxed) == known);
}

/* After the real call: counts it. */
static inline __attribute__((always_inline)) void tn_kernel_add(int api, int r)
{
    tn_self.counters[api]++;
    if (!TN_LIKELY(r == 0)) tn_note_failure(r);
}

/* ---- waits */

/* The real function where this wait may go the short way, and when it begins, else NULL. */
static inline __attribute__((always_inline)) void (*tn_wait_short(unsigned row, uint64_t *begun))(void)
{
    const tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    void (*real)(void) = atomic_load_explicit(&hot->wait[row].real, memory_order_relaxed);
    if (!TN_LIKELY(real) || !TN_LIKELY(!tn_short_is_closed(t, hot)) || !TN_LIKELY(!t->outer.frame) || !TN_LIKELY(t->hot) ||
        !TN_LIKELY(__atomic_load_n(hot->attention, __ATOMIC_RELAXED) == 0))
        return NULL;
    *begun = tn_serve_begin();
    return TN_LIKELY(*begun < atomic_load_explicit(&hot->wait[row].due, memory_order_relaxed)) ? real : NULL;
}

/* After it: counts the call and, where it has waited, journals that. `stream` TN_STREAM_NONE: for `event`. */
void rec_wait_short(int api, int ptds, const void *caller, const void *frame, int r, int what, void *stream, uint64_t event, uint64_t begun) __attribute__((hot));
void rec_wait_open(tn_hook_frame *f, unsigned row, void (*real)(void));
/* For record_charge.c: when a row of class WAIT wants its next reading; of no other row. 0: at its next call. */
void rec_wait_due(int api, uint64_t stamp);
/* All of them, at their next calls. */
void rec_waits_due(void);

#endif
