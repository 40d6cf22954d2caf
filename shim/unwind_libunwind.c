/* The walk by unwind tables: libunwind's unw_backtrace, opened by path and RTLD_LOCAL. It must never be NEEDED: libunwind exports the _Unwind_*
 * names and would take over the host's C++ exceptions. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "shim/unwind.h"

typedef int (*backtrace_fn)(void **buffer, int size);
typedef void *(*dlsym_fn)(void *handle, const char *name);

static backtrace_fn backtrace;

/* The shim's own name for dlsym is the interposed one; the versioned look-up finds libc's, also behind another preload. */
static dlsym_fn real_dlsym(void)
{
    static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5" };
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        void *p = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        if (p)
            return (dlsym_fn)p;
    }
    return NULL;
}

static void *open_in(const char *dir, const char *name)
{
    char path[1024];
    size_t n = strlen(dir), m = strlen(name);
    if (n + 1 + m + 1 > sizeof path)
        return NULL;
    memcpy(path, dir, n);
    path[n] = '/';
    memcpy(path + n + 1, name, m + 1);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The loader looks for libunwind's own dependency liblzma.so.5 in the system's folders only. Where the system has none, the copy beside us is
 * opened first; its name then satisfies the dependency. */
static void *open_beside(const char *dir)
{
    void *handle = open_in(dir, "libunwind.so.8");
    if (!handle && open_in(dir, "liblzma.so.5"))
        handle = open_in(dir, "libunwind.so.8");
    return handle;
}

static int use(dlsym_fn find, void *handle)
{
    if (handle)
        backtrace = (backtrace_fn)find(handle, "unw_backtrace");
    return backtrace != NULL;
}

int tn_unwind_libunwind_open(const char *own_dir)
{
    const char *named = getenv("TENURE_LIBUNWIND");
    dlsym_fn find = real_dlsym();
    if (find && ((own_dir && use(find, open_beside(own_dir))) || (named && *named && use(find, dlopen(named, RTLD_NOW | RTLD_LOCAL))) ||
                 use(find, dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL)))) {
        void *warm[4];
        backtrace(warm, 4); /* its start-up (page size, probing pipe, key for thread ends) happens here and not in a hook */
        dlerror();          /* a failed attempt of ours is not the host's to read */
        return 0;
    }
    dlerror();
    return -1;
}

#define LEADING_FEW 8

/* Drops the frames below `caller`. Usually three to five; a hook reached through the runtime's innards has more, so when the caller was not among
 * the first few, the stack is read again with more room. */
int tn_unwind_libunwind(const void *caller, uint64_t *frames, int max)
{
    void *raw[TN_UNWIND_MAX + TN_UNWIND_LEADING_MAX];
    if (max > TN_UNWIND_MAX)
        max = TN_UNWIND_MAX;
    int n, rest, room = max + LEADING_FEW;
    for (;;) {
        n = backtrace(raw, room);
        rest = n;
        while (rest > 0 && raw[n - rest] != caller)
            rest--;
        if (rest >= max || n < room || room == max + TN_UNWIND_LEADING_MAX)
            break;
        room = max + TN_UNWIND_LEADING_MAX;
    }
    if (rest > max)
        rest = max;
    if (rest > 0)
        memcpy(frames, raw + n - rest, (size_t)rest * sizeof frames[0]);
    return rest > 0 ? rest : 0;
}
