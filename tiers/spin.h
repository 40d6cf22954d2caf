/* For the allocators alone: a lock of one word for sections of a few nanoseconds that call nothing which blocks. Measured
 * at a 2.6 GHz Xeon when it was chosen, an acquire and a release of a block cost 15 ns under it, 23 ns with a free list by compare-and-swap and an
 * ABA tag. Taken and let go of twice it is 11 to 13 ns, most of such a pair; `scripts/bench tiers` has the pair, and what two threads on one pool
 * cost. Who finds it held spins, then yields, then sleeps, so that a holder of lower priority gets on. */
#ifndef TENURE_TIERS_SPIN_H
#define TENURE_TIERS_SPIN_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_spin {
    uint32_t held; /* 0 or 1; all zero is an open lock */
} tn_spin;

/* Tells the core that this is a wait: some 10 to 50 ns. */
static inline void tn_spin_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* One round of waiting for what another thread does: `rounds`, 0 at first, says how long it has been. */
void tn_spin_pause(unsigned *rounds);

void tn_spin_lock_slowly(tn_spin *spin);

/* Takes it if nobody has it. */
static inline bool tn_spin_try(tn_spin *spin)
{
    return __atomic_exchange_n(&spin->held, 1, __ATOMIC_ACQUIRE) == 0;
}

static inline void tn_spin_lock(tn_spin *spin)
{
    if (__builtin_expect(__atomic_exchange_n(&spin->held, 1, __ATOMIC_ACQUIRE) != 0, 0))
        tn_spin_lock_slowly(spin);
}

static inline void tn_spin_unlock(tn_spin *spin)
{
    __atomic_store_n(&spin->held, 0, __ATOMIC_RELEASE);
}

#endif
