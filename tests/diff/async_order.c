/* Stream-ordered memory across streams: frees on another stream, joins by events, reuse of addresses, plain frees. */
#include "observe.h"

#define BYTES (2 * MIB)

int main(void)
{
	cudaStream_t a, b;
	cudaEvent_t e;
	void *p, *q;
	obs_code("init", cudaFree(NULL));
	CUfunction slow_fill = obs_kernel("fake_slow_fill");
	obs_code("made", (int)cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) | (int)cudaStreamCreate(&b) |
	                     (int)cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	/* Written on a, waited for by b, read and freed there. */
	obs_last("alloc", cudaMallocAsync(&p, BYTES, a));
	obs_code("fill", obs_slow_fill(slow_fill, a, p, 0x31, 64, 10));
	obs_last("record", cudaEventRecord(e, a));
	obs_last("wait", cudaStreamWaitEvent(b, e, 0));
	obs_last("copy", (int)cudaMallocAsync(&q, 64, b) | (int)cudaMemcpyAsync(q, p, 64, cudaMemcpyDeviceToDevice, b));
	obs_last("free_on_b", cudaFreeAsync(p, b));
	obs_last("sync", cudaStreamSynchronize(b));
	obs_bytes("content", q, 0x31, 64);
	obs_last("free_again", cudaFreeAsync(p, b));
	obs_last("free.q", cudaFreeAsync(q, a));
	obs_last("sync.a", cudaStreamSynchronize(a));

	/* On one stream a freed block's memory comes back at once, in order. */
	obs_last("alloc.2", cudaMallocAsync(&p, BYTES, a));
	obs_code("fill.2", obs_slow_fill(slow_fill, a, p, 0x32, 64, 5));
	obs_last("free.2", cudaFreeAsync(p, a));
	obs_last("alloc.3", cudaMallocAsync(&q, BYTES, a));
	obs_code("same_address", p == q);
	obs_last("memset", cudaMemsetAsync(q, 0x33, 64, a));
	obs_last("sync.2", cudaStreamSynchronize(a));
	obs_bytes("content.2", q, 0x33, 64);
	obs_last("plain_free", cudaFree(q));
	obs_last("free.twice", cudaFree(q));

	/* Streams that are gone; the block outlives the stream it came from. */
	obs_last("alloc.4", cudaMallocAsync(&p, BYTES, a));
	obs_last("destroy", cudaStreamDestroy(a));
	obs_last("memset.4", cudaMemset(p, 1, 64));
	obs_last("free.4", cudaFreeAsync(p, b));
	obs_last("free.null", cudaFreeAsync(NULL, b));
	q = KEPT;
	obs_out("zero", cudaMallocAsync(&q, 0, b), &q);
	obs_last("plain", cudaMalloc(&p, BYTES));
	obs_last("plain.free_async", cudaFreeAsync(p, b));
	/* A second one is not asked for: a card took it (0), and the next wait for the stream did not return in 30 s. */
	obs_last("sync.5", cudaStreamSynchronize(b));
	obs_last("plain.free_again", cudaFree(p));
	obs_last("end", (int)cudaStreamDestroy(b) | (int)cudaEventDestroy(e) | (int)cudaDeviceSynchronize());
	return 0;
}
