/* Which threads are inside a call that may move device memory, so that a reading can tell whether it was taken while nothing moved. Each
 * thread writes its own cache line, two counters; a reading looks at all of them. Owned by the process; the lines stand in a mapping of
 * our own; more threads at one time than lines share one. No lock anywhere, usable in signal handlers. */
#ifndef TENURE_SHIM_MOVING_H
#define TENURE_SHIM_MOVING_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_moving {
    _Alignas(64) _Atomic uint32_t owned;
    _Atomic uint32_t begun, ended; /* calls, by the threads that had the line one after another */
} tn_moving;

/* Once, before the first claim. Returns 0, or -1 without memory: then tn_moving_claim gives NULL and no reading is quiet. */
int tn_moving_init(void);
/* A line for a thread, from its first call to its end. */
tn_moving *tn_moving_claim(void);
void tn_moving_release(tn_moving *m);

/* Around the real call. Atomic additions, since a line may be shared and a signal handler may come between. */
static inline void tn_moving_begin(tn_moving *m)
{
    if (m) atomic_fetch_add(&m->begun, 1);
}
static inline void tn_moving_end(tn_moving *m)
{
    if (m) atomic_fetch_add(&m->ended, 1);
}

/* Calls of which no record will be made (a hook that a test switched off): they move memory, and nothing will say so. */
extern _Atomic uint64_t tn_unrecorded_begun, tn_unrecorded_ended;

/* How many calls of others than `own` have begun so far, in *begun; returns 1 where none of them is still under way. */
int tn_moving_others(const tn_moving *own, uint64_t *begun);

#endif
