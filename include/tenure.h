/* tenure.h: what a program may tell Tenure about itself. Header only, C99 and C++98 or later with GCC or Clang on Linux; nothing to link
 * with (on glibc before 2.34: -ldl). Where the program does not run under Tenure each function finds that out once, by dlsym, and does
 * nothing. Any thread may call any function at any time, but not from within a host function or callback of a stream, since a recorded mark
 * asks the device what is in use; none starts CUDA in a process that has not started it, none changes errno.
 *
 *     #include <tenure.h>
 *     tenure_mark("weights loaded");
 *     tenure_phase(TENURE_SERVING);
 *
 * Each function returns TENURE_RECORDED, TENURE_ABSENT where nothing is recorded (no Tenure, or a forked child that only forwards), or
 * TENURE_REFUSED: phases go forward only, but for Serving to Planning, which begins a swap and ends with the next Serving. What is said
 * before the first CUDA call is kept until then and stamped with it (of marks the first 64). */
#ifndef TENURE_H
#define TENURE_H

#include <dlfcn.h>
#include <errno.h>

#ifndef RTLD_DEFAULT
#define RTLD_DEFAULT ((void *)0)
#endif

enum { TENURE_LOADING = 0, TENURE_PLANNING = 1, TENURE_SERVING = 2 };
enum { TENURE_RECORDED = 0, TENURE_ABSENT = 1, TENURE_REFUSED = -1 };

/* Looks `name` up once a place: *slot is NULL before, slot itself where there is none. */
static __inline__ void *tenure_find_(void **slot, const char *name)
{
    void *found = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    if (!found) {
        int saved = errno;
        found = dlsym(RTLD_DEFAULT, name);
        if (!found) {
            (void)dlerror(); /* the program's own next question is not to be answered by ours */
            found = (void *)slot;
        }
        __atomic_store_n(slot, found, __ATOMIC_RELEASE);
        errno = saved;
    }
    return found == (void *)slot ? (void *)0 : found;
}

/* This process is in `phase` (TENURE_LOADING, TENURE_PLANNING or TENURE_SERVING) from now on. */
static __inline__ int tenure_phase(int phase)
{
    static void *slot;
    union { void *object; int (*function)(int); } to;
    to.object = tenure_find_(&slot, "tenure_v1_phase");
    return to.object ? to.function(phase) : TENURE_ABSENT;
}

/* A point in the run that the report names: what was there, and what came and went since the mark before. */
static __inline__ int tenure_mark(const char *text)
{
    static void *slot;
    union { void *object; int (*function)(const char *); } to;
    to.object = tenure_find_(&slot, "tenure_v1_mark");
    return to.object ? to.function(text) : TENURE_ABSENT;
}

#endif
