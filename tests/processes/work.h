/*
 * A loop of allocations of three families that checks what it has written. Each call stands in one function, so that the processes and devices of
 * a run have the same sites. Everything is of the calling thread and the device that is current.
 */
#ifndef TESTS_PROCESSES_WORK_H
#define TESTS_PROCESSES_WORK_H

#include "tests/diff/observe.h"

#define ROUNDS 12

/* Fills `bytes` at `p` on the stream and reads them back: 1 where they came back whole. */
__attribute__((noinline)) static int holds_value(char *p, int value, size_t bytes, cudaStream_t stream)
{
	unsigned char got[256];
	size_t n = bytes < sizeof got ? bytes : sizeof got;
	if (cudaMemsetAsync(p, value, bytes, stream) != 0 || cudaMemcpyAsync(got, p + bytes - n, n, cudaMemcpyDeviceToHost, stream) != 0 ||
	    cudaStreamSynchronize(stream) != 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		if (got[i] != (unsigned char)value)
			return 0;
	return 1;
}

/* How many of the blocks of ROUNDS rounds held what was written to them: all is 4 a round. -1: a call failed. */
__attribute__((noinline)) static int work(cudaStream_t stream, int salt)
{
	int good = 0, bad = 0;
	for (int round = 0; round < ROUNDS; round++) {
		size_t bytes = (size_t)4096 * (size_t)(1 + round % 5);
		char *plain = NULL, *other = NULL, *ordered = NULL, *pinned = NULL;
		bad |= (int)cudaMalloc((void **)&plain, bytes);
		bad |= (int)cudaMalloc((void **)&other, 3 * MIB);
		bad |= (int)cudaMallocAsync((void **)&ordered, 2 * bytes, stream);
		bad |= (int)cudaMallocHost((void **)&pinned, bytes);
		if (bad)
			return -1;
		memset(pinned, salt + round, bytes);
		good += holds_value(plain, salt + round, bytes, stream) && holds_value(other, salt - round, 3 * MIB, stream);
		good += holds_value(ordered, salt + 2 * round, 2 * bytes, stream);
		bad |= (int)cudaMemcpyAsync(plain, pinned, bytes, cudaMemcpyHostToDevice, stream);
		good += holds_value(other, 7, MIB, stream);
		unsigned char first = 0;
		bad |= (int)cudaMemcpy(&first, plain + bytes - 1, 1, cudaMemcpyDeviceToHost);
		good += first == (unsigned char)(salt + round);
		bad |= (int)cudaFreeAsync(ordered, stream);
		bad |= (int)cudaFree(other);
		bad |= (int)cudaFree(plain);
		bad |= (int)cudaFreeHost(pinned);
		if (bad)
			return -1;
	}
	return good;
}

#define ALL_GOOD (4 * ROUNDS)

#endif
