/* Nearly the whole card through a pool, freed, then half of it by a plain allocation: the pool's idle bytes must go. */
#include "observe.h"

int main(void)
{
	size_t f = 0, total = 0;
	void *p = NULL, *q = KEPT;
	cudaMemPool_t pool;
	uint64_t all = UINT64_MAX, reserved = 1;
	obs_last("query", cudaMemGetInfo(&f, &total));
	obs_last("pool", cudaDeviceGetDefaultMemPool(&pool, 0));
	obs_last("threshold", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
	obs_last("async", cudaMallocAsync(&p, f / 10 * 9, NULL));
	obs_last("too_much", cudaMalloc(&q, f / 2));
	obs_last("free", cudaFreeAsync(p, NULL));
	obs_last("sync", cudaStreamSynchronize(NULL));
	obs_last("attribute", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	obs_code("kept", reserved >= f / 10 * 9);
	q = KEPT;
	obs_out("plain", cudaMalloc(&q, f / 2), &q);
	obs_last("plain.last", cudaSuccess);
	obs_last("attribute.2", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	obs_code("given_up", reserved < f / 10 * 9);
	obs_last("plain.free", cudaFree(q));
	obs_last("async.again", cudaMallocAsync(&p, f / 10 * 9, NULL));
	obs_last("free.again", cudaFreeAsync(p, NULL));
	obs_last("sync.again", cudaStreamSynchronize(NULL));
	obs_last("trim", cudaMemPoolTrimTo(pool, 0));
	obs_last("attribute.3", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
	obs("trimmed", "%llu", (unsigned long long)reserved);
	return 0;
}
