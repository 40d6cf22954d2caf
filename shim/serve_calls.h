/* The rows of the API table that a plan takes part in, and what is called in place of the driver's function then: with the hook's frame and the
 * real function before the call's own arguments. Each answers as the driver would. Called with errno put back and with `busy` lowered, as a
 * real function is; each raises it for as long as our own code runs. */
#ifndef TENURE_SHIM_SERVE_CALLS_H
#define TENURE_SHIM_SERVE_CALLS_H

#include "shim/cuda_abi.h"
#include "shim/hook.h"

extern int tn_serving __attribute__((visibility("hidden")));

/* Whether a tier of ours has the block. */
static inline int tn_is_served(const tn_entry *e)
{
    return (e->kind == TN_KIND_DEVICE || e->kind == TN_KIND_ASYNC || e->kind == TN_KIND_PINNED) && tn_route_tier(tn_route_of(e->extra)) != 0;
}

/* Whether this thread knows that the stream of that number belongs to that context. */
int tn_serve_is_of_context(uint32_t number, uint32_t ctx) __attribute__((hot));

/* Once a fault was seen, the code by which the driver refuses everything in the context that is current, if that is the one it was in; else 0. */
CUresult tn_serve_lost(void);

/* TN_SERVED_IS(name) is 1 for the names that have a line here. */
#define TN_SERVED_cuMemAlloc_v2 ~,
#define TN_SERVED_cuMemAllocAsync ~,
#define TN_SERVED_cuMemAllocAsync_ptsz ~,
#define TN_SERVED_cuMemHostAlloc ~,
#define TN_SERVED_cuMemAllocHost_v2 ~,
#define TN_SERVED_cuMemFree_v2 ~,
#define TN_SERVED_cuMemFreeAsync ~,
#define TN_SERVED_cuMemFreeAsync_ptsz ~,
#define TN_SERVED_cuMemFreeHost ~,
#define TN_SERVED_cuMemHostUnregister ~,
#define TN_SERVED_cuMemHostGetFlags ~,
#define TN_SERVED_cuMemHostGetDevicePointer_v2 ~,
#define TN_SERVED_cuMemGetAddressRange_v2 ~,
#define TN_SERVED_cuPointerGetAttribute ~,
#define TN_SERVED_cuPointerGetAttributes ~,
#define TN_SERVED_cuPointerSetAttribute ~,
#define TN_SERVED_cuIpcGetMemHandle ~,
#define TN_SERVED_cuMemGetHandleForAddressRange ~,
#define TN_SERVED_cuMemGetInfo_v2 ~,
#define TN_SERVED_cuMemPoolGetAttribute ~,
#define TN_SERVED_cuMemPoolSetAttribute ~,
#define TN_SERVED_cuMemCreate ~,
#define TN_SERVED_cuMemRelease ~,
#define TN_SERVED_cuMemMap ~,
#define TN_SERVED_cuMemUnmap ~,
#define TN_SERVED_cuMemRetainAllocationHandle ~,
#define TN_SERVED_cuMemExportToShareableHandle ~,
#define TN_SERVED_cuMemGetAllocationPropertiesFromHandle ~,
#define TN_SERVED_cuMulticastBindMem ~,
#define TN_SERVED_cuMulticastBindAddr ~,
#define TN_SERVED_SECOND(a, b, ...) b
#define TN_SERVED_IS_(...) TN_SERVED_SECOND(__VA_ARGS__, 0, ~)
#define TN_SERVED_IS(name) TN_SERVED_IS_(TN_SERVED_##name 1)

CUresult tn_serve_cuMemAlloc_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, size_t), CUdeviceptr *out, size_t bytes);
CUresult tn_serve_cuMemAllocAsync(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, size_t, CUstream), CUdeviceptr *out, size_t bytes, CUstream stream);
#define tn_serve_cuMemAllocAsync_ptsz tn_serve_cuMemAllocAsync /* the frame says what a NULL stream means */
CUresult tn_serve_cuMemHostAlloc(tn_hook_frame *f, CUresult (*call)(void **, size_t, unsigned), void **out, size_t bytes, unsigned flags);
CUresult tn_serve_cuMemAllocHost_v2(tn_hook_frame *f, CUresult (*call)(void **, size_t), void **out, size_t bytes);
CUresult tn_serve_cuMemFree_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr), CUdeviceptr address);
CUresult tn_serve_cuMemFreeAsync(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, CUstream), CUdeviceptr address, CUstream stream);
#define tn_serve_cuMemFreeAsync_ptsz tn_serve_cuMemFreeAsync
CUresult tn_serve_cuMemFreeHost(tn_hook_frame *f, CUresult (*call)(void *), void *address);

/* ---- serve_query.c */
CUresult tn_serve_cuMemHostUnregister(tn_hook_frame *f, CUresult (*call)(void *), void *address);
CUresult tn_serve_cuMemHostGetFlags(tn_hook_frame *f, CUresult (*call)(unsigned *, void *), unsigned *flags, void *address);
CUresult tn_serve_cuMemHostGetDevicePointer_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, void *, unsigned), CUdeviceptr *out, void *address,
                                               unsigned flags);
CUresult tn_serve_cuMemGetAddressRange_v2(tn_hook_frame *f, CUresult (*call)(CUdeviceptr *, size_t *, CUdeviceptr), CUdeviceptr *base, size_t *bytes,
                                          CUdeviceptr address);
CUresult tn_serve_cuPointerGetAttribute(tn_hook_frame *f, CUresult (*call)(void *, CUpointer_attribute, CUdeviceptr), void *data,
                                        CUpointer_attribute attribute, CUdeviceptr address);
CUresult tn_serve_cuPointerGetAttributes(tn_hook_frame *f, CUresult (*call)(unsigned, CUpointer_attribute *, void **, CUdeviceptr), unsigned count,
                                         CUpointer_attribute *attributes, void **data, CUdeviceptr address);
CUresult tn_serve_cuPointerSetAttribute(tn_hook_frame *f, CUresult (*call)(const void *, CUpointer_attribute, CUdeviceptr), const void *value,
                                        CUpointer_attribute attribute, CUdeviceptr address);
CUresult tn_serve_cuIpcGetMemHandle(tn_hook_frame *f, CUresult (*call)(CUipcMemHandle *, CUdeviceptr), CUipcMemHandle *handle, CUdeviceptr address);
CUresult tn_serve_cuMemGetHandleForAddressRange(tn_hook_frame *f, CUresult (*call)(void *, CUdeviceptr, size_t, CUmemRangeHandleType, unsigned long long),
                                                void *handle, CUdeviceptr address, size_t bytes, CUmemRangeHandleType type, unsigned long long flags);

/* ---- serve_handle_calls.c */
CUresult tn_serve_cuMemCreate(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long),
                              CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags);
CUresult tn_serve_cuMemRelease(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle), CUmemGenericAllocationHandle handle);
CUresult tn_serve_cuMemMap(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long),
                           CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult tn_serve_cuMemUnmap(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, size_t), CUdeviceptr address, size_t bytes);
CUresult tn_serve_cuMemRetainAllocationHandle(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle *, void *), CUmemGenericAllocationHandle *out,
                                              void *address);
CUresult tn_serve_cuMemExportToShareableHandle(tn_hook_frame *f,
                                               CUresult (*call)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long), void *out,
                                               CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags);
CUresult tn_serve_cuMemGetAllocationPropertiesFromHandle(tn_hook_frame *f, CUresult (*call)(CUmemAllocationProp *, CUmemGenericAllocationHandle),
                                                         CUmemAllocationProp *out, CUmemGenericAllocationHandle handle);
CUresult tn_serve_cuMulticastBindMem(tn_hook_frame *f,
                                     CUresult (*call)(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t, unsigned long long),
                                     CUmemGenericAllocationHandle group, size_t at, CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                                     unsigned long long flags);
CUresult tn_serve_cuMulticastBindAddr(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long),
                                      CUmemGenericAllocationHandle group, size_t at, CUdeviceptr address, size_t bytes, unsigned long long flags);

/* ---- serve_info.c */
CUresult tn_serve_cuMemGetInfo_v2(tn_hook_frame *f, CUresult (*call)(size_t *, size_t *), size_t *free_bytes, size_t *total_bytes);
CUresult tn_serve_cuMemPoolGetAttribute(tn_hook_frame *f, CUresult (*call)(CUmemoryPool, CUmemPool_attribute, void *), CUmemoryPool pool,
                                        CUmemPool_attribute attribute, void *value);
CUresult tn_serve_cuMemPoolSetAttribute(tn_hook_frame *f, CUresult (*call)(CUmemoryPool, CUmemPool_attribute, void *), CUmemoryPool pool,
                                        CUmemPool_attribute attribute, void *value);

#endif
