/* One of four libraries that define the same function: the next definition after each is another one, so a look-up of the
 * next one tells who the loader believes is asking. NUMBER says which library this is; the fourth needs the driver and
 * is opened for itself, so that only it has the driver's names in its scope. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define NAME_(prefix, n) prefix##n
#define NAME(prefix, n) NAME_(prefix, n)

int who(void) { return NUMBER; }

/* Not a tail call: the return address is to lie in this library. */
int NAME(after_, NUMBER)(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "who");
    return next ? next() : 0;
}

/* The same for a name of the table, which this library does not have behind it. */
int NAME(driver_after_, NUMBER)(void)
{
    void *p = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
    return p != NULL;
}

int NAME(driver_for_, NUMBER)(void)
{
    void *p = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
    return p != NULL;
}
