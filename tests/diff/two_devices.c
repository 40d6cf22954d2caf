/* Two devices: blocks of one freed while the other is current, streams and pools of each, threads on each. */
#include "observe.h"

static void *on_second(void *arg)
{
	int device = -1;
	void *p = NULL;
	struct cudaPointerAttributes at;
	(void)arg;
	obs_code("thread.device", ((void)cudaGetDevice(&device), device));
	obs_last("thread.set", cudaSetDevice(1));
	obs_last("thread.malloc", cudaMalloc(&p, MIB));
	obs_last("thread.attributes", cudaPointerGetAttributes(&at, p));
	obs_code("thread.on", at.device);
	obs_last("thread.free", cudaFree(p));
	return NULL;
}

int main(void)
{
	int count = 0, device = -1;
	void *p, *q, *r, *async = NULL;
	cudaStream_t s;
	struct cudaPointerAttributes at;
	obs_last("count", cudaGetDeviceCount(&count));
	obs_code("two", count >= 2);
	obs_last("malloc.0", cudaMalloc(&p, MIB));
	obs("active", "%d,%d", primary_active(0), primary_active(1));
	obs_last("set.1", cudaSetDevice(1));
	obs_last("malloc.1", cudaMalloc(&q, MIB));
	obs_last("stream.1", cudaStreamCreate(&s));
	obs_last("set.0", cudaSetDevice(0));
	obs("active.2", "%d,%d", primary_active(0), primary_active(1));
	obs_last("attributes", cudaPointerGetAttributes(&at, q));
	obs_code("q.on", at.device);
	obs_last("async.stream_of_1", cudaMallocAsync(&async, MIB, s));
	obs_last("attributes.2", cudaPointerGetAttributes(&at, async));
	obs_code("async.on", at.device);
	obs_last("free_async", cudaFreeAsync(async, s));
	obs_last("malloc.more", (int)cudaSetDevice(1) | (int)cudaMalloc(&r, MIB) | (int)cudaSetDevice(0));
	obs_last("free_async.0", cudaFreeAsync(r, NULL)); /* plain, of the other device; freeing it once more is for nobody to rely on */
	obs_last("free", cudaFree(q));
	obs_code("device", ((void)cudaGetDevice(&device), device));
	obs_last("free.again", cudaFree(q));
	on_thread(on_second, NULL);
	obs_code("device.2", ((void)cudaGetDevice(&device), device));
	obs_last("set.1.again", cudaSetDevice(1));
	obs_last("reset.1", cudaDeviceReset());
	obs("active.3", "%d,%d", primary_active(0), primary_active(1));
	obs_last("free.of_0_from_1", cudaFree(p));
	obs_last("set.99", cudaSetDevice(99));
	obs_code("device.3", ((void)cudaGetDevice(&device), device));
	return 0;
}
