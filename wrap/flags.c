/* Prints the linker's flags for libtenure_wrap.a, one a line, from the API table. Runs at build time only.
 *
 *   --wrap=NAME      the program's calls of NAME go to the archive's __wrap_NAME
 *   -u tenure_wrap   draws in the archive's one object wherever the archive stands among the libraries
 *   --no-as-needed   the archive refers to the real functions weakly, since a program need not link everything that can
 *                    be wrapped; that alone would not keep a shared runtime among the program's libraries. (-u NAME would
 *                    be no help: it makes a name that nobody defines an error.)
 *   tenure_v1_...    exported, because tenure.h looks them up by dlsym, and the allocators of tiers/ tenure_tiers_seam_v1
 *   dlsym, dlclose   with libraries: the executable's own, exported, so that every library in the process finds them
 *                    first; without: wrapped like the rest */
#include <stdio.h>
#include <string.h>

static const char *const rows[] = {
#define TN_DRIVER(klass, variant, name, ...) #name,
#define TN_RUNTIME TN_DRIVER
#define TN_NVML(klass, name, ...) #name,
#include "shim/api_all.def"
};
#define ROWS (sizeof rows / sizeof rows[0])
static const char *const told[] = {"tenure_v1_phase", "tenure_v1_mark", "tenure_v1_range", "tenure_tiers_seam_v1"};

int main(int argc, char **argv)
{
    int libs = argc == 2 && strcmp(argv[1], "libs") == 0;
    if (!libs && (argc != 2 || strcmp(argv[1], "no-libs") != 0)) {
        fputs("usage: flags libs|no-libs\n", stderr);
        return 2;
    }
    puts("-Wl,--no-as-needed\n-Wl,-u,tenure_wrap");
    puts(libs ? "-Wl,--defsym=dlsym=__wrap_dlsym\n-Wl,--defsym=dlclose=__wrap_dlclose\n"
                "-Wl,--export-dynamic-symbol=dlsym\n-Wl,--export-dynamic-symbol=dlclose"
              : "-Wl,--wrap=dlsym\n-Wl,--wrap=dlclose");
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) printf("-Wl,--export-dynamic-symbol=%s\n", told[i]);
    for (size_t i = 0; i < ROWS; i++) printf("-Wl,--wrap=%s\n", rows[i]);
    return fflush(stdout) != 0;
}
