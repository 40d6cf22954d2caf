/* Memory that prog_kill shares with the test that kills it: what it knows to have been answered. The program writes, by one thread each of
 * its slots, after the call has returned; the test reads when the program is dead. */
#ifndef TESTS_SHIM_KILL_H
#define TESTS_SHIM_KILL_H

#include <stdatomic.h>
#include <stdint.h>

enum { KILL_THREADS = 2, KILL_MAX = 200000 };
/* The n-th allocation of thread t asks for this many bytes, so that each is known in the journal by its size. */
#define KILL_BYTES(t, n) ((uint64_t)KILL_THREADS * ((uint64_t)(n) + 1) + (uint64_t)(t))

typedef struct kill_page {
    _Atomic uint32_t allocated[KILL_THREADS]; /* allocations acknowledged */
    _Atomic uint32_t freed[KILL_THREADS];     /* the first so many of them are freed */
    _Atomic uint32_t errors;
} kill_page;

#endif
