/* Looks functions up in every way that dlsym knows and allocates through what it found. What it prints is the same with
 * and without the shim. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int after_1(void), after_2(void), after_3(void);
int driver_after_1(void), driver_after_2(void), driver_after_3(void);

static void look(const char *what, void *handle, const char *name)
{
    (void)dlerror();
    void *p = dlsym(handle, name);
    const char *error = dlerror();
    printf("%s %s: %s, %s", what, name, p ? "found" : "none", error ? "error" : "no error");
    printf(", then %s\n", dlerror() ? "error" : "no error");
}

static void misses(void)
{
    void *program = dlopen(NULL, RTLD_NOW);
    static const char *const names[] = {"cuMemAlloc_v2", "cudaMalloc", "nvmlDeviceGetMemoryInfo", "cudnnCreate", "curl_easy_init", "cu", ""};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        look("default", RTLD_DEFAULT, names[i]);
        look("next", RTLD_NEXT, names[i]);
        look("program", program, names[i]);
    }
    dlclose(program);
}

static void others(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    printf("malloc: default %d next %d libc %d\n", dlsym(RTLD_DEFAULT, "malloc") == dlsym(libc, "malloc"),
           dlsym(RTLD_NEXT, "malloc") == dlsym(libc, "malloc"), dlsym(libc, "malloc") != NULL);
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    void *p = allocate(100);
    printf("malloc works: %d\n", p != NULL);
    free(p);
    printf("close: %d\n", dlclose(libc));
    printf("next of who: %d %d %d\n", after_1(), after_2(), after_3());
    printf("next of cuMemAlloc_v2: %d %d %d\n", driver_after_1(), driver_after_2(), driver_after_3());
}

/* Only the library that asks has the driver in its scope. */
static void own_scope(void)
{
    void *lib = dlopen("libnext4.so", RTLD_NOW | RTLD_LOCAL);
    int (*driver_for_4)(void) = lib ? (int (*)(void))dlsym(lib, "driver_for_4") : NULL;
    printf("in its own scope: %d, in the program's: %d\n", driver_for_4 ? driver_for_4() : -1, dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL);
    (void)dlerror();
    dlclose(lib);
}

#define FIND(handle, name) ((__typeof__(&name))dlsym(handle, #name))

static void driver(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *entry = NULL, *again = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUdevice device = -1;
    CUcontext context = NULL;
    CUdeviceptr p = 0, q = 0, big = 1;
    size_t left = 0, total = 0;
    if (!lib) {
        printf("no driver: %s\n", dlerror());
        exit(1);
    }
    __typeof__(&cuGetProcAddress_v2) resolve = FIND(lib, cuGetProcAddress_v2);
    printf("init: %d\n", FIND(lib, cuInit)(0));
    printf("device: %d", FIND(lib, cuDeviceGet)(&device, 0));
    printf(" %d\n", FIND(lib, cuDevicePrimaryCtxRetain)(&context, device));
    printf("no context: %d\n", FIND(lib, cuMemAlloc_v2)(&p, 100));
    printf("current: %d\n", FIND(lib, cuCtxSetCurrent)(context));

    int r = resolve("cuMemAlloc", &entry, 12000, 0, &status);
    printf("resolve: %d %d, as by dlsym: %d\n", r, status, entry == dlsym(lib, "cuMemAlloc_v2"));
    printf("alloc: %d", ((__typeof__(&cuMemAlloc_v2))entry)(&p, 1000));
    printf(" %d", FIND(lib, cuMemAlloc_v2)(&q, 3 << 20));
    printf(" %d", FIND(lib, cuMemAlloc_v2)(&big, (size_t)1 << 42));
    printf(", big %llx, apart by %llx\n", big, q - p);
    r = resolve("cuMemFree", &entry, 12000, 0, NULL);
    printf("free: %d %d", r, ((__typeof__(&cuMemFree_v2))entry)(p));
    printf(" %d %d\n", FIND(lib, cuMemFree_v2)(p), FIND(lib, cuMemFree_v2)(0));
    r = FIND(lib, cuMemGetInfo_v2)(&left, &total);
    printf("info: %d used %zu\n", r, total - left);

    r = resolve("cuGetProcAddress", &entry, 12000, 0, &status);
    printf("itself: %d %d\n", r, entry == (void *)resolve);
    r = resolve("cuMemAlloc", &again, 2000, 0, &status);
    printf("too old: %d %d %p\n", r, status, again);
    r = resolve("cuMemAlloc_v2", &again, 12000, 0, &status);
    printf("suffix: %d %d %p\n", r, status, again);
    printf("twice: %d\n", dlsym(lib, "cuMemFree_v2") == dlsym(lib, "cuMemFree_v2"));
    look("driver", lib, "cuNoSuchFunction");
    look("driver", lib, "cudaMalloc");
    look("default", RTLD_DEFAULT, "cuMemAlloc_v2"); /* loaded, but not for all */
    void *all = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    look("default", RTLD_DEFAULT, "cuMemAlloc_v2");
    printf("close: %d %d\n", dlclose(all), dlclose(lib));
}

int main(void)
{
    misses();
    others();
    own_scope();
    driver();
    return 0;
}
