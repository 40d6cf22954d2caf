/* Which memory calls wait for unrelated work in flight: another stream is busy while each call is made once. */
#include "observe.h"

#include <stdatomic.h>

static cudaStream_t busy;
static atomic_int released, gave_up;

/* Work in flight that ends when the call has returned; a call that waits for it holds it up for its whole time. */
static void CUDART_CB work(void *arg)
{
	(void)arg;
	for (int i = 0; i < 500 && !atomic_load(&released); i++)
		usleep(1000);
	atomic_store(&gave_up, !atomic_load(&released));
}

static void begin(void)
{
	atomic_store(&released, 0);
	if (cudaLaunchHostFunc(busy, work, NULL) != cudaSuccess)
		obs("launch", "failed");
}

static void end(const char *key, int code)
{
	atomic_store(&released, 1);
	cudaStreamSynchronize(busy);
	obs(key, "%d,waits=%d", code, atomic_load(&gave_up));
	cudaGetLastError();
}

#define WAITS(key, call) (begin(), end(key, (int)(call)))

int main(void)
{
	void *p, *q, *h, *async;
	static char memory[4096] __attribute__((aligned(4096)));
	size_t a, b;
	cudaArray_t array;
	struct cudaChannelFormatDesc f = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaPointerAttributes attributes;
	cudaMemPool_t pool;
	obs_code("init", (int)cudaFree(NULL) | (int)cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
	obs_code("pool", cudaDeviceGetDefaultMemPool(&pool, 0));
	obs_code("warm", (int)cudaMallocAsync(&async, MIB, NULL) | (int)cudaFreeAsync(async, NULL) |
	                     (int)cudaMalloc(&q, 100) | (int)cudaDeviceSynchronize());
	WAITS("cudaMemGetInfo", cudaMemGetInfo(&a, &b));
	WAITS("cuMemGetInfo", cuMemGetInfo(&a, &b));
	WAITS("attributes", cudaPointerGetAttributes(&attributes, q));
	WAITS("cudaMalloc", cudaMalloc(&p, 10 * MIB));
	WAITS("cudaMallocHost", cudaMallocHost(&h, 4096));
	WAITS("cudaHostRegister", cudaHostRegister(memory, 4096, 0));
	WAITS("cudaMallocArray", cudaMallocArray(&array, &f, 64, 64, 0));
	WAITS("cudaMallocAsync", cudaMallocAsync(&async, MIB, NULL));
	WAITS("cudaFreeAsync", cudaFreeAsync(async, NULL));
	WAITS("cudaMemPoolTrimTo", cudaMemPoolTrimTo(pool, 0));
	WAITS("cudaFree.null", cudaFree(NULL));
	WAITS("cudaFree.bad", cudaFree(&p));
	WAITS("cudaFree", cudaFree(p));
	WAITS("cudaFree.small", cudaFree(q));
	WAITS("cudaFreeHost", cudaFreeHost(h));
	WAITS("cudaHostUnregister", cudaHostUnregister(memory));
	WAITS("cudaFreeArray", cudaFreeArray(array));
	WAITS("cudaMalloc.too_much", cudaMalloc(&p, TOO_MUCH));
	WAITS("cudaGetLastError", cudaGetLastError());
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
