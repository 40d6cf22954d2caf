/* Which threads are inside a call that may move device memory, so that a reading can tell whether it was taken while nothing moved. Each
 * thread writes its own cache line, two counters; a reading looks at all of them. Owned by the process; the lines stand in a mapping of
 * our own; more threads at one time than lines share one. No lock anywhere, usable in signal handlers. */
#ifndef TENURE_SHIM_MOVING_H
#define TENURE_SHIM_MOVING_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_moving {
    _Alignas(64) _Atomic uint32_t owned; /* 1: by one thread; 0: by none, or shared by all that found none */
    _Atomic uint32_t begun, ended; /* calls, by the threads that had the line one after another */
} tn_moving;

/* Once, before the first claim. Returns 0, or -1 without memory: then tn_moving_claim gives NULL and no reading is quiet. */
int tn_moving_init(void);
/* A line for a thread, from its first call to its end. */
tn_moving *tn_moving_claim(void);
void tn_moving_release(tn_moving *m);

/* Around the real call. One instruction, since a signal handler may come between. A line of the thread's own is written by it alone, so that on
 * x86-64, where stores are seen in their order, the instruction needs no lock on the bus (6 of 12 ns of an allocation's two). A reader that
 * sees memory moved has then seen the call begun, and one that sees the call ended has seen what it moved. That alone would let a
 * thread stamp a free while its mark still stands in its store buffer: against that see tn_moving_settle(). */
static inline void tn_moving_count(const tn_moving *m, _Atomic uint32_t *n)
{
#if defined(__x86_64__)
    if (__builtin_expect(atomic_load_explicit(&m->owned, memory_order_relaxed) != 0, 1)) {
        __asm__ __volatile__("incl %0" : "+m"(*n) : : "cc", "memory");
        return;
    }
#else
    (void)m;
#endif
    atomic_fetch_add(n, 1);
}
static inline void tn_moving_begin(tn_moving *m)
{
    if (m) tn_moving_count(m, &m->begun);
}
static inline void tn_moving_end(tn_moving *m)
{
    if (m) tn_moving_count(m, &m->ended);
}

/* Between the stamp of a reading and the last look at the lines: waits longer than a store can stand in a store buffer, so that a mark not seen
 * then belongs to a call whose stamps are all later than the reading's. */
void tn_moving_settle(void);

/* Calls of which no record will be made (a hook that a test switched off): they move memory, and nothing will say so. */
extern _Atomic uint64_t tn_unrecorded_begun, tn_unrecorded_ended;

/* How many calls of others than `own` have begun so far, in *begun; returns 1 where none of them is still under way. */
int tn_moving_others(const tn_moving *own, uint64_t *begun);

#endif
