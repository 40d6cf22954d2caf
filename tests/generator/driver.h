/*
 * The driver functions that generated programs call, found as programs find them: by dlopen and dlsym, and by
 * cuGetProcAddress. Both tables are filled once, before any other thread starts, and only read afterwards.
 */
#ifndef TESTS_GENERATOR_DRIVER_H
#define TESTS_GENERATOR_DRIVER_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#define DRIVER_FUNCTIONS(X) \
	X(cuInit) X(cuCtxGetCurrent) X(cuCtxSetCurrent) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxSynchronize) \
	X(cuCtxGetDevice) X(cuDevicePrimaryCtxGetState) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) \
	X(cuDeviceTotalMem) X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemAllocManaged) X(cuMemAllocHost) X(cuMemHostAlloc) \
	X(cuMemHostRegister) X(cuMemHostUnregister) X(cuMemFree) X(cuMemFreeHost) X(cuMemAllocAsync) \
	X(cuMemAllocFromPoolAsync) X(cuMemFreeAsync) X(cuMemGetInfo) X(cuMemGetAddressRange) X(cuMemHostGetDevicePointer) \
	X(cuMemHostGetFlags) X(cuPointerGetAttribute) X(cuMemsetD8) X(cuMemsetD32) X(cuMemsetD8Async) X(cuMemsetD2D8) \
	X(cuMemcpy) X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) \
	X(cuMemcpyDtoDAsync) X(cuMemCreate) X(cuMemRelease) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemMap) \
	X(cuMemUnmap) X(cuMemSetAccess) X(cuMemGetAccess) X(cuMemRetainAllocationHandle) X(cuMemGetAllocationGranularity) \
	X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuStreamSynchronize) \
	X(cuStreamQuery) X(cuStreamIsCapturing) X(cuEventQuery) X(cuMemPoolGetAttribute) X(cuThreadExchangeStreamCaptureMode)

#define DRIVER_FIELD(name) __typeof__(&name) p_##name;
struct driver {
	DRIVER_FUNCTIONS(DRIVER_FIELD)
};

/* [0] from dlsym, [1] from cuGetProcAddress. */
extern struct driver drivers[2];

/* Fills both. 0, or -1 with a sentence on standard error. */
int driver_load(void);

#endif
