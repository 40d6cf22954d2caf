/* Small virtual-memory allocations, one handle each, side by side in one reservation; refusals; access rights. */
#include "observe.h"

#define HANDLES 16

int main(void)
{
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	CUmemGenericAllocationHandle h[HANDLES], odd = (CUmemGenericAllocationHandle)(uintptr_t)KEPT;
	CUdeviceptr va = 0, at = (CUdeviceptr)(uintptr_t)KEPT;
	size_t least = 0, best = 0;
	int code = 0;
	memset(&prop, 0, sizeof prop);
	memset(&access, 0, sizeof access);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	obs_code("init", cudaFree(NULL));
	code = (int)cuMemGetAllocationGranularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) |
	       (int)cuMemGetAllocationGranularity(&best, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	obs("granularity", "%d,%zu,%zu", code, least, best);
	obs_out("create.8", cuMemCreate(&odd, 8, &prop, 0), &odd);
	obs_out("create.0", cuMemCreate(&odd, 0, &prop, 0), &odd);
	prop.location.id = 55;
	obs_out("create.bad_device", cuMemCreate(&odd, least, &prop, 0), &odd);
	prop.location.id = 0;
	obs_code("reserve", cuMemAddressReserve(&va, HANDLES * least, 0, 0, 0));
	obs_out("reserve.odd", cuMemAddressReserve(&at, 8, 0, 0, 0), &at);
	code = 0;
	for (int i = 0; i < HANDLES; i++)
		code |= (int)cuMemCreate(&h[i], least, &prop, 0) | (int)cuMemMap(va + (size_t)i * least, least, 0, h[i], 0);
	obs_code("mapped", code);
	obs_code("access.half", cuMemSetAccess(va, HANDLES / 2 * least, &access, 1));
	obs_last("memset.half", cudaMemset((void *)(uintptr_t)va, 2, HANDLES / 2 * least));
	obs_bytes("content.half", (void *)(uintptr_t)(va + least - 8), 2, 16);
	unsigned long long rights = 77;
	code = (int)cuMemGetAccess(&rights, &access.location, va + (HANDLES - 1) * least);
	obs("rights.none", "%d,%llu", code, rights);
	obs_code("access.all", cuMemSetAccess(va, HANDLES * least, &access, 1));
	code = (int)cuMemGetAccess(&rights, &access.location, va + (HANDLES - 1) * least);
	obs("rights", "%d,%llu", code, rights);
	obs_last("memset.all", (int)cudaMemset((void *)(uintptr_t)va, 3, HANDLES * least) | (int)cudaDeviceSynchronize());
	obs_bytes("content.all", (void *)(uintptr_t)(va + 5 * least - 4), 3, 8);
	CUdeviceptr base = 0;
	size_t size = 0;
	code = (int)cuMemGetAddressRange(&base, &size, va + 3 * least + 100);
	obs("range", "%d,%d,%d", code, base == va + 3 * least, size == least);
	obs_last("cudaFree", cudaFree((void *)(uintptr_t)va));
	CUmemAllocationProp back;
	memset(&back, 0, sizeof back);
	code = (int)cuMemGetAllocationPropertiesFromHandle(&back, h[0]);
	obs("properties", "%d,%d,%d", code, (int)back.type, back.location.id);
	code = 0;
	for (int i = 0; i < HANDLES; i++)
		code |= (int)cuMemUnmap(va + (size_t)i * least, least) | (int)cuMemRelease(h[i]);
	obs_code("unmapped", code);
	obs_code("release.again", cuMemRelease(h[0]));
	obs_code("address_free", cuMemAddressFree(va, HANDLES * least));
	obs_code("address_free.again", cuMemAddressFree(va, HANDLES * least));
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
