/* What the programs of run_tiers.sh need of a card beyond the backends: a context, writing and checking memory, the device's own figure, a kernel.
 * One per process and one thread; whatever fails ends the program with a line "not ok". libcuda is found by dlopen, so that the same
 * program meets the fake GPU. */
#ifndef TESTS_GPU_TIERS_CARD_H
#define TESTS_GPU_TIERS_CARD_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiers/cuda_calls.h"

#define CARD_DRIVER(X)                                                                                                         \
    X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuDeviceGetName) X(cuDriverGetVersion) \
    X(cuMemGetInfo) X(cuMemsetD32) X(cuMemcpyDtoH) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuStreamCreate) X(cuStreamSynchronize)     \
    X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel)                 \
    X(cuGraphInstantiate) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuGraphDestroy) X(cuMemPoolGetAttribute)                    \
    X(cuDeviceGetDefaultMemPool) X(cuDeviceGetCount) X(cuDeviceCanAccessPeer) X(cuMemGetAccess)

#define CARD_FIELD(name) __typeof__(&name) p_##name;
struct card_driver {
    CARD_DRIVER(CARD_FIELD)
};
extern struct card_driver drv;

/* Ends the program where a call of the program's own fails. */
void card_must(int code, const char *what);
#define CARD(call) card_must((int)drv.p_##call, #call)

/* The primary context of device 0, current, with all that first use costs behind it. */
void card_start(void);

/* The backends' table of the same driver. */
const tn_cuda *card_cuda(void);

/* Bytes in use on the device by its own figure, after it has come to rest; bytes in use in its default pool. */
size_t card_used(void);
size_t card_pool_used(void);

/* Writes a word over a device range, and counts those that are another. */
void card_fill(void *self, void *at, uint32_t word, size_t bytes);
size_t card_wrong(void *self, const void *at, uint32_t word, size_t bytes);

/* A stream of its own, and a kernel (address, u32 value, u64 words) that adds the value to each word. */
CUstream card_stream(void);
CUfunction card_add_kernel(void);

/* The same kernel for the context that is current. */
CUfunction card_load_add_kernel(void);

double card_now_us(void);

#endif
