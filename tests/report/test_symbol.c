/* Names from the symbol tables of this very program (linked with -rdynamic), and every way to have none. */
#define _GNU_SOURCE
#include <check.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/report/report_test.h"

int symbol_anchor(int x);
__attribute__((noinline)) int symbol_anchor(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 3 + 1;
}
static __attribute__((noinline)) int hidden_anchor(int x)
{
    __asm__ volatile("" : "+r"(x));
    return x * 5 + 1;
}

static tn_rec_module self;
static uintptr_t base;
static tn_symbols *symbols;
static const char *source; /* of the name found last */

/* The first module is the program itself. */
static int read_self(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE)
            continue;
        const char *at = (const char *)(base + segment->p_vaddr), *end = at + segment->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr) *note = (const void *)at;
            const char *name = at + sizeof(*note), *desc = name + ((note->n_namesz + 3) & ~3u);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
                self.build_id_bytes = (uint8_t)note->n_descsz;
                memcpy(self.build_id, desc, note->n_descsz);
                return 1;
            }
            at = desc + ((note->n_descsz + 3) & ~3u);
        }
    }
    return 1;
}

static void make(void)
{
    scratch_make();
    dl_iterate_phdr(read_self, NULL);
    ck_assert_uint_gt(self.build_id_bytes, 0);
    symbols = tn_symbols_new();
    ck_assert_ptr_nonnull(symbols);
}

static void drop(void)
{
    tn_symbols_free(symbols);
    scratch_remove();
}

static tn_symbol_state find(const tn_rec_module *module, const char *path, uint64_t offset, const char **name)
{
    tn_symbol symbol = {0};
    tn_symbol_state state = tn_symbols_find(symbols, module, path, offset, &symbol);
    *name = symbol.name;
    source = symbol.source;
    ck_assert((state == TN_SYMBOL_FOUND) == (*name != NULL));
    ck_assert((state == TN_SYMBOL_FOUND) == (tn_symbol_state_text(state) == NULL));
    return state;
}

/* Copies this program, its full symbol table turned into a section of no meaning. */
static const char *without_full_table(const char *file)
{
    const char *path = scratch_file(file);
    FILE *in = fopen("/proc/self/exe", "r"), *out = fopen(path, "w+");
    ck_assert(in && out);
    int c;
    while ((c = fgetc(in)) != EOF)
        fputc(c, out);
    ElfW(Ehdr) header;
    rewind(out);
    ck_assert_uint_eq(fread(&header, sizeof(header), 1, out), 1);
    int found = 0;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        ElfW(Shdr) section;
        long at = (long)(header.e_shoff + (uint64_t)i * header.e_shentsize);
        ck_assert_int_eq(fseek(out, at, SEEK_SET), 0);
        ck_assert_uint_eq(fread(&section, sizeof(section), 1, out), 1);
        if (section.sh_type != SHT_SYMTAB)
            continue;
        section.sh_type = SHT_PROGBITS;
        found = 1;
        ck_assert_int_eq(fseek(out, at, SEEK_SET), 0);
        ck_assert_uint_eq(fwrite(&section, sizeof(section), 1, out), 1);
    }
    ck_assert_int_eq(found, 1);
    fclose(in);
    fclose(out);
    return path;
}

START_TEST(finds_its_own_function)
{
    const char *name;
    uint64_t start = (uintptr_t)symbol_anchor - base;
    /* A return address is never the first byte of its function; the byte after a function may be. */
    ck_assert_int_eq(find(&self, "/proc/self/exe", start + 1, &name), TN_SYMBOL_FOUND);
    ck_assert_str_eq(name, "symbol_anchor");
    ck_assert_str_eq(source, "dynsym");
    if (find(&self, "/proc/self/exe", start, &name) == TN_SYMBOL_FOUND)
        ck_assert_str_ne(name, "symbol_anchor");
    ck_assert_int_eq(symbol_anchor(2) + hidden_anchor(2), 18);
}
END_TEST

START_TEST(a_local_function_has_its_name_in_the_full_table)
{
    const char *name;
    ck_assert_int_eq(find(&self, "/proc/self/exe", (uintptr_t)hidden_anchor - base + 1, &name), TN_SYMBOL_FOUND);
    ck_assert_str_eq(name, "hidden_anchor");
    ck_assert_str_eq(source, "symtab");
}
END_TEST

START_TEST(a_stripped_file_names_what_it_exports)
{
    const char *name, *path = without_full_table("stripped");
    ck_assert_int_eq(find(&self, path, (uintptr_t)symbol_anchor - base + 1, &name), TN_SYMBOL_FOUND);
    ck_assert_str_eq(source, "dynsym");
    ck_assert_int_eq(find(&self, path, (uintptr_t)hidden_anchor - base + 1, &name), TN_SYMBOL_NOT_IN_TABLE);
}
END_TEST

START_TEST(addresses_in_no_function)
{
    const char *name;
    ck_assert_int_eq(find(&self, "/proc/self/exe", 0, &name), TN_SYMBOL_NOT_IN_TABLE);
    ck_assert_int_eq(find(&self, "/proc/self/exe", UINT64_MAX, &name), TN_SYMBOL_NOT_IN_TABLE);
}
END_TEST

START_TEST(another_build_is_not_asked)
{
    const char *name;
    tn_rec_module other = self;
    other.build_id[0] ^= 1;
    ck_assert_int_eq(find(&other, "/proc/self/exe", (uintptr_t)symbol_anchor - base + 1, &name), TN_SYMBOL_OTHER_FILE);
    other = self;
    other.build_id_bytes--;
    ck_assert_int_eq(find(&other, "/proc/self/exe", (uintptr_t)symbol_anchor - base + 1, &name), TN_SYMBOL_OTHER_FILE);
}
END_TEST

START_TEST(modules_without_a_file)
{
    const char *name;
    tn_rec_module odd = self;
    ck_assert_int_eq(find(&self, "/nowhere/at/all", 1, &name), TN_SYMBOL_NO_FILE);
    ck_assert_int_eq(find(&self, "", 1, &name), TN_SYMBOL_NO_FILE);
    ck_assert_int_eq(find(&self, NULL, 1, &name), TN_SYMBOL_NO_FILE);
    ck_assert_int_eq(find(&self, "/tmp", 1, &name), TN_SYMBOL_NO_FILE);
    odd.hashed = 1;
    ck_assert_int_eq(find(&odd, "/proc/self/exe", 1, &name), TN_SYMBOL_NO_ID);
    odd.jit = 1;
    ck_assert_int_eq(find(&odd, "", 0, &name), TN_SYMBOL_JIT);
    ck_assert_int_eq(mkfifo(scratch_file("pipe"), 0600), 0);
    ck_assert_int_eq(find(&self, scratch_file("pipe"), 1, &name), TN_SYMBOL_NO_FILE);
}
END_TEST

/* Copies this program with its bytes from `from` on, one in `step`, replaced. */
static const char *damaged(const char *file, size_t keep, size_t from, size_t step)
{
    const char *path = scratch_file(file);
    FILE *in = fopen("/proc/self/exe", "r"), *out = fopen(path, "w");
    ck_assert(in && out);
    int c;
    for (size_t i = 0; i < keep && (c = fgetc(in)) != EOF; i++)
        fputc(i >= from && (i - from) % step == 0 ? 0xfe : c, out);
    fclose(in);
    fclose(out);
    return path;
}

START_TEST(damaged_files_only_lose_names)
{
    const char *name;
    uint64_t offset = (uintptr_t)symbol_anchor - base + 1;
    char file[32];
    ck_assert_int_eq(find(&self, damaged("text", 8, 0, 1), offset, &name), TN_SYMBOL_NOT_ELF);
    ck_assert_int_eq(find(&self, damaged("whole", SIZE_MAX, SIZE_MAX, 1), offset, &name), TN_SYMBOL_FOUND);
    for (size_t keep = 16; keep < 20000; keep = keep * 5 / 3) {
        snprintf(file, sizeof(file), "cut%zu", keep);
        tn_symbol_state state = find(&self, damaged(file, keep, SIZE_MAX, 1), offset, &name);
        ck_assert_int_ne(state, TN_SYMBOL_FOUND);
    }
    /* Every byte of the ELF header and of the program headers, one file each: no crash, and never a wrong name. */
    for (size_t i = 4; i < 64 + 12 * 56; i++) {
        snprintf(file, sizeof(file), "bad%zu", i);
        const char *path = damaged(file, SIZE_MAX, i, SIZE_MAX);
        if (find(&self, path, offset, &name) == TN_SYMBOL_FOUND)
            ck_assert_str_eq(name, "symbol_anchor");
        remove(path);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("symbol");
    TCase *tc = tcase_create("symbol");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, make, drop);
    tcase_add_test(tc, finds_its_own_function);
    tcase_add_test(tc, a_local_function_has_its_name_in_the_full_table);
    tcase_add_test(tc, a_stripped_file_names_what_it_exports);
    tcase_add_test(tc, addresses_in_no_function);
    tcase_add_test(tc, another_build_is_not_asked);
    tcase_add_test(tc, modules_without_a_file);
    tcase_add_test(tc, damaged_files_only_lose_names);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
