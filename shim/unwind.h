/* The two ways to get a chain of return addresses (tn_unwind_fn, callsite.h). Any thread may call either; neither takes a lock of ours.
 * They look at the calling thread's stack only. */
#ifndef TENURE_SHIM_UNWIND_H
#define TENURE_SHIM_UNWIND_H

#include <stdint.h>

/* Most frames that may be asked for, and most frames of our own and of the driver's side that may lie below `caller`. */
#define TN_UNWIND_MAX 40
#define TN_UNWIND_LEADING_MAX 24

/* Opens libunwind: OWN_DIR/libunwind.so.8 (own_dir may be NULL), $TENURE_LIBUNWIND, the bare name; in this order. 0, or -1 where there is
 * none. One thread, once, where the loader may be called. */
int tn_unwind_libunwind_open(const char *own_dir);
/* Only after a successful open. Takes the loader's lock on code that it has not seen before. */
int tn_unwind_libunwind(const void *caller, uint64_t *frames, int max);
/* Makes a libunwind that nobody else has loaded do without its pipe (unwind_pipe.c), before its first use. 0, or -1 where it has none or is built
 * otherwise: then it is left as it is. */
int tn_unwind_close_pipe(void *handle);
/* The stack on which the calling thread was started, [*lowest, *end). 0, or -1 where that is not to be had. pthread_getattr_np reads
 * /proc/self/maps for the first thread and takes memory with malloc: once for a thread, and not on a warm path. Of the first thread's stack, which
 * may be allowed to grow without limit, the upper 64 MiB: nearer than that to its end the kernel maps nothing else. */
int tn_stack_bounds(uint64_t *lowest, uint64_t *end);
/* By frame pointers, within the bounds of the thread's stack. No lock; one call to pthread_getattr_np for each thread. */
int tn_unwind_own(const void *caller, uint64_t *frames, int max);

#endif
