/* dlsym and dlclose. The exported dlsym is an assembly trampoline (dlsym_*.S) around tn_dlsym_route(): where the real dlsym
 * has to answer it is jumped to with the caller's registers and return address as they were, because for
 * RTLD_NEXT and RTLD_DEFAULT the answer depends on who asks. Any thread; no lock of ours. */
#ifndef TENURE_SHIM_LOADER_H
#define TENURE_SHIM_LOADER_H

#include <stdint.h>

/* Returned in two registers. jump != 0: continue at `address` with the original arguments; else `address` is the answer. */
typedef struct tn_route {
    void *address;
    uint64_t jump;
} tn_route;

tn_route tn_dlsym_route(void *handle, const char *name, const void *caller);

#endif
