/* Memory is freed while a slow kernel still writes it, and asked for again by others: what they are given stays theirs, round after
   round. Device, pinned and stream-ordered memory; on one stream, on another, behind a join. With "calm" it waits for the device
   before it frees, and finds the same: a plan made of such a run has one place for what follows. */
#include "observe.h"

#define ROUNDS 120
#define BYTES 8192

static CUfunction slow_fill;
static cudaStream_t a, b;
static cudaEvent_t done;
static int calm;
static size_t refused, spoiled, untold;

/* Three sites each, so that a place has several users. */
static void *take(int kind, int site, cudaStream_t s)
{
	void *p = NULL;
	int code;
	switch (kind * 3 + site) {
	case 0: code = (int)cudaMalloc(&p, BYTES); break;
	case 1: code = (int)cudaMalloc(&p, BYTES); break;
	case 2: code = (int)cuMemAlloc((CUdeviceptr *)&p, BYTES); break;
	case 3: code = (int)cudaMallocHost(&p, BYTES); break;
	case 4: code = (int)cudaHostAlloc(&p, BYTES, cudaHostAllocPortable); break;
	case 5: code = (int)cudaMallocHost(&p, BYTES); break;
	case 6: code = (int)cudaMallocAsync(&p, BYTES, s); break;
	case 7: code = (int)cudaMallocAsync(&p, BYTES, s); break;
	default: code = (int)cuMemAllocAsync((CUdeviceptr *)&p, BYTES, s); break;
	}
	refused += code != 0 || p == NULL;
	return p;
}

static void give(int kind, void *p, cudaStream_t s)
{
	if (calm)
		refused += cudaDeviceSynchronize() != cudaSuccess;
	refused += (kind == 0 ? cudaFree(p) : kind == 1 ? cudaFreeHost(p) : cudaFreeAsync(p, s)) != cudaSuccess;
}

static void check(const void *p, int value)
{
	static unsigned char host[BYTES];
	untold += cudaMemcpy(host, p, BYTES, cudaMemcpyDefault) != cudaSuccess;
	for (int i = 0; i < BYTES; i++)
		if (host[i] != (unsigned char)value) {
			spoiled++;
			return;
		}
}

/* p is still being written on `a` when it is freed; q is asked for on `to` and filled there. */
static void one_after_another(int kind, int round, cudaStream_t to)
{
	void *p = take(kind, round % 3, a);
	refused += obs_slow_fill(slow_fill, a, p, 0x11, BYTES, (unsigned)(round % 3)) != 0;
	give(kind, p, a);
	void *q = take(kind, (round + 1) % 3, to), *r = take(kind, (round + 2) % 3, to);
	refused += cudaMemsetAsync(q, 0x22, BYTES, to) != cudaSuccess;
	refused += cudaMemsetAsync(r, 0x33, BYTES, to) != cudaSuccess;
	refused += cudaStreamSynchronize(to) != cudaSuccess;
	if (round % 2)
		refused += cudaStreamSynchronize(a) != cudaSuccess;
	check(q, 0x22);
	check(r, 0x33);
	give(kind, q, to);
	give(kind, r, to);
}

/* The same, but the second stream waits for the first on the device before it asks. */
static void behind_a_join(int kind, int round)
{
	void *p = take(kind, round % 3, a);
	refused += obs_slow_fill(slow_fill, a, p, 0x44, BYTES, 1) != 0;
	give(kind, p, a);
	refused += cudaEventRecord(done, a) != cudaSuccess;
	refused += cudaStreamWaitEvent(b, done, 0) != cudaSuccess;
	void *q = take(kind, (round + 1) % 3, b);
	refused += cudaMemsetAsync(q, 0x55, BYTES, b) != cudaSuccess;
	refused += cudaStreamSynchronize(b) != cudaSuccess;
	check(q, 0x55);
	give(kind, q, b);
}

/* Kernel after kernel into one stream, with a wait or a question between: the last one still writes p when q is asked for, on another stream. */
static void behind_a_wait(int kind, int round)
{
	void *p = take(kind, round % 3, a);
	refused += obs_slow_fill(slow_fill, a, p, 0x77, BYTES, 0) != 0;
	if (round % 2)
		refused += cudaStreamSynchronize(a) != cudaSuccess;
	else
		(void)cudaStreamQuery(a);
	refused += obs_slow_fill(slow_fill, a, p, 0x78, BYTES, 2) != 0;
	give(kind, p, a);
	void *q = take(kind, (round + 1) % 3, b);
	refused += cudaMemsetAsync(q, 0x79, BYTES, b) != cudaSuccess;
	refused += (cudaStreamSynchronize(b) != cudaSuccess) | (cudaStreamSynchronize(a) != cudaSuccess);
	check(q, 0x79);
	give(kind, q, b);
}

/* Several at once, freed in another order than they were taken in, and none of them written over by another. */
static void several(int kind, int round)
{
	void *blocks[6];
	for (int i = 0; i < 6; i++) {
		blocks[i] = take(kind, i % 3, i % 2 ? a : b);
		refused += obs_slow_fill(slow_fill, i % 2 ? a : b, blocks[i], 0x60 + i, BYTES, 0) != 0;
	}
	refused += cudaDeviceSynchronize() != cudaSuccess;
	for (int i = 0; i < 6; i++)
		check(blocks[i], 0x60 + i);
	for (int i = 0; i < 6; i++)
		give(kind, blocks[(i * 5 + round) % 6], (i * 5 + round) % 2 ? a : b);
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"device", "pinned", "ordered"};
	char key[64];
	(void)argv;
	calm = argc > 1;
	obs_code("init", cudaFree(NULL));
	slow_fill = obs_kernel("fake_slow_fill");
	obs_last("made", (int)cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) | (int)cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking) |
	                     (int)cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	for (int kind = 0; kind < 3; kind++) {
		refused = spoiled = untold = 0;
		for (int round = 0; round < ROUNDS; round++) {
			one_after_another(kind, round, round % 3 ? b : a);
			behind_a_join(kind, round);
			if (round % 4 < 2)
				behind_a_wait(kind, round);
			if (round % 4 == 0)
				several(kind, round);
		}
		snprintf(key, sizeof key, "%s.refused", names[kind]);
		obs(key, "%zu", refused);
		snprintf(key, sizeof key, "%s.spoiled", names[kind]);
		obs(key, "%zu,%zu", spoiled, untold);
	}
	obs_last("sync", cudaDeviceSynchronize());
	return 0;
}
