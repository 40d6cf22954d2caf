#include "shim/bypass.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shim/api.h"
#include "shim/elf.h"
#include "shim/gate.h"
#include "shim/modules.h"

#define OBJECTS 16 /* lines at most; the count goes on */

#if defined(__x86_64__)
#define IS_SLOT(type) ((type) == R_X86_64_JUMP_SLOT || (type) == R_X86_64_GLOB_DAT)
#elif defined(__aarch64__)
#define IS_SLOT(type) ((type) == R_AARCH64_JUMP_SLOT || (type) == R_AARCH64_GLOB_DAT)
#endif

void *dlsym(void *handle, const char *name); /* ours */

typedef struct slot_search {
    void (*say)(const char *);
    int found;
    char text[480];
    size_t length;
    const struct dl_phdr_info *object;
} slot_search;

static int lies_in(const struct dl_phdr_info *o, uint64_t addr)
{
    for (int i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_LOAD && addr - (o->dlpi_addr + o->dlpi_phdr[i].p_vaddr) < o->dlpi_phdr[i].p_memsz) return 1;
    return 0;
}

/* A slot that holds neither our hook nor the object's own stub of a function not called yet: whose function is it? One of a
 * library that is neither CUDA nor libc is another interposer's, which has its own way on. */
static void look_at(slot_search *s, const char *name, uint64_t value)
{
    tn_module_info m;
    int api = tn_api_find(name), is_dlsym = strcmp(name, "dlsym") == 0;
    if (!api && !is_dlsym) return;
#ifdef TENURE_WRAP
    if (!is_dlsym) return; /* libraries of a linked program call CUDA directly, and are met at the driver */
#endif
    const void *ours = api ? tn_api_rows[api].hook : (const void *)dlsym;
    if (!value || value == (uint64_t)ours || lies_in(s->object, value) || !tn_module_of((const void *)value, &m)) return;
    const char *in = tn_basename(m.path);
    if (api ? !tn_is_libcuda(m.path) && !tn_is_libcudart(m.path) && !tn_is_nvml(m.path) : strncmp(in, "libc.so", 7) != 0 && strncmp(in, "libdl.so", 8) != 0)
        return;
    int n = snprintf(s->text + s->length, sizeof s->text - s->length, "%s%s (%s)", s->length ? ", " : "", name, in);
    if (n > 0 && s->length + (size_t)n < sizeof s->text) s->length += (size_t)n;
    else s->text[s->length] = 0;
}

static void look_through(slot_search *s, const ElfW(Rela) *r, uint64_t bytes, const ElfW(Sym) *symbols, const char *strings)
{
    for (uint64_t i = 0; r && i < bytes / sizeof *r; i++) {
        uint64_t symbol = ELF64_R_SYM(r[i].r_info);
        if (!symbol || !IS_SLOT(ELF64_R_TYPE(r[i].r_info)) || symbols[symbol].st_shndx != SHN_UNDEF) continue;
        const char *name = strings + symbols[symbol].st_name;
        if (name[0] == 'c' || name[0] == 'n' || name[0] == 'd')
            look_at(s, name, *(const uint64_t *)(s->object->dlpi_addr + r[i].r_offset));
    }
}

static int visit_object(struct dl_phdr_info *o, size_t size, void *arg)
{
    slot_search *s = arg;
    const ElfW(Dyn) *dynamic = NULL;
    uint64_t plt_bytes = 0, bytes = 0;
    (void)size;
    for (int i = 0; i < o->dlpi_phnum; i++)
        if (o->dlpi_phdr[i].p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn) *)(o->dlpi_addr + o->dlpi_phdr[i].p_vaddr);
    if (!dynamic || lies_in(o, (uint64_t)visit_object)) return 0;
    const char *strings = tn_elf_entry(o->dlpi_addr, dynamic, DT_STRTAB, NULL);
    const ElfW(Sym) *symbols = tn_elf_entry(o->dlpi_addr, dynamic, DT_SYMTAB, NULL);
    if (!strings || !symbols) return 0;
    tn_elf_entry(o->dlpi_addr, dynamic, DT_PLTRELSZ, &plt_bytes);
    tn_elf_entry(o->dlpi_addr, dynamic, DT_RELASZ, &bytes);
    s->object = o;
    s->length = 0;
    look_through(s, tn_elf_entry(o->dlpi_addr, dynamic, DT_JMPREL, NULL), plt_bytes, symbols, strings);
    look_through(s, tn_elf_entry(o->dlpi_addr, dynamic, DT_RELA, NULL), bytes, symbols, strings);
    if (!s->length) return 0;
    if (s->found++ < OBJECTS) {
        char line[sizeof s->text + 400];
        snprintf(line, sizeof line, "%.300s resolved by itself: %s", o->dlpi_name, s->text);
        s->say(line);
    }
    return 0;
}

static int is_driver(struct dl_phdr_info *o, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    return o->dlpi_name && tn_is_libcuda(o->dlpi_name);
}

int tn_bypass_find(void (*say)(const char *text))
{
    slot_search s = {.say = say};
    if (tn_loader_forked() || !tn_iterate_phdr(is_driver, NULL)) return 0;
    tn_iterate_phdr(visit_object, &s);
    return s.found;
}
