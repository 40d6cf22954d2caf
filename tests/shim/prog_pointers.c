/* The same function by every way to it: a plain reference, the global scope, a handle. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "tests/shim/prog.h"

static void compare(const char *name, void *plain, const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD), *again = dlopen(library, RTLD_NOW);
    MUST(handle != NULL && again != NULL);
    printf("%s default %d self %d handle %d again %d\n", name, dlsym(RTLD_DEFAULT, name) == plain,
           dlsym(dlopen(NULL, RTLD_NOW), name) == plain, dlsym(handle, name) == plain, dlsym(again, name) == plain);
}

int main(void)
{
    void *p = NULL;
    cudaError_t (*found)(void **, size_t);
    compare("cudaMalloc", (void *)cudaMalloc, "libcudart.so.13");
    compare("cudaFree", (void *)cudaFree, "libcudart.so.13");
    compare("cuMemAlloc_v2", (void *)cuMemAlloc, "libcuda.so.1");
    void *symbol = dlsym(dlopen("libcudart.so.13", RTLD_NOW), "cudaMalloc");
    memcpy(&found, &symbol, sizeof found);
    printf("calls %d", (int)found(&p, 100));
    printf(" %d\n", (int)cudaFree(p));
    return 0;
}
