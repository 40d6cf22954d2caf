/*
 * A program that lives long: 200 contexts made and destroyed, and the primary one reset 200 times, each with memory of every kind that is its own. What each
 * wrote is there until it ends, and nothing of those before it is. A stream-ordered block outlives a reset: one is kept from the first and freed at the end.
 * `many_contexts N`: N of each.
 */
#include "observe.h"

#include <sched.h>
#include <stdatomic.h>


static __attribute__((noinline)) int plain(CUdeviceptr *out) { return (int)cuMemAlloc(out, 3 * MIB); }
static __attribute__((noinline)) int pinned(void **out) { return (int)cuMemHostAlloc(out, 8192, 0); }
static __attribute__((noinline)) int ordered(CUdeviceptr *out, CUstream s) { return (int)cuMemAllocAsync(out, MIB, s); }

/* Whether all bytes are `value`; or the copy's code. */
static int holds(CUdeviceptr at, size_t bytes, int value)
{
	static unsigned char host[3 * MIB];
	int code = (int)cuMemcpyDtoH(host, at, bytes);
	for (size_t i = 0; code == 0 && i < bytes; i++)
		code = host[i] == (unsigned char)value ? 0 : -1;
	return code;
}

/* Another thread, without a context, frees blocks of contexts that have ended, while others come and go. */
#define HANDED 16
static _Atomic CUdeviceptr handed[HANDED];
static _Atomic int over, freed;

static void *frees(void *arg)
{
	(void)arg;
	for (int last = 0; !last;) {
		last = atomic_load(&over);
		for (int i = 0; i < HANDED; i++) {
			CUdeviceptr p = atomic_exchange(&handed[i], 0);
			if (p != 0)
				atomic_fetch_add(&freed, cuMemFree(p) == CUDA_SUCCESS);
		}
		sched_yield();
	}
	return NULL;
}

static void hand_over(CUdeviceptr p)
{
	for (int i = 0;; i = (i + 1) % HANDED) {
		CUdeviceptr none = 0;
		if (atomic_compare_exchange_strong(&handed[i], &none, p))
			return;
		sched_yield();
	}
}

static int made(int n, int *wrong)
{
	CUcontext c;
	CUstream s;
	CUdeviceptr p = 0, q = 0;
	void *h = NULL;
	int code = (int)cuCtxCreate(&c, NULL, 0, 0) | (int)cuStreamCreate(&s, 0) | plain(&p) | ordered(&q, s) | pinned(&h);
	if (code != 0)
		return code;
	memset(h, n, 8192);
	code = (int)cuMemsetD8Async(p, (unsigned char)n, 3 * MIB, s) | (int)cuMemsetD8Async(q, (unsigned char)(n + 1), MIB, s) | (int)cuStreamSynchronize(s);
	*wrong += holds(p, 3 * MIB, n) != 0 || holds(q, MIB, n + 1) != 0 || ((unsigned char *)h)[8191] != (unsigned char)n;
	code |= (n % 4 ? (int)cuMemFreeAsync(q, s) : 0) | (int)cuMemFree(p);
	if (n % 2) /* else it goes with the context */
		code |= (int)cuMemFreeHost(h);
	code |= (int)cuCtxDestroy(c);
	if (n % 4 == 0)
		hand_over(q);
	return code;
}

static __attribute__((noinline)) int plain_of_runtime(void **out) { return (int)cudaMalloc(out, 2 * MIB); }
static __attribute__((noinline)) int ordered_of_runtime(void **out) { return (int)cudaMallocAsync(out, MIB, NULL); }

static int reset(int n, int *wrong, void **kept)
{
	void *p = NULL, *q = NULL, *late = NULL;
	int code = plain_of_runtime(&p) | ordered_of_runtime(&q);
	if (code != 0)
		return code;
	code = (int)cudaMemset(p, n, 2 * MIB) | (int)cudaMemsetAsync(q, n + 1, MIB, NULL) | (int)cudaDeviceSynchronize();
	*wrong += holds((CUdeviceptr)(uintptr_t)p, 2 * MIB, n) != 0 || holds((CUdeviceptr)(uintptr_t)q, MIB, n + 1) != 0;
	if (n == 0)
		*kept = q;
	else
		code |= (int)cudaFreeAsync(q, NULL);
	if (n % 2)
		code |= (int)cudaFree(p);
	late = p;
	code |= (int)cudaDeviceReset();
	if (n % 2 == 0) /* gone with the context; a free of it makes a new one */
		*wrong += cudaFree(late) != cudaErrorInvalidValue || cudaGetLastError() != cudaErrorInvalidValue;
	return code;
}

static void pool_figures(const char *key)
{
	static const enum cudaMemPoolAttr what[] = {cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReservedMemCurrent};
	cudaMemPool_t pool = NULL;
	uint64_t v[3] = {1, 1, 1};
	int code = (int)cudaDeviceGetDefaultMemPool(&pool, 0);
	for (int i = 0; i < 3; i++)
		code |= (int)cudaMemPoolGetAttribute(pool, what[i], &v[i]);
	obs(key, "%d,used=%llu,high=%llu,reserved=%llu", code, (unsigned long long)v[0], (unsigned long long)v[1], (unsigned long long)v[2]);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 200;
	int code = (int)cuInit(0), failed = 0, wrong = 0;
	void *kept = NULL;
	pthread_t helper;
	obs_code("init", code | pthread_create(&helper, NULL, frees, NULL));
	for (int n = 0; n < rounds; n++)
		failed += made(n, &wrong) != 0;
	atomic_store(&over, 1);
	pthread_join(helper, NULL);
	obs_code("freed", (int)atomic_load(&freed));
	pool_figures("pool.made");
	obs("made", "failed=%d,wrong=%d", failed, wrong);
	failed = wrong = 0;
	for (int n = 0; n < rounds; n++)
		failed += reset(n, &wrong, &kept) != 0;
	pool_figures("pool.reset");
	obs("reset", "failed=%d,wrong=%d", failed, wrong);
	pool_figures("pool");
	obs_last("free.kept", cudaFree(kept));
	obs_last("free.kept.again", cudaFree(kept));
	return 0;
}
