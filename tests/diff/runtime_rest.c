/* Runtime calls about memory that no other program makes: device initialisation, pools by location, instantiation with
   parameters, driver entry points, free nodes, symbols of arrays; built twice, as the driver's. */
#include "observe.h"

int main(void)
{
	cudaMemPool_t pool = (cudaMemPool_t)KEPT, by_location = (cudaMemPool_t)KEPT, now = (cudaMemPool_t)KEPT, own;
	struct cudaMemLocation here;
	struct cudaMemPoolProps props;
	cudaStream_t s;
	void *p = KEPT, *entry = KEPT;
	memset(&here, 0, sizeof here);
	memset(&props, 0, sizeof props);
	here.type = props.location.type = cudaMemLocationTypeDevice;
	props.allocType = cudaMemAllocationTypePinned;
	obs_last("init_device", cudaInitDevice(0, 0, 0));
	obs_last("init_device.bad", cudaInitDevice(77, 0, 0));
	obs_last("stream", cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	obs_out("pool", cudaDeviceGetDefaultMemPool(&pool, 0), &pool);
	obs_out("pool.by_location", cudaMemGetDefaultMemPool(&by_location, &here, cudaMemAllocationTypePinned), &by_location);
	obs_code("pool.same", pool == by_location);
	obs_last("own", cudaMemPoolCreate(&own, &props));
	obs_last("own.set", cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, own));
	obs_last("own.get", cudaMemGetMemPool(&now, &here, cudaMemAllocationTypePinned));
	obs_code("own.same", now == own);
	obs_out("own.alloc", cudaMallocAsync(&p, 5000, s), &p);
	unsigned long long used = 0;
	int code = (int)cudaMemPoolGetAttribute(own, cudaMemPoolAttrUsedMemCurrent, &used);
	obs("own.used", "%d,%d", code, used >= 5000);
	obs_last("own.free", cudaFreeAsync(p, s));
	obs_last("back", cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, pool));
	obs_last("from_pool", cudaMallocFromPoolAsync(&p, 5000, own, NULL));
	obs_last("from_pool.free", cudaFreeAsync(p, NULL));
	obs_last("sync", (int)cudaStreamSynchronize(NULL) | (int)cudaStreamSynchronize(s));
	obs_last("own.destroy", cudaMemPoolDestroy(own));

	cudaGraph_t graph;
	cudaGraphNode_t alloc, give;
	cudaGraphExec_t exec;
	struct cudaMemAllocNodeParams a;
	cudaGraphInstantiateParams with;
	memset(&a, 0, sizeof a);
	memset(&with, 0, sizeof with);
	a.poolProps = props;
	a.bytesize = 1000;
	obs_last("graph", (int)cudaGraphCreate(&graph, 0) | (int)cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &a) |
	                      (int)cudaGraphAddMemFreeNode(&give, graph, &alloc, 1, a.dptr));
	void *freed = KEPT;
	obs_last("free_node", cudaGraphMemFreeNodeGetParams(give, &freed));
	obs_code("free_node.same", freed == a.dptr);
	obs_last("instantiate", cudaGraphInstantiateWithParams(&exec, graph, &with));
	obs_code("instantiate.result", (int)with.result_out);
	obs_last("upload", cudaGraphUpload(exec, NULL));
	obs_last("launch", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_last("graph.destroy", (int)cudaGraphExecDestroy(exec) | (int)cudaGraphDestroy(graph) | (int)cudaDeviceGraphMemTrim(0));

	enum cudaDriverEntryPointQueryResult found = (enum cudaDriverEntryPointQueryResult)77;
	code = (int)cudaGetDriverEntryPointByVersion("cuMemAllocAsync", &entry, 12000, cudaEnableDefault, &found);
	obs("entry", "%d,%d,%d", code, (int)found, entry != NULL && entry != KEPT);
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	obs_out("entry.call", ((CUresult(*)(CUdeviceptr *, size_t, CUstream))entry)(&d, 100, NULL), &d);
	obs_last("entry.free", cudaFreeAsync((void *)(uintptr_t)d, NULL));

	struct cudaChannelFormatDesc f = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaArrayMemoryRequirements need;
	cudaMipmappedArray_t m = (cudaMipmappedArray_t)KEPT;
	obs_out("mipmap", cudaMallocMipmappedArray(&m, &f, obs_extent(64, 64, 0), 3, cudaArrayDeferredMapping), &m);
	code = (int)cudaMipmappedArrayGetMemoryRequirements(&need, m, 0);
	obs("mipmap.requirements", "%d,%d,last=%d", code, code == 0 && need.size > 0 && need.alignment > 0, (int)cudaGetLastError());
	obs_last("mipmap.free", cudaFreeMipmappedArray(m));
	obs_last("end", (int)cudaStreamDestroy(s) | (int)cudaDeviceSynchronize());
	return 0;
}
