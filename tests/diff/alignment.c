/* Alignment and distance of blocks of many sizes and kinds: 512 bytes at least, 2 MiB above 1 MiB, no two overlap. */
#include "observe.h"

#define COUNT 60
static const size_t sizes[] = {1, 8, 255, 256, 257, 511, 512, 513, 4096, 65537, MIB - 1, MIB, MIB + 1, 3 * MIB, 2 * MIB};
#define SIZES (sizeof sizes / sizeof sizes[0])

static size_t alignment_of(const void *p) { return (size_t)((uintptr_t)p & -(uintptr_t)p); }

static void observe(const char *kind, void *(*make)(size_t), size_t above)
{
	struct {
		char *at;
		size_t bytes;
	} block[COUNT];
	size_t least = SIZE_MAX, least_large = SIZE_MAX;
	int overlaps = 0, nulls = 0;
	char k[64];
	for (int i = 0; i < COUNT; i++) {
		block[i].bytes = sizes[(size_t)i % SIZES];
		block[i].at = make(block[i].bytes);
		nulls += block[i].at == NULL;
		size_t a = alignment_of(block[i].at);
		if (a < least)
			least = a;
		if (block[i].bytes > above && a < least_large)
			least_large = a;
		for (int j = 0; j < i; j++)
			overlaps += block[i].at < block[j].at + block[j].bytes && block[j].at < block[i].at + block[i].bytes;
	}
	snprintf(k, sizeof k, "%s.nulls", kind);
	obs_code(k, nulls);
	snprintf(k, sizeof k, "%s.at_least_512", kind);
	obs_code(k, least >= 512);
	snprintf(k, sizeof k, "%s.large_at_least_2MiB", kind);
	obs_code(k, least_large >= 2 * MIB);
	snprintf(k, sizeof k, "%s.overlaps", kind);
	obs_code(k, overlaps);
}

static void *plain(size_t n)
{
	void *p = NULL;
	return cudaMalloc(&p, n) == cudaSuccess ? p : NULL;
}

static void *driver(size_t n)
{
	CUdeviceptr p;
	return cuMemAlloc(&p, n) == CUDA_SUCCESS ? (void *)(uintptr_t)p : NULL;
}

static void *async(size_t n)
{
	void *p = NULL;
	return cudaMallocAsync(&p, n, NULL) == cudaSuccess ? p : NULL;
}

static void *pinned(size_t n)
{
	void *p = NULL;
	return cudaMallocHost(&p, n) == cudaSuccess ? p : NULL;
}

int main(void)
{
	obs_code("init", cudaFree(NULL));
	observe("plain", plain, MIB);
	observe("driver", driver, MIB);
	observe("async", async, SIZE_MAX - 1);
	observe("pinned", pinned, MIB);
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
