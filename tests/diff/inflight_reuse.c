/* A slow kernel writes p; p is freed; q of the same size is allocated at once and another stream fills it: q is intact. */
#include "observe.h"

int main(void)
{
	cudaStream_t a, b;
	void *p, *q;
	const size_t bytes = 4096;
	obs_code("init", cudaFree(NULL));
	CUfunction slow_fill = obs_kernel("fake_slow_fill");
	obs_code("streams", (int)cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking) |
	                            (int)cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	for (int kind = 0; kind < 3; kind++) {
		static const char *const names[] = {"plain", "ordered", "pinned"};
		char k[48];
		int code = kind == 0 ? (int)cudaMalloc(&p, bytes) : kind == 1 ? (int)cudaMallocAsync(&p, bytes, a) : (int)cudaMallocHost(&p, bytes);
		code |= obs_slow_fill(slow_fill, a, p, 0x11, bytes, 60);
		snprintf(k, sizeof k, "%s.launched", names[kind]);
		obs_last(k, code);
		code = kind == 0 ? (int)cudaFree(p) : kind == 1 ? (int)cudaFreeAsync(p, a) : (int)cudaFreeHost(p);
		snprintf(k, sizeof k, "%s.freed", names[kind]);
		obs_last(k, code);
		if (kind != 1) {
			snprintf(k, sizeof k, "%s.free_waited", names[kind]);
			obs_code(k, cudaStreamQuery(a) == cudaSuccess);
		}
		code = kind == 0 ? (int)cudaMalloc(&q, bytes) : kind == 1 ? (int)cudaMallocAsync(&q, bytes, b) : (int)cudaMallocHost(&q, bytes);
		code |= (int)cudaMemsetAsync(q, 0x22, bytes, b);
		code |= (int)cudaStreamSynchronize(b);
		code |= (int)cudaStreamSynchronize(a);
		snprintf(k, sizeof k, "%s.filled", names[kind]);
		obs_last(k, code);
		snprintf(k, sizeof k, "%s.intact", names[kind]);
		obs_bytes(k, q, 0x22, bytes);
		code = kind == 0 ? (int)cudaFree(q) : kind == 1 ? (int)cudaFreeAsync(q, b) : (int)cudaFreeHost(q);
		snprintf(k, sizeof k, "%s.freed.q", names[kind]);
		obs_last(k, code);
	}
	obs_last("sync", cudaDeviceSynchronize());
	return 0;
}
