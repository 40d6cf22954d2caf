#include "shim/elf.h"

#include <elf.h>
#include <string.h>

#include "shim/modules.h"
#include "shim/pages.h"

#define OBJECTS_MAX 2048u

typedef struct object {
    uint64_t base;
    const ElfW(Dyn) *dynamic;
    const char *path;
    int queued;
} object;

typedef struct search {
    const void *caller;
    const char *name;
    object *objects; /* all of the process */
    uint32_t count, first;
    uint16_t *queue;
    const void *found;
} search;

/* The loader has relocated these pointers in place, except in sections that are read-only. */
const void *tn_elf_entry(uint64_t base, const ElfW(Dyn) *dynamic, ElfW(Sxword) tag, uint64_t *value)
{
    for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag) {
            if (value) *value = d->d_un.d_val;
            return (const void *)(d->d_un.d_ptr >= base ? d->d_un.d_ptr : base + d->d_un.d_ptr);
        }
    return NULL;
}

static const void *pointer(const object *o, ElfW(Sxword) tag) { return tn_elf_entry(o->base, o->dynamic, tag, NULL); }

static const void *defined(const object *o, const ElfW(Sym) *symbol, const char *strings, const char *name)
{
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL) return NULL;
    return strcmp(strings + symbol->st_name, name) == 0 ? (const void *)(o->base + symbol->st_value) : NULL;
}

static const void *in_gnu_hash(const object *o, const uint32_t *table, const ElfW(Sym) *symbols, const char *strings, const char *name)
{
    uint32_t hash = 5381, buckets = table[0], offset = table[1];
    const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(const void *)(table + 4) + table[2]), *chain = bucket + buckets;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++) hash = hash * 33 + *c;
    uint32_t i = buckets ? bucket[hash % buckets] : 0;
    for (; i >= offset && i; i++) {
        uint32_t there = chain[i - offset];
        const void *p = (there | 1) == (hash | 1) ? defined(o, &symbols[i], strings, name) : NULL;
        if (p) return p;
        if (there & 1) break;
    }
    return NULL;
}

static const void *in_object(const object *o, const char *name)
{
    const char *strings = pointer(o, DT_STRTAB);
    const ElfW(Sym) *symbols = pointer(o, DT_SYMTAB);
    const uint32_t *gnu = pointer(o, DT_GNU_HASH), *old = pointer(o, DT_HASH);
    if (!strings || !symbols) return NULL;
    if (gnu) return in_gnu_hash(o, gnu, symbols, strings, name);
    for (uint32_t i = 1; old && i < old[1]; i++) {
        const void *p = defined(o, &symbols[i], strings, name);
        if (p) return p;
    }
    return NULL;
}

static int has_name(const object *o, const char *needed)
{
    const char *strings = pointer(o, DT_STRTAB);
    if (o->path && (strcmp(o->path, needed) == 0 || strcmp(tn_basename(o->path), needed) == 0)) return 1;
    for (const ElfW(Dyn) *d = o->dynamic; strings && d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_SONAME) return strcmp(strings + d->d_un.d_val, needed) == 0;
    return 0;
}

/* Breadth first, as the loader does. */
static void search_from(search *s)
{
    uint32_t queued = 1;
    s->queue[0] = (uint16_t)s->first;
    s->objects[s->first].queued = 1;
    for (uint32_t at = 0; at < queued && !s->found; at++) {
        const object *o = &s->objects[s->queue[at]];
        const char *strings = pointer(o, DT_STRTAB);
        s->found = in_object(o, s->name);
        for (const ElfW(Dyn) *d = o->dynamic; strings && d && d->d_tag != DT_NULL; d++) {
            if (d->d_tag != DT_NEEDED) continue;
            for (uint32_t i = 0; i < s->count; i++) {
                if (s->objects[i].queued || !has_name(&s->objects[i], strings + d->d_un.d_val)) continue;
                s->objects[i].queued = 1;
                s->queue[queued++] = (uint16_t)i;
                break;
            }
        }
    }
}

static int collect(struct dl_phdr_info *info, size_t size, void *arg)
{
    search *s = arg;
    (void)size;
    if (s->count == OBJECTS_MAX) return 1;
    object *o = &s->objects[s->count];
    *o = (object){.base = info->dlpi_addr, .path = info->dlpi_name};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type == PT_DYNAMIC) o->dynamic = (const ElfW(Dyn) *)start;
        if (ph->p_type == PT_LOAD && (uint64_t)s->caller - start < ph->p_memsz) s->first = s->count;
    }
    s->count++;
    return 0;
}

/* All of it happens within one visit: until that returns no object can go away. */
static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    search *s = arg;
    (void)info;
    (void)size;
    tn_iterate_phdr(collect, s);
    if (s->first < s->count) search_from(s);
    return 1;
}

const void *tn_elf_find(const void *caller, const char *name)
{
    size_t bytes = OBJECTS_MAX * (sizeof(object) + sizeof(uint16_t));
    search s = {.caller = caller, .name = name, .first = UINT32_MAX, .objects = tn_pages(bytes)};
    if (!s.objects) return NULL;
    s.queue = (uint16_t *)(s.objects + OBJECTS_MAX);
    tn_iterate_phdr(visit, &s);
    tn_pages_free(s.objects, bytes);
    return s.found;
}
