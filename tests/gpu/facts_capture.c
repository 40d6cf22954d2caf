/*
 * Which calls survive a stream capture, and which end it: every capture mode, from the capturing thread
 * and from another one, with and without that thread's exchange to Relaxed. Then memory nodes of graphs.
 * A line reads MODE.THREAD.EXCHANGE.CALL=code,survives=0|1,end=code.
 */
#define _GNU_SOURCE
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scene {
	cudaStream_t captured, idle;
	cudaEvent_t event;
	cudaMemPool_t pool;
	void *block, *pinned, *heap;
	int relaxed;
	int code;
	int (*call)(struct scene *);
};

static int call_nothing(struct scene *s) { (void)s; return 0; }
static int call_free_null(struct scene *s) { (void)s; return (int)cudaFree(NULL); }
static int call_device_sync(struct scene *s) { (void)s; return (int)cudaDeviceSynchronize(); }
static int call_context_sync(struct scene *s) { (void)s; return (int)drv.p_cuCtxSynchronize(); }
static int call_event_query(struct scene *s) { return (int)cudaEventQuery(s->event); }
static int call_event_sync(struct scene *s) { return (int)cudaEventSynchronize(s->event); }
static int call_stream_query(struct scene *s) { return (int)cudaStreamQuery(s->idle); }
static int call_stream_sync(struct scene *s) { return (int)cudaStreamSynchronize(s->idle); }
static int call_event_record(struct scene *s) { return (int)cudaEventRecord(s->event, s->idle); }
static int call_legacy(struct scene *s) { return (int)cudaMemsetAsync(s->block, 0, 64, cudaStreamLegacy); }
static int call_pool_trim(struct scene *s) { return (int)cudaMemPoolTrimTo(s->pool, 0); }

static int call_malloc(struct scene *s)
{
	void *p = NULL;
	int code = (int)cudaMalloc(&p, MIB);
	(void)s;
	return code;
}

static int call_driver_malloc(struct scene *s)
{
	CUdeviceptr p = 0;
	(void)s;
	return (int)drv.p_cuMemAlloc(&p, MIB);
}

static int call_malloc_zero(struct scene *s)
{
	void *p = NULL;
	(void)s;
	return (int)cudaMalloc(&p, 0);
}

static int call_malloc_refused(struct scene *s)
{
	void *p = NULL;
	(void)s;
	return (int)cudaMalloc(&p, HUGE_BYTES);
}

static int call_free(struct scene *s)
{
	int code = (int)cudaFree(s->block);
	if (code == 0)
		s->block = NULL;
	return code;
}

static int call_malloc_host(struct scene *s)
{
	void *p = NULL;
	(void)s;
	return (int)cudaMallocHost(&p, 4096);
}

static int call_free_host(struct scene *s)
{
	int code = (int)cudaFreeHost(s->pinned);
	if (code == 0)
		s->pinned = NULL;
	return code;
}

static int call_free_host_null(struct scene *s) { (void)s; return (int)cudaFreeHost(NULL); }
static int call_driver_free_null(struct scene *s) { (void)s; return (int)drv.p_cuMemFree(0); }
static int call_free_bad(struct scene *s) { (void)s; return (int)cudaFree((void *)(uintptr_t)0x1000); }

static int call_register(struct scene *s)
{
	int code = (int)cudaHostRegister(s->heap, 4096, 0);
	return code;
}

static int call_query(struct scene *s)
{
	size_t free_bytes, total;
	(void)s;
	return (int)cudaMemGetInfo(&free_bytes, &total);
}

static int call_attributes(struct scene *s)
{
	struct cudaPointerAttributes a;
	return (int)cudaPointerGetAttributes(&a, s->block);
}

static int call_address_range(struct scene *s)
{
	CUdeviceptr base;
	size_t bytes;
	return (int)drv.p_cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)(uintptr_t)s->block);
}

static int call_graph_attribute(struct scene *s)
{
	cuuint64_t value;
	(void)s;
	return (int)cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &value);
}

static int call_graph_trim(struct scene *s) { (void)s; return (int)cudaDeviceGraphMemTrim(0); }

static int call_pool_attribute(struct scene *s)
{
	cuuint64_t value;
	return (int)cudaMemPoolGetAttribute(s->pool, cudaMemPoolAttrUsedMemCurrent, &value);
}

static int call_event_create(struct scene *s)
{
	cudaEvent_t event;
	int code = (int)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
	(void)s;
	return code != 0 ? code : (int)cudaEventDestroy(event);
}

static int call_stream_create(struct scene *s)
{
	cudaStream_t stream;
	int code = (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
	(void)s;
	return code != 0 ? code : (int)cudaStreamDestroy(stream);
}

static int call_vmm(struct scene *s)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	CUdeviceptr at = 0;
	int code;
	(void)s;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	code = (int)drv.p_cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0);
	code = code != 0 ? code : (int)drv.p_cuMemCreate(&handle, 2 * MIB, &prop, 0);
	code = code != 0 ? code : (int)drv.p_cuMemMap(at, 2 * MIB, 0, handle, 0);
	code = code != 0 ? code : (int)drv.p_cuMemSetAccess(at, 2 * MIB, &access, 1);
	code = code != 0 ? code : (int)drv.p_cuMemUnmap(at, 2 * MIB);
	code = code != 0 ? code : (int)drv.p_cuMemRelease(handle);
	return code != 0 ? code : (int)drv.p_cuMemAddressFree(at, 2 * MIB);
}

static int call_async_here(struct scene *s)
{
	void *p = NULL;
	int code = (int)cudaMallocAsync(&p, MIB, s->captured);
	return code != 0 ? code : (int)cudaFreeAsync(p, s->captured);
}

static int call_async_elsewhere(struct scene *s)
{
	void *p = NULL;
	int code = (int)cudaMallocAsync(&p, MIB, s->idle);
	return code != 0 ? code : (int)cudaFreeAsync(p, s->idle);
}

static int call_async_zero(struct scene *s)
{
	void *p = NULL;
	return (int)cudaMallocAsync(&p, 0, s->idle);
}

static int call_async_zero_here(struct scene *s)
{
	void *p = NULL;
	return (int)cudaMallocAsync(&p, 0, s->captured);
}

static int call_async_free_null(struct scene *s) { return (int)cudaFreeAsync(NULL, s->idle); }
static int call_async_free_null_here(struct scene *s) { return (int)cudaFreeAsync(NULL, s->captured); }
static int call_async_free_bad(struct scene *s) { return (int)cudaFreeAsync((void *)(uintptr_t)0x1000, s->idle); }
static int call_legacy_sync(struct scene *s) { (void)s; return (int)cudaStreamSynchronize(cudaStreamLegacy); }
static int call_driver_zero(struct scene *s) { CUdeviceptr p = 0; (void)s; return (int)drv.p_cuMemAlloc(&p, 0); }

static int call_managed_zero(struct scene *s)
{
	void *p = NULL;
	(void)s;
	return (int)cudaMallocManaged(&p, 0, cudaMemAttachGlobal);
}

static int call_driver_managed_zero(struct scene *s)
{
	CUdeviceptr p = 0;
	(void)s;
	return (int)drv.p_cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL);
}

static int call_async_free_old(struct scene *s)
{
	int code = (int)cudaFreeAsync(s->block, s->captured);
	if (code == 0)
		s->block = NULL;
	return code;
}

static const struct {
	const char *name;
	int (*call)(struct scene *);
} calls[] = {
	{"nothing", call_nothing}, {"cudaMalloc", call_malloc}, {"cuMemAlloc", call_driver_malloc},
	{"cudaMalloc.zero", call_malloc_zero}, {"cudaMalloc.refused", call_malloc_refused}, {"cudaFree", call_free},
	{"cudaFree.null", call_free_null}, {"cudaFree.bad", call_free_bad}, {"cuMemFree.null", call_driver_free_null},
	{"cudaMallocHost", call_malloc_host}, {"cudaFreeHost", call_free_host},
	{"cudaFreeHost.null", call_free_host_null}, {"cudaHostRegister", call_register},
	{"cudaDeviceSynchronize", call_device_sync}, {"cuCtxSynchronize", call_context_sync},
	{"cudaMemGetInfo", call_query}, {"cudaPointerGetAttributes", call_attributes},
	{"cuMemGetAddressRange", call_address_range}, {"graph_attribute", call_graph_attribute},
	{"graph_trim", call_graph_trim}, {"pool_attribute", call_pool_attribute}, {"pool_trim", call_pool_trim},
	{"event_create", call_event_create}, {"event_record", call_event_record}, {"event_query", call_event_query},
	{"event_sync", call_event_sync}, {"stream_create", call_stream_create}, {"stream_query", call_stream_query},
	{"stream_sync", call_stream_sync}, {"legacy_stream", call_legacy}, {"vmm_cycle", call_vmm},
	{"async_captured", call_async_here}, {"async_elsewhere", call_async_elsewhere},
	{"async_free_old", call_async_free_old}, {"async_zero_elsewhere", call_async_zero},
	{"async_zero_captured", call_async_zero_here}, {"async_free_null_elsewhere", call_async_free_null},
	{"async_free_null_captured", call_async_free_null_here}, {"async_free_bad_elsewhere", call_async_free_bad},
	{"legacy_sync", call_legacy_sync}, {"cuMemAlloc.zero", call_driver_zero},
	{"cudaMallocManaged.zero", call_managed_zero}, {"cuMemAllocManaged.zero", call_driver_managed_zero},
};

/* cudaMallocAsync and the rest of the runtime bind the context on a fresh thread, as a program's would. */
static void make_call(void *arg)
{
	struct scene *s = arg;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	if (s->relaxed)
		cudaThreadExchangeStreamCaptureMode(&mode);
	s->code = s->call(s);
	if (s->relaxed)
		cudaThreadExchangeStreamCaptureMode(&mode);
	cudaGetLastError();
}

static void bind_then_call(void *arg)
{
	cudaSetDevice(0);
	make_call(arg);
}

static int prepare(struct scene *s, unsigned stream_flags)
{
	memset(s, 0, sizeof *s);
	s->heap = aligned_alloc(4096, 4096);
	memset(s->heap, 0, 4096);
	if (cudaStreamCreateWithFlags(&s->captured, stream_flags) != cudaSuccess ||
	    cudaStreamCreateWithFlags(&s->idle, cudaStreamNonBlocking) != cudaSuccess ||
	    cudaEventCreateWithFlags(&s->event, cudaEventDisableTiming) != cudaSuccess ||
	    cudaDeviceGetDefaultMemPool(&s->pool, 0) != cudaSuccess || cudaMalloc(&s->block, MIB) != cudaSuccess ||
	    cudaMallocHost(&s->pinned, MIB) != cudaSuccess || cudaEventRecord(s->event, s->idle) != cudaSuccess ||
	    cudaDeviceSynchronize() != cudaSuccess) {
		fact("prepare", "%d", (int)cudaGetLastError());
		return 0;
	}
	return 1;
}

static void observe(const char *prefix, unsigned stream_flags, enum cudaStreamCaptureMode mode, int other, int relaxed,
                    size_t which)
{
	struct scene s;
	cudaGraph_t graph = NULL;
	char key[128];
	int begin, end;

	if (!prepare(&s, stream_flags))
		return;
	s.relaxed = relaxed;
	s.call = calls[which].call;
	begin = (int)cudaStreamBeginCapture(s.captured, mode);
	if (begin == 0)
		begin = (int)cudaMemsetAsync(s.block, 1, 64, s.captured);
	if (other)
		on_thread(bind_then_call, &s);
	else
		make_call(&s);
	end = (int)cudaStreamEndCapture(s.captured, &graph);
	snprintf(key, sizeof key, "%s.%s", prefix, calls[which].name);
	fact(key, "%d,survives=%d,end=%d%s", s.code, end == 0 && graph != NULL, end, begin == 0 ? "" : ",no capture");
	if (graph != NULL)
		cudaGraphDestroy(graph);
	cudaGetLastError();
	cudaFree(s.block);
	cudaFreeHost(s.pinned);
	cudaHostUnregister(s.heap);
	cudaEventDestroy(s.event);
	cudaStreamDestroy(s.captured);
	cudaStreamDestroy(s.idle);
	cudaGetLastError();
	free(s.heap);
}

void section_capture(int arg)
{
	static const char *const modes[] = {"global", "thread_local", "relaxed"};
	static const enum cudaStreamCaptureMode values[] = {
		cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
	char prefix[64];
	(void)arg;

	for (int m = 0; m < 3; m++) {
		for (int other = 0; other < 2; other++) {
			for (int relaxed = 0; relaxed < 2; relaxed++) {
				snprintf(prefix, sizeof prefix, "%s.%s.%s", modes[m], other ? "other" : "same",
				         relaxed ? "exchange" : "plain");
				for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
					observe(prefix, cudaStreamNonBlocking, values[m], other, relaxed, c);
			}
		}
		/* Only a blocking stream is tied to the legacy one. */
		snprintf(prefix, sizeof prefix, "%s.blocking_stream", modes[m]);
		for (size_t c = 0; c < sizeof calls / sizeof calls[0]; c++)
			if (calls[c].call == call_legacy)
				observe(prefix, cudaStreamDefault, values[m], 0, 0, c);
	}
}

static unsigned long long graph_value(enum cudaGraphMemAttributeType attribute)
{
	cuuint64_t value = 0;
	cudaDeviceGetGraphMemAttribute(0, attribute, &value);
	return value;
}

void section_graph_memory(int arg)
{
	struct cudaPointerAttributes a;
	cudaStream_t stream = NULL;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	size_t nodes = 0;
	void *p = NULL;
	(void)arg;

	fact("stream", "%d", (int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	fact("begin", "%d", (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	FACT_THEN("cudaMallocAsync", cudaMallocAsync(&p, MIB, stream), "%s", p == NULL ? "null" : "set");
	fact("memset", "%d", (int)cudaMemsetAsync(p, 1, MIB, stream));
	FACT_THEN("type_in_capture", cudaPointerGetAttributes(&a, p), "%d", (int)a.type);
	fact("end", "%d", (int)cudaStreamEndCapture(stream, &graph));
	FACT_THEN("nodes", cudaGraphGetNodes(graph, NULL, &nodes), "%zu", nodes);
	fact("instantiate", "%d", (int)cudaGraphInstantiate(&exec, graph, 0));
	FACT_THEN("type_before_launch", cudaPointerGetAttributes(&a, p), "%d", (int)a.type);
	fact("reserved_before_launch", "%llu", graph_value(cudaGraphMemAttrReservedMemCurrent));
	fact("launch", "%d", (int)cudaGraphLaunch(exec, stream));
	fact("sync", "%d", (int)cudaStreamSynchronize(stream));
	FACT_THEN("type_after_launch", cudaPointerGetAttributes(&a, p), "%d", (int)a.type);
	fact("used", "%llu", graph_value(cudaGraphMemAttrUsedMemCurrent));
	fact("reserved", "%llu", graph_value(cudaGraphMemAttrReservedMemCurrent));
	fact_code("launch.again_unfreed", (int)cudaGraphLaunch(exec, stream));
	fact_code("cudaFreeAsync", (int)cudaFreeAsync(p, stream));
	fact("sync.2", "%d", (int)cudaStreamSynchronize(stream));
	fact("used_after_free", "%llu", graph_value(cudaGraphMemAttrUsedMemCurrent));
	fact_code("launch.again", (int)cudaGraphLaunch(exec, stream));
	fact("sync.3", "%d", (int)cudaStreamSynchronize(stream));
	fact_code("cudaFree", (int)cudaFree(p));
	fact("exec_destroy", "%d", (int)cudaGraphExecDestroy(exec));
	fact("graph_destroy", "%d", (int)cudaGraphDestroy(graph));
	fact("reserved_after_destroy", "%llu", graph_value(cudaGraphMemAttrReservedMemCurrent));
	fact("used_after_destroy", "%llu", graph_value(cudaGraphMemAttrUsedMemCurrent));
	fact("trim", "%d", (int)cudaDeviceGraphMemTrim(0));
	fact("used_after_trim", "%llu", graph_value(cudaGraphMemAttrUsedMemCurrent));
	fact("reserved_after_trim", "%llu", graph_value(cudaGraphMemAttrReservedMemCurrent));
}
