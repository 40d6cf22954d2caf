/* Who is writing: host, boot, executable and command line for the journal's header, read with plain system
 * calls because it happens inside the host's first CUDA call. What cannot be read stays empty. */
#define _GNU_SOURCE
#include <elf.h>
#include <string.h>
#include <sys/utsname.h>

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

/* The descriptor's bytes of NT_GNU_BUILD_ID among the notes at [offset, offset + bytes). */
static int find_build_id(int fd, uint64_t offset, uint64_t bytes, uint64_t align, char *hex, size_t hex_bytes)
{
    unsigned char notes[1024];
    if (bytes > sizeof notes)
        bytes = sizeof notes;
    int64_t n = tn_sys_read_at(fd, notes, bytes, (int64_t)offset);
    if (n < (int64_t)sizeof(Elf64_Nhdr))
        return 0;
    uint64_t mask = align == 8 ? 7 : 3;
    uint64_t end = (uint64_t)n;
    for (uint64_t at = 0; at + sizeof(Elf64_Nhdr) <= end;) {
        Elf64_Nhdr note;
        memcpy(&note, notes + at, sizeof note);
        uint64_t name = at + sizeof note;
        uint64_t desc = (name + note.n_namesz + mask) & ~mask;
        uint64_t next = (desc + note.n_descsz + mask) & ~mask;
        if (note.n_namesz > end || note.n_descsz > end || desc + note.n_descsz > end)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + name, "GNU", 4) == 0) {
            size_t out = 0;
            for (uint32_t i = 0; i < note.n_descsz && out + 3 <= hex_bytes; i++) {
                hex[out++] = "0123456789abcdef"[notes[desc + i] >> 4];
                hex[out++] = "0123456789abcdef"[notes[desc + i] & 15];
            }
            hex[out] = '\0';
            return 1;
        }
        at = next;
    }
    return 0;
}

static void read_build_id(char *hex, size_t hex_bytes)
{
    hex[0] = '\0';
    int fd = tn_sys_open("/proc/self/exe", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return;
    Elf64_Ehdr elf;
    if (tn_sys_read_at(fd, &elf, sizeof elf, 0) == (int64_t)sizeof elf && memcmp(elf.e_ident, ELFMAG, SELFMAG) == 0 &&
        elf.e_ident[EI_CLASS] == ELFCLASS64 && elf.e_phentsize == sizeof(Elf64_Phdr)) {
        for (unsigned i = 0; i < elf.e_phnum; i++) {
            Elf64_Phdr segment;
            int64_t at = (int64_t)(elf.e_phoff + i * sizeof segment);
            if (tn_sys_read_at(fd, &segment, sizeof segment, at) != (int64_t)sizeof segment)
                break;
            if (segment.p_type == PT_NOTE &&
                find_build_id(fd, segment.p_offset, segment.p_filesz, segment.p_align, hex, hex_bytes))
                break;
        }
    }
    tn_sys_close(fd);
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
    read_build_id(h->exe_build_id, sizeof h->exe_build_id);
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
