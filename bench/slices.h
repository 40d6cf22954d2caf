/* How operations of a few nanoseconds are measured on a machine that others use too: in slices of some ten microseconds, timed by the
 * processor time of the thread, many to a repetition. A repetition's figure is the median of its slices, so that one which was interrupted
 * does not count; the result is the median, the 10th and the 90th percentile of the repetitions of all threads, and the mean of all slices,
 * which also holds what comes rarely. There is no least slice: on a virtual machine that clock runs behind and then jumps.
 * The states are the caller's. One measurement at a time in a process. */
#ifndef TENURE_BENCH_SLICES_H
#define TENURE_BENCH_SLICES_H

#include <stddef.h>

#define BENCH_THREADS_MAX 2

typedef struct bench_slices {
    const char *name;                    /* of the case; with `allocator` and `threads` one line of the result */
    const char *allocator;
    double target;                       /* ns, at most; 0: none */
    size_t operations;                   /* in a slice */
    void *(*begin)(unsigned thread);     /* makes a thread's state, on that thread; it never returns NULL */
    void (*before)(void *state);         /* before each slice, not timed; NULL: nothing */
    void (*slice)(void *state);          /* timed */
    void (*end)(void *state);            /* NULL: nothing */
} bench_slices;

/* Runs it on `threads` threads, each on a core of its own, and prints one JSON object: {"group":"tiers","case":..,"allocator":..,"target":..,
 * "threads":..,"unit":"ns","clock":"cpu","median":..,"p10":..,"p90":..,"mean":..,"repetitions":..,"slices":..,"operations":..}. */
void bench_slices_run(const bench_slices *what, unsigned threads);

/* Makes the compiler believe that the memory at `p` is read and written. */
static inline void bench_used(void *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
}

/* Ends the process with the message where `ok` is 0. */
void bench_must(int ok, const char *message);

#endif
