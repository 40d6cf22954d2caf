/* Names, files and lines from this very program (linked with -rdynamic and -g), and every way to have none. */
#define _GNU_SOURCE
#include <check.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report_symbol_job.h"
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


static int point_line;
/* A point in code that is inlined, with a name of its own so that its address can be had. */
extern const char inlined_point[];
static inline __attribute__((always_inline)) int inlined_anchor(int x)
{
    __asm__ volatile(".globl inlined_point\ninlined_point: nop" : "+r"(x)); point_line = __LINE__;
    return x + point_line;
}
int outer_anchor(int x);
enum { CALL_LINE = __LINE__ + 3 };
__attribute__((noinline)) int outer_anchor(int x)
{
    return inlined_anchor(x) * 7;
}

static tn_rec_module self;
static uintptr_t base;
static tn_symbols *symbols;
static const tn_symbol *last; /* the answer got last */
static const char *source;    /* of its name */

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
    symbols = tn_symbols_new(NULL);
    ck_assert_ptr_nonnull(symbols);
}

static void start_again(const tn_symbol_options *options)
{
    tn_symbols_free(symbols);
    symbols = tn_symbols_new(options);
    ck_assert_ptr_nonnull(symbols);
}

static void drop(void)
{
    tn_symbols_free(symbols);
    scratch_remove();
}

static tn_symbol_state find(const tn_rec_module *module, const char *path, uint64_t offset, const char **name)
{
    last = tn_symbols_get(symbols, module, path, offset);
    tn_symbol_state state = last->state;
    *name = last->name;
    source = last->source;
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
    ck_assert_int_eq(find(&self, path, (uintptr_t)hidden_anchor - base + 1, &name), TN_SYMBOL_FOUND);
    ck_assert_str_eq(name, "hidden_anchor");
    ck_assert_str_eq(source, "debug");
    /* Without that, too, there is a reason. */
    start_again(&(tn_symbol_options){.seconds = 20, .debug_bytes = 1});
    ck_assert_int_eq(find(&self, path, (uintptr_t)hidden_anchor - base + 1, &name), TN_SYMBOL_STRIPPED);
    ck_assert_int_eq(last->line_state, TN_SYMBOL_DEBUG_LARGE);
    ck_assert_int_eq(find(&self, path, (uintptr_t)symbol_anchor - base + 1, &name), TN_SYMBOL_FOUND);
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

START_TEST(functions_files_and_lines)
{
    const char *name;
    ck_assert_int_eq(find(&self, "/proc/self/exe", (uintptr_t)symbol_anchor - base + 1, &name), TN_SYMBOL_FOUND);
    ck_assert_int_eq(last->line_state, TN_SYMBOL_FOUND);
    ck_assert_uint_eq(last->frame_count, 1);
    ck_assert_str_eq(last->frames[0].function, "symbol_anchor");
    ck_assert_ptr_nonnull(strstr(last->frames[0].file, "tests/report/test_symbol.c"));
    ck_assert_uint_gt(last->frames[0].line, 0);
}
END_TEST

START_TEST(inlined_functions_come_first)
{
    const char *name;
    ck_assert_int_eq(outer_anchor(1), (1 + point_line) * 7);
    ck_assert_int_eq(find(&self, "/proc/self/exe", (uintptr_t)inlined_point - base + 1, &name), TN_SYMBOL_FOUND);
    ck_assert_uint_eq(last->frame_count, 2);
    ck_assert_str_eq(last->frames[0].function, "inlined_anchor");
    ck_assert_uint_eq(last->frames[0].line, point_line);
    ck_assert_str_eq(last->frames[1].function, "outer_anchor");
    ck_assert_uint_eq(last->frames[1].line, CALL_LINE);
}
END_TEST

START_TEST(mangled_names_are_told_as_in_the_source)
{
    static const char *const names[][2] = {
        {"_ZN2at6native10empty_cudaEN3c108ArrayRefIlEE", "at::native::empty_cuda(c10::ArrayRef<long>)"},
        {"_ZNK3FooclEi", "Foo::operator()(int) const"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_ZN4core3ops8function6FnOnce9call_once17h0123456789abcdefE", "core::ops::function::FnOnce::call_once"},
        {"main", NULL}, {"_", NULL}, {"", NULL}, {"_Z", NULL}, {"_ZN", NULL}, {"_Release", NULL},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char *plain = tn_demangle(names[i][0]);
        if (names[i][1])
            ck_assert_str_eq(plain, names[i][1]);
        else
            ck_assert_msg(plain == NULL, "%s: %s", names[i][0], plain);
        free(plain);
    }
}
END_TEST

/* Splits a copy of this program as a distribution does: one file stripped of all, its debug file in a folder of such. */
static const char *split(char *folder, size_t size)
{
    char command[4096], hex[65] = "";
    const char *whole = scratch_file("whole"), *stripped = scratch_file("stripped");
    for (unsigned i = 0; i < self.build_id_bytes; i++)
        snprintf(hex + (size_t)2 * i, 3, "%02x", self.build_id[i]);
    snprintf(folder, size, "%s", scratch_path());
    snprintf(command, sizeof(command),
             "cat /proc/%d/exe >%s && mkdir -p %s/.build-id/%.2s && objcopy --only-keep-debug %s %s/.build-id/%.2s/%s.debug && "
             "objcopy --strip-all %s %s",
             (int)getpid(), whole, folder, hex, whole, folder, hex, hex + 2, whole, stripped);
    ck_assert_int_eq(system(command), 0);
    return stripped;
}

START_TEST(a_debug_file_is_found_by_build_id)
{
    char folder[1024];
    const char *name, *path = split(folder, sizeof(folder));
    uint64_t offset = (uintptr_t)hidden_anchor - base + 1;
    ck_assert_int_eq(find(&self, path, offset, &name), TN_SYMBOL_STRIPPED);
    ck_assert_int_eq(last->line_state, TN_SYMBOL_NO_DEBUG);
    start_again(&(tn_symbol_options){.seconds = 20, .debug_bytes = TN_SYMBOL_DEBUG_BYTES, .debug_dir = folder});
    ck_assert_int_eq(find(&self, path, offset, &name), TN_SYMBOL_FOUND);
    ck_assert_str_eq(name, "hidden_anchor");
    ck_assert_str_eq(source, "symtab");
    ck_assert_ptr_nonnull(strstr(last->frames[0].file, "test_symbol.c"));
    /* It names what lies on another machine, too. */
    ck_assert_int_eq(find(&self, "/nowhere/at/all", offset, &name), TN_SYMBOL_FOUND);
    ck_assert_str_eq(name, "hidden_anchor");
}
END_TEST

START_TEST(no_time_no_names)
{
    const char *name;
    start_again(&(tn_symbol_options){.seconds = 0, .debug_bytes = TN_SYMBOL_DEBUG_BYTES});
    ck_assert_int_eq(find(&self, "/proc/self/exe", (uintptr_t)symbol_anchor - base + 1, &name), TN_SYMBOL_TIME);
    ck_assert_int_eq(last->line_state, TN_SYMBOL_TIME);
}
END_TEST

START_TEST(answers_stay_and_are_the_same)
{
    uint64_t offset = (uintptr_t)symbol_anchor - base + 1;
    for (uint64_t i = 0; i < 3000; i++)
        tn_symbols_want(symbols, &self, "/proc/self/exe", offset - 1500 + i);
    const tn_symbol *first = tn_symbols_get(symbols, &self, "/proc/self/exe", offset);
    ck_assert_str_eq(first->name, "symbol_anchor");
    ck_assert_ptr_eq(tn_symbols_get(symbols, &self, "/proc/self/exe", offset), first);
}
END_TEST

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
    /* Bytes of the ELF header and of the program headers, one file each: no crash, and never a wrong name. */
    for (size_t i = 4; i < 64 + 12 * 56; i += i < 64 ? 1 : 5) {
        snprintf(file, sizeof(file), "bad%zu", i);
        const char *path = damaged(file, SIZE_MAX, i, SIZE_MAX);
        if (find(&self, path, offset, &name) == TN_SYMBOL_FOUND)
            ck_assert_str_eq(name, "symbol_anchor");
        remove(path);
    }
}
END_TEST

/* One byte in a few hundred replaced, throughout: section headers, tables, DWARF. Whatever becomes of the reader, the
 * healthy module that is asked for with it keeps its name, its file and its line. */
START_TEST(a_hostile_file_harms_no_other)
{
    const char *name;
    char file[32];
    start_again(&(tn_symbol_options){.seconds = 200, .debug_bytes = TN_SYMBOL_DEBUG_BYTES});
    for (size_t i = 0; i < 40; i++) {
        snprintf(file, sizeof(file), "hostile%zu", i);
        const char *path = damaged(file, SIZE_MAX, 1000 + i * 13, 100 + i * 37);
        for (uint64_t k = 0; k < 60; k++)
            tn_symbols_want(symbols, &self, path, (uintptr_t)symbol_anchor - base + 1 + k * 97);
        tn_symbols_want(symbols, &self, "/proc/self/exe", (uintptr_t)symbol_anchor - base + 1 + i);
        ck_assert_int_eq(find(&self, "/proc/self/exe", (uintptr_t)symbol_anchor - base + 1 + i % 4, &name), TN_SYMBOL_FOUND);
        ck_assert_str_eq(name, "symbol_anchor");
        ck_assert_int_eq(last->line_state, TN_SYMBOL_FOUND);
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
    tcase_add_test(tc, functions_files_and_lines);
    tcase_add_test(tc, inlined_functions_come_first);
    tcase_add_test(tc, mangled_names_are_told_as_in_the_source);
    tcase_add_test(tc, a_debug_file_is_found_by_build_id);
    tcase_add_test(tc, no_time_no_names);
    tcase_add_test(tc, answers_stay_and_are_the_same);
    tcase_add_test(tc, a_hostile_file_harms_no_other);
    tcase_add_test(tc, damaged_files_only_lose_names);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
