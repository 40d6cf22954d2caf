/*
 * Virtual memory management, arrays, and what cudaDeviceReset and an illegal access leave behind.
 */
#include "facts.h"
#include "facts_kernel.h"

#include <stdio.h>
#include <string.h>

static CUmemAllocationProp device_prop(void)
{
	CUmemAllocationProp prop;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	return prop;
}

static int set_access(CUdeviceptr at, size_t bytes)
{
	CUmemAccessDesc access;
	memset(&access, 0, sizeof access);
	access.location = device_prop().location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return (int)drv.p_cuMemSetAccess(at, bytes, &access, 1);
}

static int type_of(CUdeviceptr p)
{
	struct cudaPointerAttributes a;
	int code = (int)cudaPointerGetAttributes(&a, (void *)(uintptr_t)p);
	return code != 0 ? -code : (int)a.type;
}

static void past_the_reservation(void)
{
	CUmemAllocationProp prop = device_prop();
	CUmemGenericAllocationHandle handle = 0;
	CUdeviceptr at = 0;
	fact("past.reserve", "%d", (int)drv.p_cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0));
	fact("past.create", "%d", (int)drv.p_cuMemCreate(&handle, 4 * MIB, &prop, 0));
	fact("past.map", "%d", (int)drv.p_cuMemMap(at, 4 * MIB, 0, handle, 0));
	fact("past.address_free", "%d", (int)drv.p_cuMemAddressFree(at, 2 * MIB));
}

void section_vmm(int arg)
{
	CUmemAllocationProp prop = device_prop();
	CUmemGenericAllocationHandle handle = 0, second = 0, retained = 0;
	CUdeviceptr at = 0, odd = 0, base = 0;
	size_t granularity = 0, bytes = 0;
	(void)arg;

	fact("setDevice", "%d", (int)cudaSetDevice(0));
	FACT_THEN("granularity",
	          drv.p_cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "%zu",
	          granularity);
	fact("create.odd_size", "%d", (int)drv.p_cuMemCreate(&second, 3 * MIB, &prop, 0));
	fact("create.zero", "%d", (int)drv.p_cuMemCreate(&second, 0, &prop, 0));
	fact("reserve.odd_size", "%d", (int)drv.p_cuMemAddressReserve(&odd, 3 * MIB, 0, 0, 0));
	fact("reserve", "%d", (int)drv.p_cuMemAddressReserve(&at, 16 * MIB, 0, 0, 0));
	fact("create", "%d", (int)drv.p_cuMemCreate(&handle, 4 * MIB, &prop, 0));
	fact("map.partial", "%d", (int)drv.p_cuMemMap(at, 2 * MIB, 0, handle, 0));
	fact("map.offset", "%d", (int)drv.p_cuMemMap(at, 2 * MIB, 2 * MIB, handle, 0));
	fact("range.before_map", "%d", (int)drv.p_cuMemGetAddressRange(&base, &bytes, at));
	fact("type.before_map", "%d", type_of(at));
	fact("map", "%d", (int)drv.p_cuMemMap(at, 4 * MIB, 0, handle, 0));
	fact("map.again", "%d", (int)drv.p_cuMemMap(at, 4 * MIB, 0, handle, 0));
	fact("type.before_access", "%d", type_of(at));
	fact("access", "%d", set_access(at, 4 * MIB));
	fact("memset", "%d", (int)cudaMemset((void *)(uintptr_t)at, 1, 4 * MIB));
	fact("type", "%d", type_of(at));
	FACT_THEN("range", drv.p_cuMemGetAddressRange(&base, &bytes, at + MIB), "bytes=%zu,base=%s", bytes,
	          base == at ? "start" : "other");
	fact("map.second_place", "%d", (int)drv.p_cuMemMap(at + 8 * MIB, 4 * MIB, 0, handle, 0));
	FACT_THEN("retain", drv.p_cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)at), "%s",
	          retained == handle ? "same" : "other");
	fact("release.retained", "%d", (int)drv.p_cuMemRelease(retained));
	fact("release.while_mapped", "%d", (int)drv.p_cuMemRelease(handle));
	fact("memset.after_release", "%d", (int)cudaMemset((void *)(uintptr_t)at, 2, 4 * MIB));
	fact("address_free.while_mapped", "%d", (int)drv.p_cuMemAddressFree(at, 16 * MIB));
	fact("cuMemFree.mapped", "%d", (int)drv.p_cuMemFree(at));
	fact_code("cudaFree.mapped", (int)cudaFree((void *)(uintptr_t)at));
	fact("unmap.partial", "%d", (int)drv.p_cuMemUnmap(at, 2 * MIB));
	fact("unmap", "%d", (int)drv.p_cuMemUnmap(at, 4 * MIB));
	fact("unmap.twice", "%d", (int)drv.p_cuMemUnmap(at, 4 * MIB));
	fact("unmap.second_place", "%d", (int)drv.p_cuMemUnmap(at + 8 * MIB, 4 * MIB));
	fact("type.after_unmap", "%d", type_of(at));
	fact("address_free.wrong_size", "%d", (int)drv.p_cuMemAddressFree(at, 2 * MIB));
	fact("address_free", "%d", (int)drv.p_cuMemAddressFree(at, 16 * MIB));
	past_the_reservation();
}

/* The largest of a kind, which has room, and the next larger. */
static void array_limits(const struct cudaChannelFormatDesc *format)
{
	static const struct cudaExtent sizes[] = {
		{131072, 0, 0}, {131073, 0, 0}, {131072, 65536, 0}, {131073, 1, 0}, {1, 65537, 0},
		{16384, 1, 1},  {16385, 1, 1},  {1, 16385, 1},      {1, 1, 16385},  {16384, 16384, 16384}};
	char key[64];
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		cudaArray_t array = (cudaArray_t)SENTINEL;
		int code = (int)cudaMalloc3DArray(&array, format, sizes[i], 0);
		snprintf(key, sizeof key, "limit.%zux%zux%zu", sizes[i].width, sizes[i].height, sizes[i].depth);
		fact_alloc(key, code, &array);
		if (code == 0)
			cudaFreeArray(array);
	}
	cudaGetLastError();
}

void section_arrays(int arg)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaChannelFormatDesc got;
	struct cudaExtent extent = {64, 64, 4}, wide = {1 << 20, 1 << 20, 0}, got_extent = {0, 0, 0};
	struct cudaArrayMemoryRequirements needs;
	cudaArray_t array = NULL, deferred = NULL, refused = (cudaArray_t)SENTINEL;
	cudaMipmappedArray_t mipmap = NULL;
	unsigned flags = 77;
	void *p = NULL;
	size_t pitch = 0;
	struct cudaPitchedPtr p3 = {NULL, 0, 0, 0};
	(void)arg;

	memset(&needs, 0, sizeof needs);
	fact("cudaMallocArray", "%d", (int)cudaMallocArray(&array, &format, 64, 64, 0));
	FACT_THEN("info", cudaArrayGetInfo(&got, &got_extent, &flags, array), "%zux%zux%zu,flags=%u",
	          got_extent.width, got_extent.height, got_extent.depth, flags);
	fact_code("requirements.ordinary", (int)cudaArrayGetMemoryRequirements(&needs, array, 0));
	fact_code("cudaFreeArray", (int)cudaFreeArray(array));
	fact("cudaMalloc3DArray.deferred", "%d",
	     (int)cudaMalloc3DArray(&deferred, &format, extent, cudaArrayDeferredMapping));
	FACT_THEN("requirements.deferred", cudaArrayGetMemoryRequirements(&needs, deferred, 0), "%s,%s",
	          needs.size > 0 ? "size" : "none", needs.alignment > 0 ? "alignment" : "none");
	fact_code("cudaFreeArray.deferred", (int)cudaFreeArray(deferred));
	fact_alloc("cudaMalloc3DArray.refused", (int)cudaMalloc3DArray(&refused, &format, wide, 0), &refused);
	fact("last", "%d", (int)cudaGetLastError());
	array_limits(&format);
	fact("cudaMallocMipmappedArray", "%d", (int)cudaMallocMipmappedArray(&mipmap, &format, extent, 3, 0));
	fact_code("cudaFreeMipmappedArray", (int)cudaFreeMipmappedArray(mipmap));
	FACT_THEN("cudaMallocPitch", cudaMallocPitch(&p, &pitch, 1000, 64), "pitch=%zu", pitch);
	fact_code("cudaFree.pitch", (int)cudaFree(p));
	FACT_THEN("cudaMalloc3D", cudaMalloc3D(&p3, extent), "pitch=%zu,x=%zu,y=%zu", p3.pitch, p3.xsize, p3.ysize);
	fact_code("cudaFree.3d", (int)cudaFree(p3.ptr));
}

static void reset_from_elsewhere(void *arg)
{
	(void)arg;
	fact("fresh_thread.cudaDeviceReset", "%d", (int)cudaDeviceReset());
}

void section_reset(int arg)
{
	void *plain = NULL, *async = NULL, *pinned = NULL, *again = NULL;
	(void)arg;

	fact("allocations", "%d,%d,%d", (int)cudaMalloc(&plain, MIB), (int)cudaMallocAsync(&async, MIB, NULL),
	     (int)cudaMallocHost(&pinned, MIB));
	fact("sync", "%d", (int)cudaDeviceSynchronize());
	on_thread(reset_from_elsewhere, NULL);
	fact("after_fresh_thread.plain_type", "%d", type_of((CUdeviceptr)(uintptr_t)plain));
	fact("cudaDeviceReset", "%d", (int)cudaDeviceReset());
	fact("active", "%d", primary_active());
	fact("plain_type", "%d", type_of((CUdeviceptr)(uintptr_t)plain));
	fact("async_type", "%d", type_of((CUdeviceptr)(uintptr_t)async));
	fact("pinned_type", "%d", type_of((CUdeviceptr)(uintptr_t)pinned));
	fact_code("cudaFree.plain", (int)cudaFree(plain));
	fact_code("cudaFreeHost.pinned", (int)cudaFreeHost(pinned));
	fact_code("cudaFree.async", (int)cudaFree(async));
	fact_code("cudaFree.async_twice", (int)cudaFree(async));
	fact_code("cudaMalloc.again", (int)cudaMalloc(&again, MIB));
	fact_code("cudaFree.again", (int)cudaFree(again));
	fact_code("cudaDeviceReset.again", (int)cudaDeviceReset());
	fact_code("cudaDeviceReset.twice", (int)cudaDeviceReset());
}

/* Only with --faults: a store to an unmapped address, which kills the context (error 700). */
void section_fault(int arg)
{
	CUmodule module = NULL;
	CUfunction poke = NULL;
	CUdeviceptr where = 0x10;
	void *params[] = {&where}, *p = NULL;
	size_t free_bytes, total;
	(void)arg;

	fact("cudaMalloc", "%d", (int)cudaMalloc(&p, MIB));
	fact("load", "%d", (int)drv.p_cuModuleLoadData(&module, facts_ptx));
	fact("function", "%d", (int)drv.p_cuModuleGetFunction(&poke, module, "poke"));
	if (poke == NULL)
		return;
	fact("launch", "%d", (int)drv.p_cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	fact("sync", "%d", (int)cudaDeviceSynchronize());
	fact("get_last", "%d", (int)cudaGetLastError());
	fact("get_last_again", "%d", (int)cudaGetLastError());
	fact("cudaFree", "%d", (int)cudaFree(p));
	p = SENTINEL;
	fact_alloc("cudaMalloc.after", (int)cudaMalloc(&p, MIB), &p);
	fact("cudaMemGetInfo.after", "%d", (int)cudaMemGetInfo(&free_bytes, &total));
	p = SENTINEL;
	fact_alloc("cudaMallocHost.after", (int)cudaMallocHost(&p, MIB), &p);
	fact("cudaDeviceReset", "%d", (int)cudaDeviceReset());
	p = SENTINEL;
	fact_alloc("cudaMalloc.after_reset", (int)cudaMalloc(&p, MIB), &p);
}
