/*
 * The calls whose safety during a capture is asked about. Reads of the graph under construction go
 * through the capturing stream's own info, as a shim that knows only the stream would do it.
 */
#include "safe_calls.h"

#include <string.h>

/* Short bodies: one call each, its outputs thrown away. */
#define CALL(id, locals, expression) \
	static int make_##id(void) \
	{ \
		locals; \
		return (int)(expression); \
	}

CALL(nothing, , 0)
CALL(ctx_current, CUcontext c, drv.p_cuCtxGetCurrent(&c))
CALL(ctx_device, CUdevice d, drv.p_cuCtxGetDevice(&d))
CALL(ctx_id, unsigned long long id, drv.p_cuCtxGetId(scene.context, &id))
CALL(ctx_flags, unsigned f, drv.p_cuCtxGetFlags(&f))
CALL(ctx_version, unsigned v, drv.p_cuCtxGetApiVersion(scene.context, &v))
CALL(ctx_limit, size_t v, drv.p_cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE))
CALL(ctx_set, , drv.p_cuCtxSetCurrent(scene.context))
CALL(ctx_sync, , drv.p_cuCtxSynchronize())
CALL(primary_state, unsigned f; int a, drv.p_cuDevicePrimaryCtxGetState(0, &f, &a))
CALL(device_attribute, int v, drv.p_cuDeviceGetAttribute(&v, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0))
CALL(device_uuid, CUuuid u, drv.p_cuDeviceGetUuid(&u, 0))
CALL(device_total, size_t n, drv.p_cuDeviceTotalMem(&n, 0))
CALL(device_default_pool, CUmemoryPool p, drv.p_cuDeviceGetDefaultMemPool(&p, 0))
CALL(device_pool, CUmemoryPool p, drv.p_cuDeviceGetMemPool(&p, 0))
CALL(graph_mem_attribute, cuuint64_t v, drv.p_cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &v))
CALL(stream_id, unsigned long long id, drv.p_cuStreamGetId(scene.captured, &id))
CALL(stream_id_idle, unsigned long long id, drv.p_cuStreamGetId(scene.idle, &id))
CALL(stream_id_legacy, unsigned long long id, drv.p_cuStreamGetId(CU_STREAM_LEGACY, &id))
CALL(stream_id_per_thread, unsigned long long id, drv.p_cuStreamGetId(CU_STREAM_PER_THREAD, &id))
CALL(stream_ctx, CUcontext c, drv.p_cuStreamGetCtx(scene.captured, &c))
CALL(stream_ctx_legacy, CUcontext c, drv.p_cuStreamGetCtx(CU_STREAM_LEGACY, &c))
CALL(stream_device, CUdevice d, drv.p_cuStreamGetDevice(scene.captured, &d))
CALL(stream_flags, unsigned f, drv.p_cuStreamGetFlags(scene.captured, &f))
CALL(stream_priority, int p, drv.p_cuStreamGetPriority(scene.captured, &p))
CALL(stream_capturing, CUstreamCaptureStatus s, drv.p_cuStreamIsCapturing(scene.captured, &s))
CALL(stream_capturing_idle, CUstreamCaptureStatus s, drv.p_cuStreamIsCapturing(scene.idle, &s))
CALL(stream_capturing_legacy, CUstreamCaptureStatus s, drv.p_cuStreamIsCapturing(CU_STREAM_LEGACY, &s))
CALL(stream_query_idle, , drv.p_cuStreamQuery(scene.idle))
CALL(mem_info, size_t f; size_t t, drv.p_cuMemGetInfo(&f, &t))
CALL(address_range, CUdeviceptr b; size_t n, drv.p_cuMemGetAddressRange(&b, &n, scene.block))
CALL(mem_free_null, , drv.p_cuMemFree(0))
CALL(mem_free_host_null, , drv.p_cuMemFreeHost(NULL))
CALL(mem_free_async_null, , drv.p_cuMemFreeAsync(0, scene.idle))
CALL(pool_get, cuuint64_t v, drv.p_cuMemPoolGetAttribute(scene.pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &v))
CALL(ptr_type, CUmemorytype t, drv.p_cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, scene.block))
CALL(ptr_buffer, unsigned long long v, drv.p_cuPointerGetAttribute(&v, CU_POINTER_ATTRIBUTE_BUFFER_ID, scene.block))
CALL(ptr_context, CUcontext c, drv.p_cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, scene.block))
CALL(ptr_mapping, size_t n, drv.p_cuPointerGetAttribute(&n, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, scene.block))
CALL(ptr_pool, CUmemoryPool p, drv.p_cuPointerGetAttribute(&p, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, scene.block))
CALL(ptr_unknown, CUmemorytype t, drv.p_cuPointerGetAttribute(&t, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1000))
CALL(host_pointer, CUdeviceptr d, drv.p_cuMemHostGetDevicePointer(&d, scene.pinned, 0))
CALL(host_flags, unsigned f, drv.p_cuMemHostGetFlags(&f, scene.pinned))
CALL(loading_mode, CUmoduleLoadingMode m, drv.p_cuModuleGetLoadingMode(&m))
CALL(module_count, unsigned n, drv.p_cuModuleGetFunctionCount(&n, scene.module))
CALL(func_module, CUmodule m, drv.p_cuFuncGetModule(&m, scene.kernel))
CALL(func_name, const char *n, drv.p_cuFuncGetName(&n, scene.kernel))
CALL(func_attribute, int v, drv.p_cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, scene.kernel))
CALL(func_param, size_t o; size_t n, drv.p_cuFuncGetParamInfo(scene.kernel, 0, &o, &n))
CALL(func_loaded, CUfunctionLoadingState s, drv.p_cuFuncIsLoaded(&s, scene.kernel))
CALL(event_record, , drv.p_cuEventRecord(scene.event, scene.idle))
CALL(event_query, , drv.p_cuEventQuery(scene.event))
CALL(done_nodes, size_t n = 0, drv.p_cuGraphGetNodes(scene.done.graph, NULL, &n))
CALL(done_roots, size_t n = 0, drv.p_cuGraphGetRootNodes(scene.done.graph, NULL, &n))
CALL(done_edges, size_t n = 0, drv.p_cuGraphGetEdges(scene.done.graph, NULL, NULL, NULL, &n))
CALL(done_type, CUgraphNodeType t, drv.p_cuGraphNodeGetType(scene.done.kernel, &t))
CALL(done_kernel, CUDA_KERNEL_NODE_PARAMS p, drv.p_cuGraphKernelNodeGetParams(scene.done.kernel, &p))
CALL(done_memset, CUDA_MEMSET_NODE_PARAMS p, drv.p_cuGraphMemsetNodeGetParams(scene.done.memset, &p))
CALL(done_copy, CUDA_MEMCPY3D p, drv.p_cuGraphMemcpyNodeGetParams(scene.done.copy, &p))
CALL(done_alloc, CUDA_MEM_ALLOC_NODE_PARAMS p, drv.p_cuGraphMemAllocNodeGetParams(scene.done.alloc, &p))
CALL(done_free, CUdeviceptr d, drv.p_cuGraphMemFreeNodeGetParams(scene.done.release, &d))
CALL(exec_flags, cuuint64_t f, drv.p_cuGraphExecGetFlags(scene.exec, &f))
CALL(exec_upload, , drv.p_cuGraphUpload(scene.exec, scene.idle))

static int make_ctx_push_pop(void)
{
	CUcontext c;
	int code = (int)drv.p_cuCtxPushCurrent(scene.context);
	return code != 0 ? code : (int)drv.p_cuCtxPopCurrent(&c);
}

static int make_exchange(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int code = (int)drv.p_cuThreadExchangeStreamCaptureMode(&mode);
	return code != 0 ? code : (int)drv.p_cuThreadExchangeStreamCaptureMode(&mode);
}

/* Inside an exchange to Relaxed, the way a shim could make an unsafe call of its own. */
static int relaxed(int (*call)(void))
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	int code = (int)drv.p_cuThreadExchangeStreamCaptureMode(&mode);
	if (code != 0)
		return code;
	code = call();
	drv.p_cuThreadExchangeStreamCaptureMode(&mode);
	return code;
}

static int alloc_and_free(void)
{
	CUdeviceptr p;
	int code = (int)drv.p_cuMemAlloc(&p, 1 << 20);
	return code != 0 ? code : (int)drv.p_cuMemFree(p);
}

static int pinned_alloc_and_free(void)
{
	void *p;
	int code = (int)drv.p_cuMemHostAlloc(&p, 4096, 0);
	return code != 0 ? code : (int)drv.p_cuMemFreeHost(p);
}

static int make_relaxed_alloc(void) { return relaxed(alloc_and_free); }
static int make_relaxed_pinned(void) { return relaxed(pinned_alloc_and_free); }
static int make_relaxed_pool_get(void) { return relaxed(make_pool_get); }
static int make_relaxed_free_null(void) { return relaxed(make_mem_free_null); }
static int make_relaxed_event_query(void) { return relaxed(make_event_query); }

static int make_async_idle(void)
{
	CUdeviceptr p;
	int code = (int)drv.p_cuMemAllocAsync(&p, 1 << 20, scene.idle);
	return code != 0 ? code : (int)drv.p_cuMemFreeAsync(p, scene.idle);
}

static int make_event_cycle(void)
{
	CUevent e;
	int code = (int)drv.p_cuEventCreate(&e, CU_EVENT_DISABLE_TIMING);
	return code != 0 ? code : (int)drv.p_cuEventDestroy(e);
}

static int make_stream_cycle(void)
{
	CUstream s;
	int code = (int)drv.p_cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
	return code != 0 ? code : (int)drv.p_cuStreamDestroy(s);
}

static int make_vmm_cycle(void)
{
	size_t bytes = 2u << 20;
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	CUdeviceptr at;
	int code;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	code = (int)drv.p_cuMemAddressReserve(&at, bytes, 0, 0, 0);
	code = code != 0 ? code : (int)drv.p_cuMemCreate(&handle, bytes, &prop, 0);
	code = code != 0 ? code : (int)drv.p_cuMemMap(at, bytes, 0, handle, 0);
	code = code != 0 ? code : (int)drv.p_cuMemSetAccess(at, bytes, &access, 1);
	code = code != 0 ? code : (int)drv.p_cuMemUnmap(at, bytes);
	code = code != 0 ? code : (int)drv.p_cuMemRelease(handle);
	return code != 0 ? code : (int)drv.p_cuMemAddressFree(at, bytes);
}

static int make_vmm_access(void)
{
	CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	unsigned long long flags;
	return (int)drv.p_cuMemGetAccess(&flags, &where, scene.mapped);
}

static int make_vmm_retain(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	int code = (int)drv.p_cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)scene.mapped);
	code = code != 0 ? code : (int)drv.p_cuMemGetAllocationPropertiesFromHandle(&prop, handle);
	return code != 0 ? code : (int)drv.p_cuMemRelease(handle);
}

/* The graph that the stream is capturing into right now. */
static int live_graph(CUgraph *out)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	cuuint64_t id;
	*out = NULL;
	return (int)drv.p_cuStreamGetCaptureInfo(scene.captured, &status, &id, out, NULL, NULL, NULL);
}

static int make_capture_info(void)
{
	CUgraph graph;
	return live_graph(&graph);
}

static int make_capture_info_full(void)
{
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraph graph;
	const CUgraphNode *nodes;
	const CUgraphEdgeData *edges;
	size_t count;
	return (int)drv.p_cuStreamGetCaptureInfo(scene.captured, &status, &id, &graph, &nodes, &edges, &count);
}

int find_nodes(CUgraph graph, struct safe_nodes *out)
{
	CUgraphNode nodes[16];
	size_t count = 16;
	int code = (int)drv.p_cuGraphGetNodes(graph, nodes, &count);
	memset(out, 0, sizeof *out);
	out->graph = graph;
	for (size_t i = 0; code == 0 && i < count && i < 16; i++) {
		CUgraphNodeType type;
		code = (int)drv.p_cuGraphNodeGetType(nodes[i], &type);
		if (code == 0 && type == CU_GRAPH_NODE_TYPE_KERNEL)
			out->kernel = nodes[i];
		else if (code == 0 && type == CU_GRAPH_NODE_TYPE_MEMSET)
			out->memset = nodes[i];
		else if (code == 0 && type == CU_GRAPH_NODE_TYPE_MEMCPY)
			out->copy = nodes[i];
		else if (code == 0 && type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			out->alloc = nodes[i];
		else if (code == 0 && type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			out->release = nodes[i];
	}
	return code;
}

static int make_live_nodes(void)
{
	CUgraph graph;
	struct safe_nodes nodes;
	int code = live_graph(&graph);
	return code != 0 ? code : find_nodes(graph, &nodes);
}

/* Runs one read on the nodes of the live graph. */
#define LIVE(id, locals, expression) \
	static int make_live_##id(void) \
	{ \
		CUgraph graph; \
		struct safe_nodes nodes; \
		locals; \
		int code = live_graph(&graph); \
		code = code != 0 ? code : find_nodes(graph, &nodes); \
		return code != 0 ? code : (int)(expression); \
	}

LIVE(kernel, CUDA_KERNEL_NODE_PARAMS p, drv.p_cuGraphKernelNodeGetParams(nodes.kernel, &p))
LIVE(memset, CUDA_MEMSET_NODE_PARAMS p, drv.p_cuGraphMemsetNodeGetParams(nodes.memset, &p))
LIVE(copy, CUDA_MEMCPY3D p, drv.p_cuGraphMemcpyNodeGetParams(nodes.copy, &p))
LIVE(alloc, CUDA_MEM_ALLOC_NODE_PARAMS p, drv.p_cuGraphMemAllocNodeGetParams(nodes.alloc, &p))
LIVE(free, CUdeviceptr d, drv.p_cuGraphMemFreeNodeGetParams(nodes.release, &d))
LIVE(dependencies, size_t n = 0, drv.p_cuGraphNodeGetDependencies(nodes.copy, NULL, NULL, &n))
LIVE(edges, size_t n = 0, drv.p_cuGraphGetEdges(nodes.graph, NULL, NULL, NULL, &n))

static int make_clone_done(void)
{
	CUgraph copy;
	int code = (int)drv.p_cuGraphClone(&copy, scene.done.graph);
	return code != 0 ? code : (int)drv.p_cuGraphDestroy(copy);
}

static int make_launch_idle(void)
{
	return (int)drv.p_cuMemsetD8Async(scene.block, 3, 64, scene.idle);
}

const struct safe_call safe_calls[] = {
	{"nothing", make_nothing},
	{"cuCtxGetCurrent", make_ctx_current},
	{"cuCtxGetDevice", make_ctx_device},
	{"cuCtxGetId", make_ctx_id},
	{"cuCtxGetFlags", make_ctx_flags},
	{"cuCtxGetApiVersion", make_ctx_version},
	{"cuCtxGetLimit", make_ctx_limit},
	{"cuCtxSetCurrent", make_ctx_set},
	{"cuCtxPushCurrent+Pop", make_ctx_push_pop},
	{"cuCtxSynchronize", make_ctx_sync},
	{"cuDevicePrimaryCtxGetState", make_primary_state},
	{"cuDeviceGetAttribute", make_device_attribute},
	{"cuDeviceGetUuid", make_device_uuid},
	{"cuDeviceTotalMem", make_device_total},
	{"cuDeviceGetDefaultMemPool", make_device_default_pool},
	{"cuDeviceGetMemPool", make_device_pool},
	{"cuDeviceGetGraphMemAttribute", make_graph_mem_attribute},
	{"cuStreamGetId", make_stream_id},
	{"cuStreamGetId.idle", make_stream_id_idle},
	{"cuStreamGetId.legacy", make_stream_id_legacy},
	{"cuStreamGetId.per_thread", make_stream_id_per_thread},
	{"cuStreamGetCtx", make_stream_ctx},
	{"cuStreamGetCtx.legacy", make_stream_ctx_legacy},
	{"cuStreamGetDevice", make_stream_device},
	{"cuStreamGetFlags", make_stream_flags},
	{"cuStreamGetPriority", make_stream_priority},
	{"cuStreamIsCapturing", make_stream_capturing},
	{"cuStreamIsCapturing.idle", make_stream_capturing_idle},
	{"cuStreamIsCapturing.legacy", make_stream_capturing_legacy},
	{"cuStreamGetCaptureInfo", make_capture_info},
	{"cuStreamGetCaptureInfo.full", make_capture_info_full},
	{"cuStreamQuery.idle", make_stream_query_idle},
	{"cuThreadExchangeStreamCaptureMode", make_exchange},
	{"cuMemGetInfo", make_mem_info},
	{"cuMemGetAddressRange", make_address_range},
	{"cuMemFree.null", make_mem_free_null},
	{"cuMemFreeHost.null", make_mem_free_host_null},
	{"cuMemFreeAsync.null_idle", make_mem_free_async_null},
	{"cuMemAllocAsync+Free.idle", make_async_idle},
	{"cuMemAlloc+Free", alloc_and_free},
	{"cuMemHostAlloc+Free", pinned_alloc_and_free},
	{"relaxed.cuMemAlloc+Free", make_relaxed_alloc},
	{"relaxed.cuMemHostAlloc+Free", make_relaxed_pinned},
	{"relaxed.cuMemFree.null", make_relaxed_free_null},
	{"relaxed.cuMemPoolGetAttribute", make_relaxed_pool_get},
	{"relaxed.cuEventQuery", make_relaxed_event_query},
	{"cuMemPoolGetAttribute", make_pool_get},
	{"vmm_cycle", make_vmm_cycle},
	{"cuMemGetAccess", make_vmm_access},
	{"cuMemRetainAllocationHandle+Release", make_vmm_retain},
	{"cuPointerGetAttribute.memory_type", make_ptr_type},
	{"cuPointerGetAttribute.buffer_id", make_ptr_buffer},
	{"cuPointerGetAttribute.context", make_ptr_context},
	{"cuPointerGetAttribute.mapping_size", make_ptr_mapping},
	{"cuPointerGetAttribute.mempool", make_ptr_pool},
	{"cuPointerGetAttribute.unknown", make_ptr_unknown},
	{"cuMemHostGetDevicePointer", make_host_pointer},
	{"cuMemHostGetFlags", make_host_flags},
	{"cuModuleGetLoadingMode", make_loading_mode},
	{"cuModuleGetFunctionCount", make_module_count},
	{"cuFuncGetModule", make_func_module},
	{"cuFuncGetName", make_func_name},
	{"cuFuncGetAttribute", make_func_attribute},
	{"cuFuncGetParamInfo", make_func_param},
	{"cuFuncIsLoaded", make_func_loaded},
	{"cuEventCreate+Destroy", make_event_cycle},
	{"cuEventRecord.idle", make_event_record},
	{"cuEventQuery", make_event_query},
	{"cuStreamCreate+Destroy", make_stream_cycle},
	{"cuMemsetD8Async.idle", make_launch_idle},
	{"done.cuGraphGetNodes", make_done_nodes},
	{"done.cuGraphGetRootNodes", make_done_roots},
	{"done.cuGraphGetEdges", make_done_edges},
	{"done.cuGraphNodeGetType", make_done_type},
	{"done.cuGraphKernelNodeGetParams", make_done_kernel},
	{"done.cuGraphMemsetNodeGetParams", make_done_memset},
	{"done.cuGraphMemcpyNodeGetParams", make_done_copy},
	{"done.cuGraphMemAllocNodeGetParams", make_done_alloc},
	{"done.cuGraphMemFreeNodeGetParams", make_done_free},
	{"done.cuGraphClone+Destroy", make_clone_done},
	{"done.cuGraphExecGetFlags", make_exec_flags},
	{"done.cuGraphUpload.idle", make_exec_upload},
	{"live.cuGraphGetNodes+NodeGetType", make_live_nodes},
	{"live.cuGraphGetEdges", make_live_edges},
	{"live.cuGraphNodeGetDependencies", make_live_dependencies},
	{"live.cuGraphKernelNodeGetParams", make_live_kernel},
	{"live.cuGraphMemsetNodeGetParams", make_live_memset},
	{"live.cuGraphMemcpyNodeGetParams", make_live_copy},
	{"live.cuGraphMemAllocNodeGetParams", make_live_alloc},
	{"live.cuGraphMemFreeNodeGetParams", make_live_free},
};
const size_t safe_call_count = sizeof safe_calls / sizeof safe_calls[0];
