/*
 * Shared by the sections of `facts`, a program that observes what a CUDA driver and runtime really
 * answer and prints it as stable key=value lines: codes, flags and relations, never addresses, times
 * or free-memory figures. The same binary runs on a GPU, on the fake GPU and under the shim; the
 * outputs are compared line by line.
 *
 * Ownership: each section runs in a process of its own (so a broken context or a crash stays there)
 * and need not free what it made. Threads: fact() may be called from any thread; everything else
 * belongs to the section's main thread.
 */
#ifndef TESTS_GPU_FACTS_H
#define TESTS_GPU_FACTS_H

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#define MIB ((size_t)1 << 20)
/* Far above any card; real programs probe with such sizes. */
#define HUGE_BYTES ((size_t)4 << 40)
/* What out-parameters hold before a call, to see whether it wrote them. */
#define SENTINEL ((void *)(uintptr_t)0x1230)
/* The code a driver function gives here when libcuda does not export it at all. */
#define CODE_ABSENT 9999

/* Driver functions are found by dlopen and dlsym, as a program does that must start without a GPU. */
#define FACTS_DRIVER(X) \
	X(cuInit) X(cuDriverGetVersion) X(cuDevicePrimaryCtxGetState) X(cuDevicePrimaryCtxRetain) \
	X(cuDevicePrimaryCtxRelease) X(cuDeviceTotalMem) X(cuCtxGetCurrent) X(cuCtxSetCurrent) X(cuCtxSynchronize) \
	X(cuMemAlloc) X(cuMemAllocPitch) X(cuMemAllocManaged) X(cuMemAllocHost) X(cuMemHostAlloc) X(cuMemFree) \
	X(cuMemFreeHost) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemGetInfo) X(cuMemGetAddressRange) \
	X(cuMemHostRegister) X(cuMemHostUnregister) X(cuPointerGetAttribute) X(cuMemCreate) X(cuMemRelease) \
	X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) \
	X(cuMemGetAllocationGranularity) X(cuMemRetainAllocationHandle) X(cuModuleLoadData) \
	X(cuModuleGetFunction) X(cuLaunchKernel)

#define FACTS_FIELD(name) __typeof__(&name) p_##name;
struct facts_driver {
	FACTS_DRIVER(FACTS_FIELD)
};
extern struct facts_driver drv;

/* Prints SECTION.KEY=VALUE in one write. */
void fact(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The call first, then its outputs: arguments of one C call are evaluated in no fixed order. */
#define FACT_THEN(key, call, format, ...) \
	do { \
		int fact_then_code = (int)(call); \
		fact(key, "%d," format, fact_then_code, __VA_ARGS__); \
	} while (0)
/* Prints the code and what became of an out-parameter (its address: void *, CUdeviceptr or a handle) that held
   SENTINEL: null, kept or set. */
void fact_alloc(const char *key, int code, const void *out_address);
/* Prints the code, then the runtime's last error, which it clears. */
void fact_code(const char *key, int code);

/* An address in libcuda by exact name, or NULL. */
void *driver_symbol(const char *name);
/* 1 if device 0 has a primary context, 0 if not, -1 if that cannot be asked. */
int primary_active(void);
/* Runs fn(arg) on a fresh thread and waits for it. */
void on_thread(void (*fn)(void *), void *arg);

/* Sections, one per group of observations; arg tells variants of one function apart. */
void section_outputs(int arg);
void section_zero(int arg);
void section_frees(int arg);
void section_last_error(int arg);
void section_queries(int arg);
void section_context(int arg);
void section_threads(int arg);
void section_fork(int arg);
void section_late(int arg);
void section_resolver(int arg);
void section_resolver_runtime(int arg);
void section_ranges(int arg);
void section_bounds(int arg);
void section_attributes(int arg);
void section_ipc(int arg);
void section_waiting(int arg);
void section_async(int arg);
void section_async_half(int arg);
void section_capture(int arg);
void section_graph_memory(int arg);
void section_vmm(int arg);
void section_arrays(int arg);
void section_reset(int arg);
void section_fault(int arg);

/* Names of section_context's variants, NULL after the last. */
extern const char *const context_variants[];

#endif
