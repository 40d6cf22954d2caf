/* Sizes no card has, in every family: codes and what becomes of the out-parameters. */
#include "observe.h"

static const size_t sizes[] = {(size_t)1 << 42, (size_t)1 << 47, (size_t)1 << 62, SIZE_MAX - 511, SIZE_MAX};

int main(void)
{
	char k[64];
	obs_code("init", cudaFree(NULL));
	for (int i = 0; i < 5; i++) {
		void *p = KEPT;
		CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
		size_t pitch = 77, n = sizes[i];
#define EACH(name, address, call) \
	p = KEPT; \
	d = (CUdeviceptr)(uintptr_t)KEPT; \
	snprintf(k, sizeof k, "%d.%s", i, name); \
	obs_out(k, call, address); \
	snprintf(k, sizeof k, "%d.%s.last", i, name); \
	obs_code(k, cudaGetLastError());
		EACH("cudaMalloc", &p, cudaMalloc(&p, n))
		EACH("cudaMallocAsync", &p, cudaMallocAsync(&p, n, NULL))
		EACH("cudaMallocHost", &p, cudaMallocHost(&p, n))
		EACH("cuMemAlloc", &d, cuMemAlloc(&d, n))
		EACH("cuMemAllocAsync", &d, cuMemAllocAsync(&d, n, NULL))
		EACH("cudaMallocPitch", &p, cudaMallocPitch(&p, &pitch, n, 1))
		EACH("cuMemHostAlloc", &p, cuMemHostAlloc(&p, n, 0))
	}
	void *p = KEPT;
	struct cudaPitchedPtr three = {KEPT, 1, 2, 3};
	obs_out("3d", cudaMalloc3D(&three, obs_extent((size_t)1 << 20, (size_t)1 << 20, (size_t)1 << 10)), &three.ptr);
	obs_last("3d.last", cudaSuccess);
	obs_out("works", cudaMalloc(&p, 1), &p);
	obs_last("free", cudaFree(p));
	return 0;
}
