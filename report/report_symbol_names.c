/* Function names from symbol tables: the module's .dynsym, its .symtab, and that of its separate debug file. */
#define _GNU_SOURCE
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report_symbol_job.h"

typedef struct symbol {
    uint64_t value, size;
    uint32_t name; /* offset into the string table */
    uint8_t rank;  /* of several names for one function the lowest is taken */
} symbol;

typedef struct symbol_table {
    const char *strings;
    symbol *symbols;
    size_t count;
} symbol_table;

static int by_address(const void *a, const void *b)
{
    const symbol *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static uint8_t rank_of(unsigned binding)
{
    return binding == STB_LOCAL ? 2 : binding == STB_WEAK ? 1 : 0;
}

/* Fills the table from the file's first section of that type; leaves it empty where there is none. */
static void read_table(Elf *elf, unsigned type_wanted, symbol_table *table)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(elf, section))) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != type_wanted || header.sh_entsize == 0)
            continue;
        Elf_Scn *string_section = elf_getscn(elf, header.sh_link);
        Elf_Data *strings = string_section ? elf_getdata(string_section, NULL) : NULL;
        Elf_Data *data = elf_getdata(section, NULL);
        if (!strings || !strings->d_buf || !data || !data->d_buf)
            return;
        size_t entries = data->d_size / header.sh_entsize;
        table->symbols = calloc(entries ? entries : 1, sizeof(symbol));
        if (!table->symbols)
            return;
        for (size_t i = 0; i < entries; i++) {
            GElf_Sym sym;
            if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF || sym.st_size == 0)
                continue;
            unsigned type = GELF_ST_TYPE(sym.st_info);
            if (type != STT_FUNC && type != STT_GNU_IFUNC)
                continue;
            if (sym.st_name >= strings->d_size || !memchr((char *)strings->d_buf + sym.st_name, 0, strings->d_size - sym.st_name))
                continue;
            table->symbols[table->count++] = (symbol){.value = sym.st_value, .size = sym.st_size, .name = sym.st_name,
                                                      .rank = rank_of(GELF_ST_BIND(sym.st_info))};
        }
        table->strings = strings->d_buf;
        qsort(table->symbols, table->count, sizeof(symbol), by_address);
        return;
    }
}

static const symbol *find_in(const symbol_table *table, uint64_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->symbols[middle].value <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* A symbol inside another one's range can end before the address: look at a few before it, too. */
    const symbol *found = NULL;
    for (size_t i = low, tries = 0; i-- > 0 && tries < 16; tries++) {
        const symbol *s = &table->symbols[i];
        if (found && s->value != found->value)
            break;
        if (address - s->value < s->size)
            found = s;
    }
    return found;
}

/* Tells the names that the table has and marks them in `named`. */
static void tell_from(const tn_symbol_job *job, Elf *elf, unsigned type, const char *source, uint8_t *named)
{
    symbol_table table = {0};
    size_t left = 0;
    for (size_t i = 0; i < job->count; i++)
        left += !named[i];
    if (!elf || left == 0)
        return;
    read_table(elf, type, &table);
    for (size_t i = 0; i < job->count; i++) {
        uint64_t offset = job->offsets[i];
        /* The call is before its return address; one that never returns may end its function. */
        const symbol *found = named[i] ? NULL : find_in(&table, offset ? offset - 1 : 0);
        if (!found)
            continue;
        named[i] = 1;
        tn_tell_name(job, i, table.strings + found->name, source, offset - found->value);
    }
    free(table.symbols);
}

void tn_symbol_names(const tn_symbol_job *job)
{
    tn_symbol_state why = TN_SYMBOL_FOUND;
    int fd, debug_fd;
    Elf *elf = tn_symbol_open(job, &fd, &why), *debug = tn_symbol_open_debug(job, &debug_fd);
    uint8_t *named = calloc(job->count, 1);
    if (!named) {
        why = TN_SYMBOL_FAILED;
    } else if (elf || debug) {
        int full = (elf && tn_symbol_has_section(elf, SHT_SYMTAB, NULL)) || debug != NULL;
        why = full ? TN_SYMBOL_NOT_IN_TABLE : TN_SYMBOL_STRIPPED;
        /* What a module exports is named after its interface, so a local alias comes second. */
        tell_from(job, elf, SHT_DYNSYM, "dynsym", named);
        tell_from(job, elf, SHT_SYMTAB, "symtab", named);
        tell_from(job, debug, SHT_SYMTAB, "symtab", named);
    }
    tn_tell_name_state(job, why);
    free(named);
    elf_end(elf);
    elf_end(debug);
    close(fd);
    close(debug_fd);
}
