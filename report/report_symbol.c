/* Reads .dynsym with libelf, once a module, and answers by binary search. */
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
    uint8_t weak;
} symbol;

typedef struct module_table {
    struct module_table *next;
    uint8_t build_id[32];
    uint8_t build_id_bytes;
    char *path;
    tn_symbol_state state; /* TN_SYMBOL_FOUND: symbols can be looked up */
    Elf *elf;              /* keeps the string table's data; its file is closed */
    const char *strings;
    symbol *symbols;
    size_t count;
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
        free(m->symbols);
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
    if (x->weak != y->weak) /* of two names for one function the strong one is its own */
        return x->weak < y->weak ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

/* Fills m->symbols from the dynamic symbol table; leaves them empty where there is none. */
static void read_table(module_table *m)
{
    Elf_Scn *section = NULL;
    while ((section = elf_nextscn(m->elf, section))) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM || header.sh_entsize == 0)
            continue;
        Elf_Scn *string_section = elf_getscn(m->elf, header.sh_link);
        Elf_Data *strings = string_section ? elf_getdata(string_section, NULL) : NULL;
        Elf_Data *data = elf_getdata(section, NULL);
        if (!strings || !strings->d_buf || !data || !data->d_buf)
            return;
        size_t entries = data->d_size / header.sh_entsize;
        m->symbols = calloc(entries ? entries : 1, sizeof(symbol));
        if (!m->symbols)
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
            m->symbols[m->count++] = (symbol){.value = sym.st_value, .size = sym.st_size, .name = sym.st_name,
                                              .weak = GELF_ST_BIND(sym.st_info) == STB_WEAK};
        }
        m->strings = strings->d_buf;
        qsort(m->symbols, m->count, sizeof(symbol), by_address);
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
            read_table(m);
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

tn_symbol_state tn_symbols_find(tn_symbols *symbols, const tn_rec_module *module, const char *path, uint64_t offset,
                                const char **name, uint64_t *delta)
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
    size_t low = 0, high = m->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (m->symbols[middle].value <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* A symbol inside another one's range can end before the address: look at a few before it, too. */
    const symbol *found = NULL;
    for (size_t i = low, tries = 0; i-- > 0 && tries < 16; tries++) {
        const symbol *s = &m->symbols[i];
        if (found && s->value != found->value)
            break;
        if (address - s->value < s->size)
            found = s;
    }
    if (!found)
        return TN_SYMBOL_NOT_IN_TABLE;
    *name = m->strings + found->name;
    *delta = offset - found->value;
    return TN_SYMBOL_FOUND;
}

const char *tn_symbol_state_text(tn_symbol_state state)
{
    static const char *const texts[TN_SYMBOL_STATE_COUNT] = {
        [TN_SYMBOL_JIT] = "code made at run time, in no file",
        [TN_SYMBOL_NO_FILE] = "the module's file cannot be read here",
        [TN_SYMBOL_NOT_ELF] = "the file at its path is not an ELF file",
        [TN_SYMBOL_NO_ID] = "the module has no build-id to know its file by",
        [TN_SYMBOL_OTHER_FILE] = "the file at its path has another build-id",
        [TN_SYMBOL_NOT_IN_TABLE] = "no function of the dynamic symbol table holds it",
    };
    return state > TN_SYMBOL_FOUND && state < TN_SYMBOL_STATE_COUNT ? texts[state] : NULL;
}
