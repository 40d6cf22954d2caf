/* Whether a word of memory can be read, asked of the kernel without a file descriptor and without risk. Any thread, also in a signal
 * handler; changes errno. */
#ifndef TENURE_SHIM_READABLE_H
#define TENURE_SHIM_READABLE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* rt_sigprocmask copies the new set before it looks at `how`: EFAULT if those 8 bytes cannot be read, else EINVAL, and nothing is changed. An
 * aligned word never crosses a page, so the answer holds for the byte asked about. */
static inline int tn_can_read(const void *p)
{
    uint64_t word = (uint64_t)p & ~(uint64_t)7;
    return syscall(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) == -1 && errno == EINVAL;
}

#endif
