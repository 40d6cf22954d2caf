/* The writer's view of the operating system: the real calls behind tn_journal_os, and the care for the
 * one descriptor that a host program may close under us. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#define BTRFS_MAGIC 0x9123683eL
#define IOCTL_GETFLAGS 0x80086601ul /* FS_IOC_GETFLAGS and SETFLAGS on 64-bit machines */
#define IOCTL_SETFLAGS 0x40086602ul
#define FLAG_NOCOW 0x00800000

/* On btrfs a page that was written back once needs new space at its next store, which a full disk answers
 * with SIGBUS; a file without copy-on-write keeps the preallocated blocks. Possible only while it is empty. */
static void turn_cow_off(int fd)
{
    struct statfs fs;
    if (syscall(SYS_fstatfs, fd, &fs) != 0 || fs.f_type != BTRFS_MAGIC)
        return;
    int flags = 0;
    if (syscall(SYS_ioctl, fd, IOCTL_GETFLAGS, &flags) == 0) {
        flags |= FLAG_NOCOW;
        (void)syscall(SYS_ioctl, fd, IOCTL_SETFLAGS, &flags);
    }
}

static int real_open_exclusive(const char *path)
{
    int fd = tn_sys_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    /* A umask such as 0377 would leave a file that even its owner cannot read. */
    (void)syscall(SYS_fchmod, fd, 0600);
    turn_cow_off(fd);
    return fd;
}

/* A write makes the pages of a preallocated range in a third of the time that a fault for each of them takes (ext4, Linux 6.18: 27 us
 * for 64 KiB and its mapping, 73 us without), a longer one in less. Only for speed: what it leaves out, real_map() faults in. */
static void fill(int fd, int64_t offset, int64_t bytes)
{
    static const char zeros[TN_CHUNK_BYTES];
    while (bytes > 0) {
        struct iovec parts[8];
        int64_t left = bytes;
        int count = 0;
        for (; count < (int)(sizeof parts / sizeof parts[0]) && left > 0; count++) {
            size_t part = left < (int64_t)sizeof zeros ? (size_t)left : sizeof zeros;
            parts[count] = (struct iovec){ (void *)(uintptr_t)zeros, part };
            left -= (int64_t)part;
        }
        int64_t n = syscall(SYS_pwritev, fd, parts, count, offset, 0L);
        if (n <= 0)
            return;
        offset += n;
        bytes -= n;
    }
}

static int real_preallocate(int fd, int64_t offset, int64_t bytes)
{
    for (int tries = 0;; tries++) {
        if (tn_sys_fallocate(fd, offset, bytes) == 0) {
            fill(fd, offset, bytes);
            return 0;
        }
        if (errno != EINTR || tries == 64)
            return -1;
    }
}

static void *real_map(int fd, int64_t offset, size_t bytes)
{
    /* The advice faults the pages in for writing, and reports one that cannot be had as an error where a store would raise SIGBUS. Kernels
     * before 5.14 say EINVAL: there MAP_POPULATE reads them in. Both together take twice the time. */
    static int cannot_advise; /* atomic */
    int populates = __atomic_load_n(&cannot_advise, __ATOMIC_RELAXED);
    void *p = tn_sys_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (populates ? MAP_POPULATE : 0), fd, offset);
    if (p == NULL)
        return NULL;
    int failed = !populates && tn_sys_advise(p, bytes, MADV_POPULATE_WRITE) != 0;
    if (failed && errno == EINVAL) {
        __atomic_store_n(&cannot_advise, 1, __ATOMIC_RELAXED);
        tn_sys_unmap(p, bytes);
        return real_map(fd, offset, bytes);
    }
    if (failed && errno != EAGAIN && errno != EINTR && errno != ENOSYS) {
        int err = errno;
        tn_sys_unmap(p, bytes);
        errno = err == EFAULT ? ENOSPC : err;
        return NULL;
    }
    /* A forked child must never write into its parent's journal. */
    if (tn_sys_advise(p, bytes, MADV_DONTFORK) != 0) {
        int err = errno;
        tn_sys_unmap(p, bytes);
        errno = err;
        return NULL;
    }
    return p;
}

static int64_t real_write_at(int fd, const void *p, size_t bytes, int64_t offset)
{
    for (int tries = 0;; tries++) {
        int64_t n = tn_sys_write_at(fd, p, bytes, offset);
        if (n >= 0)
            return n;
        if (errno != EINTR || tries == 64)
            return -1;
    }
}

static int64_t real_file_size_limit(void)
{
    struct rlimit limit;
    if (syscall(SYS_prlimit64, 0, RLIMIT_FSIZE, (void *)0, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > (rlim_t)INT64_MAX)
        return INT64_MAX;
    return (int64_t)limit.rlim_cur;
}

const tn_journal_os tn_journal_real_os = {
    .open_exclusive = real_open_exclusive,
    .preallocate = real_preallocate,
    .map = real_map,
    .write_at = real_write_at,
    .file_size_limit = real_file_size_limit,
};

tn_error tn_errno_error(int err)
{
    switch (err) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return TN_E_NOSPACE;
    case ENOMEM:
    case EAGAIN:
    case EINTR:
    case EMFILE: /* descriptors come back, as memory does */
    case ENFILE:
        return TN_E_NOMEM;
    case EOPNOTSUPP:
    case ENOSYS:
        return TN_E_NOPREALLOC;
    case ENOENT:
    case ENOTDIR:
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case EBADF:
        return TN_E_OPEN;
    default:
        return TN_E_IO;
    }
}

int tn_journal_raise_fd(int fd)
{
    /* Daemons close 3..N, shells and test harnesses expect the lowest free number; N is mostly below 1000. A
     * soft limit below that refuses, so lower homes follow. */
    static const int homes[] = { 1000, 500, 200, 100 };
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++) {
        if (fd >= homes[i])
            return fd;
        int high = (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, homes[i]);
        if (high >= 0) {
            tn_sys_close(fd);
            return high;
        }
    }
    return fd;
}

tn_error tn_journal_check_fd(tn_journal *j)
{
    struct stat st;
    if (j->fd >= 0 && tn_sys_fstat(j->fd, &st) == 0 && st.st_dev == j->dev && st.st_ino == j->ino)
        return TN_OK;
    /* Closed by the host, and the number perhaps its own by now: it is not ours to close. */
    j->fd = -1;
    int fd = tn_sys_open(j->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return tn_errno_error(errno) == TN_E_NOMEM ? TN_E_NOMEM : TN_E_OPEN;
    if (tn_sys_fstat(fd, &st) != 0 || st.st_dev != j->dev || st.st_ino != j->ino) {
        tn_sys_close(fd);
        return TN_E_OPEN;
    }
    j->fd = tn_journal_raise_fd(fd);
    return TN_OK;
}
