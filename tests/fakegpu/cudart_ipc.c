/* Sharing between processes, and memory imported from other interfaces. */
#include "cudart_internal.h"

#include <string.h>

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "memory handles differ");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "event handles differ");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *ptr)
{
    CUDART_PASS(IpcGetMemHandle, (CUipcMemHandle *)(void *)handle, cudart_dptr(ptr));
}

cudaError_t cudaIpcOpenMemHandle(void **ptr, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle h;
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    memcpy(&h, &handle, sizeof h);
    if (e == cudaSuccess)
        e = CUDART_CALL(IpcOpenMemHandle, &address, h, flags);
    if (e == cudaSuccess)
        *ptr = cudart_hptr(address);
    return cudart_done(e);
}

cudaError_t cudaIpcCloseMemHandle(void *ptr) { CUDART_PASS(IpcCloseMemHandle, cudart_dptr(ptr)); }

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    CUDART_PASS(IpcGetEventHandle, (CUipcEventHandle *)(void *)handle, event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle h;

    memcpy(&h, &handle, sizeof h);
    CUDART_PASS(IpcOpenEventHandle, event, h);
}

_Static_assert(sizeof(struct cudaExternalMemoryHandleDesc)
                   == sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC),
               "handle descriptions differ");
_Static_assert(sizeof(struct cudaExternalMemoryBufferDesc)
                   == sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC),
               "buffer descriptions differ");

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *out,
                                     const struct cudaExternalMemoryHandleDesc *desc)
{
    CUDART_PASS(ImportExternalMemory, (CUexternalMemory *)(void *)out,
                (const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)(const void *)desc);
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **ptr, cudaExternalMemory_t memory,
                                              const struct cudaExternalMemoryBufferDesc *desc)
{
    CUdeviceptr address = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !ptr)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(ExternalMemoryGetMappedBuffer, &address, (CUexternalMemory)memory,
                        (const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)(const void *)desc);
    if (e == cudaSuccess)
        *ptr = cudart_hptr(address);
    return cudart_done(e);
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
    CUDART_PASS(DestroyExternalMemory, (CUexternalMemory)memory);
}
