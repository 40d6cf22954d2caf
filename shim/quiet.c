#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shim/quiet.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/readable.h"

#define THREADS 1024u
#define TURNS 2000 /* of sched_yield, for all threads together */

static _Atomic(const int *) threads[THREADS];
static _Atomic uint32_t used; /* places that were ever taken are below this */
static _Atomic int unknown, reading;

void tn_quiet_unknown(void) { atomic_store(&unknown, 1); }

void tn_quiet_join(const int *busy)
{
    for (uint32_t i = 0; i < atomic_load(&used); i++)
        if (atomic_load(&threads[i]) == busy) return;
    for (uint32_t i = 0; i < THREADS; i++) {
        const int *nobody = NULL;
        if (atomic_load_explicit(&threads[i], memory_order_relaxed) || !atomic_compare_exchange_strong(&threads[i], &nobody, busy)) continue;
        uint32_t high = atomic_load(&used);
        while (high <= i && !atomic_compare_exchange_weak(&used, &high, i + 1)) {
        }
        return;
    }
    tn_quiet_unknown();
}

void tn_quiet_leave(const int *busy)
{
    uint32_t high = atomic_load(&used);
    for (uint32_t i = 0; i < high; i++) {
        const int *there = busy;
        if (atomic_compare_exchange_strong(&threads[i], &there, NULL)) break;
    }
    while (atomic_load(&reading)) sched_yield(); /* a few loads */
}

/* A thread that never said its end may have taken its word with it. */
static int is_inside(_Atomic(const int *) *thread, const int *own)
{
    atomic_fetch_add(&reading, 1);
    const int *busy = atomic_load(thread);
    int inside = busy && busy != own && tn_can_read(busy) && __atomic_load_n(busy, __ATOMIC_ACQUIRE) != 0;
    atomic_fetch_sub(&reading, 1);
    return inside;
}

int tn_quiet_since_now(const int *own)
{
    static _Atomic int registered;
    if (atomic_load(&unknown)) return 0;
    if (!atomic_load(&registered)) {
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) return 0;
        atomic_store(&registered, 1);
    }
    /* A thread goes in by a plain store, which may still stand in its store buffer while it looks around: after this it does so no more. */
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) return 0;
    uint32_t high = atomic_load(&used);
    int turns = TURNS;
    for (uint32_t i = 0; i < high; i++)
        while (is_inside(&threads[i], own)) {
            if (turns-- == 0) return 0;
            sched_yield();
        }
    return !atomic_load(&unknown);
}
