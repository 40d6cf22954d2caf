/* Thousands of small blocks on eight threads, half of them freed by another thread than the one that made them. */
#include "observe.h"

#define THREADS 8
#define BLOCKS 1500

static void *block[THREADS][BLOCKS];
static int bad[THREADS];
static pthread_barrier_t barrier;

static void *work(void *arg)
{
	int me = (int)(intptr_t)arg, other = (me + 1) % THREADS;
	for (int i = 0; i < BLOCKS; i++)
		bad[me] += cudaMalloc(&block[me][i], (size_t)(16 + 8 * ((me + i) % 90))) != cudaSuccess;
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < BLOCKS; i += 2)
		bad[me] += cudaFree(block[other][i]) != cudaSuccess;
	pthread_barrier_wait(&barrier);
	for (int i = 1; i < BLOCKS; i += 2)
		bad[me] += cudaFree(block[me][i]) != cudaSuccess;
	/* A block is freed once. */
	bad[me] += cudaFree(block[me][0]) != cudaErrorInvalidValue;
	bad[me] += cudaGetLastError() != cudaErrorInvalidValue;
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	size_t before = 0, after = 0;
	int sum = 0;
	obs_code("init", cudaFree(NULL));
	pthread_barrier_init(&barrier, NULL, THREADS);
	obs_code("query", cudaMemGetInfo(&before, NULL));
	for (intptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < THREADS; i++)
		sum += bad[i];
	obs_code("bad", sum);
	obs_code("query.2", cudaMemGetInfo(&after, NULL));
	obs_code("back", before - after <= 4 * MIB || after >= before);
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
