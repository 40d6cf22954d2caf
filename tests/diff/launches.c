/* Modules, libraries and kernels: loaded in every way, launched in every way, put into graphs, their parameters changed in
   the executable graph; built twice, for the legacy and the per-thread default stream. */
#include "observe.h"

static CUdeviceptr block;
static unsigned char value;
static size_t bytes = 256;
static unsigned ms = 1;
static void *params[] = {&block, &value, &bytes, &ms};

static void clear(unsigned char v)
{
	value = v;
	cuMemsetD8(block, 0, 4096);
	cuCtxSynchronize();
}

static void filled(const char *key, int code)
{
	char k[64];
	snprintf(k, sizeof k, "%s.sync", key);
	obs_code(key, code);
	obs_code(k, cuCtxSynchronize());
	snprintf(k, sizeof k, "%s.content", key);
	obs_bytes(k, (void *)(uintptr_t)block, value, bytes);
}

int main(void)
{
	CUmodule module;
	CUlibrary library;
	CUkernel kernel;
	CUfunction fill, of_kernel;
	CUstream s;
	obs_code("init", cudaFree(NULL));
	obs_code("made", (int)cuMemAlloc(&block, 4096) | (int)cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	obs_code("load", cuModuleLoadDataEx(&module, obs_ptx, 0, NULL, NULL));
	obs_code("function", cuModuleGetFunction(&fill, module, "fake_slow_fill"));
	CUfunctionLoadingState loading = (CUfunctionLoadingState)77;
	int code = (int)cuFuncIsLoaded(&loading, fill);
	obs("loading", "%d,%d", code, loading == CU_FUNCTION_LOADING_STATE_UNLOADED || loading == CU_FUNCTION_LOADING_STATE_LOADED);
	obs_code("func_load", cuFuncLoad(fill));
	obs_code("library", cuLibraryLoadData(&library, obs_ptx, NULL, NULL, 0, NULL, NULL, 0));
	obs_code("kernel", cuLibraryGetKernel(&kernel, library, "fake_slow_fill"));
	obs_code("kernel.function", cuKernelGetFunction(&of_kernel, kernel));

	clear(1);
	filled("launch", cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	clear(2);
	filled("launch.default", cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	clear(3);
	filled("launch.kernel", cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	clear(4);
	filled("launch.of_kernel", cuLaunchKernel(of_kernel, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
	clear(5);
	filled("launch.cooperative", cuLaunchCooperativeKernel(fill, 1, 1, 1, 1, 1, 1, 0, s, params));
	CUlaunchConfig config;
	memset(&config, 0, sizeof config);
	config.gridDimX = config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	config.hStream = s;
	clear(6);
	filled("launch.ex", cuLaunchKernelEx(&config, fill, params, NULL));
	config.hStream = NULL;
	clear(7);
	filled("launch.ex.default", cuLaunchKernelEx(&config, fill, params, NULL));
	struct {
		CUdeviceptr to;
		unsigned char v;
		size_t n;
		unsigned t;
	} packed = {block, 8, 256, 1};
	size_t size = offsetof(__typeof__(packed), t) + sizeof packed.t;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
	clear(8);
	filled("launch.packed", cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, s, NULL, extra));
	obs_code("launch.no_threads", cuLaunchKernel(fill, 1, 1, 1, 0, 1, 1, 0, s, params, NULL));
	obs_code("launch.null", cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));

	CUgraph graph;
	CUgraphNode node, generic, copy, child_node;
	CUgraphExec exec;
	CUDA_KERNEL_NODE_PARAMS k;
	memset(&k, 0, sizeof k);
	k.func = fill;
	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = params;
	clear(9);
	obs_code("graph", cuGraphCreate(&graph, 0));
	obs_code("node", cuGraphAddKernelNode(&node, graph, NULL, 0, &k));
	CUgraphNodeParams any;
	memset(&any, 0, sizeof any);
	any.type = CU_GRAPH_NODE_TYPE_MEMSET;
	any.memset.dst = block + 1024;
	any.memset.value = 0x21;
	any.memset.elementSize = 1;
	any.memset.width = 64;
	any.memset.height = 1;
	CUcontext c;
	cuCtxGetCurrent(&c);
	any.memset.ctx = c;
	obs_code("node.any", cuGraphAddNode(&generic, graph, &node, NULL, 1, &any));
	CUDA_MEMCPY3D m;
	memset(&m, 0, sizeof m);
	m.srcMemoryType = m.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	m.srcDevice = block;
	m.dstDevice = block + 2048;
	m.WidthInBytes = 64;
	m.Height = m.Depth = 1;
	obs_code("node.copy", cuGraphAddMemcpyNode(&copy, graph, &node, 1, &m, c));
	CUgraph child;
	CUgraphNode inside;
	obs_code("child", (int)cuGraphCreate(&child, 0) | (int)cuGraphAddEmptyNode(&inside, child, NULL, 0) |
	                      (int)cuGraphAddChildGraphNode(&child_node, graph, &copy, 1, child));
	obs_code("instantiate", cuGraphInstantiate(&exec, graph, 0));
	filled("graph.launch", cuGraphLaunch(exec, s));
	obs_bytes("graph.memset", (void *)(uintptr_t)(block + 1024), 0x21, 64);
	obs_bytes("graph.copy", (void *)(uintptr_t)(block + 2048), 9, 64);
	clear(10);
	obs_code("exec.kernel", cuGraphExecKernelNodeSetParams(exec, node, &k));
	any.memset.value = 0x22;
	obs_code("exec.any", cuGraphExecNodeSetParams(exec, generic, &any));
	m.dstDevice = block + 3072;
	obs_code("exec.copy", cuGraphExecMemcpyNodeSetParams(exec, copy, &m, c));
	obs_code("exec.child", cuGraphExecChildGraphNodeSetParams(exec, child_node, child));
	filled("exec.launch", cuGraphLaunch(exec, NULL));
	obs_bytes("exec.memset", (void *)(uintptr_t)(block + 1024), 0x22, 64);
	obs_bytes("exec.copied", (void *)(uintptr_t)(block + 3072), 10, 64);
	CUgraphExecUpdateResultInfo info;
	memset(&info, 0, sizeof info);
	clear(9);
	code = (int)cuGraphExecUpdate(exec, graph, &info);
	obs("update", "%d,%d", code, (int)info.result);
	filled("update.launch", cuGraphLaunch(exec, s));
	obs_code("destroy", (int)cuGraphExecDestroy(exec) | (int)cuGraphDestroy(graph) | (int)cuGraphDestroy(child));
	obs_code("unload", (int)cuModuleUnload(module) | (int)cuLibraryUnload(library));
	obs_last("end", (int)cuMemFree(block) | (int)cuStreamDestroy(s));
	return 0;
}
