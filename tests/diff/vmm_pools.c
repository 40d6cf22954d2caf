/*
 * Allocators over virtual memory, as engines have them: segments that grow and shrink handle by handle with each request, of a small and a large
 * size; and a pool that reserves once, releases each handle as soon as it is mapped, and gives all back by one unmap. What each request
 * wrote is there until it ends, and memory comes and goes with the handles. `vmm_pools N`: N requests.
 */
#include "observe.h"

#define SEGMENTS 2
#define MOST 8

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static const size_t sizes[SEGMENTS] = {2 * MIB, 10 * MIB};
static struct segment { CUdeviceptr at; CUmemGenericAllocationHandle handles[MOST]; int count; } segments[SEGMENTS];
static CUdeviceptr pool;
static size_t pool_used;

/* One more handle at the segment's end. */
static __attribute__((noinline)) int grow(int which)
{
	struct segment *s = &segments[which];
	CUdeviceptr to = s->at + (size_t)s->count * sizes[which];
	int code = (int)cuMemCreate(&s->handles[s->count], sizes[which], &prop, 0);
	if (code == 0)
		code = (int)cuMemMap(to, sizes[which], 0, s->handles[s->count], 0) | (int)cuMemSetAccess(to, sizes[which], &access_desc, 1);
	s->count += code == 0;
	return code;
}

static int shrink(int which, int to)
{
	struct segment *s = &segments[which];
	int code = (int)cudaDeviceSynchronize();
	while (s->count > to) {
		s->count--;
		code |= (int)cuMemUnmap(s->at + (size_t)s->count * sizes[which], sizes[which]) | (int)cuMemRelease(s->handles[s->count]);
	}
	return code;
}

static __attribute__((noinline)) int pool_grow(size_t bytes)
{
	CUmemGenericAllocationHandle h;
	int code = (int)cuMemCreate(&h, bytes, &prop, 0);
	if (code == 0)
		code = (int)cuMemMap(pool + pool_used, bytes, 0, h, 0) | (int)cuMemRelease(h) | (int)cuMemSetAccess(pool + pool_used, bytes, &access_desc, 1);
	pool_used += code == 0 ? bytes : 0;
	return code;
}

static int pool_end(void)
{
	int code = (int)cudaDeviceSynchronize() | (int)cuMemUnmap(pool, pool_used);
	pool_used = 0;
	return code;
}

/* In MiB, against what it was at first. */
static long fell(void)
{
	static size_t first;
	size_t now = 0;
	cudaMemGetInfo(&now, NULL);
	if (first == 0)
		first = now;
	return ((long)first - (long)now) / (long)MIB;
}

/* What a first fill and a first copy cost by themselves is there before anything is looked at. */
static int warm(void)
{
	char host[4096];
	void *p = NULL;
	int code = (int)cudaMalloc(&p, 8 * MIB) | (int)cudaMemset(p, 1, 8 * MIB) | (int)cudaMemsetAsync(p, 1, 8 * MIB, NULL);
	return code | (int)cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost) | (int)cudaDeviceSynchronize() | (int)cudaFree(p);
}

static void request(int n)
{
	char key[64];
	int code = 0, small = 2 + n % 3, large = 1 + n % 2;
	for (int i = 0; i < small; i++)
		code |= grow(0);
	for (int i = 0; i < large; i++)
		code |= grow(1);
	for (int i = 0; i <= n % 2; i++)
		code |= pool_grow((size_t)(4 + 2 * i) * MIB);
	code |= (int)cudaMemsetAsync((void *)(uintptr_t)segments[0].at, n + 1, (size_t)small * sizes[0], NULL);
	code |= (int)cudaMemsetAsync((void *)(uintptr_t)segments[1].at, n + 2, (size_t)large * sizes[1], NULL);
	code |= (int)cudaMemsetAsync((void *)(uintptr_t)pool, n + 3, pool_used, NULL);
	snprintf(key, sizeof key, "request.%d", n);
	obs(key, "%d,fell=%ld", code, fell());
	snprintf(key, sizeof key, "request.%d.small", n);
	obs_bytes(key, (void *)(uintptr_t)(segments[0].at + (size_t)small * sizes[0] - 4096), n + 1, 4096);
	snprintf(key, sizeof key, "request.%d.large", n);
	obs_bytes(key, (void *)(uintptr_t)(segments[1].at + (size_t)large * sizes[1] - 4096), n + 2, 4096);
	snprintf(key, sizeof key, "request.%d.pool", n);
	obs_bytes(key, (void *)(uintptr_t)(pool + pool_used - 4096), n + 3, 4096);
	code = pool_end() | shrink(1, 0) | shrink(0, n % 2);
	snprintf(key, sizeof key, "request.%d.end", n);
	obs(key, "%d,fell=%ld", code, fell());
	shrink(0, 0);
}

int main(int argc, char **argv)
{
	int requests = argc > 1 ? atoi(argv[1]) : 6;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access_desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	obs_code("init", warm());
	for (int i = 0; i < SEGMENTS; i++)
		obs_code("reserve", cuMemAddressReserve(&segments[i].at, MOST * sizes[i], 0, 0, 0));
	obs_code("reserve.pool", cuMemAddressReserve(&pool, 64 * MIB, 0, 0, 0));
	obs("first", "%ld", fell());
	for (int n = 0; n < requests; n++) {
		CUdeviceptr spare = 0;
		if (n == 3) /* a call that is made once, by which a test knows that it serves */
			obs_code("serving", (int)cuMemAddressReserve(&spare, 2 * MIB, 0, 0, 0) | (int)cuMemAddressFree(spare, 2 * MIB));
		request(n);
	}
	obs("last", "%ld", fell());
	return 0;
}
