/* System calls made directly, for code that runs inside a host program's hooks. libc's own open, read,
 * write, fallocate and close are cancellation points (a cancelled thread would leave with our locks held),
 * and programs and other preloads interpose them and mmap; syscall() is neither. No state; any thread. Each
 * returns what the kernel says, -1 with errno on failure (mmap: NULL), and repeats nothing on EINTR. */
#ifndef TENURE_LEDGER_TN_SYS_H
#define TENURE_LEDGER_TN_SYS_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int tn_sys_open(const char *path, int flags, unsigned mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static inline int tn_sys_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

static inline int64_t tn_sys_read(int fd, void *p, size_t bytes)
{
    return syscall(SYS_read, fd, p, bytes);
}

static inline int64_t tn_sys_read_at(int fd, void *p, size_t bytes, int64_t offset)
{
    return syscall(SYS_pread64, fd, p, bytes, offset);
}

static inline int64_t tn_sys_write_at(int fd, const void *p, size_t bytes, int64_t offset)
{
    return syscall(SYS_pwrite64, fd, p, bytes, offset);
}

static inline int tn_sys_fallocate(int fd, int64_t offset, int64_t bytes)
{
    return (int)syscall(SYS_fallocate, fd, 0, offset, bytes);
}

/* The kernel's struct and libc's are the same on both 64-bit architectures; libc's fstat would bind to 2.33. */
static inline int tn_sys_fstat(int fd, struct stat *st)
{
    return (int)syscall(SYS_fstat, fd, st);
}

static inline void *tn_sys_map(size_t bytes, int protection, int flags, int fd, int64_t offset)
{
    long p = syscall(SYS_mmap, (void *)0, bytes, protection, flags, fd, offset);
    return p == -1 ? (void *)0 : (void *)p;
}

static inline void *tn_sys_map_memory(size_t bytes)
{
    return tn_sys_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static inline int tn_sys_advise(void *p, size_t bytes, int advice)
{
    return (int)syscall(SYS_madvise, p, bytes, advice);
}

/* The same, and zero in a forked child where the kernel can do that (Linux 4.14). */
static inline void *tn_sys_map_own(size_t bytes)
{
    void *p = tn_sys_map_memory(bytes);
    if (p != (void *)0)
        (void)tn_sys_advise(p, bytes, 18 /* MADV_WIPEONFORK */);
    return p;
}

static inline void tn_sys_unmap(void *p, size_t bytes)
{
    syscall(SYS_munmap, p, bytes);
}

#endif
