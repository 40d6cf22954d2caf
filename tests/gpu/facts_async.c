/*
 * Which calls wait for unrelated work in flight, and how stream-ordered memory behaves. Work in flight
 * is a host function that sleeps, or (argument 1 of the waiting section) a kernel that spins.
 */
#define _GNU_SOURCE
#include "facts.h"
#include "facts_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DELAY_MS 80
/* Where several answers are asked for while the work is in flight. */
#define LONG_MS 400
/* A call that waits does so every time; one that does not may be overtaken by the work on a loaded machine. */
#define TRIES 3

static CUfunction spin;

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static void CUDART_CB sleeper(void *arg)
{
	sleep_ms((long)(intptr_t)arg);
}

static int load_spin(void)
{
	CUmodule module;
	int code = (int)drv.p_cuModuleLoadData(&module, facts_ptx);
	return code != 0 ? code : (int)drv.p_cuModuleGetFunction(&spin, module, "spin");
}

/* Puts so much work on the stream and lets it begin. */
static void occupy(cudaStream_t stream, long ms)
{
	if (spin != NULL) {
		unsigned long long nanoseconds = (unsigned long long)ms * 1000000ull;
		void *params[] = {&nanoseconds};
		drv.p_cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, params, NULL);
	} else {
		cudaLaunchHostFunc(stream, sleeper, (void *)(intptr_t)ms);
	}
	sleep_ms(5);
}

enum wait_op {
	OP_FREE_SMALL, OP_FREE_LARGE, OP_DRIVER_FREE, OP_FREE_HOST, OP_UNREGISTER, OP_FREE_ARRAY, OP_FREE_MANAGED,
	OP_FREE_NULL, OP_FREE_BAD, OP_FREE_ASYNC_BLOCK, OP_MALLOC, OP_MALLOC_HOST, OP_REGISTER, OP_QUERY, OP_VMM,
	OP_TRIM, OP_REFUSED, OP_REFUSED_FULL, OP_FREE_ASYNC_CALL, OP_COUNT
};

static const char *const wait_names[OP_COUNT] = {
	"cudaFree.small", "cudaFree.large", "cuMemFree", "cudaFreeHost", "cudaHostUnregister", "cudaFreeArray",
	"cudaFree.managed", "cudaFree.null", "cudaFree.bad", "cudaFree.async_block", "cudaMalloc", "cudaMallocHost",
	"cudaHostRegister", "cudaMemGetInfo", "vmm_cycle", "pool_trim", "cudaMalloc.refused", "cudaMalloc.refused_full",
	"cudaFreeAsync"};

static int vmm_cycle(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUdeviceptr at = 0;
	int code;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	code = (int)drv.p_cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0);
	code = code != 0 ? code : (int)drv.p_cuMemCreate(&handle, 2 * MIB, &prop, 0);
	code = code != 0 ? code : (int)drv.p_cuMemMap(at, 2 * MIB, 0, handle, 0);
	code = code != 0 ? code : (int)drv.p_cuMemUnmap(at, 2 * MIB);
	code = code != 0 ? code : (int)drv.p_cuMemRelease(handle);
	return code != 0 ? code : (int)drv.p_cuMemAddressFree(at, 2 * MIB);
}

/* Returns the call's code, and whether the work in flight was over when it came back. */
static int try_once(enum wait_op op, cudaStream_t busy, cudaStream_t idle, void *heap, int *over)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	cudaArray_t array = NULL;
	cudaMemPool_t pool = NULL;
	void *p = NULL;
	size_t free_bytes = 0, total = 0;
	int code = -1;

	switch (op) {
	case OP_FREE_SMALL: cudaMalloc(&p, 512); break;
	case OP_FREE_LARGE: cudaMalloc(&p, 64 * MIB); break;
	case OP_DRIVER_FREE: cudaMalloc(&p, MIB); break;
	case OP_FREE_HOST: cudaMallocHost(&p, MIB); break;
	case OP_UNREGISTER: cudaHostRegister(heap, MIB, 0); break;
	case OP_FREE_ARRAY: cudaMallocArray(&array, &format, 64, 64, 0); break;
	case OP_FREE_MANAGED: cudaMallocManaged(&p, MIB, cudaMemAttachGlobal); break;
	case OP_FREE_ASYNC_BLOCK:
	case OP_FREE_ASYNC_CALL: cudaMallocAsync(&p, MIB, idle); break;
	default: break;
	}
	cudaDeviceGetDefaultMemPool(&pool, 0);
	cudaMemGetInfo(&free_bytes, &total);
	cudaDeviceSynchronize();
	cudaGetLastError();
	occupy(busy, DELAY_MS);
	switch (op) {
	case OP_FREE_SMALL:
	case OP_FREE_LARGE:
	case OP_FREE_MANAGED:
	case OP_FREE_ASYNC_BLOCK:
	case OP_FREE_NULL: code = (int)cudaFree(p); break;
	case OP_FREE_BAD: code = (int)cudaFree((void *)(uintptr_t)0x1000); break;
	case OP_DRIVER_FREE: code = (int)drv.p_cuMemFree((CUdeviceptr)(uintptr_t)p); break;
	case OP_FREE_HOST: code = (int)cudaFreeHost(p); break;
	case OP_UNREGISTER: code = (int)cudaHostUnregister(heap); break;
	case OP_FREE_ARRAY: code = (int)cudaFreeArray(array); break;
	case OP_MALLOC: code = (int)cudaMalloc(&p, MIB); break;
	case OP_MALLOC_HOST: code = (int)cudaMallocHost(&p, MIB); break;
	case OP_REGISTER: code = (int)cudaHostRegister(heap, MIB, 0); break;
	case OP_QUERY: code = (int)cudaMemGetInfo(&free_bytes, &total); break;
	case OP_VMM: code = vmm_cycle(); break;
	case OP_TRIM: code = (int)cudaMemPoolTrimTo(pool, 0); break;
	case OP_REFUSED: code = (int)cudaMalloc(&p, HUGE_BYTES); break;
	/* All the card has: too much beside a context, but not refused by its size alone. */
	case OP_REFUSED_FULL: code = (int)cudaMalloc(&p, total); break;
	case OP_FREE_ASYNC_CALL: code = (int)cudaFreeAsync(p, idle); break;
	case OP_COUNT: break;
	}
	*over = cudaStreamQuery(busy) != cudaErrorNotReady;
	cudaDeviceSynchronize();
	cudaGetLastError();
	if (op == OP_REGISTER)
		cudaHostUnregister(heap);
	return code;
}

static void observe_wait(enum wait_op op, cudaStream_t busy, cudaStream_t idle, void *heap)
{
	int over = 1, code = 0;
	for (int i = 0; i < TRIES && over; i++)
		code = try_once(op, busy, idle, heap, &over);
	fact(wait_names[op], "%d,waits=%d", code, over);
}

void section_waiting(int arg)
{
	cudaStream_t busy = NULL, idle = NULL;
	void *heap = aligned_alloc(4096, MIB);
	fact("streams", "%d,%d", (int)cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking),
	     (int)cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
	if (arg == 1) {
		int code = load_spin();
		fact("kernel", "%d", code);
		if (code != 0)
			return;
	}
	/* The first launch loads code and may wait by itself. */
	occupy(busy, DELAY_MS);
	cudaDeviceSynchronize();
	memset(heap, 0, MIB);
	for (int op = 0; op < OP_COUNT; op++)
		observe_wait((enum wait_op)op, busy, idle, heap);
	free(heap);
}

static int type_of(const void *p)
{
	struct cudaPointerAttributes a;
	int code = (int)cudaPointerGetAttributes(&a, p);
	return code != 0 ? -code : (int)a.type;
}

static unsigned long long pool_value(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
	cuuint64_t value = 0;
	cudaMemPoolGetAttribute(pool, attribute, &value);
	return value;
}

void section_async(int arg)
{
	cudaStream_t stream = NULL;
	cudaMemPool_t pool = NULL;
	cuuint64_t threshold = ~(cuuint64_t)0;
	void *plain = NULL, *driver_plain = NULL, *managed = NULL, *p = NULL, *q = NULL;
	unsigned long long used;
	(void)arg;

	fact("stream", "%d", (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	fact("pool", "%d", (int)cudaDeviceGetDefaultMemPool(&pool, 0));
	fact("threshold_default", "%llu", pool_value(pool, cudaMemPoolAttrReleaseThreshold));
	fact("allocations", "%d,%d,%d", (int)cudaMalloc(&plain, MIB), (int)cudaMalloc(&driver_plain, MIB),
	     (int)cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal));
	occupy(stream, LONG_MS);
	fact("plain.cudaFreeAsync", "%d", (int)cudaFreeAsync(plain, stream));
	fact("plain.type_before", "%d", type_of(plain));
	fact("driver.cuMemFreeAsync", "%d",
	     (int)drv.p_cuMemFreeAsync((CUdeviceptr)(uintptr_t)driver_plain, (CUstream)stream));
	fact("driver.type_before", "%d", type_of(driver_plain));
	fact("sync", "%d", (int)cudaStreamSynchronize(stream));
	fact("plain.type_after", "%d", type_of(plain));
	fact("driver.type_after", "%d", type_of(driver_plain));
	fact_code("plain.again", (int)cudaFree(plain));
	fact_code("managed.cudaFreeAsync", (int)cudaFreeAsync(managed, stream));
	fact("managed.cuMemFreeAsync", "%d",
	     (int)drv.p_cuMemFreeAsync((CUdeviceptr)(uintptr_t)managed, (CUstream)stream));
	fact_code("managed.cudaFree", (int)cudaFree(managed));

	fact("cudaMallocAsync", "%d", (int)cudaMallocAsync(&p, 8 * MIB, stream));
	fact("aligned512", "%d", (uintptr_t)p % 512 == 0);
	fact("type", "%d", type_of(p));
	fact("sync.2", "%d", (int)cudaStreamSynchronize(stream));
	used = pool_value(pool, cudaMemPoolAttrUsedMemCurrent);
	fact("used", "%llu", used);
	fact("reserved", "%llu", pool_value(pool, cudaMemPoolAttrReservedMemCurrent));
	occupy(stream, LONG_MS);
	fact("cudaFreeAsync", "%d", (int)cudaFreeAsync(p, stream));
	fact("used_at_free", "%llu", pool_value(pool, cudaMemPoolAttrUsedMemCurrent));
	fact("reserved_at_free", "%llu", pool_value(pool, cudaMemPoolAttrReservedMemCurrent));
	fact("sync.3", "%d", (int)cudaStreamSynchronize(stream));
	fact("reserved_after_sync", "%llu", pool_value(pool, cudaMemPoolAttrReservedMemCurrent));
	fact("used_high", "%llu", pool_value(pool, cudaMemPoolAttrUsedMemHigh));

	fact("set_threshold", "%d", (int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	fact("cudaMallocAsync.2", "%d", (int)cudaMallocAsync(&p, 8 * MIB, stream));
	fact("cudaFreeAsync.2", "%d", (int)cudaFreeAsync(p, stream));
	fact("sync.4", "%d", (int)cudaStreamSynchronize(stream));
	fact("reserved_kept", "%llu", pool_value(pool, cudaMemPoolAttrReservedMemCurrent));
	fact("cudaMallocAsync.3", "%d", (int)cudaMallocAsync(&q, 8 * MIB, stream));
	fact("same_address", "%d", p == q);
	fact("cudaFreeAsync.3", "%d", (int)cudaFreeAsync(q, stream));
	fact("trim", "%d", (int)cudaMemPoolTrimTo(pool, 0));
	fact("sync.5", "%d", (int)cudaStreamSynchronize(stream));
	fact("trim.2", "%d", (int)cudaMemPoolTrimTo(pool, 0));
	fact("reserved_after_trim", "%llu", pool_value(pool, cudaMemPoolAttrReservedMemCurrent));
}

void section_async_half(int arg)
{
	cudaStream_t stream = NULL;
	cudaMemPool_t pool = NULL;
	cuuint64_t threshold = ~(cuuint64_t)0;
	size_t free_bytes = 0, total = 0;
	void *p = NULL, *q = SENTINEL;
	(void)arg;

	fact("stream", "%d", (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	fact("pool", "%d", (int)cudaDeviceGetDefaultMemPool(&pool, 0));
	fact("set_threshold", "%d", (int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	fact("query", "%d", (int)cudaMemGetInfo(&free_bytes, &total));
	fact("cudaMallocAsync.90", "%d", (int)cudaMallocAsync(&p, free_bytes / 10 * 9, stream));
	fact("sync", "%d", (int)cudaStreamSynchronize(stream));
	occupy(stream, LONG_MS);
	fact("cudaFreeAsync", "%d", (int)cudaFreeAsync(p, stream));
	fact_alloc("cudaMalloc.at_once", (int)cudaMalloc(&q, free_bytes / 2), &q);
	if (q != SENTINEL && q != NULL)
		cudaFree(q);
	fact("last", "%d", (int)cudaGetLastError());
	fact("sync.2", "%d", (int)cudaStreamSynchronize(stream));
	q = SENTINEL;
	fact_alloc("cudaMalloc.after_sync", (int)cudaMalloc(&q, free_bytes / 2), &q);
	fact("last.2", "%d", (int)cudaGetLastError());
}
