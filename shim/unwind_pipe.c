/* Keeps libunwind away from the host's file descriptors. To learn whether an address may be read, libunwind (1.3 to 1.6 at least) writes a byte from
 * it into a pipe of its own and reads it out again. Two numbers of the host's are taken by that, so that its own files get others than without
 * us; and a host that closes everything from 3 up and opens a socket on the same number would find a byte gone from it and a foreign one sent.
 * So in the copy of libunwind that we loaded, and in no other, the three functions the pipe goes through lead here: the pipe has no
 * descriptors, and the question is answered by a system call that reads the address and does nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/modules.h"
#include "shim/readable.h"
#include "shim/unwind.h"

/* Not -1, which libunwind takes for "not opened yet". */
#define NO_PIPE (-2)

static int no_pipe(int fds[2], int flags)
{
    (void)flags;
    fds[0] = fds[1] = NO_PIPE;
    return 0;
}

/* The pipe is always empty. */
static ssize_t read_no_pipe(int fd, void *to, size_t bytes)
{
    if (fd != NO_PIPE)
        return syscall(SYS_read, fd, to, bytes);
    errno = EAGAIN;
    return -1;
}

static long syscall_no_pipe(long number, long a, long b, long c, long d, long e, long f)
{
    if (number != SYS_write || (int)a != NO_PIPE)
        return syscall(number, a, b, c, d, e, f);
    int saved = errno;
    if (tn_can_read((const void *)b)) {
        errno = saved;
        return c;
    }
    errno = EFAULT;
    return -1;
}

static const struct {
    const char *name;
    void *instead;
} redirections[] = { { "pipe2", (void *)no_pipe }, { "read", (void *)read_no_pipe }, { "syscall", (void *)syscall_no_pipe },
                     { "dl_iterate_phdr", (void *)tn_iterate_phdr } /* see modules.h */ };
#define COUNT (sizeof redirections / sizeof redirections[0])

#if defined(__x86_64__)
#define IS_CALL_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_CALL_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

typedef struct dynamic_part {
    const char *strings;
    const ElfW(Sym) *symbols;
    const ElfW(Rela) *rela[2]; /* DT_JMPREL, DT_RELA */
    uint64_t bytes[2];
} dynamic_part;

static void read_dynamic(const struct link_map *map, dynamic_part *d)
{
    memset(d, 0, sizeof *d);
    for (const ElfW(Dyn) *dyn = map->l_ld; dyn->d_tag != DT_NULL; dyn++) {
        /* The loader has relocated these pointers in place; where it leaves the section read-only, it has not. */
        uint64_t p = dyn->d_un.d_ptr >= map->l_addr ? dyn->d_un.d_ptr : map->l_addr + dyn->d_un.d_ptr;
        switch (dyn->d_tag) {
        case DT_STRTAB: d->strings = (const char *)p; break;
        case DT_SYMTAB: d->symbols = (const ElfW(Sym) *)p; break;
        case DT_JMPREL: d->rela[0] = (const ElfW(Rela) *)p; break;
        case DT_RELA: d->rela[1] = (const ElfW(Rela) *)p; break;
        case DT_PLTRELSZ: d->bytes[0] = dyn->d_un.d_val; break;
        case DT_RELASZ: d->bytes[1] = dyn->d_un.d_val; break;
        default: break;
        }
    }
}

static void **slot_of(const struct link_map *map, const dynamic_part *d, const char *name)
{
    for (int part = 0; part < 2; part++)
        for (uint64_t i = 0; d->rela[part] && i < d->bytes[part] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *r = &d->rela[part][i];
            if (IS_CALL_SLOT(ELF64_R_TYPE(r->r_info)) && strcmp(d->strings + d->symbols[ELF64_R_SYM(r->r_info)].st_name, name) == 0)
                return (void **)(map->l_addr + r->r_offset);
        }
    return NULL;
}

/* Libraries linked with -z now have their slots in pages that the loader made read-only; they are so again afterwards. */
static int is_read_only(const struct link_map *map, const void *slot)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)map->l_addr;
    const ElfW(Phdr) *ph = (const ElfW(Phdr) *)(map->l_addr + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++)
        if (ph[i].p_type == PT_GNU_RELRO && (uint64_t)slot - map->l_addr - ph[i].p_vaddr < ph[i].p_memsz)
            return 1;
    return 0;
}

static int redirect(const struct link_map *map, void **slot, void *instead)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uint64_t)slot & ~(page - 1));
    int read_only = is_read_only(map, slot);
    if (read_only && mprotect(start, page, PROT_READ | PROT_WRITE) != 0)
        return -1;
    __atomic_store_n(slot, instead, __ATOMIC_RELEASE);
    if (read_only)
        mprotect(start, page, PROT_READ);
    return 0;
}

int tn_unwind_close_pipe(void *handle)
{
    struct link_map *map = NULL;
    dynamic_part d;
    void **slots[COUNT];
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || memcmp((const void *)map->l_addr, ELFMAG, SELFMAG) != 0)
        return -1;
    read_dynamic(map, &d);
    if (!d.strings || !d.symbols)
        return -1;
    for (size_t i = 0; i < COUNT; i++)
        if (!(slots[i] = slot_of(map, &d, redirections[i].name)))
            return -1; /* another version, which goes another way: left alone */
    /* pipe2 last: from then on the other two are met. */
    for (size_t i = COUNT; i-- > 0;)
        if (redirect(map, slots[i], redirections[i].instead) != 0)
            return -1;
    return 0;
}
