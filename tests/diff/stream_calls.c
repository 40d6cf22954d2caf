/* The driver's stream calls around memory: value writes and waits, capture state and dependencies, priorities, callbacks,
   attachments, events with flags; built twice, for the legacy and the per-thread default stream. */
#include "observe.h"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define DEFAULT_MAY_BE_CAPTURED 1
#else
#define DEFAULT_MAY_BE_CAPTURED 0
#endif

static int called;
static void CUDA_CB on_done(CUstream s, CUresult status, void *arg)
{
	(void)s;
	called += status == CUDA_SUCCESS && arg == &called;
}
static void CUDA_CB on_host(void *arg) { called += arg == &called ? 10 : 0; }

static void state(const char *key, CUstream s)
{
	CUstreamCaptureStatus plain = (CUstreamCaptureStatus)77, status = (CUstreamCaptureStatus)77;
	cuuint64_t id = 0;
	CUgraph graph = NULL;
	const CUgraphNode *nodes = NULL;
	size_t count = 77;
	int a = (int)cuStreamIsCapturing(s, &plain);
	int b = (int)cuStreamGetCaptureInfo(s, &status, &id, &graph, &nodes, NULL, &count);
	obs(key, "%d,%d,%d,%d,id=%d,graph=%d,count=%zu", a, (int)plain, b, (int)status, id != 0, graph != NULL,
	    status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? count : 0);
}

static void values(CUstream s)
{
	CUdeviceptr word;
	unsigned got = 0;
	unsigned long long wide = 0;
	CUstreamBatchMemOpParams ops[2];
	obs_code("alloc", cuMemAlloc(&word, 64));
	obs_code("memset", (int)cuMemsetD8(word, 0, 64) | (int)cuCtxSynchronize());
	obs_code("write32", cuStreamWriteValue32(s, word, 7, 0));
	obs_code("wait32", cuStreamWaitValue32(s, word, 7, CU_STREAM_WAIT_VALUE_EQ));
	obs_code("write64", cuStreamWriteValue64(s, word + 8, 0x100000007ull, 0));
	obs_code("wait64", cuStreamWaitValue64(s, word + 8, 7, CU_STREAM_WAIT_VALUE_GEQ));
	memset(ops, 0, sizeof ops);
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = word + 16;
	ops[0].writeValue.value = 9;
	ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = word + 16;
	ops[1].waitValue.value = 9;
	obs_code("batch", cuStreamBatchMemOp(s, 2, ops, 0));
	obs_code("sync", cuStreamSynchronize(s));
	obs_code("read", (int)cuMemcpyDtoH(&got, word, 4) | (int)cuMemcpyDtoH(&wide, word + 8, 8));
	obs("values", "%u,%llx", got, wide);
	obs_code("read.batch", cuMemcpyDtoH(&got, word + 16, 4));
	obs("value.batch", "%u", got);
	obs_code("write.unaligned", cuStreamWriteValue32(s, word + 1, 7, 0));
	obs_code("free", cuMemFree(word));
}

int main(void)
{
	CUstream s, high;
	CUevent e;
	CUgraph graph = NULL;
	CUdeviceptr p, managed;
	int low = 0, up = 0, priority = 99;
	unsigned flags = 99;
	obs_code("init", cudaFree(NULL));
	obs_code("range", cuCtxGetStreamPriorityRange(&low, &up));
	obs_code("create", (int)cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) | (int)cuStreamCreateWithPriority(&high, CU_STREAM_NON_BLOCKING, up) |
	                       (int)cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	int code = (int)cuStreamGetPriority(high, &priority);
	obs("priority", "%d,%d", code, priority == up);
	code = (int)cuStreamGetFlags(high, &flags);
	obs("flags", "%d,%u", code, flags);
	values(s);
	state("idle", s);
	state("idle.default", NULL);
	obs_code("begin", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	state("begun", s);
	obs_code("alloc", cuMemAllocAsync(&p, 4096, s));
	obs_code("memset", cuMemsetD8Async(p, 1, 4096, s));
	state("filled", s);
	/* Another stream joins by an event, and comes back. */
	obs_code("record", cuEventRecordWithFlags(e, s, CU_EVENT_RECORD_DEFAULT));
	obs_code("join", cuStreamWaitEvent(high, e, 0));
	state("joined", high);
	obs_code("joined.free", cuMemFreeAsync(p, high));
	obs_code("joined.record", cuEventRecord(e, high));
	obs_code("join.back", cuStreamWaitEvent(s, e, 0));
	obs_code("drop", cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	state("dropped", s);
	obs_code("end.unjoined", cuStreamEndCapture(s, &graph));
	state("ended", s);
	obs_code("begin.2", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	obs_code("end.other", cuStreamEndCapture(high, &graph));
	obs_code("begin.again", cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
	obs_code("callback.captured", cuStreamAddCallback(s, on_done, &called, 0));
	state("callback.killed", s);
	obs_code("end.2", cuStreamEndCapture(s, &graph));
	obs_code("graph.create", cuGraphCreate(&graph, 0));
	obs_code("to_graph", cuStreamBeginCaptureToGraph(s, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
	obs_code("to_graph.host", cuLaunchHostFunc(s, on_host, &called));
	CUgraph same = NULL;
	obs_code("to_graph.end", cuStreamEndCapture(s, &same));
	obs_code("to_graph.same", same == graph);
	CUgraphExec exec = NULL;
	CUDA_GRAPH_INSTANTIATE_PARAMS params;
	memset(&params, 0, sizeof params);
	obs_code("instantiate", cuGraphInstantiateWithParams(&exec, graph, &params));
	obs_code("instantiate.result", (int)params.result_out);
	obs_code("upload", cuGraphUpload(exec, s));
	obs_code("launch", (int)cuGraphLaunch(exec, s) | (int)cuGraphLaunch(exec, NULL) | (int)cuCtxSynchronize());
	obs_code("called.graph", called);
	obs_code("destroy.graph", (int)cuGraphExecDestroy(exec) | (int)cuGraphDestroy(graph));

	obs_code("default.begin", cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
	state("default.begun", NULL);
	graph = NULL;
	code = (int)cuStreamEndCapture(NULL, &graph);
	obs("default.end", "%d,%d", code == 0, (graph != NULL) == DEFAULT_MAY_BE_CAPTURED);

	called = 0;
	obs_code("callback", (int)cuStreamAddCallback(s, on_done, &called, 0) | (int)cuStreamAddCallback(NULL, on_done, &called, 0));
	obs_code("host", (int)cuLaunchHostFunc(s, on_host, &called) | (int)cuLaunchHostFunc(NULL, on_host, &called));
	obs_code("sync", (int)cuStreamSynchronize(s) | (int)cuStreamSynchronize(NULL));
	obs_code("called", called);
	obs_code("managed", cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_HOST));
	obs_code("attach", cuStreamAttachMemAsync(s, managed, 0, CU_MEM_ATTACH_SINGLE));
	CUmemLocation here;
	memset(&here, 0, sizeof here);
	here.type = CU_MEM_LOCATION_TYPE_DEVICE;
	obs_code("prefetch", cuMemPrefetchAsync(managed, 4096, here, 0, s));
	obs_code("advise", cuMemAdvise(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here));
	obs_code("query", ((void)cuStreamSynchronize(s), cuStreamQuery(s)));
	obs_code("query.default", ((void)cuStreamSynchronize(NULL), cuStreamQuery(NULL)));
	obs_code("event", (int)cuEventRecord(e, NULL) | (int)cuEventSynchronize(e) | (int)cuEventQuery(e));
	obs_code("end", (int)cuMemFree(managed) | (int)cuEventDestroy(e) | (int)cuStreamDestroy(s) | (int)cuStreamDestroy(high));
	obs_last("runtime", cudaSuccess);
	return 0;
}
