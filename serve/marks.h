/* What a device may still be doing, as far as the calls tell: work that was enqueued into streams, and what has been waited for since. From
 * it an allocator knows when a freed block is clean (tiers/work_mark.h). The owner creates it once a process and never destroys it while
 * threads call; any thread may call any function at any time (a signal handler that interrupted one only with stream 0). None allocates or
 * calls the driver but `wait`; nothing that is asked blocks.
 *
 * Streams and contexts are the numbers that the journal gives them, never given twice; per-thread default streams are streams of their own.
 * Times are stamps of one clock that all threads share. What covers is a wait, and between two of them nobody asks for the order of work: so the
 * stamp of work is one word that all threads read and only waits, records and joins move (`tick`). Each of them begins with
 * tn_marks_begin(), before its call; work is told after its call has returned, with the tick of then. A wait that began at b covers the work of
 * its streams whose stamp is < b: whoever read a smaller tick had returned before b was there to read. Work of one thread into one stream
 * under one tick need be told once. What finds no place is covered later than it could be, never earlier. */
#ifndef TENURE_SERVE_MARKS_H
#define TENURE_SERVE_MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tiers/metadata.h"
#include "tiers/work_mark.h"

typedef struct tn_marks tn_marks;

typedef struct tn_marks_options {
    size_t streams;  /* that have had work and have not ended; what those beyond do is covered by context waits alone. 0: 4096 */
    size_t events;   /* recorded and not destroyed; a wait for one beyond covers nothing. 0: 16384 */
    uint64_t (*now)(void);                                  /* the stamp, never 0 */
    /* Waits until all that context `ctx` (0: every context) was given before the call is done. Called with nothing of ours held. NULL: the
     * marks cannot be waited for. */
    tn_mem_error (*wait)(void *self, uint32_t ctx);
    void *self;
    _Atomic uint64_t *tick;      /* where the stamp of work is kept; NULL: in the marks */
    const tn_metadata *metadata; /* NULL: malloc; not used after create, but by destroy */
    bool zeroed;                 /* what `metadata` gives is all zero already: the parts that nobody needs stay untouched */
} tn_marks_options;

/* ARGUMENT: no `now`, or more streams or events than 2^20. HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_marks_create(const tn_marks_options *options, tn_marks **out);
void tn_marks_destroy(tn_marks **m);

/* ---- told by the hooks */

/* Before a call that waits, records an event or joins one, at `now`: its stamp, not smaller than `now`. Work whose call returns later is stamped no earlier. */
uint64_t tn_marks_begin(tn_marks *m, uint64_t now);
/* The stamp of work whose call has returned. */
static inline uint64_t tn_marks_tick(const _Atomic uint64_t *tick)
{
#if !defined(__x86_64__)
    /* Not read before what the call did is there for others. On x86-64 the call's last stores may still be under way, but a fence would be most of
     * what a launch may cost: a driver's queues are behind locks, and who waits takes the same lock, and sees all that was done under it. */
    atomic_thread_fence(memory_order_seq_cst);
#endif
    return atomic_load_explicit(tick, memory_order_acquire);
}

enum { TN_MARKS_LEGACY = 1, TN_MARKS_NONBLOCKING = 2 };

/* Whether the stream has its place. If not, say what it is before it is told of: its own context, not the calling thread's (0: not known,
 * then only a wait for it or for every context covers it), and whether it is the context's legacy default stream, which waits for all the
 * others, or one that does not wait for that. Unsaid, it does. */
bool tn_marks_knows(const tn_marks *m, uint32_t stream) __attribute__((hot));
void tn_marks_stream(tn_marks *m, uint32_t ctx, uint32_t stream, unsigned what);

/* Whether what is enqueued into the stream orders the work of others: it is a context's legacy default stream, and other streams wait for that. */
bool tn_marks_is_barrier(const tn_marks *m, uint32_t stream) __attribute__((hot));

/* A call that enqueued work into `stream` has returned; `stamp` was read after it. Stream 0: into one that is not known, of `ctx`. */
void tn_marks_work(tn_marks *m, uint32_t ctx, uint32_t stream, uint64_t stamp);
/* A successful wait for a stream, or for all streams of a context (0: of every context), that began at `begun`. */
void tn_marks_waited_stream(tn_marks *m, uint32_t stream, uint64_t begun);
void tn_marks_waited_context(tn_marks *m, uint32_t ctx, uint64_t begun);

/* An event (by its handle) is recorded in `stream`. `begins` is told before the call, and from then on a wait for the event covers nothing; its
 * answer goes to the one of the other two that follows the call: `recorded`, with the stamps of before and after it, or `lost` where it
 * failed, was captured and not done, or is of more than a stream. A wait covers what its event's stream had been given when it was recorded,
 * by a call that had returned when the wait began; where two record at once, nothing. */
uint64_t tn_marks_event_begins(tn_marks *m, uint64_t event);
void tn_marks_event_recorded(tn_marks *m, uint64_t event, uint64_t answer, uint32_t stream, uint64_t begun, uint64_t stamp);
void tn_marks_event_lost(tn_marks *m, uint64_t event, uint64_t answer);
void tn_marks_waited_event(tn_marks *m, uint64_t event, uint64_t begun);
/* Before the call that destroys it: an event that is made under the same handle has not been recorded, and a wait for it waits for nothing. */
void tn_marks_event_destroyed(tn_marks *m, uint64_t event);
/* Events are recorded out of sight (by nodes of a graph, a signal handler): from now on none covers anything. */
void tn_marks_events_end(tn_marks *m);

/* `stream` (0: every one of context `ctx`) waits for `event` on the device: what it is given from now on is ordered after what the event
 * covers. For blocks given back in the stream's order it is work by itself: the stream has not come so far before that is done. For plain
 * ones it is so where what the event covers is of another context, or not known. Stamps of before and after the call. */
void tn_marks_joined(tn_marks *m, uint32_t ctx, uint32_t stream, uint64_t event, uint64_t begun, uint64_t stamp);

/* The stream ends: what it still has goes on, and only a context wait covers it from now on. */
void tn_marks_stream_ended(tn_marks *m, uint32_t stream);
/* The context is gone, and with it all its work. */
void tn_marks_context_ended(tn_marks *m, uint32_t ctx);

/* ---- asked by the allocators */

/* Fills the set with what is uncovered now in context `ctx` (0: anywhere), for a block that its owner gives back. Empty: the block is clean. */
void tn_marks_uncovered(tn_marks *m, uint32_t ctx, tn_work_set *set) __attribute__((hot));
/* The mark of what `stream` has been given so far, done or not, and of what that comes after: for a block given back in the order of a stream.
 * Where that is more than a stream's (it is the legacy one or waits for that, or has no place), it is done when all of its context is, and as
 * long as streams that have ended or have no place have work there, it is ordered before nothing. */
tn_work_mark tn_marks_of_stream(tn_marks *m, uint32_t stream) __attribute__((hot));
/* Of such a mark what is done when somebody has waited for the stream itself since, whatever else of its context is under way. */
tn_work_mark tn_marks_alone(const tn_marks *m, tn_work_mark mark);
/* The table by which an allocator asks. Queues of takers are stream numbers; a mark's own queue is not. */
tn_work tn_marks_work_table(tn_marks *m, uint32_t ctx);

#endif
