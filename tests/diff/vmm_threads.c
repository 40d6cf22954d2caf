/*
 * Threads that make, map, write, retain, unmap and release handles of virtual memory at the same time, each in a range of its own and in an order
 * of its own: what a thread wrote is there until it lets go, and no call fails. `vmm_threads calm`: none is retained.
 */
#include "observe.h"

#define THREADS 4
#define ROUNDS 120
#define AT_ONCE 3
#define EACH (2 * MIB)

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static int calm;
static struct worker { CUdeviceptr va; unsigned long seed; int errors, wrong; } workers[THREADS];

static unsigned below(struct worker *w, unsigned limit)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->seed >> 33) % limit;
}

static void fill(struct worker *w, CUdeviceptr at, int value, cudaStream_t stream)
{
	w->errors += cudaMemsetAsync((void *)(uintptr_t)at, value, 4096, stream) != 0;
}

static void check(struct worker *w, CUdeviceptr at, int value, cudaStream_t stream)
{
	unsigned char host[4096];
	w->errors += cudaMemcpyAsync(host, (void *)(uintptr_t)at, sizeof host, cudaMemcpyDeviceToHost, stream) != 0 || cudaStreamSynchronize(stream) != 0;
	for (size_t i = 0; i < sizeof host; i++)
		w->wrong += host[i] != (unsigned char)value;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	CUmemGenericAllocationHandle handles[AT_ONCE], again;
	cudaStream_t stream;
	w->errors += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != 0;
	for (int round = 0; round < ROUNDS; round++) {
		int count = 1 + (int)below(w, AT_ONCE), early = (int)below(w, 2), value = 1 + (int)(w - workers) * 40 + round % 40;
		for (int i = 0; i < count; i++) {
			CUdeviceptr at = w->va + (size_t)i * EACH;
			w->errors += cuMemCreate(&handles[i], EACH, &prop, 0) != 0;
			w->errors += cuMemMap(at, EACH, 0, handles[i], 0) != 0 || cuMemSetAccess(at, EACH, &access_desc, 1) != 0;
			if (early)
				w->errors += cuMemRelease(handles[i]) != 0;
			fill(w, at, value + i, stream);
		}
		int retains = !calm && below(w, 8) == 0;
		if (retains) { /* and gives back what it got, while it is mapped */
			w->errors += cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)w->va) != 0;
			w->errors += cuMemRelease(again) != 0;
		}
		for (int i = 0; i < count; i++)
			check(w, w->va + (size_t)i * EACH, value + i, stream);
		if (!early && below(w, 2)) /* before it is unmapped */
			for (int i = 0; i < count; i++, early = 1)
				w->errors += cuMemRelease(handles[i]) != 0;
		w->errors += cuMemUnmap(w->va, (size_t)count * EACH) != 0;
		for (int i = 0; i < count && !early; i++)
			w->errors += cuMemRelease(handles[i]) != 0;
	}
	w->errors += cudaStreamDestroy(stream) != 0;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	size_t before = 0, after = 0;
	int errors = 0, wrong = 0;
	calm = argc > 1 && strcmp(argv[1], "calm") == 0;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access_desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	obs_code("init", cudaFree(NULL));
	for (int i = 0; i < THREADS; i++) {
		workers[i].seed = (unsigned long)i * 77 + 1;
		errors += cuMemAddressReserve(&workers[i].va, AT_ONCE * EACH, 0, 0, 0) != 0;
	}
	obs_code("reserve", errors);
	/* What streams and first fills cost by themselves is there after the first time. */
	errors = 0;
	for (int i = 0; i < THREADS; i++)
		errors += pthread_create(&threads[i], NULL, work, &workers[i]) != 0;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cudaMemGetInfo(&before, NULL);
	for (int i = 0; i < THREADS; i++)
		errors += pthread_create(&threads[i], NULL, work, &workers[i]) != 0;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cudaMemGetInfo(&after, NULL);
	for (int i = 0; i < THREADS; i++) {
		errors += workers[i].errors;
		wrong += workers[i].wrong;
	}
	obs("threads", "errors=%d,wrong=%d", errors, wrong);
	obs("memory", "%d", before == after);
	return 0;
}
