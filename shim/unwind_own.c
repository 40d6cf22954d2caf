/* The walk without libunwind: along the chain of saved frame pointers. Code compiled without them breaks the chain early or leaves `caller`
 * out of it; what is never done is to read outside the live part of this thread's stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

#include "shim/unwind.h"

#define STACK_MAX ((uint64_t)64 << 20)

int tn_stack_bounds(uint64_t *lowest, uint64_t *end)
{
    pthread_attr_t attr;
    void *start = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return -1;
    int known = pthread_attr_getstack(&attr, &start, &bytes) == 0;
    pthread_attr_destroy(&attr);
    *end = (uint64_t)start + bytes;
    *lowest = bytes > STACK_MAX ? *end - STACK_MAX : (uint64_t)start;
    return known ? 0 : -1;
}

/* The end of the stack if this frame is on it, asked for once for a thread. */
static uint64_t stack_end(void)
{
    static __thread uint64_t end __attribute__((tls_model("initial-exec")));
    uint64_t lowest;
    if (end)
        return end;
    if (tn_stack_bounds(&lowest, &end) != 0 || (uint64_t)__builtin_frame_address(0) < lowest)
        end = 1; /* unknown: below every frame, so that nothing is read */
    return end;
}

#if defined(__aarch64__)
/* Takes a signature off a return address; a no-op on processors without pointer authentication. */
static uint64_t strip(uint64_t addr)
{
    register uint64_t x30 __asm__("x30") = addr;
    __asm__("hint #7" : "+r"(x30));
    return x30;
}
#else
static uint64_t strip(uint64_t addr)
{
    return addr;
}
#endif

/* On both architectures a frame record is {caller's record, return address}. Records lie at rising addresses, aligned, below the stack's end; a
 * fiber's or a signal's alternate stack is outside and gives nothing. */
int tn_unwind_own(const void *caller, uint64_t *frames, int max)
{
    uint64_t end = stack_end(), fp = (uint64_t)__builtin_frame_address(0);
    int leading = 0, n = 0;
    while (n < max && fp % 8 == 0 && fp < end && end - fp >= 16) {
        const uint64_t *record = (const uint64_t *)fp;
        uint64_t next = record[0], addr = strip(record[1]);
        if (addr < 4096)
            break;
        if (n > 0 || addr == (uint64_t)caller)
            frames[n++] = addr;
        else if (++leading > TN_UNWIND_LEADING_MAX)
            break;
        if (next <= fp)
            break;
        fp = next;
    }
    return n;
}
