/* Refused calls in the middle of work: asynchronous failures stay where they arose, synchronous ones do not spread. */
#include "observe.h"

static void *reads(void *arg)
{
	(void)arg;
	obs_last("thread.last", cudaSuccess);
	obs_last("thread.sync", cudaDeviceSynchronize());
	return NULL;
}

int main(void)
{
	void *p, *q = KEPT;
	cudaStream_t s;
	char host[64];
	obs_last("made", (int)cudaMalloc(&p, 4096) | (int)cudaStreamCreate(&s));
	obs_last("copy.too_long", cudaMemcpy(host, p, (size_t)1 << 30, cudaMemcpyDeviceToHost));
	obs_last("copy.null", cudaMemcpy(NULL, p, 8, cudaMemcpyDeviceToHost));
	obs_last("copy.kind", cudaMemcpy(host, p, 8, (enum cudaMemcpyKind)77));
	obs_last("copy.zero", cudaMemcpy(host, p, 0, cudaMemcpyDeviceToHost));
	obs_last("memset.heap", cudaMemset(host, 0, 64));
	obs_code("refused.1", cudaMalloc(&q, TOO_MUCH));
	obs_code("refused.2", cudaFree(host));
	obs_code("peek", cudaPeekAtLastError());
	on_thread(reads, NULL);
	obs_last("last", cudaSuccess);
	obs_last("attributes.null", cudaPointerGetAttributes(NULL, p));
	obs_last("malloc.null", cudaMalloc(NULL, 8));
	obs_last("malloc_async.null", cudaMallocAsync(NULL, 8, s));
	obs_last("pool.null", cudaDeviceGetDefaultMemPool(NULL, 0));
	obs_last("pool.bad_device", cudaDeviceGetDefaultMemPool((cudaMemPool_t *)&q, 77));
	obs_last("host.flags", cudaHostAlloc(&q, 8, 0x8000));
	obs_last("destroy.stream", cudaStreamDestroy(s));
	obs_last("free.p", cudaFree(p));
	obs_last("free.p.again", cudaFree(p));
	obs("names", "%s,%s,%s", cudaGetErrorName(cudaErrorMemoryAllocation), cudaGetErrorName(cudaErrorInvalidValue),
	    cudaGetErrorName((cudaError_t)12345));
	return 0;
}
