/* What the loader knows about an address. See modules.h. */
#define _GNU_SOURCE
#include "shim/modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/readable.h"
#include "shim/signals.h"

/* A 64-bit hash for modules without build-id. It is part of the keys of journals and plans, so it must give the same value on every
 * machine and in every version: bytes are taken one at a time (no word loads), multiplied by an odd constant and folded. */
static uint64_t hash_bytes(uint64_t h, const void *data, uint64_t bytes)
{
    const unsigned char *p = data;
    for (uint64_t i = 0; i < bytes; i++) {
        h = (h ^ p[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

typedef struct module_query {
    uint64_t addr;
    tn_module_info *out;
    int index; /* of the object at hand; the loader lists the executable first */
} module_query;

/* Whether [start, start+bytes) lies in one readable PT_LOAD's file part: what a damaged header points to is not read. */
static int is_readable(const struct dl_phdr_info *info, uint64_t start, uint64_t bytes)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uint64_t lo = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_R) && start >= lo && start - lo <= ph->p_filesz && bytes <= ph->p_filesz - (start - lo))
            return 1;
    }
    return 0;
}

static uint64_t align_up(uint64_t n, uint64_t alignment)
{
    return (n + alignment - 1) & ~(alignment - 1);
}

/* Looks through one note segment. Name and descriptor are padded to the segment's alignment: 4 as a rule, 8 in the layout that the ELF
 * specification gives for 64-bit files and that x86's property notes use. */
static int build_id_in(const struct dl_phdr_info *info, const ElfW(Phdr) *ph, tn_module_info *out)
{
    uint64_t start = info->dlpi_addr + ph->p_vaddr, alignment = ph->p_align == 8 ? 8 : 4, at = 0;
    if (!is_readable(info, start, ph->p_filesz))
        return 0;
    while (at + sizeof(ElfW(Nhdr)) <= ph->p_filesz) {
        ElfW(Nhdr) note;
        memcpy(&note, (const void *)(start + at), sizeof note);
        uint64_t name = at + sizeof note;
        uint64_t desc = align_up(name + note.n_namesz, alignment);
        uint64_t next = align_up(desc + note.n_descsz, alignment);
        if (desc > ph->p_filesz || note.n_descsz > ph->p_filesz - desc)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((const void *)(start + name), "GNU", 4) == 0 && note.n_descsz > 0) {
            uint64_t n = note.n_descsz < sizeof out->build_id ? note.n_descsz : sizeof out->build_id;
            memcpy(out->build_id, (const void *)(start + desc), n);
            out->build_id_bytes = (uint8_t)n;
            return 1;
        }
        at = next;
    }
    return 0;
}

/* The part of the substitute for a build-id that only lives in memory; the name is mixed in by the caller. Both parts hold only
 * offsets, never addresses, so relocation leaves them alone. */
static uint64_t hash_image(const struct dl_phdr_info *info)
{
    uint64_t h = hash_bytes(0x54454e5552450001u, info->dlpi_phdr, (uint64_t)info->dlpi_phnum * sizeof(ElfW(Phdr)));
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_GNU_EH_FRAME && is_readable(info, start, ph->p_filesz))
            h = hash_bytes(h, (const void *)start, ph->p_filesz);
    }
    return h;
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    module_query *q = arg;
    int index = q->index++;
    uint64_t end = 0, segment = 0, segment_end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type != PT_LOAD)
            continue;
        uint64_t lo = info->dlpi_addr + ph->p_vaddr, hi = lo + ph->p_memsz;
        if (q->addr >= lo && q->addr < hi) {
            segment = lo;
            segment_end = hi;
        }
        if (hi > end)
            end = hi;
    }
    if (!segment_end)
        return 0;
    tn_module_info *out = q->out;
    out->base = info->dlpi_addr;
    out->end = end;
    out->segment = segment;
    out->segment_end = segment_end;
    out->build_id_bytes = 0;
    out->hashed = 0;
    out->is_main = index == 0;
    memset(out->build_id, 0, sizeof out->build_id);
    out->path = info->dlpi_name ? info->dlpi_name : "";
    for (int i = 0; i < info->dlpi_phnum && !out->build_id_bytes; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            build_id_in(info, &info->dlpi_phdr[i], out);
    if (!out->build_id_bytes) {
        uint64_t h = hash_image(info);
        memcpy(out->build_id, &h, sizeof h);
        out->build_id_bytes = sizeof h;
        out->hashed = 1;
    }
    return 1;
}

/* The executable has no name in the loader's list. A file replaced while it runs reads as "/path/prog (deleted)": the suffix goes, or the
 * key of a module without build-id would change with it. Read as the process begins, by its only thread: later its root may be another. */
static char exe_path[4096];

/* A program that its loader was told to start ("ld.so program"): glibc leaves the program's name in the auxiliary vector. */
static void read_started_by_loader(void)
{
    const char *name = (const char *)getauxval(AT_EXECFN);
    size_t at = 0;
    if (!name || !*name || strlen(name) + 1 >= sizeof exe_path)
        return;
    if (*name != '/' && syscall(SYS_getcwd, exe_path, sizeof exe_path) > 0) {
        at = strlen(exe_path);
        if (at + 1 + strlen(name) + 1 > sizeof exe_path)
            at = 0;
        else
            exe_path[at++] = '/';
    }
    memcpy(exe_path + at, name, strlen(name) + 1);
}

__attribute__((constructor)) static void read_exe(void)
{
    static const char deleted[] = " (deleted)";
    int saved = errno;
    ssize_t n = exe_path[0] ? 0 : readlink("/proc/self/exe", exe_path, sizeof exe_path - 1);
    size_t suffix = sizeof deleted - 1;
    if (n > 0 && (size_t)n > suffix && memcmp(exe_path + n - suffix, deleted, suffix) == 0)
        exe_path[(size_t)n - suffix] = 0;
    const char *name = tn_basename(exe_path);
    if (n > 0 && (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld.so", 5) == 0))
        read_started_by_loader();
    errno = saved;
}

static __thread int closing __attribute__((tls_model("initial-exec")));

void tn_modules_closing(int step)
{
    closing += step;
}

typedef struct mapped_only {
    int (*visit)(struct dl_phdr_info *, size_t, void *);
    void *arg;
} mapped_only;

static int visit_if_mapped(struct dl_phdr_info *info, size_t size, void *arg)
{
    const mapped_only *m = arg;
    return tn_can_read(info->dlpi_phdr) ? m->visit(info, size, m->arg) : 0;
}

/* A handler that asked the loader too while this thread lets go of the loader's lock would find it taken by nobody, and wait for ever. */
int tn_iterate_phdr(int (*visit_object)(struct dl_phdr_info *, size_t, void *), void *arg)
{
    int saved = errno;
    mapped_only m = { visit_object, arg };
    uint64_t blocked = tn_signals_block();
    int r = closing ? dl_iterate_phdr(visit_if_mapped, &m) : dl_iterate_phdr(visit_object, arg);
    tn_signals_restore(blocked);
    errno = saved;
    return r;
}

static int forked; /* set once, in the child's only thread */

void tn_modules_after_fork(void)
{
    forked = 1;
}

/* The same without dl_iterate_phdr: glibc 2.36 hands its lock to a forked child as another thread held it, and nobody there gives it
 * back. dladdr1 takes the lock of dlopen, which is made anew in the child; the program headers stand in memory. */
static int visit_by_link_map(module_query *q)
{
    Dl_info where;
    struct link_map *map = NULL;
    if (!dladdr1((const void *)q->addr, &where, (void **)&map, RTLD_DL_LINKMAP) || !map || !where.dli_fbase)
        return 0;
    const ElfW(Ehdr) *header = where.dli_fbase;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return 0;
    struct dl_phdr_info info = { .dlpi_addr = map->l_addr, .dlpi_name = map->l_name,
                                 .dlpi_phdr = (const ElfW(Phdr) *)((const char *)header + header->e_phoff), .dlpi_phnum = header->e_phnum };
    q->index = map->l_prev != NULL; /* the executable is the first in the loader's list */
    return visit(&info, sizeof info, q);
}

int tn_module_of(const void *addr, tn_module_info *out)
{
    module_query q = { (uint64_t)addr, out, 0 };
    if (!(forked ? visit_by_link_map(&q) : tn_iterate_phdr(visit, &q)))
        return 0;
    if (out->is_main && !out->path[0]) {
        read_exe(); /* a call from another library's constructor may come before ours */
        out->path = exe_path;
    }
    if (out->hashed) {
        uint64_t h;
        const char *name = tn_basename(out->path);
        memcpy(&h, out->build_id, sizeof h);
        h = hash_bytes(h, name, strlen(name));
        memcpy(out->build_id, &h, sizeof h);
    }
    return 1;
}

const char *tn_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ".so", then nothing or a version of digits and dots. */
static int is_so_suffix(const char *s)
{
    if (strncmp(s, ".so", 3) != 0)
        return 0;
    s += 3;
    return *s == 0 || (*s == '.' && s[1] && s[strspn(s, ".0123456789")] == 0);
}

static int is_library(const char *path, const char *stem)
{
    const char *name = tn_basename(path);
    size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 && is_so_suffix(name + n);
}

int tn_is_libcuda(const char *path)
{
    return is_library(path, "libcuda");
}

/* Wheels rename the library they carry to libcudart-<hash>.so.<version>. */
int tn_is_libcudart(const char *path)
{
    static const char renamed[] = "libcudart-";
    const char *name = tn_basename(path);
    if (is_library(path, "libcudart"))
        return 1;
    if (strncmp(name, renamed, sizeof renamed - 1) != 0)
        return 0;
    name += sizeof renamed - 1;
    size_t hash = strcspn(name, ".");
    return hash > 0 && is_so_suffix(name + hash);
}

int tn_is_nvml(const char *path)
{
    return is_library(path, "libnvidia-ml");
}
