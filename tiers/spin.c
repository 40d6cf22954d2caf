#define _POSIX_C_SOURCE 200809L
#include "tiers/spin.h"

#include <sched.h>
#include <time.h>

/* A section lasts some 10 ns, so whoever holds the lock longer has lost its core: then it is time to give up one's own. */
enum { SPINS = 100, YIELDS = 20 };

void tn_spin_pause(unsigned *rounds)
{
    if (*rounds < SPINS) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
    } else if (*rounds < SPINS + YIELDS) {
        sched_yield();
    } else {
        /* A yield gives nothing to a thread of lower priority; a sleep does. */
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        return;
    }
    ++*rounds;
}

void tn_spin_lock_slowly(tn_spin *spin)
{
    unsigned rounds = 0;
    do {
        while (__atomic_load_n(&spin->held, __ATOMIC_RELAXED) != 0)
            tn_spin_pause(&rounds);
    } while (__atomic_exchange_n(&spin->held, 1, __ATOMIC_ACQUIRE) != 0);
}
