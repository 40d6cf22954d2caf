/*
 * What copies and memsets answer that touch bytes behind a block's end, in its slack or beyond: the
 * codes only, for every family of memory, synchronous and stream-ordered.
 */
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_BYTES (8 * MIB)

static unsigned char *host;   /* pageable, larger than every block */
static unsigned char *device; /* a device block larger than every block */
static cudaStream_t stream;

static void code(const char *block, const char *what, cudaError_t r)
{
	char key[96];
	snprintf(key, sizeof key, "%s.%s", block, what);
	fact(key, "%d", (int)r);
	(void)cudaGetLastError();
}

/* `over` bytes more than the block has, from its start; then one byte that starts right at its end. */
static void past(const char *block, unsigned char *p, size_t bytes, size_t over)
{
	size_t n = bytes + over;
	code(block, "h2d", cudaMemcpy(p, host, n, cudaMemcpyHostToDevice));
	code(block, "h2d_default", cudaMemcpy(p, host, n, cudaMemcpyDefault));
	code(block, "h2d_async", cudaMemcpyAsync(p, host, n, cudaMemcpyHostToDevice, stream));
	code(block, "d2h", cudaMemcpy(host, p, n, cudaMemcpyDeviceToHost));
	code(block, "d2h_async", cudaMemcpyAsync(host, p, n, cudaMemcpyDeviceToHost, stream));
	code(block, "d2d_dst", cudaMemcpy(p, device, n, cudaMemcpyDeviceToDevice));
	code(block, "d2d_src", cudaMemcpy(device, p, n, cudaMemcpyDeviceToDevice));
	code(block, "d2d_async", cudaMemcpyAsync(p, device, n, cudaMemcpyDefault, stream));
	code(block, "memset", cudaMemset(p, 1, n));
	code(block, "memset_async", cudaMemsetAsync(p, 1, n, stream));
	code(block, "memset2d", cudaMemset2D(p, bytes + over, 1, bytes + over, 1));
	/* With cudaMemcpyDefault an address behind the end is taken for host memory, and the driver's own copy crashes (seen on
	   an H200, driver 580), so the direction is named. */
	code(block, "at_end.h2d_async", cudaMemcpyAsync(p + bytes, host, 1, cudaMemcpyHostToDevice, stream));
	code(block, "at_end.memset_async", cudaMemsetAsync(p + bytes, 1, 1, stream));
	code(block, "inside.h2d_async", cudaMemcpyAsync(p, host, bytes, cudaMemcpyDefault, stream));
	code(block, "sync", cudaStreamSynchronize(stream));
}

void section_bounds(int arg)
{
	unsigned char *p = NULL;
	(void)arg;
	host = calloc(1, HOST_BYTES);
	fact("device", "%d", (int)cudaMalloc((void **)&device, HOST_BYTES));
	fact("stream", "%d", (int)cudaStreamCreate(&stream));

	cudaMalloc((void **)&p, 100);
	past("plain100", p, 100, 1);
	cudaMalloc((void **)&p, 5000);
	past("plain5000", p, 5000, 100);
	cudaMalloc((void **)&p, 3 * MIB);
	past("plain3M", p, 3 * MIB, 4096);
	cudaMallocAsync((void **)&p, 1000, stream);
	past("async1000", p, 1000, 1);
	cudaMallocManaged((void **)&p, 1000, cudaMemAttachGlobal);
	past("managed1000", p, 1000, 1);
	cudaHostAlloc((void **)&p, 1000, cudaHostAllocDefault);
	past("pinned1000", p, 1000, 1);
	cudaMalloc((void **)&p, 4096);
	cudaFree(p);
	code("freed", "h2d", cudaMemcpy(p, host, 16, cudaMemcpyHostToDevice));
	code("freed", "memset", cudaMemset(p, 1, 16));
	fact("end", "%d", (int)cudaDeviceSynchronize());
}
