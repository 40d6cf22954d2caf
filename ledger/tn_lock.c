#define _GNU_SOURCE
#include "ledger/tn_lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void tn_lock_wait(tn_lock *l)
{
    int saved = errno; /* the host's: a hook must leave it as the call left it */

    /* Holders need a few dozen instructions as a rule, so a short spin saves the two system calls. */
    for (int i = 0; i < 64; i++) {
        uint32_t expected = 0;
        if (__atomic_load_n(&l->word, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&l->word, &expected, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    /* Whoever takes it from here on takes it as 2: it cannot know whether others are waiting too. */
    while (__atomic_exchange_n(&l->word, 2u, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2u, (void *)0, (void *)0, 0);
    errno = saved;
}

void tn_lock_wake(tn_lock *l)
{
    int saved = errno;
    syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, (void *)0, (void *)0, 0);
    errno = saved;
}

#ifdef TN_DEBUG
/* Ranks held by this thread, innermost last. */
static __thread uint32_t held[8] __attribute__((tls_model("initial-exec")));
static __thread unsigned held_count __attribute__((tls_model("initial-exec")));

void tn_lock_note_taken(const tn_lock *l)
{
    if (l->rank == TN_LOCK_NONE)
        return;
    if (held_count > 0 && held[held_count - 1] > l->rank)
        __builtin_trap();
    if (held_count == sizeof held / sizeof held[0])
        __builtin_trap();
    held[held_count++] = l->rank;
}

void tn_lock_note_released(const tn_lock *l)
{
    if (l->rank == TN_LOCK_NONE)
        return;
    for (unsigned i = held_count; i > 0; i--) {
        if (held[i - 1] != l->rank)
            continue;
        for (; i < held_count; i++)
            held[i - 1] = held[i];
        held_count--;
        return;
    }
    __builtin_trap(); /* released, but not held by this thread */
}
#else
void tn_lock_note_taken(const tn_lock *l) { (void)l; }
void tn_lock_note_released(const tn_lock *l) { (void)l; }
#endif
