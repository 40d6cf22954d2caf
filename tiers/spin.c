#define _GNU_SOURCE
#include "tiers/spin.h"

#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A section lasts some 10 ns, so whoever holds the lock longer has lost its core: then it is time to give up one's own. */
enum { SPINS = 100, YIELDS = 20 };

/* Pauses before the lock is even looked at again. Who has it has all that it guards in its cache too: left alone, it ends several sections in
 * the time in which those lines come over once. */
enum { ASIDE = 32 };

void tn_spin_pause(unsigned *rounds)
{
    if (*rounds < SPINS) {
        tn_spin_relax();
    } else if (*rounds < SPINS + YIELDS) {
        sched_yield();
    } else {
        /* A yield gives nothing to a thread of lower priority; a sleep does. By the system call: libc's is a cancellation point. */
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL);
        return;
    }
    ++*rounds;
}

void tn_spin_lock_slowly(tn_spin *spin)
{
    unsigned rounds = 0;
    do {
        for (int i = 0; i < ASIDE; i++)
            tn_spin_relax();
        while (__atomic_load_n(&spin->held, __ATOMIC_RELAXED) != 0)
            tn_spin_pause(&rounds);
    } while (__atomic_exchange_n(&spin->held, 1, __ATOMIC_ACQUIRE) != 0);
}
