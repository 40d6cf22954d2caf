/* Another preload that stands in front of the runtime with one name, needs no runtime itself, and says that it was met. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef FRONT_MALLOC
int cudaMalloc(void **out, size_t bytes)
{
    int (*next)(void **, size_t);
    void *p = dlsym(RTLD_NEXT, "cudaMalloc");
    memcpy(&next, &p, sizeof p);
    fprintf(stderr, "in front of cudaMalloc: %zu bytes\n", bytes);
    return next(out, bytes);
}
#else
int cudaFree(void *address)
{
    int (*next)(void *);
    void *p = dlsym(RTLD_NEXT, "cudaFree");
    memcpy(&next, &p, sizeof p);
    fprintf(stderr, "in front of cudaFree\n");
    return next(address);
}
#endif
