/*
 * What allocation calls leave in their outputs and error state: refused requests, size zero, bad
 * frees, the runtime's last error, and memory queries.
 */
#include "facts.h"

#include <stdlib.h>
#include <string.h>

static CUmemAllocationProp device_prop(void)
{
	CUmemAllocationProp prop;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

static void refused_runtime(void)
{
	void *p;
	size_t pitch = 77;
	struct cudaPitchedPtr p3 = {SENTINEL, 1, 2, 3};
	struct cudaExtent extent = {(size_t)1 << 21, 1 << 11, 1 << 11};
	static const size_t sizes[] = {(size_t)1 << 39, HUGE_BYTES, (size_t)1 << 62, ~(size_t)0};
	static const char *const names[] = {"cudaMalloc.512G", "cudaMalloc.4T", "cudaMalloc.2p62", "cudaMalloc.max"};

	for (int i = 0; i < 4; i++) {
		p = SENTINEL;
		fact_alloc(names[i], (int)cudaMalloc(&p, sizes[i]), &p);
		fact("last", "%d", (int)cudaGetLastError());
	}
	p = SENTINEL;
	fact_alloc("cudaMallocPitch", (int)cudaMallocPitch(&p, &pitch, (size_t)1 << 32, 1 << 12), &p);
	fact("cudaMallocPitch.pitch", "%zu", pitch);
	fact_alloc("cudaMalloc3D", (int)cudaMalloc3D(&p3, extent), &p3.ptr);
	fact("cudaMalloc3D.other", "pitch=%zu,x=%zu,y=%zu", p3.pitch, p3.xsize, p3.ysize);
	p = SENTINEL;
	fact_alloc("cudaMallocHost", (int)cudaMallocHost(&p, (size_t)1 << 62), &p);
	p = SENTINEL;
	fact_alloc("cudaHostAlloc", (int)cudaHostAlloc(&p, (size_t)1 << 62, 0), &p);
	p = SENTINEL;
	fact_alloc("cudaHostAlloc.bad_flags", (int)cudaHostAlloc(&p, 4096, 0x8000), &p);
	p = SENTINEL;
	fact_alloc("cudaMallocManaged.bad_flags", (int)cudaMallocManaged(&p, 4096, 0), &p);
	p = SENTINEL;
	fact_alloc("cudaMallocAsync", (int)cudaMallocAsync(&p, HUGE_BYTES, NULL), &p);
	fact("last", "%d", (int)cudaGetLastError());
	fact_code("cudaMalloc.null_out", (int)cudaMalloc(NULL, 4096));
}

static void refused_driver(void)
{
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)SENTINEL;
	CUmemGenericAllocationHandle handle = 0x1230;
	CUmemAllocationProp prop = device_prop();
	void *p = SENTINEL;
	size_t pitch = 77;

	fact_alloc("cuMemAlloc", (int)drv.p_cuMemAlloc(&d, HUGE_BYTES), &d);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAllocPitch", (int)drv.p_cuMemAllocPitch(&d, &pitch, (size_t)1 << 32, 1 << 12, 4), &d);
	fact("cuMemAllocPitch.pitch", "%zu", pitch);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	pitch = 77;
	fact_alloc("cuMemAllocPitch.bad_element", (int)drv.p_cuMemAllocPitch(&d, &pitch, 1000, 10, 3), &d);
	fact("cuMemAllocPitch.bad_element.pitch", "%zu", pitch);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAllocManaged.bad_flags", (int)drv.p_cuMemAllocManaged(&d, 4096, 0), &d);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAllocAsync", (int)drv.p_cuMemAllocAsync(&d, HUGE_BYTES, NULL), &d);
	fact_alloc("cuMemHostAlloc", (int)drv.p_cuMemHostAlloc(&p, (size_t)1 << 62, 0), &p);
	p = SENTINEL;
	fact_alloc("cuMemHostAlloc.bad_flags", (int)drv.p_cuMemHostAlloc(&p, 4096, 0x8000), &p);
	p = SENTINEL;
	fact_alloc("cuMemAllocHost", (int)drv.p_cuMemAllocHost(&p, (size_t)1 << 62), &p);
	fact_alloc("cuMemCreate", (int)drv.p_cuMemCreate(&handle, HUGE_BYTES, &prop, 0), &handle);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAddressReserve", (int)drv.p_cuMemAddressReserve(&d, (size_t)1 << 60, 0, 0, 0), &d);
	fact("runtime_last_after_driver", "%d", (int)cudaPeekAtLastError());
}

void section_outputs(int arg)
{
	(void)arg;
	fact("setDevice", "%d", (int)cudaSetDevice(0));
	refused_runtime();
	refused_driver();
}

void section_zero(int arg)
{
	void *p = SENTINEL;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)SENTINEL;
	size_t pitch = 0;
	(void)arg;

	fact_alloc("cudaMalloc", (int)cudaMalloc(&p, 0), &p);
	p = SENTINEL;
	fact_alloc("cudaMallocPitch", (int)cudaMallocPitch(&p, &pitch, 0, 0), &p);
	p = SENTINEL;
	fact_alloc("cudaMallocManaged", (int)cudaMallocManaged(&p, 0, cudaMemAttachGlobal), &p);
	p = SENTINEL;
	fact_alloc("cudaMallocHost", (int)cudaMallocHost(&p, 0), &p);
	p = SENTINEL;
	fact_alloc("cudaHostAlloc", (int)cudaHostAlloc(&p, 0, 0), &p);
	p = SENTINEL;
	fact_alloc("cudaMallocAsync", (int)cudaMallocAsync(&p, 0, NULL), &p);
	fact("last", "%d", (int)cudaGetLastError());

	fact_alloc("cuMemAlloc", (int)drv.p_cuMemAlloc(&d, 0), &d);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAllocPitch", (int)drv.p_cuMemAllocPitch(&d, &pitch, 0, 0, 4), &d);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAllocManaged", (int)drv.p_cuMemAllocManaged(&d, 0, CU_MEM_ATTACH_GLOBAL), &d);
	d = (CUdeviceptr)(uintptr_t)SENTINEL;
	fact_alloc("cuMemAllocAsync", (int)drv.p_cuMemAllocAsync(&d, 0, NULL), &d);
	p = SENTINEL;
	fact_alloc("cuMemAllocHost", (int)drv.p_cuMemAllocHost(&p, 0), &p);
	p = SENTINEL;
	fact_alloc("cuMemHostAlloc", (int)drv.p_cuMemHostAlloc(&p, 0, 0), &p);
	fact("last", "%d", (int)cudaGetLastError());
}

void section_frees(int arg)
{
	void *device = NULL, *pinned = NULL, *async = NULL, *heap = aligned_alloc(4096, 4096);
	CUdeviceptr d = 0;
	int local;
	(void)arg;

	fact_code("cudaFree.null", (int)cudaFree(NULL));
	fact_code("cudaFreeHost.null", (int)cudaFreeHost(NULL));
	fact_code("cudaFreeArray.null", (int)cudaFreeArray(NULL));
	fact_code("cudaFreeMipmappedArray.null", (int)cudaFreeMipmappedArray(NULL));
	fact_code("cudaFreeAsync.null", (int)cudaFreeAsync(NULL, NULL));
	fact("cuMemFree.null", "%d", (int)drv.p_cuMemFree(0));
	fact("cuMemFreeHost.null", "%d", (int)drv.p_cuMemFreeHost(NULL));
	fact("cuMemFreeAsync.null", "%d", (int)drv.p_cuMemFreeAsync(0, NULL));

	fact("cudaMalloc", "%d", (int)cudaMalloc(&device, 3 * MIB));
	fact_code("cudaFree.interior", (int)cudaFree((char *)device + 4096));
	fact_code("cudaFreeHost.device", (int)cudaFreeHost(device));
	fact_code("cudaFree.device", (int)cudaFree(device));
	fact_code("cudaFree.twice", (int)cudaFree(device));
	fact_code("cudaFree.heap", (int)cudaFree(heap));
	fact_code("cudaFree.stack", (int)cudaFree(&local));
	fact_code("cudaFreeHost.heap", (int)cudaFreeHost(heap));

	fact("cudaMallocHost", "%d", (int)cudaMallocHost(&pinned, MIB));
	fact_code("cudaFree.pinned", (int)cudaFree(pinned));
	fact_code("cudaFreeHost.interior", (int)cudaFreeHost((char *)pinned + 4096));
	fact_code("cudaFreeHost.pinned", (int)cudaFreeHost(pinned));
	fact_code("cudaFreeHost.twice", (int)cudaFreeHost(pinned));

	fact_code("cudaHostUnregister.unregistered", (int)cudaHostUnregister(heap));
	fact_code("cudaHostRegister", (int)cudaHostRegister(heap, 4096, 0));
	fact_code("cudaHostRegister.twice", (int)cudaHostRegister(heap, 4096, 0));
	fact_code("cudaFreeHost.registered", (int)cudaFreeHost(heap));
	fact_code("cudaHostUnregister", (int)cudaHostUnregister(heap));

	fact("cudaMallocAsync", "%d", (int)cudaMallocAsync(&async, MIB, NULL));
	fact("sync", "%d", (int)cudaDeviceSynchronize());
	fact_code("cudaFree.async", (int)cudaFree(async));
	fact_code("cudaFree.async_twice", (int)cudaFree(async));
	fact("cudaMallocAsync.again", "%d", (int)cudaMallocAsync(&async, MIB, NULL));
	fact_code("cudaFreeAsync", (int)cudaFreeAsync(async, NULL));
	fact_code("cudaFreeAsync.twice", (int)cudaFreeAsync(async, NULL));
	fact_code("sync.after", (int)cudaDeviceSynchronize());

	fact("cuMemAlloc", "%d", (int)drv.p_cuMemAlloc(&d, 3 * MIB));
	fact("cuMemFree.interior", "%d", (int)drv.p_cuMemFree(d + 512));
	fact_code("cudaFree.driver_block", (int)cudaFree((void *)(uintptr_t)d));
	fact("cuMemFree.twice", "%d", (int)drv.p_cuMemFree(d));
	fact_code("cudaMalloc.after", (int)cudaMalloc(&device, MIB));
	free(heap);
}

void section_last_error(int arg)
{
	void *p = NULL, *q = NULL;
	CUdeviceptr d = 0;
	(void)arg;

	fact("fresh", "%d", (int)cudaPeekAtLastError());
	fact("refused", "%d", (int)cudaMalloc(&p, HUGE_BYTES));
	fact("after_refusal", "%d", (int)cudaPeekAtLastError());
	fact("success", "%d", (int)cudaMalloc(&q, MIB));
	fact("after_success", "%d", (int)cudaPeekAtLastError());
	fact("work", "%d", (int)cudaMemset(q, 0, MIB));
	fact("after_work", "%d", (int)cudaPeekAtLastError());
	fact("free", "%d", (int)cudaFree(q));
	fact("after_free", "%d", (int)cudaPeekAtLastError());
	fact("driver_refused", "%d", (int)drv.p_cuMemAlloc(&d, HUGE_BYTES));
	fact("bad_free", "%d", (int)cudaFree((void *)(uintptr_t)0x1000));
	fact("get", "%d", (int)cudaGetLastError());
	fact("get_again", "%d", (int)cudaGetLastError());
	fact("driver_refused_again", "%d", (int)drv.p_cuMemAlloc(&d, HUGE_BYTES));
	fact("after_driver", "%d", (int)cudaPeekAtLastError());
}

void section_queries(int arg)
{
	size_t free_bytes = 0, total = 0, driver_free = 0, driver_total = 0, device_total = 0, before, after;
	struct cudaDeviceProp prop;
	void *p = NULL;
	(void)arg;

	fact("cudaMemGetInfo", "%d", (int)cudaMemGetInfo(&free_bytes, &total));
	fact("cudaMemGetInfo.null_free", "%d", (int)cudaMemGetInfo(NULL, &total));
	fact("cudaMemGetInfo.null_total", "%d", (int)cudaMemGetInfo(&free_bytes, NULL));
	fact("cudaMemGetInfo.null_both", "%d", (int)cudaMemGetInfo(NULL, NULL));
	fact("cuMemGetInfo", "%d", (int)drv.p_cuMemGetInfo(&driver_free, &driver_total));
	fact("cuMemGetInfo.null_free", "%d", (int)drv.p_cuMemGetInfo(NULL, &driver_total));
	fact("cuMemGetInfo.null_total", "%d", (int)drv.p_cuMemGetInfo(&driver_free, NULL));
	fact("cuMemGetInfo.null_both", "%d", (int)drv.p_cuMemGetInfo(NULL, NULL));
	fact("cuDeviceTotalMem", "%d", (int)drv.p_cuDeviceTotalMem(&device_total, 0));
	fact("cudaGetDeviceProperties", "%d", (int)cudaGetDeviceProperties(&prop, 0));
	fact("totals_agree", "%d", total == driver_total && total == device_total && total == prop.totalGlobalMem);
	fact("free_below_total", "%d", free_bytes < total);
	cudaMemGetInfo(&before, NULL);
	fact("cudaMalloc.64M", "%d", (int)cudaMalloc(&p, 64 * MIB));
	cudaMemGetInfo(&after, NULL);
	fact("free_fell_MiB", "%zu", (before - after) / MIB);
	fact("cudaFree.64M", "%d", (int)cudaFree(p));
	cudaMemGetInfo(&after, NULL);
	fact("free_came_back", "%d", before == after);
}
