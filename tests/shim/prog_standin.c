/* Links a library that defines a function of the driver's name, as a program's own tests do, and calls it in every way. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "tests/shim/prog.h"

extern int cuInit(unsigned flags);

static int call(void *p)
{
    return p == NULL ? -1 : ((int (*)(unsigned))p)(1);
}

int main(void)
{
    void *self = dlopen(NULL, RTLD_LAZY);
    MUST(self != NULL);
    printf("direct %d\n", cuInit(1));
    printf("default %d\n", call(dlsym(RTLD_DEFAULT, "cuInit")));
    printf("next %d\n", call(dlsym(RTLD_NEXT, "cuInit")));
    printf("self %d\n", call(dlsym(self, "cuInit")));
    return 0;
}
