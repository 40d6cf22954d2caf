/* Graphs built by hand: allocation and free nodes, memset nodes, a child graph, parameters changed in the exec. */
#include "observe.h"

int main(void)
{
	cudaStream_t s;
	cudaGraph_t graph, child, outer;
	cudaGraphNode_t alloc, fill, give, nested, plain_fill;
	cudaGraphExec_t exec;
	void *r;
	obs_code("made", (int)cudaStreamCreate(&s) | (int)cudaGraphCreate(&graph, 0) | (int)cudaGraphCreate(&child, 0) |
	                     (int)cudaGraphCreate(&outer, 0) | (int)cudaMalloc(&r, 4096));
	struct cudaMemAllocNodeParams a;
	memset(&a, 0, sizeof a);
	a.poolProps.allocType = cudaMemAllocationTypePinned;
	a.poolProps.location.type = cudaMemLocationTypeDevice;
	a.bytesize = 3 * MIB;
	obs_last("alloc", cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &a));
	obs_code("pointer", a.dptr != NULL);
	struct cudaMemsetParams m;
	memset(&m, 0, sizeof m);
	m.dst = a.dptr;
	m.value = 5;
	m.elementSize = 1;
	m.width = 100;
	m.height = 1;
	obs_last("memset", cudaGraphAddMemsetNode(&fill, graph, &alloc, 1, &m));
	obs_last("free", cudaGraphAddMemFreeNode(&give, graph, &fill, 1, a.dptr));
	obs_last("free.bad", cudaGraphAddMemFreeNode(&give, graph, &fill, 1, r));
	struct cudaMemAllocNodeParams back;
	memset(&back, 0, sizeof back);
	obs_last("params", cudaGraphMemAllocNodeGetParams(alloc, &back));
	obs("params.same", "%d,%zu", back.dptr == a.dptr, back.bytesize);
	obs_last("instantiate", cudaGraphInstantiate(&exec, graph, 0));
	obs_last("launch", (int)cudaGraphLaunch(exec, s) | (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_last("destroy", cudaGraphExecDestroy(exec));
	a.bytesize = TOO_MUCH;
	cudaGraphNode_t bad;
	obs_last("alloc.too_much", cudaGraphAddMemAllocNode(&bad, graph, NULL, 0, &a));
	a.bytesize = 64;
	a.poolProps.location.id = 55;
	obs_last("alloc.bad_device", cudaGraphAddMemAllocNode(&bad, graph, NULL, 0, &a));

	m.dst = r;
	obs_last("child.memset", cudaGraphAddMemsetNode(&plain_fill, child, NULL, 0, &m));
	obs_last("child.add", cudaGraphAddChildGraphNode(&nested, outer, NULL, 0, child));
	obs_last("outer.memset", ((void)(m.dst = (char *)r + 100), cudaGraphAddMemsetNode(&fill, outer, &nested, 1, &m)));
	obs_last("outer.instantiate", cudaGraphInstantiate(&exec, outer, 0));
	obs_last("outer.launch", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_bytes("outer.content", r, 5, 200);
	m.value = 6;
	obs_last("exec.set", cudaGraphExecMemsetNodeSetParams(exec, fill, &m));
	obs_last("outer.launch.2", (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s));
	obs_bytes("outer.child", r, 5, 100);
	obs_bytes("outer.set", (char *)r + 100, 6, 100);
	obs_last("destroy.2", (int)cudaGraphExecDestroy(exec) | (int)cudaGraphDestroy(outer) | (int)cudaGraphDestroy(child) |
	                          (int)cudaGraphDestroy(graph));
	obs_last("trim", cudaDeviceGraphMemTrim(0));
	obs_last("end", (int)cudaFree(r) | (int)cudaStreamDestroy(s));
	return 0;
}
