/* Devices: how many, what they are, their limits and their peers. */
#include "cudart_internal.h"

#include <stddef.h>
#include <string.h>

/* Zero devices is an error here though not in the driver. The count is the one that the start saw: a forked child, which
 * may not ask the driver anything, still gets it. */
cudaError_t cudaGetDeviceCount(int *count)
{
    cudaError_t e = cudart_driver();

    if (!count)
        return cudart_done(cudaErrorInvalidValue);
    if (e == cudaSuccess)
        *count = cudart_device_count;
    if (e == cudaSuccess && *count == 0)
        e = cudaErrorNoDevice;
    if (e == cudaErrorNoDevice || e == cudaErrorInsufficientDriver)
        *count = 0;
    return cudart_done(e);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    CUDART_PASS_NO_CONTEXT(DeviceGetAttribute, value, (CUdevice_attribute)attr, device);
}

struct property {
    size_t offset;
    CUdevice_attribute attribute;
    int wide; /* the member is a size_t, not an int */
};

#define INT(member, attribute)                                                                \
    {offsetof(struct cudaDeviceProp, member), CU_DEVICE_ATTRIBUTE_##attribute, 0},
#define SIZE(member, attribute)                                                               \
    {offsetof(struct cudaDeviceProp, member), CU_DEVICE_ATTRIBUTE_##attribute, 1},

static const struct property properties[] = {
    SIZE(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)
    INT(regsPerBlock, MAX_REGISTERS_PER_BLOCK)
    INT(warpSize, WARP_SIZE)
    SIZE(memPitch, MAX_PITCH)
    INT(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)
    INT(maxThreadsDim[0], MAX_BLOCK_DIM_X)
    INT(maxThreadsDim[1], MAX_BLOCK_DIM_Y)
    INT(maxThreadsDim[2], MAX_BLOCK_DIM_Z)
    INT(maxGridSize[0], MAX_GRID_DIM_X)
    INT(maxGridSize[1], MAX_GRID_DIM_Y)
    INT(maxGridSize[2], MAX_GRID_DIM_Z)
    SIZE(totalConstMem, TOTAL_CONSTANT_MEMORY)
    INT(major, COMPUTE_CAPABILITY_MAJOR)
    INT(minor, COMPUTE_CAPABILITY_MINOR)
    SIZE(textureAlignment, TEXTURE_ALIGNMENT)
    SIZE(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT)
    INT(multiProcessorCount, MULTIPROCESSOR_COUNT)
    INT(integrated, INTEGRATED)
    INT(canMapHostMemory, CAN_MAP_HOST_MEMORY)
    INT(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH)
    INT(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH)
    INT(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT)
    INT(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH)
    INT(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT)
    INT(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH)
    SIZE(surfaceAlignment, SURFACE_ALIGNMENT)
    INT(concurrentKernels, CONCURRENT_KERNELS)
    INT(ECCEnabled, ECC_ENABLED)
    INT(pciBusID, PCI_BUS_ID)
    INT(pciDeviceID, PCI_DEVICE_ID)
    INT(pciDomainID, PCI_DOMAIN_ID)
    INT(tccDriver, TCC_DRIVER)
    INT(asyncEngineCount, ASYNC_ENGINE_COUNT)
    INT(unifiedAddressing, UNIFIED_ADDRESSING)
    INT(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)
    INT(l2CacheSize, L2_CACHE_SIZE)
    INT(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE)
    INT(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)
    INT(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)
    INT(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED)
    INT(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED)
    SIZE(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)
    INT(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)
    INT(managedMemory, MANAGED_MEMORY)
    INT(isMultiGpuBoard, MULTI_GPU_BOARD)
    INT(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID)
    INT(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED)
    INT(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)
    INT(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)
    INT(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED)
    INT(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)
    INT(cooperativeLaunch, COOPERATIVE_LAUNCH)
    SIZE(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
    INT(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)
    INT(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST)
    INT(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR)
    INT(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE)
    SIZE(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK)
    INT(hostRegisterSupported, HOST_REGISTER_SUPPORTED)
    INT(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED)
    INT(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED)
    INT(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED)
    INT(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)
    INT(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)
    INT(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS)
    INT(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING)
    INT(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES)
    INT(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED)
    INT(ipcEventSupported, IPC_EVENT_SUPPORTED)
    INT(clusterLaunch, CLUSTER_LAUNCH)
    INT(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS)
};

/* An attribute that the driver does not know stays 0. Creates no context. */
static cudaError_t describe(struct cudaDeviceProp *prop, int device)
{
    CUdevice dev;
    CUuuid uuid;
    cudaError_t e = CUDART_CALL(DeviceGet, &dev, device);

    if (e != cudaSuccess)
        return e;
    memset(prop, 0, sizeof *prop);
    e = CUDART_CALL(DeviceGetName, prop->name, (int)sizeof prop->name, dev);
    if (e == cudaSuccess)
        e = CUDART_CALL(DeviceTotalMem, &prop->totalGlobalMem, dev);
    if (e == cudaSuccess)
        e = CUDART_CALL(DeviceGetUuid, &uuid, dev);
    if (e == cudaSuccess)
        memcpy(&prop->uuid, &uuid, sizeof prop->uuid);
    for (size_t i = 0; e == cudaSuccess && i < sizeof properties / sizeof properties[0]; i++) {
        char *member = (char *)prop + properties[i].offset;
        int value = 0;

        if (CUDART_CALL(DeviceGetAttribute, &value, properties[i].attribute, dev) != cudaSuccess)
            continue;
        if (properties[i].wide)
            *(size_t *)(void *)member = (size_t)value;
        else
            *(int *)(void *)member = value;
    }
    return e;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && !prop)
        e = cudaErrorInvalidValue;
    return cudart_done(e != cudaSuccess ? e : describe(prop, device));
}

cudaError_t cudaDeviceGetPCIBusId(char *text, int len, int device)
{
    CUDART_PASS_NO_CONTEXT(DeviceGetPCIBusId, text, len, device);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    CUDART_PASS_NO_CONTEXT(DeviceGetByPCIBusId, device, text);
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int src, int dst)
{
    CUDART_PASS_NO_CONTEXT(DeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attr, src, dst);
}

cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    int device = 0;
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && (flags & ~(unsigned)cudaDeviceMask))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = cudart_current_device(&device);
    if (e == cudaSuccess)
        e = CUDART_CALL(DevicePrimaryCtxSetFlags, device, flags & ~(unsigned)cudaDeviceMapHost);
    return cudart_done(e);
}

/* Mapping host memory is always on, whatever was set. */
cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    int device = 0, active = 0;
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && !flags)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = cudart_current_device(&device);
    if (e == cudaSuccess)
        e = CUDART_CALL(DevicePrimaryCtxGetState, device, flags, &active);
    if (e == cudaSuccess)
        *flags |= cudaDeviceMapHost;
    return cudart_done(e);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    CUDART_PASS(CtxSetLimit, (CUlimit)limit, value);
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    CUDART_PASS(CtxGetLimit, value, (CUlimit)limit);
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    CUDART_PASS(CtxGetCacheConfig, (CUfunc_cache *)config);
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    CUDART_PASS(CtxSetCacheConfig, (CUfunc_cache)config);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    CUDART_PASS(CtxGetStreamPriorityRange, least, greatest);
}

cudaError_t cudaCtxResetPersistingL2Cache(void) { CUDART_PASS(CtxResetPersistingL2Cache); }

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    CUDART_PASS_NO_CONTEXT(DeviceCanAccessPeer, can, device, peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext context = NULL;
    cudaError_t e = cudart_context();
    int device = -1;

    if (e == cudaSuccess)
        e = CUDART_CALL(CtxGetDevice, &device);
    if (e == cudaSuccess && device == peer)
        e = cudaErrorPeerAccessUnsupported; /* seen on two H200; the driver would say invalid context */
    if (e == cudaSuccess)
        e = cudart_primary(peer, &context);
    if (e == cudaSuccess)
        e = CUDART_CALL(CtxEnablePeerAccess, context, flags);
    return cudart_done(e);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = cudart_primary(peer, &context);
    if (e == cudaSuccess)
        e = CUDART_CALL(CtxDisablePeerAccess, context);
    return cudart_done(e);
}

/* The device that differs least: same name or number is not asked for, only
 * the capability and the memory. */
cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
    int count = 0, best = -1;
    struct cudaDeviceProp have;
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && (!device || !wanted))
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(DeviceGetCount, &count);
    for (int i = 0; e == cudaSuccess && i < count && best < 0; i++) {
        e = describe(&have, i);
        if (e == cudaSuccess && have.major * 10 + have.minor >= wanted->major * 10 + wanted->minor
            && have.totalGlobalMem >= wanted->totalGlobalMem)
            best = i;
    }
    if (e == cudaSuccess)
        *device = best < 0 ? 0 : best;
    return cudart_done(e);
}
