/* A library that is no part of CUDA but has names that begin like it, one that the driver has too, and looks things up for itself. */
#define _GNU_SOURCE
#include <dlfcn.h>

int cudnnCreate(void **handle);
int cublasCreate_v2(void **handle);
int curl_easy_init(void);
int cuMemAllocAnything(void);
int cuInit(unsigned flags);
void *plug_next(const char *name);
void *plug_default(const char *name);

int cudnnCreate(void **handle) { return handle == 0; }
int cublasCreate_v2(void **handle) { return handle == 0; }
int curl_easy_init(void) { return 7; }
int cuMemAllocAnything(void) { return 8; }
int cuInit(unsigned flags) { return 4200 + (int)flags; }

/* Not tail calls: for these two the loader looks at the return address. */
void *plug_next(const char *name)
{
    void *p = dlsym(RTLD_NEXT, name);
    __asm__ volatile("" ::: "memory");
    return p;
}

void *plug_default(const char *name)
{
    void *p = dlsym(RTLD_DEFAULT, name);
    __asm__ volatile("" ::: "memory");
    return p;
}
