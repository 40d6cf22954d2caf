/* Reads .dynsym and .symtab with libelf, once a module, and answers by binary search. */
#define _GNU_SOURCE
#include "report/report_symbol.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* In the order of looking. What a module exports is named after its interface, so a local alias comes second. */
static const struct table_kind { unsigned section; const char *name; } table_kinds[] = {{SHT_DYNSYM, "dynsym"}, {SHT_SYMTAB, "symtab"}};
enum { TABLES = sizeof(table_kinds) / sizeof(table_kinds[0]) };

typedef struct module_table {
    struct module_table *next;
    uint8_t build_id[32];
    uint8_t build_id_bytes;
    char *path;
    tn_symbol_state state; /* TN_SYMBOL_FOUND: symbols can be looked up */
    Elf *elf;              /* keeps the string tables' data; its file is closed */
    symbol_table tables[TABLES];
} module_table;

struct tn_symbols {
    module_table *modules;
};

tn_symbols *tn_symbols_new(void)
{
    elf_version(EV_CURRENT);
    return calloc(1, sizeof(tn_symbols));
}

void tn_symbols_free(tn_symbols *symbols)
{
    if (!symbols)
        return;
    while (symbols->modules) {
        module_table *m = symbols->modules;
        symbols->modules = m->next;
        if (m->elf)
            elf_end(m->elf);
        for (int i = 0; i < TABLES; i++)
            free(m->tables[i].symbols);
        free(m->path);
        free(m);
    }
    free(symbols);
}

static int same_build_id(Elf *elf, const module_table *m)
{
    size_t headers = 0;
    if (elf_getphdrnum(elf, &headers) != 0)
        return 0;
    for (size_t i = 0; i < headers; i++) {
        GElf_Phdr ph;
        if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_NOTE)
            continue;
        Elf_Type type = ph.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz, type);
        if (!data)
            continue;
        GElf_Nhdr note;
        size_t at = 0, name, desc, next;
        while ((next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp((char *)data->d_buf + name, "GNU", 4) == 0)
                return note.n_descsz == m->build_id_bytes &&
                       memcmp((char *)data->d_buf + desc, m->build_id, m->build_id_bytes) == 0;
            at = next;
        }
    }
    return 0;
}

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

static tn_symbol_state read_module(module_table *m)
{
    /* O_NONBLOCK: where the module was, there may be a pipe now. */
    int fd = open(m->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return TN_SYMBOL_NO_FILE;
    struct stat st;
    tn_symbol_state state = TN_SYMBOL_NO_FILE;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        /* Not mapped: a file that shrinks under us must be a short read, not a SIGBUS. */
        m->elf = elf_begin(fd, ELF_C_READ, NULL);
        if (!m->elf || elf_kind(m->elf) != ELF_K_ELF)
            state = TN_SYMBOL_NOT_ELF;
        else if (!same_build_id(m->elf, m))
            state = TN_SYMBOL_OTHER_FILE;
        else {
            state = TN_SYMBOL_FOUND;
            for (int i = 0; i < TABLES; i++)
                read_table(m->elf, table_kinds[i].section, &m->tables[i]);
        }
    }
    close(fd);
    return state;
}

static module_table *module_of(tn_symbols *symbols, const tn_rec_module *module, const char *path)
{
    for (module_table *m = symbols->modules; m; m = m->next)
        if (m->build_id_bytes == module->build_id_bytes && memcmp(m->build_id, module->build_id, m->build_id_bytes) == 0 &&
            strcmp(m->path, path) == 0)
            return m;
    module_table *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->path = strdup(path);
    if (!m->path) {
        free(m);
        return NULL;
    }
    m->build_id_bytes = module->build_id_bytes;
    memcpy(m->build_id, module->build_id, sizeof(m->build_id));
    m->state = read_module(m);
    m->next = symbols->modules;
    symbols->modules = m;
    return m;
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

tn_symbol_state tn_symbols_find(tn_symbols *symbols, const tn_rec_module *module, const char *path, uint64_t offset, tn_symbol *out)
{
    if (module->jit)
        return TN_SYMBOL_JIT;
    if (!path || !path[0])
        return TN_SYMBOL_NO_FILE;
    if (module->hashed || module->build_id_bytes == 0 || module->build_id_bytes > sizeof(module->build_id))
        return TN_SYMBOL_NO_ID;
    module_table *m = module_of(symbols, module, path);
    if (!m)
        return TN_SYMBOL_NO_FILE;
    if (m->state != TN_SYMBOL_FOUND)
        return m->state;
    /* The call is before its return address; one that never returns may end its function. */
    uint64_t address = offset ? offset - 1 : 0;
    for (int i = 0; i < TABLES; i++) {
        const symbol *found = find_in(&m->tables[i], address);
        if (!found)
            continue;
        *out = (tn_symbol){.name = m->tables[i].strings + found->name, .delta = offset - found->value, .source = table_kinds[i].name};
        return TN_SYMBOL_FOUND;
    }
    return TN_SYMBOL_NOT_IN_TABLE;
}

const char *tn_symbol_state_text(tn_symbol_state state)
{
    static const char *const texts[TN_SYMBOL_STATE_COUNT] = {
        [TN_SYMBOL_JIT] = "code made at run time, in no file",
        [TN_SYMBOL_NO_FILE] = "the module's file cannot be read here",
        [TN_SYMBOL_NOT_ELF] = "the file at its path is not an ELF file",
        [TN_SYMBOL_NO_ID] = "the module has no build-id to know its file by",
        [TN_SYMBOL_OTHER_FILE] = "the file at its path has another build-id",
        [TN_SYMBOL_NOT_IN_TABLE] = "no function of the file's symbol tables holds it",
    };
    return state > TN_SYMBOL_FOUND && state < TN_SYMBOL_STATE_COUNT ? texts[state] : NULL;
}
