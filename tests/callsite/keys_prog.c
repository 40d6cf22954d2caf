/* Prints the keys of a few call chains, for the scripts to compare between runs: keys_prog OWN_DIR|- LIBRARY...
 *   start R              what tn_callsite_start returned
 *   unwinder PATH        the libunwind in the process, or none
 *   site NAME KEY FRAMES FLAGS
 * and, with KEYS_VERBOSE set, where the libraries lie (so that a script can see that they moved). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/callsite.h"
#include "shim/modules.h"
#include "tests/callsite/mock_journal.h"

static __attribute__((noinline)) uint32_t hook(void *unused)
{
    (void)unused;
    uint32_t site = tn_callsite(__builtin_return_address(0), __builtin_frame_address(0), 1);
    __asm__ __volatile__("" ::: "memory");
    return site;
}

static __attribute__((noinline)) uint32_t funnel(void)
{
    uint32_t site = hook(NULL);
    __asm__ __volatile__("" ::: "memory");
    return site;
}

static void print_site(const char *name, uint32_t id)
{
    const mock_site *s = mock_site_of(id);
    if (s)
        printf("site %s %016llx %u %u\n", name, (unsigned long long)s->head.key, s->head.frame_count, s->head.flags);
    else
        printf("site %s none 0 0\n", name);
}

static int find_unwinder(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    if (strncmp(tn_basename(info->dlpi_name), "libunwind", 9) != 0)
        return 0;
    *(const char **)arg = info->dlpi_name;
    return 1;
}

static uint32_t run_library(const char *path)
{
    void *h = dlopen(path, RTLD_NOW);
    if (!h) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    uint32_t (*call)(uint32_t (*)(void *), void *) = (uint32_t(*)(uint32_t(*)(void *), void *))dlsym(h, "plug_call");
    if (getenv("KEYS_VERBOSE"))
        printf("at %s %p\n", tn_basename(path), (void *)(uintptr_t)call);
    return call ? call(hook, NULL) : TN_SITE_NONE;
}

int main(int argc, char **argv)
{
    const char *unwinder = "none";
    if (argc < 2)
        return 2;
    printf("start %d\n", tn_callsite_start(mock_journal(), strcmp(argv[1], "-") == 0 ? NULL : argv[1]));
    if (dlerror())
        puts("dlerror left behind");
    dl_iterate_phdr(find_unwinder, &unwinder);
    printf("unwinder %s\n", unwinder);
    print_site("first", funnel());
    print_site("second", funnel());
    print_site("direct", hook(NULL));
    for (int i = 2; i < argc; i++) {
        /* one call for all libraries: only the library's own frame differs, not the order in which they come */
        uint32_t id = run_library(argv[i]);
        print_site(tn_basename(argv[i]), id);
    }
    return 0;
}
