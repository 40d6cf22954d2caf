/* One call seen by two hooks: memory allocated at one level and freed at the other, and the free figures around it. */
#include "observe.h"

int main(void)
{
	void *p;
	CUdeviceptr d;
	obs_code("init", cuInit(0));
	p = KEPT;
	obs_out("cudaMalloc", cudaMalloc(&p, 3 * MIB), &p);
	obs_code("cuMemFree", cuMemFree((CUdeviceptr)(uintptr_t)p));
	obs_last("cudaFree.again", cudaFree(p));
	obs_out("cuMemAlloc", cuMemAlloc(&d, 3 * MIB), &d);
	obs_last("cudaFree", cudaFree((void *)(uintptr_t)d));
	obs_code("cuMemFree.again", cuMemFree(d));

	p = KEPT;
	obs_out("cudaMallocHost", cudaMallocHost(&p, 4096), &p);
	obs_code("cuMemFreeHost", cuMemFreeHost(p));
	obs_last("cudaFreeHost.again", cudaFreeHost(p));
	obs_out("cuMemHostAlloc", cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_PORTABLE), &p);
	obs_last("cudaFreeHost", cudaFreeHost(p));

	obs_out("cudaMallocManaged", cudaMallocManaged(&p, MIB, cudaMemAttachGlobal), &p);
	obs_code("cuMemFree.managed", cuMemFree((CUdeviceptr)(uintptr_t)p));
	obs_out("cudaMallocAsync", cudaMallocAsync(&p, MIB, NULL), &p);
	obs_code("cuMemFreeAsync", cuMemFreeAsync((CUdeviceptr)(uintptr_t)p, NULL));
	obs_out("cuMemAllocAsync", cuMemAllocAsync(&d, MIB, NULL), &d);
	obs_last("cudaFreeAsync", cudaFreeAsync((void *)(uintptr_t)d, NULL));
	obs_out("cuMemAllocAsync.2", cuMemAllocAsync(&d, MIB, NULL), &d);
	obs_last("sync", cudaDeviceSynchronize());
	obs_last("cudaFree.async", cudaFree((void *)(uintptr_t)d));

	/* Families that do not fit. */
	obs_code("cuMemAlloc.2", cuMemAlloc(&d, 512));
	obs_last("cudaFreeHost.device", cudaFreeHost((void *)(uintptr_t)d));
	obs_code("cuMemFreeHost.device", cuMemFreeHost((void *)(uintptr_t)d));
	obs_last("cudaFreeArray.device", cudaFreeArray((cudaArray_t)NULL));
	obs_last("cudaFree.interior", cudaFree((void *)(uintptr_t)(d + 256)));
	obs_last("cudaFree.right", cudaFree((void *)(uintptr_t)d));
	obs_code("cudaMallocHost.2", cudaMallocHost(&p, 4096));
	obs_last("cudaFree.pinned", cudaFree(p));
	obs_code("cuMemFree.pinned", cuMemFree((CUdeviceptr)(uintptr_t)p));
	obs_last("cudaFreeHost.right", cudaFreeHost(p));
	obs_last("cudaFree.stack", cudaFree(&p));
	return 0;
}
