/* The walk without libunwind: along the chain of saved frame pointers. Code compiled without them breaks the chain early or leaves `caller`
 * out of it; what is never done is to read outside the live part of this thread's stack. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

#include "shim/unwind.h"

/* The end of the stack this thread was started on. pthread_getattr_np reads /proc/self/maps for the first thread and takes memory with malloc,
 * hence once for a thread and not for a call. */
static uint64_t stack_end(void)
{
    static __thread uint64_t end __attribute__((tls_model("initial-exec")));
    if (end)
        return end;
    pthread_attr_t attr;
    void *lowest = NULL;
    size_t bytes = 0;
    end = 1; /* unknown: below every frame, so that nothing is read */
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return end;
    if (pthread_attr_getstack(&attr, &lowest, &bytes) == 0 && (uint64_t)__builtin_frame_address(0) >= (uint64_t)lowest)
        end = (uint64_t)lowest + bytes;
    pthread_attr_destroy(&attr);
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
