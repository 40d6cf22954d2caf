#include "tiers/backend_cuda_load.h"

#include <dlfcn.h>
#include <string.h>

void tn_cuda_fill(tn_cuda *cuda, void *(*look_up)(void *self, const char *name), void *self, const char **missing)
{
    const char *first = NULL;
    void *found;
    /* Copied as bytes: C has no conversion from an object's address to a function's. */
#define TN_CUDA_ENTRY(call, member, name, parameters)          \
    found = look_up(self, name);                               \
    memcpy(&cuda->member, &found, sizeof cuda->member);        \
    first = found == NULL && first == NULL ? (name) : first;
    TN_CUDA_CALLS(TN_CUDA_ENTRY)
#undef TN_CUDA_ENTRY
    if (missing != NULL)
        *missing = first;
}

static void *look_in_library(void *library, const char *name)
{
    return dlsym(library, name);
}

tn_mem_error tn_cuda_load(tn_cuda *cuda, const char **missing)
{
    if (cuda == NULL)
        return TN_MEM_E_ARGUMENT;
    *cuda = (tn_cuda){0};
    if (missing != NULL)
        *missing = NULL;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return TN_MEM_E_UNSUPPORTED;
    tn_cuda_fill(cuda, look_in_library, library, missing);
    return TN_MEM_OK;
}
