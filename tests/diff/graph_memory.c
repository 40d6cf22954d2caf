/* A capture with allocations inside: instantiate, launch, free in and out of the graph, destroy, trim. */
#include "observe.h"

static void show(const char *key)
{
	static const enum cudaGraphMemAttributeType what[] = {cudaGraphMemAttrUsedMemCurrent, cudaGraphMemAttrReservedMemCurrent};
	unsigned long long v[2] = {1, 1};
	int code = 0;
	for (int i = 0; i < 2; i++)
		code |= (int)cudaDeviceGetGraphMemAttribute(0, what[i], &v[i]);
	obs(key, "%d,used=%llu,reserved=%llu", code, v[0], v[1]);
}

static void run(const char *name, int freed_inside)
{
	cudaStream_t s;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	void *p = KEPT, *outside;
	size_t nodes = 77;
	obs("graph", "%s", name);
	obs_code("made", (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) | (int)cudaMalloc(&outside, 64));
	obs_last("begin", cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	obs_out("alloc", cudaMallocAsync(&p, 5 * MIB, s), &p);
	obs_last("memset", cudaMemsetAsync(p, 0x51, 64, s));
	obs_last("copy", cudaMemcpyAsync(outside, p, 64, cudaMemcpyDeviceToDevice, s));
	if (freed_inside)
		obs_last("free", cudaFreeAsync(p, s));
	obs_last("free.outside", cudaFreeAsync(outside, s));
	obs_last("end", cudaStreamEndCapture(s, &graph));
	if (graph == NULL)
		return;
	obs_last("nodes", cudaGraphGetNodes(graph, NULL, &nodes));
	obs("nodes.count", "%zu", nodes);
	obs_last("instantiate", cudaGraphInstantiate(&exec, graph, 0));
	show("instantiated");
	obs_last("upload", cudaGraphUpload(exec, s));
	obs_last("launch", cudaGraphLaunch(exec, s));
	obs_last("sync", cudaStreamSynchronize(s));
	obs_bytes("content", outside, 0x51, 64);
	show("launched");
	obs_last("launch.2", cudaGraphLaunch(exec, s));
	obs_last("sync.2", cudaStreamSynchronize(s));
	if (!freed_inside) {
		obs_last("free.p", cudaFreeAsync(p, s));
		obs_last("launch.3", cudaGraphLaunch(exec, s));
		obs_last("sync.3", cudaStreamSynchronize(s));
		obs_last("free.p.plain", cudaFree(p));
	}
	obs_last("trim.in_use", cudaDeviceGraphMemTrim(0));
	show("trimmed");
	obs_last("destroy", (int)cudaGraphExecDestroy(exec) | (int)cudaGraphDestroy(graph));
	show("destroyed");
	obs_last("trim", cudaDeviceGraphMemTrim(0));
	show("trimmed.2");
	unsigned long long zero = 0;
	obs_last("reset_high", cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
	obs_last("free.outside.2", cudaFree(outside));
	obs_last("stream", cudaStreamDestroy(s));
}

int main(void)
{
	run("freed_inside", 1);
	run("freed_outside", 0);
	return 0;
}
