/* Functions that a card answers but that are outside the model: refused with the code of an unsupported feature. */
#include "fake.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define UNSUPPORTED(name, params) FK_API(name, params, CUDA_ERROR_NOT_SUPPORTED)
#define ACCEPTED(name, params) FK_API(name, params, CUDA_SUCCESS)

UNSUPPORTED(cuImportExternalMemory, (CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *d))
UNSUPPORTED(cuExternalMemoryGetMappedBuffer, (CUdeviceptr *out, CUexternalMemory m, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *d))
UNSUPPORTED(cuExternalMemoryGetMappedMipmappedArray, (CUmipmappedArray *out, CUexternalMemory m, const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *d))
UNSUPPORTED(cuDestroyExternalMemory, (CUexternalMemory m))
UNSUPPORTED(cuImportExternalSemaphore, (CUexternalSemaphore *out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *d))
UNSUPPORTED(cuDestroyExternalSemaphore, (CUexternalSemaphore s))
UNSUPPORTED(cuSignalExternalSemaphoresAsync, (const CUexternalSemaphore *s, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *p, unsigned n, CUstream h))
UNSUPPORTED(cuSignalExternalSemaphoresAsync_ptsz, (const CUexternalSemaphore *s, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *p, unsigned n, CUstream h))
UNSUPPORTED(cuWaitExternalSemaphoresAsync, (const CUexternalSemaphore *s, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *p, unsigned n, CUstream h))
UNSUPPORTED(cuWaitExternalSemaphoresAsync_ptsz, (const CUexternalSemaphore *s, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *p, unsigned n, CUstream h))
UNSUPPORTED(cuMulticastCreate, (CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *p))
UNSUPPORTED(cuMulticastAddDevice, (CUmemGenericAllocationHandle h, CUdevice dev))
UNSUPPORTED(cuMulticastBindMem, (CUmemGenericAllocationHandle h, size_t a, CUmemGenericAllocationHandle m, size_t b, size_t n, unsigned long long flags))
UNSUPPORTED(cuMulticastBindAddr, (CUmemGenericAllocationHandle h, size_t a, CUdeviceptr p, size_t n, unsigned long long flags))
UNSUPPORTED(cuMulticastUnbind, (CUmemGenericAllocationHandle h, CUdevice dev, size_t a, size_t n))
UNSUPPORTED(cuMulticastGetGranularity, (size_t *out, const CUmulticastObjectProp *p, CUmulticastGranularity_flags f))
UNSUPPORTED(cuMemMapArrayAsync, (CUarrayMapInfo *l, unsigned n, CUstream h))
UNSUPPORTED(cuMemMapArrayAsync_ptsz, (CUarrayMapInfo *l, unsigned n, CUstream h))
UNSUPPORTED(cuTexObjectCreate, (CUtexObject *out, const CUDA_RESOURCE_DESC *r, const CUDA_TEXTURE_DESC *t, const CUDA_RESOURCE_VIEW_DESC *v))
UNSUPPORTED(cuTexObjectDestroy, (CUtexObject t))
UNSUPPORTED(cuSurfObjectCreate, (CUsurfObject *out, const CUDA_RESOURCE_DESC *r))
UNSUPPORTED(cuSurfObjectDestroy, (CUsurfObject s))
UNSUPPORTED(cuGreenCtxCreate, (CUgreenCtx *out, CUdevResourceDesc d, CUdevice dev, unsigned flags))
UNSUPPORTED(cuGreenCtxDestroy, (CUgreenCtx g))
UNSUPPORTED(cuCtxFromGreenCtx, (CUcontext *out, CUgreenCtx g))
UNSUPPORTED(cuDeviceGetDevResource, (CUdevice dev, CUdevResource *r, CUdevResourceType t))
UNSUPPORTED(cuGraphAddExternalSemaphoresSignalNode, (CUgraphNode *out, CUgraph g, const CUgraphNode *d, size_t n, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *p))
UNSUPPORTED(cuGraphAddExternalSemaphoresWaitNode, (CUgraphNode *out, CUgraph g, const CUgraphNode *d, size_t n, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *p))
UNSUPPORTED(cuGraphConditionalHandleCreate, (CUgraphConditionalHandle *out, CUgraph g, CUcontext c, unsigned v, unsigned flags))
UNSUPPORTED(cuLinkCreate_v2, (unsigned n, CUjit_option *o, void **v, CUlinkState *out))
UNSUPPORTED(cuDeviceRegisterAsyncNotification, (CUdevice dev, CUasyncCallback fn, void *data, CUasyncCallbackHandle *out))
UNSUPPORTED(cuDeviceUnregisterAsyncNotification, (CUdevice dev, CUasyncCallbackHandle h))
ACCEPTED(cuProfilerStart, (void))
ACCEPTED(cuProfilerStop, (void))
ACCEPTED(cuFlushGPUDirectRDMAWrites, (CUflushGPUDirectRDMAWritesTarget t, CUflushGPUDirectRDMAWritesScope s))

static CUresult green_of(CUstream h, CUgreenCtx *out)
{
    struct fk_stream *s;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, 0, &s);
    *out = NULL; /* no stream belongs to a green context */
    return CUDA_SUCCESS;
}
FK_API(cuStreamGetGreenCtx, (CUstream h, CUgreenCtx *out), green_of(h, out))
