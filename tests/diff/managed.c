/* Managed memory: made, touched from both sides, advised, prefetched, freed; what refuses it. */
#include "observe.h"

int main(void)
{
	void *p = KEPT, *q = KEPT;
	int value = -77, code;
	obs_out("global", cudaMallocManaged(&p, 4 * MIB, cudaMemAttachGlobal), &p);
	obs_out("host", cudaMallocManaged(&q, MIB, cudaMemAttachHost), &q);
	memset(p, 3, 4 * MIB);
	obs_last("memset", cudaMemset((char *)p + MIB, 4, MIB));
	obs_last("sync", cudaDeviceSynchronize());
	obs("bytes", "%d,%d", ((char *)p)[0], ((char *)p)[MIB]);
	struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	obs_last("advise", cudaMemAdvise(p, 4 * MIB, cudaMemAdviseSetReadMostly, here));
	code = (int)cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, p, 4 * MIB);
	obs("read_mostly", "%d,%d", code, value);
	obs_last("prefetch", cudaMemPrefetchAsync(p, 4 * MIB, here, 0, NULL));
	obs_last("sync.2", cudaDeviceSynchronize());
	obs("bytes.2", "%d,%d", ((char *)p)[0], ((char *)p)[MIB]);
	obs_last("attach", cudaStreamAttachMemAsync(NULL, q, 0, cudaMemAttachGlobal));
	obs_last("free_async", cudaFreeAsync(p, NULL));
	obs_last("free_host", cudaFreeHost(p));
	obs_last("free", cudaFree(p));
	obs_last("free.again", cudaFree(p));
	obs_code("driver.free", cuMemFree((CUdeviceptr)(uintptr_t)q));
	q = KEPT;
	obs_out("zero", cudaMallocManaged(&q, 0, cudaMemAttachGlobal), &q);
	obs_last("zero.last", cudaSuccess);
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	obs_out("driver.zero", cuMemAllocManaged(&d, 0, CU_MEM_ATTACH_GLOBAL), &d);
	obs_out("driver.flags", cuMemAllocManaged(&d, 64, 0), &d);
	obs_last("end", cudaSuccess);
	return 0;
}
