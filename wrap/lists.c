/* Prints what the build of libtenure_wrap.a needs to know of the API table: the linker's flags, the symbols that the
 * merged object keeps, and one small assembly source for each row. Runs at build time only. */
#include <stdio.h>
#include <string.h>

static const char *const rows[] = {
#define TN_DRIVER(klass, variant, name, ...) #name,
#define TN_RUNTIME TN_DRIVER
#define TN_NVML(klass, name, ...) #name,
#include "shim/api_all.def"
};
#define ROWS (sizeof rows / sizeof rows[0])

/* The loader's two functions: exported from the executable, they serve the libraries in the process as well; wrapped, only
 * what is linked into the executable. */
static void flags(int libs)
{
    for (size_t i = 0; i < ROWS; i++) printf("-Wl,--wrap=%s\n", rows[i]);
    puts(libs ? "-Wl,-u,tenure_wrap_dlsym\n-Wl,--export-dynamic-symbol=dlsym\n-Wl,--export-dynamic-symbol=dlclose"
              : "-Wl,--wrap=dlsym\n-Wl,--wrap=dlclose");
}

/* For objcopy --redefine-syms: the hooks and the loader's functions get names that only this archive uses, and the names
 * that the program's calls are sent to are left to the members below. */
static void rename_hooks(void)
{
    for (size_t i = 0; i < ROWS; i++) printf("__wrap_%s tenure_hook_%s\n", rows[i], rows[i]);
    puts("dlclose tenure_wrap_dlclose\ntn_dlsym_route tenure_wrap_route");
}

/* For objcopy --keep-global-symbols: everything else of the merged object is its own. */
static void keep(void)
{
    for (size_t i = 0; i < ROWS; i++) printf("tenure_hook_%s\n", rows[i]);
    puts("tenure_wrap_dlclose\ntenure_wrap_route");
}

/* One archive member a row. The second jump is never reached: it is the strong reference without which a static runtime's
 * member would not be drawn in, and --as-needed would leave a shared one out. (A relocation that does nothing would be
 * enough for that, but ld refuses one against a shared library.) The return address stays the caller's. */
static void member(const char *name, const char *hook, const char *real, int arm)
{
    printf("%s.s\n"
           "\t.text\n\t.globl %s\n\t.type %s, %%function\n\t.p2align 4\n%s:\n\t.cfi_startproc\n",
           name, name, name, name);
    printf(arm ? "\thint #34\n\tb %s\n" : "\tendbr64\n\tjmp %s\n", hook);
    if (real) printf(arm ? "\tb %s\n" : "\tjmp %s@PLT\n", real);
    printf("\t.cfi_endproc\n\t.size %s, . - %s\n\t.section .note.GNU-stack, \"\", %%progbits\n", name, name);
}

/* A stream of members for the build to split: a line FILE, the text, an empty line. */
static void members(int arm)
{
    char name[128], hook[128], real[128];
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(name, sizeof name, "__wrap_%s", rows[i]);
        snprintf(hook, sizeof hook, "tenure_hook_%s", rows[i]);
        snprintf(real, sizeof real, "__real_%s", rows[i]);
        member(name, hook, real, arm);
        putchar('\n');
    }
    member("__wrap_dlclose", "tenure_wrap_dlclose", NULL, arm);
    putchar('\n');
    member("dlclose", "tenure_wrap_dlclose", NULL, arm);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "flags")) flags(1);
    else if (!strcmp(what, "flags-nolibs")) flags(0);
    else if (!strcmp(what, "rename")) rename_hooks();
    else if (!strcmp(what, "keep")) keep();
    else if (!strcmp(what, "members")) members(argc > 2 && !strcmp(argv[2], "aarch64"));
    else {
        fputs("usage: lists flags|flags-nolibs|rename|keep|members [aarch64]\n", stderr);
        return 2;
    }
    return fflush(stdout) != 0;
}
