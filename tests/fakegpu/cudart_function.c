/* Attributes of kernels, occupancy, and code libraries loaded by hand. */
#include "cudart_internal.h"

struct attribute {
    size_t offset;
    CUfunction_attribute name;
    int wide; /* the member is a size_t */
};

#define INT(member, attribute)                                                                \
    {offsetof(struct cudaFuncAttributes, member), CU_FUNC_ATTRIBUTE_##attribute, 0},
#define SIZE(member, attribute)                                                               \
    {offsetof(struct cudaFuncAttributes, member), CU_FUNC_ATTRIBUTE_##attribute, 1},

static const struct attribute attributes[] = {
    SIZE(sharedSizeBytes, SHARED_SIZE_BYTES)
    SIZE(constSizeBytes, CONST_SIZE_BYTES)
    SIZE(localSizeBytes, LOCAL_SIZE_BYTES)
    INT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
    INT(numRegs, NUM_REGS)
    INT(ptxVersion, PTX_VERSION)
    INT(binaryVersion, BINARY_VERSION)
    INT(cacheModeCA, CACHE_MODE_CA)
    INT(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES)
    INT(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT)
    INT(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET)
    INT(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH)
    INT(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT)
    INT(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH)
    INT(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE)
    INT(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
};

/* A context and the driver function of a symbol or kernel handle. */
static cudaError_t resolve(const void *symbol, CUfunction *f)
{
    cudaError_t e = cudart_context();

    return e != cudaSuccess ? e : cudart_function(symbol, f);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *out, const void *symbol)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    if (e == cudaSuccess && !out)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    *out = (struct cudaFuncAttributes){0};
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        char *member = (char *)out + attributes[i].offset;
        int value = 0;

        /* What the driver does not know stays 0. */
        if (CUDART_CALL(FuncGetAttribute, &value, attributes[i].name, f) != cudaSuccess)
            continue;
        if (attributes[i].wide)
            *(size_t *)(void *)member = (size_t)value;
        else
            *(int *)(void *)member = value;
    }
    return cudart_done(cudaSuccess);
}

cudaError_t cudaFuncSetAttribute(const void *symbol, enum cudaFuncAttribute attribute, int value)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    if (e == cudaSuccess)
        e = CUDART_CALL(FuncSetAttribute, f, (CUfunction_attribute)attribute, value);
    return cudart_done(e);
}

cudaError_t cudaFuncSetCacheConfig(const void *symbol, enum cudaFuncCache config)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    if (e == cudaSuccess)
        e = CUDART_CALL(FuncSetCacheConfig, f, (CUfunc_cache)config);
    return cudart_done(e);
}

cudaError_t cudaFuncGetName(const char **name, const void *symbol)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(FuncGetName, name, f));
}

cudaError_t cudaFuncGetParamInfo(const void *symbol, size_t index, size_t *offset, size_t *size)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    if (e == cudaSuccess)
        e = CUDART_CALL(FuncGetParamInfo, f, index, offset, size);
    return cudart_done(e);
}

static cudaError_t max_active(int *blocks, const void *symbol, int threads, size_t shared,
                              unsigned int flags)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    if (e == cudaSuccess)
        e = CUDART_CALL(OccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, f, threads,
                        shared, flags);
    return cudart_done(e);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *symbol,
                                                          int threads, size_t shared)
{
    return max_active(blocks, symbol, threads, shared, 0);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *symbol,
                                                                   int threads, size_t shared,
                                                                   unsigned int flags)
{
    return max_active(blocks, symbol, threads, shared, flags);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *symbol, int blocks,
                                                      int threads)
{
    CUfunction f = NULL;
    cudaError_t e = resolve(symbol, &f);

    if (e == cudaSuccess)
        e = CUDART_CALL(OccupancyAvailableDynamicSMemPerBlock, bytes, f, blocks, threads);
    return cudart_done(e);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit_options, void **jit_values,
                                unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count)
{
    CUDART_PASS(LibraryLoadData, (CUlibrary *)library, code, (CUjit_option *)jit_options,
                jit_values, jit_count, (CUlibraryOption *)options, values, count);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *file,
                                    enum cudaJitOption *jit_options, void **jit_values,
                                    unsigned int jit_count, enum cudaLibraryOption *options,
                                    void **values, unsigned int count)
{
    CUDART_PASS(LibraryLoadFromFile, (CUlibrary *)library, file, (CUjit_option *)jit_options,
                jit_values, jit_count, (CUlibraryOption *)options, values, count);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    CUDART_PASS(LibraryUnload, (CUlibrary)library);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    CUDART_PASS(LibraryGetKernel, kernel, (CUlibrary)library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    CUDART_PASS(LibraryGetKernelCount, count, (CUlibrary)library);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count,
                                        cudaLibrary_t library)
{
    CUDART_PASS(LibraryEnumerateKernels, kernels, count, (CUlibrary)library);
}

static cudaError_t library_variable(void **ptr, size_t *bytes, cudaLibrary_t library,
                                    const char *name, int managed)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = managed ? CUDART_CALL(LibraryGetManaged, &address, bytes, (CUlibrary)library, name)
                    : CUDART_CALL(LibraryGetGlobal, &address, bytes, (CUlibrary)library, name);
    if (e == cudaSuccess && ptr)
        *ptr = cudart_hptr(address);
    return cudart_done(e);
}

cudaError_t cudaLibraryGetGlobal(void **ptr, size_t *bytes, cudaLibrary_t library,
                                 const char *name)
{
    return library_variable(ptr, bytes, library, name, 0);
}

cudaError_t cudaLibraryGetManaged(void **ptr, size_t *bytes, cudaLibrary_t library,
                                  const char *name)
{
    return library_variable(ptr, bytes, library, name, 1);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int device)
{
    CUDART_PASS(KernelSetAttribute, (CUfunction_attribute)attribute, value, kernel, device);
}
