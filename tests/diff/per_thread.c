/*
 * Built for the per-thread default stream, so it calls the _ptsz and _ptds variants: stream 0 is the thread's own. A
 * capture on that stream sees work on stream 0 exactly if the variant is the right one; so do driver entry points that a
 * resolver gives for it.
 */
#include "observe.h"

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "build with -DCUDA_API_PER_THREAD_DEFAULT_STREAM"
#endif

typedef CUresult (*memset_fn)(CUdeviceptr, unsigned char, size_t, CUstream);
typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t, CUstream);
typedef CUresult (*free_fn)(CUdeviceptr, CUstream);

static CUdeviceptr block;

static void captured(const char *key, memset_fn fill)
{
	cudaGraph_t graph = NULL;
	size_t nodes = 77;
	int begun = (int)cudaStreamBeginCapture(cudaStreamPerThread, cudaStreamCaptureModeRelaxed);
	int code = fill != NULL ? (int)fill(block, 3, 64, NULL) : -1;
	int ended = (int)cudaStreamEndCapture(cudaStreamPerThread, &graph);
	if (ended == 0 && graph != NULL)
		cudaGraphGetNodes(graph, NULL, &nodes);
	obs(key, "%d,%d,%d,nodes=%zu,last=%d", begun, code, ended, nodes, (int)cudaGetLastError());
}

static CUresult runtime_memset(CUdeviceptr d, unsigned char v, size_t n, CUstream s)
{
	return (CUresult)cudaMemsetAsync((void *)(uintptr_t)d, v, n, s);
}

static CUresult runtime_alloc(CUdeviceptr d, unsigned char v, size_t n, CUstream s)
{
	void *p;
	(void)d;
	(void)v;
	return (CUresult)cudaMallocAsync(&p, n, s);
}

static alloc_fn resolved_alloc;
static CUresult driver_alloc(CUdeviceptr d, unsigned char v, size_t n, CUstream s)
{
	CUdeviceptr p;
	(void)d;
	(void)v;
	return resolved_alloc(&p, n, s);
}

static void *resolve(const char *key, const char *name, cuuint64_t flags)
{
	void *f = NULL;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	int code = (int)cuGetProcAddress(name, &f, 12000, flags, &status);
	obs(key, "%d,%d,%s", code, (int)status, f != NULL ? "found" : "null");
	return f;
}

int main(void)
{
	void *p = KEPT;
	obs_code("init", (int)cudaFree(NULL) | (int)cuMemAlloc(&block, 64));
	captured("linked.runtime", runtime_memset);
	captured("linked.runtime.alloc", runtime_alloc);
	captured("linked.driver", cuMemsetD8Async);
	captured("resolved.thread", (memset_fn)resolve("resolve.thread", "cuMemsetD8Async", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
	captured("resolved.legacy", (memset_fn)resolve("resolve.legacy", "cuMemsetD8Async", CU_GET_PROC_ADDRESS_LEGACY_STREAM));
	captured("resolved.default", (memset_fn)resolve("resolve.default", "cuMemsetD8Async", CU_GET_PROC_ADDRESS_DEFAULT));
	resolved_alloc = (alloc_fn)resolve("resolve.alloc.thread", "cuMemAllocAsync", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	captured("alloc.thread", driver_alloc);
	resolved_alloc = (alloc_fn)resolve("resolve.alloc.legacy", "cuMemAllocAsync", CU_GET_PROC_ADDRESS_LEGACY_STREAM);
	captured("alloc.legacy", driver_alloc);
	free_fn give = (free_fn)resolve("resolve.free.thread", "cuMemFreeAsync", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	obs_out("cudaMallocAsync", cudaMallocAsync(&p, 64, NULL), &p);
	obs_code("free", give != NULL ? (int)give((CUdeviceptr)(uintptr_t)p, NULL) : -1);
	obs_last("sync", cudaStreamSynchronize(NULL));
	return 0;
}
