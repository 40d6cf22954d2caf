/* Who is writing: host, boot, executable and command line for the journal's header, read with plain system
 * calls because it happens inside the host's first CUDA call. What cannot be read stays empty. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/utsname.h>

#include "ledger/build_id.h"
#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

/* Reads at most bytes - 1 and leaves a NUL behind; returns the count. */
static size_t read_small_file(const char *path, char *out, size_t bytes)
{
    int fd = tn_sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    size_t used = 0;
    out[0] = '\0';
    if (fd < 0)
        return 0;
    while (used < bytes - 1) {
        int64_t n = tn_sys_read(fd, out + used, bytes - 1 - used);
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    tn_sys_close(fd);
    out[used] = '\0';
    return used;
}

void tn_journal_identify(tn_journal_header *h)
{
    struct utsname names;
    if (uname(&names) == 0) {
        size_t n = strnlen(names.nodename, sizeof h->host - 1);
        memcpy(h->host, names.nodename, n);
    }
    size_t n = read_small_file("/proc/sys/kernel/random/boot_id", h->boot_id, sizeof h->boot_id);
    if (n > 0 && h->boot_id[n - 1] == '\n')
        h->boot_id[n - 1] = '\0';
    long length = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", h->exe, sizeof h->exe - 1);
    h->exe[length > 0 ? length : 0] = '\0';
    read_small_file("/proc/self/cmdline", h->cmdline, sizeof h->cmdline);
    tn_build_id_of_file("/proc/self/exe", h->exe_build_id, sizeof h->exe_build_id);
}

void tn_journal_host_name(char out[64])
{
    struct utsname names;
    size_t n = 0;
    if (uname(&names) == 0) {
        for (; n < 63 && names.nodename[n] != '\0'; n++) {
            char c = names.nodename[n];
            int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
            /* A leading '.' would hide the file. */
            out[n] = plain && !(n == 0 && c == '.') ? c : '_';
        }
    }
    if (n == 0)
        out[n++] = '_';
    out[n] = '\0';
}

uint64_t tn_journal_random(void)
{
    uint64_t bits = 0;
    /* Not blocking: at early boot the pool may not be ready, and a host's hook must not hang on it. */
    if (syscall(SYS_getrandom, &bits, sizeof bits, 1 /* GRND_NONBLOCK */) == (long)sizeof bits)
        return bits;
    int fd = tn_sys_open("/dev/urandom", O_RDONLY | O_CLOEXEC, 0);
    if (fd >= 0) {
        int64_t n = tn_sys_read(fd, &bits, sizeof bits);
        tn_sys_close(fd);
        if (n == (int64_t)sizeof bits)
            return bits;
    }
    /* Enough for a name: it is created exclusively, and a collision is tried again. */
    uint64_t tsc, mono;
    tn_clock_pair(&tsc, &mono);
    bits = tsc * 0x9e3779b97f4a7c15u ^ mono ^ ((uint64_t)syscall(SYS_getpid) << 40);
    bits ^= bits >> 31;
    bits *= 0xbf58476d1ce4e5b9u;
    return bits ^ bits >> 29;
}
