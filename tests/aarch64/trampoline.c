/* Enters dlsym with every callee-saved register filled and says what the real one and the caller saw. Linked with the
 * observed dlsym, which stands behind the shim's where that is preloaded. "forwarded" look-ups continue in the real dlsym
 * as if it had been called itself; "asked" ones are made by the shim's own code. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "tests/aarch64/observe.h"

static int failures;

static void check(const char *what, int good)
{
    printf("%s %s\n", good ? "ok" : "not ok", what);
    failures += !good;
}

static void look(const char *how, void *handle, const char *name, int forwarded)
{
    unsigned long kept[OBSERVED_KEPT] = {0}, around[3] = {0}, seed = 0x0101010101010101u;
    char what[200];
    unsigned long calls = observed_entry.calls;
    void *p = call_dlsym(handle, name, seed, kept, around);
    const observed seen = observed_entry;
#define SAY(text) (snprintf(what, sizeof what, "%s %s: %s", how, name, text), what)
    check(SAY("reached the real one"), seen.calls > calls);
    check(SAY("answer"), p == NULL);
    check(SAY("handle"), seen.handle == (unsigned long)handle);
    check(SAY("name"), strcmp((const char *)seen.name, name) == 0);
#if defined(__x86_64__)
    check(SAY("stack aligned"), seen.stack % 16 == 8);
#else
    check(SAY("stack aligned"), seen.stack % 16 == 0);
#endif
    check(SAY("stack given back"), around[0] == around[1]);
    int same = 1, same_there = 1;
    for (unsigned i = 0; i < observed_registers; i++) {
        same &= kept[i] == seed * (i + 1);
        same_there &= seen.kept[i] == seed * (i + 1);
    }
    check(SAY("registers kept"), same);
    if (!forwarded) return;
    check(SAY("registers as the caller's"), same_there);
    check(SAY("return address the caller's"), seen.from == around[2]);
#if defined(__x86_64__)
    check(SAY("stack the caller's"), seen.stack == around[0] - 8); /* the return address */
#else
    check(SAY("stack the caller's"), seen.stack == around[0]);
#endif
}

int main(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    look("default", RTLD_DEFAULT, "malloc", 1);
    look("next", RTLD_NEXT, "malloc", 1);
    look("libc", libc, "cudnnCreate", 1);
    look("libc", libc, "curl_easy_init", 1);
    look("libc", libc, "cuMemAlloc_v2", 0);
    look("libc", libc, "cudaMalloc", 0);
    return failures != 0;
}
