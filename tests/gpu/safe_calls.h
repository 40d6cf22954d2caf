/*
 * Shared by the two files of `safe_calls`: the driver functions it uses, the objects a call may look at,
 * and the table of calls. Everything here is set up once by the main thread before any capture begins and
 * only read afterwards, so a call may be made from any thread.
 */
#ifndef TESTS_GPU_SAFE_CALLS_H
#define TESTS_GPU_SAFE_CALLS_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

/* The code of a call to a function that this libcuda does not export. */
#define CODE_ABSENT 9999

#define SAFE_DRIVER(X) \
	X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxPushCurrent) \
	X(cuCtxPopCurrent) X(cuCtxGetDevice) X(cuCtxGetId) X(cuCtxGetFlags) X(cuCtxGetApiVersion) X(cuCtxGetLimit) \
	X(cuCtxSynchronize) X(cuDevicePrimaryCtxGetState) X(cuDeviceGetAttribute) X(cuDeviceGetUuid) \
	X(cuDeviceTotalMem) X(cuDeviceGetDefaultMemPool) X(cuDeviceGetMemPool) X(cuDeviceGetGraphMemAttribute) \
	X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamGetId) X(cuStreamGetCtx) X(cuStreamGetDevice) \
	X(cuStreamGetFlags) X(cuStreamGetPriority) X(cuStreamIsCapturing) X(cuStreamGetCaptureInfo) \
	X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuStreamQuery) X(cuThreadExchangeStreamCaptureMode) \
	X(cuMemAlloc) X(cuMemFree) X(cuMemFreeHost) X(cuMemHostAlloc) X(cuMemAllocAsync) X(cuMemFreeAsync) \
	X(cuMemGetInfo) X(cuMemGetAddressRange) X(cuMemsetD8Async) X(cuMemcpyDtoDAsync) X(cuMemPoolGetAttribute) \
	X(cuMemPoolSetAttribute) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) \
	X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemGetAccess) X(cuMemRetainAllocationHandle) \
	X(cuMemGetAllocationPropertiesFromHandle) X(cuPointerGetAttribute) X(cuPointerGetAttributes) \
	X(cuPointerSetAttribute) X(cuMemHostGetDevicePointer) X(cuMemHostGetFlags) X(cuModuleLoadData) \
	X(cuModuleGetFunction) X(cuModuleGetFunctionCount) X(cuModuleGetLoadingMode) X(cuFuncGetModule) \
	X(cuFuncGetName) X(cuFuncGetAttribute) X(cuFuncGetParamInfo) X(cuFuncIsLoaded) X(cuLaunchKernel) \
	X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuGraphGetNodes) X(cuGraphGetEdges) \
	X(cuGraphGetRootNodes) X(cuGraphNodeGetType) X(cuGraphKernelNodeGetParams) X(cuGraphMemsetNodeGetParams) \
	X(cuGraphMemcpyNodeGetParams) X(cuGraphMemAllocNodeGetParams) X(cuGraphMemFreeNodeGetParams) \
	X(cuGraphNodeGetDependencies) X(cuGraphInstantiate) X(cuGraphExecDestroy) X(cuGraphExecGetFlags) \
	X(cuGraphUpload) X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphClone)

#define SAFE_FIELD(name) __typeof__(&name) p_##name;
struct safe_driver {
	SAFE_DRIVER(SAFE_FIELD)
};
extern struct safe_driver drv;

/* One node of each kind in the graph that was captured before the observations began. */
struct safe_nodes {
	CUgraph graph;
	CUgraphNode kernel, memset, copy, alloc, release;
};

struct safe_scene {
	CUcontext context;
	CUstream captured, idle;
	CUevent event;
	CUfunction kernel;
	CUmodule module;
	CUdeviceptr block;
	void *pinned;
	CUdeviceptr mapped;
	CUmemoryPool pool;
	struct safe_nodes done;
	CUgraphExec exec;
};
extern struct safe_scene scene;

/* One driver call (or a cycle of calls that belong together); returns its code, the first that is not 0. */
struct safe_call {
	const char *name;
	int (*make)(void);
};
extern const struct safe_call safe_calls[];
extern const size_t safe_call_count;

/* Finds one node of each kind in graph. Returns 0, or the code of the driver call that failed. */
int find_nodes(CUgraph graph, struct safe_nodes *out);

#endif
