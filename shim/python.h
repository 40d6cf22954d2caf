/* The second part of a site: which Python functions, at which lines, called the hook. Native frames do not tell them apart, since CPython runs
 * Python-to-Python calls in one C frame. A thread inside a C call does not change its own chain of Python frames, so the chain is read without
 * the interpreter's lock, by recorded layouts: no reference is taken, nothing is allocated, nothing but the thread's state is asked for.
 * Any thread, not from a signal handler inside a hook; no lock of ours is held around the loader. errno is kept.
 *
 * What makes a name right: every code object in the chain is running and therefore alive, and so are its strings. A remembered chain is the
 * present one only if each frame runs the same code address at the same instruction, and each code object is the one that was read: from
 * 3.12 by its serial number, which no other code object of the main interpreter ever has, before that and in other interpreters by its
 * names and the part of its line table that decides, compared byte by byte. Addresses are used again, contents and serials are not.
 *
 * What makes it safe: while the interpreter ends nothing is read. That end frees the states of threads that may still be in a call, after it has
 * said that it has begun; so the state is read between two looks at that, and what was read counts only if the second says no. The frames of
 * such threads and what they run are never freed (CPython 3.8 to 3.14: _PyThreadState_DeleteExcept and its successors take the states alone). Until
 * a layout has once proved right, with all types as they must be, everything is read through the kernel, which fails where nothing is
 * mapped. In a forked child that only forwards no site is asked for. */
#ifndef TENURE_SHIM_PYTHON_H
#define TENURE_SHIM_PYTHON_H

#include <stdint.h>

#include <stdatomic.h>

#include "ledger/journal.h"

/* Once, at the first CUDA start, before the first tn_python_site(). One that is loaded later is noticed at the next new native site. */
void tn_python_start(void);

/* The site of a call from the native site `native` and the innermost TN_PYTHON_FRAMES_MAX Python functions of this thread; `native` itself where
 * the thread runs no Python code. Frames that the interpreter does not show either (its own, and functions that have not begun yet) are left out.
 *
 * On a warm hit: no lock, no system call; 8 frames cost some 70 ns from 3.12 on, 260 before (docs/MEASUREMENTS.md). */
uint32_t tn_python_find_site(tn_journal *journal, uint32_t native) __attribute__((hot));

/* What tells that there is no Python part to look for, which is so in most programs: no interpreter was found when a site as new as this one
 * was first met. */
extern struct tn_python_present {
    void *_Atomic interpreter;
    _Atomic uint32_t newest_native;
    _Atomic int has_gone; /* an interpreter was unloaded: its native sites are known when it comes again */
    int is_off;
} tn_python_present __attribute__((visibility("hidden")));

static inline uint32_t tn_python_site(tn_journal *journal, uint32_t native)
{
    const struct tn_python_present *p = &tn_python_present;
    if (!atomic_load_explicit(&p->interpreter, memory_order_relaxed) && native <= atomic_load_explicit(&p->newest_native, memory_order_relaxed) &&
        !atomic_load_explicit(&p->has_gone, memory_order_relaxed))
        return native;
    return tn_python_find_site(journal, native);
}

/* Before the real dlclose, after the epoch has been raised: waits (a second at most) until no thread is inside an interpreter that can be unloaded. */
void tn_python_dlclose_begin(void);

#endif
