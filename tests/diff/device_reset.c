/* Reset: what it takes and what it leaves, freeing old pointers, allocating again, several times. */
#include "observe.h"

static int type_of(void *p)
{
	struct cudaPointerAttributes a;
	return cudaPointerGetAttributes(&a, p) == cudaSuccess ? (int)a.type : -1;
}

int main(void)
{
	void *plain, *pinned, *async, *managed, *again = KEPT;
	cudaStream_t s;
	cudaEvent_t e;
	obs_last("made", (int)cudaMalloc(&plain, MIB) | (int)cudaMallocHost(&pinned, 4096) | (int)cudaMallocAsync(&async, MIB, NULL) |
	                     (int)cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal) | (int)cudaStreamCreate(&s) | (int)cudaEventCreate(&e));
	obs("types", "%d,%d,%d,%d", type_of(plain), type_of(pinned), type_of(async), type_of(managed));
	obs_last("sync", cudaDeviceSynchronize());
	obs_last("reset", cudaDeviceReset());
	obs_code("active", primary_active(0));
	obs("types.reset", "%d,%d,%d,%d", type_of(plain), type_of(pinned), type_of(async), type_of(managed));
	obs_last("free.old", cudaFree(plain));
	obs_code("active.2", primary_active(0));
	obs_last("free_host.old", cudaFreeHost(pinned));
	obs_last("free.managed", cudaFree(managed));
	obs_last("free.async", cudaFree(async));
	obs_last("free.async.again", cudaFree(async));
	obs_out("malloc", cudaMalloc(&again, MIB), &again);
	obs_last("memset", cudaMemset(again, 9, 64));
	obs_bytes("content", again, 9, 64);
	for (int i = 0; i < 3; i++) {
		obs_last("reset.again", cudaDeviceReset());
		obs_last("malloc.again", cudaMalloc(&again, MIB));
		obs_last("malloc_async.again", cudaMallocAsync(&async, MIB, NULL));
		obs_last("free_async.again", cudaFreeAsync(async, NULL));
		obs_last("free.again", cudaFree(again));
	}
	obs_last("refused", cudaMalloc(&again, TOO_MUCH) == cudaErrorMemoryAllocation ? 0 : 1);
	obs_last("malloc.kept_error", (int)cudaMalloc(&again, 8) | 2 * (cudaMalloc(&plain, TOO_MUCH) == cudaSuccess));
	obs_last("reset.after_error", cudaDeviceReset());
	obs_last("reset.twice", cudaDeviceReset());
	obs_code("active.end", primary_active(0));
	return 0;
}
