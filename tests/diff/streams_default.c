/* The legacy default stream waits for blocking streams, the per-thread one and non-blocking ones do not. */
#include "observe.h"

static CUfunction slow_fill;
static unsigned char *block;

/* Whether a memset on `second`, issued behind a slow fill on `first`, comes after it. */
static void ordered(const char *key, cudaStream_t first, cudaStream_t second)
{
	int code = (int)cudaMemset(block, 0, 64) | (int)cudaDeviceSynchronize();
	code |= obs_slow_fill(slow_fill, first, block, 0x41, 64, 150);
	code |= (int)cudaMemsetAsync(block, 0x42, 64, second);
	code |= (int)cudaDeviceSynchronize();
	unsigned char got = 0;
	code |= (int)cudaMemcpy(&got, block, 1, cudaMemcpyDeviceToHost);
	obs(key, "%d,%s", code, got == 0x42 ? "after" : got == 0x41 ? "beside" : "lost");
}

static void *other_thread(void *arg)
{
	int code = (int)cudaMemset(block, 0, 64) | (int)cudaDeviceSynchronize();
	code |= obs_slow_fill(slow_fill, cudaStreamPerThread, block, 0x43, 64, 100);
	code |= (int)cudaStreamSynchronize(cudaStreamPerThread);
	*(int *)arg = code;
	return NULL;
}

int main(void)
{
	cudaStream_t blocking, free_running;
	unsigned flags = 9;
	int code = -1;
	unsigned char got = 0;
	obs_code("init", (int)cudaFree(NULL));
	slow_fill = obs_kernel("fake_slow_fill");
	obs_code("made", (int)cudaStreamCreate(&blocking) | (int)cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking) |
	                     (int)cudaMalloc((void **)&block, 64));
	ordered("legacy_legacy", NULL, NULL);
	ordered("blocking_legacy", blocking, NULL);
	ordered("legacy_blocking", cudaStreamLegacy, blocking);
	ordered("free_legacy", free_running, NULL);
	ordered("legacy_free", NULL, free_running);
	ordered("thread_legacy", cudaStreamPerThread, NULL);
	ordered("thread_free", cudaStreamPerThread, free_running);
	ordered("blocking_blocking", blocking, blocking);
	on_thread(other_thread, &code);
	obs_code("other_thread", code);
	obs_code("read", cudaMemcpy(&got, block, 1, cudaMemcpyDeviceToHost));
	obs_code("other_thread.wrote", got == 0x43);
	code = (int)cudaStreamGetFlags(blocking, &flags);
	obs("flags.blocking", "%d,%u", code, flags);
	code = (int)cudaStreamGetFlags(free_running, &flags);
	obs("flags.free", "%d,%u", code, flags);
	code = (int)cudaStreamGetFlags(NULL, &flags);
	obs("flags.legacy", "%d,%u", code, flags);
	code = (int)cudaStreamGetFlags(cudaStreamPerThread, &flags);
	obs("flags.thread", "%d,%u", code, flags);
	obs_last("query", cudaStreamQuery(NULL));
	obs_last("destroy", (int)cudaStreamDestroy(blocking) | (int)cudaStreamDestroy(free_running));
	obs_last("free", cudaFree(block));
	return 0;
}
