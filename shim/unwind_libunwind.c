/* The walk by unwind tables: libunwind's unw_backtrace, opened by path and RTLD_LOCAL. It must never be NEEDED: libunwind exports the _Unwind_*
 * names and would take over the host's C++ exceptions.
 *
 * What it does inside a hook (Debian's 1.6.2-3, every call counted by an interposer over 13 frames): on frames that this thread has seen, nothing
 * but reading. A thread's first walk: one malloc, by the loader for libunwind's 16 bytes of thread-local storage; one mmap for its cache; its own
 * mutexes, always with all signals blocked around them (two sigprocmask each). A frame new to it: one dl_iterate_phdr (the loader's lock), one
 * mutex on the cache of unwind entries; memory from pools that it maps itself; where unwind tables are missing, a mincore for each new page it
 * wants to read. No malloc of its own was seen on these ways. */
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

/* dir/name; 0 where that is too long. */
static int join(char path[1024], const char *dir, const char *name)
{
    size_t n = strlen(dir), m = strlen(name);
    if (n + 1 + m + 1 > 1024)
        return 0;
    memcpy(path, dir, n);
    path[n] = '/';
    memcpy(path + n + 1, name, m + 1);
    return 1;
}

/* Opens a library; one that is not the host's already is made to leave the host's file descriptors alone. */
static void *open_path(const char *path)
{
    void *shared = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (shared)
        return shared;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        (void)tn_unwind_close_pipe(handle);
    return handle;
}

/* The loader looks for libunwind's own dependency liblzma.so.5 in the system's folders only. Where the system has none, the copy beside us is
 * opened first; its name then satisfies the dependency. */
static void *open_beside(const char *dir)
{
    char unwind[1024], lzma[1024];
    if (!join(unwind, dir, "libunwind.so.8") || !join(lzma, dir, "liblzma.so.5"))
        return NULL;
    void *handle = open_path(unwind);
    if (!handle && dlopen(lzma, RTLD_NOW | RTLD_LOCAL))
        handle = open_path(unwind);
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
    if (find && ((own_dir && use(find, open_beside(own_dir))) || (named && *named && use(find, open_path(named))) || use(find, open_path("libunwind.so.8")))) {
        void *warm[4];
        backtrace(warm, 4); /* its start-up (page size, memory pools, key for thread ends) happens here and not in a hook */
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
    int n, first, room = max + LEADING_FEW;
    for (;;) {
        n = backtrace(raw, room);
        first = 0;
        while (first < n && raw[first] != caller)
            first++;
        if (n - first >= max || n < room || room == max + TN_UNWIND_LEADING_MAX)
            break;
        room = max + TN_UNWIND_LEADING_MAX;
    }
    int count = n - first < max ? n - first : max;
    if (count <= 0) /* not on the stack, or nothing was walked */
        return 0;
    memcpy(frames, raw + first, (size_t)count * sizeof frames[0]);
    return count;
}
