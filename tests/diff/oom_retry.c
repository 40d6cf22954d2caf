/* Out of memory, the error read or not, a smaller request: as a framework's allocator does, at both levels. */
#include "observe.h"

int main(void)
{
	void *p = KEPT, *q = NULL;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	size_t want = TOO_MUCH, tries = 0, a, b;
	obs_out("first", cudaMalloc(&p, 400 * MIB), &p);
	do
		tries++;
	while (cudaMalloc(&q, want) == cudaErrorMemoryAllocation && (want /= 8) > 0);
	obs("halved_until_it_fitted", "%d", q != NULL && tries > 1);
	obs_code("peek", cudaPeekAtLastError());
	obs_last("memset", cudaMemset(q, 7, 4096));
	obs_bytes("content", q, 7, 4096);
	obs_last("free.q", cudaFree(q));

	p == KEPT ? obs("never", "1") : obs_last("free.p", cudaFree(p));
	p = KEPT;
	obs_out("refused", cudaMalloc(&p, TOO_MUCH), &p);
	obs("name", "%s", cudaGetErrorName(cudaPeekAtLastError()));
	obs_last("get", cudaSuccess);
	obs_last("get_again", cudaSuccess);
	obs_out("refused.driver", cuMemAlloc(&d, TOO_MUCH), &d);
	obs_last("after_driver", cudaSuccess);
	obs_out("refused.async", cudaMallocAsync(&p, TOO_MUCH, NULL), &p);
	obs_last("after_async", cudaSuccess);
	p = KEPT;
	obs_out("refused.managed_flags", cudaMallocManaged(&p, MIB, 99), &p);
	obs_last("after_managed", cudaSuccess);
	/* The failure of one call is not the next one's. */
	obs_code("refused.2", cudaMalloc(&p, TOO_MUCH));
	obs_code("works", cudaMalloc(&q, MIB));
	obs_code("query", cudaMemGetInfo(&a, &b));
	obs_code("still", cudaPeekAtLastError());
	obs_code("sync", cudaDeviceSynchronize());
	obs_code("free", cudaFree(q));
	obs_last("still_there", cudaSuccess);
	obs_last("gone", cudaSuccess);
	return 0;
}
