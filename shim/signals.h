/* Keeps this thread's signal handlers out of the few places where the thread holds something that others wait for: a handler that
 * called CUDA there would wait for its own thread. System calls, not libc's functions, which other preloads replace. Any thread;
 * nothing is owned. Hold it for microseconds only, and never around a call into CUDA, the loader or the program. */
#ifndef TENURE_SHIM_SIGNALS_H
#define TENURE_SHIM_SIGNALS_H

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Blocks all signals and returns what was blocked before. Where the kernel refuses (a sandbox), nothing is blocked. Changes errno. */
static inline uint64_t tn_signals_block(void)
{
    uint64_t all = ~(uint64_t)0, before = all;
    if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof before) != 0) return all;
    return before;
}

/* Gives back what tn_signals_block() returned. */
static inline void tn_signals_restore(uint64_t before)
{
    if (before != ~(uint64_t)0) (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

#endif
