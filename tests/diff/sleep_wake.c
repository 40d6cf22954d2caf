/* Sleep and wake: unmap and map again at the same address, with other allocations in between; then new physical memory. */
#include "observe.h"

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;

int main(void)
{
	CUmemGenericAllocationHandle h, again, fresh;
	CUdeviceptr va = 0;
	void *others[8], *host = malloc(4 * MIB);
	size_t bytes = 4 * MIB, before = 0, after = 0;
	int code = 0;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access_desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	obs_code("init", cudaFree(NULL));
	obs_code("reserve", cuMemAddressReserve(&va, bytes, 0, 0, 0));
	obs_code("create", cuMemCreate(&h, bytes, &prop, 0));
	obs_code("map", cuMemMap(va, bytes, 0, h, 0));
	obs_code("access", cuMemSetAccess(va, bytes, &access_desc, 1));
	obs_last("fill", (int)cudaMemset((void *)(uintptr_t)va, 0x71, bytes) | (int)cudaDeviceSynchronize());

	/* Kept physical memory: only the address sleeps. */
	obs_code("unmap", cuMemUnmap(va, bytes));
	obs_code("asleep.retain", cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va));
	for (int i = 0; i < 8; i++)
		code |= (int)cudaMalloc(&others[i], MIB + (size_t)i);
	obs_last("others", code);
	obs_code("map.2", cuMemMap(va, bytes, 0, h, 0));
	obs_code("access.2", cuMemSetAccess(va, bytes, &access_desc, 1));
	obs_bytes("content", (void *)(uintptr_t)va, 0x71, bytes);
	obs_code("retain", cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 100)));
	obs_code("same_handle", again == h);
	obs_code("release.retained", cuMemRelease(again));

	/* Given back: contents go to the host, physical memory returns to the card, the address stays reserved. */
	obs_last("save", cudaMemcpy(host, (void *)(uintptr_t)va, bytes, cudaMemcpyDeviceToHost));
	obs_last("query", cudaMemGetInfo(&before, NULL));
	obs_code("unmap.3", cuMemUnmap(va, bytes));
	obs_code("release", cuMemRelease(h));
	obs_last("query.2", cudaMemGetInfo(&after, NULL));
	obs("came_back_MiB", "%zu", (after - before) / MIB);
	for (int i = 0; i < 8; i += 2)
		code |= (int)cudaFree(others[i]);
	obs_last("others.2", code);
	obs_code("create.4", cuMemCreate(&fresh, bytes, &prop, 0));
	obs_code("map.4", cuMemMap(va, bytes, 0, fresh, 0));
	obs_code("access.4", cuMemSetAccess(va, bytes, &access_desc, 1));
	obs_last("restore", cudaMemcpy((void *)(uintptr_t)va, host, bytes, cudaMemcpyHostToDevice));
	obs_bytes("content.4", (void *)(uintptr_t)va, 0x71, bytes);

	/* One handle at two addresses. */
	CUdeviceptr twin = 0;
	obs_code("twin.reserve", cuMemAddressReserve(&twin, bytes, 0, 0, 0));
	obs_code("twin.map", cuMemMap(twin, bytes, 0, fresh, 0));
	obs_code("twin.access", cuMemSetAccess(twin, bytes, &access_desc, 1));
	obs_last("twin.fill", cudaMemset((void *)(uintptr_t)twin, 0x72, bytes));
	obs_bytes("twin.content", (void *)(uintptr_t)va, 0x72, 64);
	obs_code("release.4", cuMemRelease(fresh));
	obs_bytes("after_release", (void *)(uintptr_t)va, 0x72, 64);
	obs_code("end", (int)cuMemUnmap(va, bytes) | (int)cuMemUnmap(twin, bytes) | (int)cuMemAddressFree(va, bytes) |
	                    (int)cuMemAddressFree(twin, bytes));
	free(host);
	return 0;
}
