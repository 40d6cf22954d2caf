/*
 * Built for the per-thread default stream: every stream 0 below is its thread's own, so nothing orders one thread's work before another's.
 * A block that one thread frees while its slow kernel still writes is nobody else's before that kernel is done.
 */
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "build with -DCUDA_API_PER_THREAD_DEFAULT_STREAM"
#endif
#include "work.h"

#define THREADS 4
#define BYTES (256u << 10)

static CUfunction slow_fill;
static pthread_barrier_t together;

/* One site for all threads: who takes gets what another has freed, if it is clean. */
__attribute__((noinline)) static int take(char **plain, char **ordered)
{
	return cudaMalloc((void **)plain, BYTES) == 0 && cudaMallocAsync((void **)ordered, BYTES, 0) == 0;
}

/* Device 0's primary context is current by the first runtime call. Odd threads leave blocks to be overwritten, even ones take them up. */
static void *thread(void *arg)
{
	int *result = arg, self = *result, good = 0;
	if (cudaFree(NULL) != 0)
		return NULL;
	for (int round = 0; round < 10; round++) {
		char *p = NULL, *q = NULL;
		pthread_barrier_wait(&together);
		if (self % 2) {
			good += take(&p, &q);
			good += obs_slow_fill(slow_fill, NULL, p, 0xEE, BYTES, 4) == 0 && obs_slow_fill(slow_fill, NULL, q, 0xDD, BYTES, 4) == 0;
			good += cudaFreeAsync(q, 0) == 0 && cudaFree(p) == 0;
			pthread_barrier_wait(&together);
			good += cudaStreamSynchronize(0) == 0;
		} else {
			pthread_barrier_wait(&together);
			good += take(&p, &q);
			good += cudaMemsetAsync(p, 1 + self, BYTES, 0) == 0 && cudaMemsetAsync(q, 10 + self, BYTES, 0) == 0;
			usleep(12000); /* what was still being written then is written by now */
			unsigned char a[2], b[2];
			good += cudaMemcpy(a, p, 2, cudaMemcpyDeviceToHost) == 0 && cudaMemcpy(b, q + BYTES - 2, 2, cudaMemcpyDeviceToHost) == 0 &&
				a[0] == 1 + self && a[1] == 1 + self && b[0] == 10 + self && b[1] == 10 + self;
			good += cudaFree(p) == 0 && cudaFreeAsync(q, 0) == 0;
		}
	}
	*result = good;
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	int results[THREADS];
	obs("work", "%d", work(0, 5) == ALL_GOOD);
	slow_fill = obs_kernel("fake_slow_fill");
	pthread_barrier_init(&together, NULL, THREADS);
	for (int i = 0; i < THREADS; i++) {
		results[i] = i;
		if (pthread_create(&threads[i], NULL, thread, &results[i]) != 0)
			return 98;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < THREADS; i++)
		obs("thread", "%d,%d", i, results[i]);
	return 0;
}
