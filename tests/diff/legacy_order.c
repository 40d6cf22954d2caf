/* What a stream-ordered free in the legacy default stream orders: it comes behind the work of all streams that block, and their later work behind
   it. An allocation there orders nothing, and neither orders streams that do not block. */
#include "observe.h"

static CUfunction spin;
static unsigned char *host;
static void *written;

/* `first` writes late, something is done in the legacy stream, `second` reads. */
static void between(const char *name, int what, cudaStream_t first, cudaStream_t second)
{
	char key[64];
	void *p = NULL;
	int code = what == 1 ? 0 : (int)cudaMallocAsync(&p, 4096, NULL);
	code |= (int)cudaMemset(written, 0, 4096) | (int)cudaDeviceSynchronize();
	code |= obs_spin(spin, first, 100) | (int)cudaMemsetAsync(written, 7, 4096, first);
	if (what == 0)
		code |= (int)cudaFreeAsync(p, NULL);
	if (what == 1)
		code |= (int)cudaMallocAsync(&p, 4096, NULL);
	if (what == 2)
		code |= (int)cuMemFreeAsync((CUdeviceptr)(uintptr_t)p, CU_STREAM_LEGACY);
	host[0] = 99;
	code |= (int)cudaMemcpyAsync(host, written, 16, cudaMemcpyDeviceToHost, second) | (int)cudaStreamSynchronize(second);
	snprintf(key, sizeof key, "%s.saw", name);
	obs(key, "%d", host[0]);
	code |= (int)cudaDeviceSynchronize();
	if (what == 1)
		code |= (int)cudaFreeAsync(p, NULL);
	obs_last(name, code | (int)cudaDeviceSynchronize());
}

int main(void)
{
	cudaStream_t a, b, c, d;
	obs_last("streams", (int)cudaStreamCreate(&a) | (int)cudaStreamCreate(&b) | (int)cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking) |
	                        (int)cudaStreamCreateWithFlags(&d, cudaStreamNonBlocking));
	spin = obs_kernel("fake_spin");
	obs_last("memory", (int)cudaMalloc(&written, 4096) | (int)cudaHostAlloc((void **)&host, 4096, 0));
	for (int round = 0; round < 3; round++) {
		between("free", 0, a, b);
		between("driver_free", 2, b, a);
		between("allocation", 1, a, b);
		between("free_apart", 0, c, d);
		between("free_and_apart", 0, a, d);
	}
	obs_last("end", (int)cudaStreamDestroy(a) | (int)cudaStreamDestroy(b) | (int)cudaStreamDestroy(c) | (int)cudaStreamDestroy(d));
	return 0;
}
