/*
 * Handles of virtual memory of a device that is not current, in turn with those of the current one, and under a context of the program's own that
 * ends while a handle is mapped: memory belongs to the device that the handle names, and to no context. `vmm_devices N`: N rounds.
 */
#include "observe.h"

#define EACH (4 * MIB)

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static CUdeviceptr va;

static int make_on(int device, CUmemGenericAllocationHandle *h)
{
	prop.location.id = device;
	return (int)cuMemCreate(h, EACH, &prop, 0);
}

static int map(int place, int device, CUmemGenericAllocationHandle h)
{
	access_desc.location.id = device;
	return (int)cuMemMap(va + (size_t)place * EACH, EACH, 0, h, 0) | (int)cuMemSetAccess(va + (size_t)place * EACH, EACH, &access_desc, 1);
}

static long used(int device)
{
	size_t free_bytes = 0, total = 0;
	int code = (int)cudaSetDevice(device) | (int)cudaMemGetInfo(&free_bytes, &total);
	return code == 0 ? (long)((total - free_bytes) / MIB) : -1;
}

/* What a first fill and a first copy cost by themselves is there before anything is looked at. */
static int warm(void)
{
	char host[4096];
	void *p = NULL;
	int code = (int)cudaMalloc(&p, 8 * MIB) | (int)cudaMemset(p, 1, 8 * MIB) | (int)cudaMemsetAsync(p, 1, 8 * MIB, NULL);
	return code | (int)cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost) | (int)cudaDeviceSynchronize() | (int)cudaFree(p);
}

static void round_of(int n)
{
	char key[64];
	CUmemGenericAllocationHandle h[2];
	long before[2] = {used(0), used(1)};
	int code = (int)cudaSetDevice(n % 2);
	for (int device = 0; device < 2; device++) { /* one of them is not current */
		code |= make_on(device, &h[device]);
		code |= map(device, device, h[device]);
	}
	long grown[2] = {used(0) - before[0], used(1) - before[1]};
	snprintf(key, sizeof key, "round.%d", n);
	obs(key, "%d,grown=%ld,%ld", code, grown[0], grown[1]);
	for (int device = 0; device < 2; device++) {
		code = (int)cudaSetDevice(device);
		void *at = (void *)(uintptr_t)(va + (size_t)device * EACH);
		code |= (int)cudaMemset(at, 0x11 * (n + 1) + device, EACH) | (int)cudaDeviceSynchronize();
		snprintf(key, sizeof key, "round.%d.content.%d", n, device);
		obs_bytes(key, at, 0x11 * (n + 1) + device, 4096);
	}
	CUmemAllocationProp got;
	for (int device = 0; device < 2; device++) {
		snprintf(key, sizeof key, "round.%d.location.%d", n, device);
		int asked = (int)cuMemGetAllocationPropertiesFromHandle(&got, h[device]);
		obs(key, "%d,%d", asked, got.location.id);
	}
	code = (int)cuMemUnmap(va, 2 * EACH) | (int)cuMemRelease(h[0]) | (int)cuMemRelease(h[1]);
	snprintf(key, sizeof key, "round.%d.end", n);
	long left[2] = {used(0) - before[0], used(1) - before[1]};
	obs(key, "%d,left=%ld,%ld", code, left[0], left[1]);
}

/* A handle outlives the context that was current when it was made. */
static void own_context(void)
{
	CUcontext own = NULL;
	CUmemGenericAllocationHandle h, next;
	obs_code("own.create", (int)cuCtxCreate(&own, NULL, 0, 0));
	obs_code("own.handle", make_on(0, &h) | map(0, 0, h));
	obs_code("own.destroy", cuCtxDestroy(own));
	obs_code("own.next", make_on(0, &next) | map(1, 0, next));
	obs_last("own.fill", (int)cudaSetDevice(0) | (int)cudaMemset((void *)(uintptr_t)va, 0x77, EACH) | (int)cudaDeviceSynchronize());
	obs_last("own.next.fill", (int)cudaMemset((void *)(uintptr_t)(va + EACH), 0x78, EACH) | (int)cudaDeviceSynchronize());
	obs_bytes("own.content", (void *)(uintptr_t)va, 0x77, EACH);
	obs_code("own.end", (int)cuMemUnmap(va, 2 * EACH) | (int)cuMemRelease(h) | (int)cuMemRelease(next));
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 4;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access_desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	obs_code("init", (int)cudaSetDevice(1) | warm() | (int)cudaSetDevice(0) | warm());
	obs_code("reserve", cuMemAddressReserve(&va, 2 * EACH, 0, 0, 0));
	for (int n = 0; n < rounds; n++)
		round_of(n);
	own_context();
	return 0;
}
