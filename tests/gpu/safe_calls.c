/*
 * Shows which driver calls may be made while a stream capture is active without killing it: every call of
 * safe_calls_table.c, in every capture mode, from the capturing thread and from another. Prints
 *     safe.MODE.THREAD.CALL=CODE,survives=0|1
 * per observation, summary.CALL=safe|unsafe|refused per call (refused: the capture lives, the call does
 * not succeed everywhere), and latency.CALL.ns=MEDIAN for the calls a shim would make often. Every line
 * but the latencies is the same in every run. Exit code 1 if the set-up failed.
 */
#define _GNU_SOURCE
#include "safe_calls.h"
#include "facts_kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct safe_driver drv;
struct safe_scene scene;

static int absent(void)
{
	return CODE_ABSENT;
}

#define EXPANDED(name) #name
#define SYMBOL_NAME(name) EXPANDED(name)

static void load_driver(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	if (lib == NULL) {
		printf("libcuda=none\n");
		exit(1);
	}
#define LOAD(name) \
	drv.p_##name = (__typeof__(&name))dlsym(lib, SYMBOL_NAME(name)); \
	if (drv.p_##name == NULL) { \
		printf("absent=%s\n", SYMBOL_NAME(name)); \
		drv.p_##name = (__typeof__(&name))(void *)&absent; \
	}
	SAFE_DRIVER(LOAD)
}

static void must(const char *what, int code)
{
	if (code == 0)
		return;
	printf("setup.%s=%d\n", what, code);
	exit(1);
}

/* One node of every kind: alloc, memset, copy, kernel, free. */
static int fill_capture(void)
{
	unsigned long long nanoseconds = 1000;
	void *params[] = {&nanoseconds};
	CUdeviceptr p = 0;
	int code = (int)drv.p_cuMemAllocAsync(&p, 4096, scene.captured);
	code = code != 0 ? code : (int)drv.p_cuMemsetD8Async(p, 1, 4096, scene.captured);
	code = code != 0 ? code : (int)drv.p_cuMemcpyDtoDAsync(scene.block, p, 4096, scene.captured);
	code = code != 0 ? code : (int)drv.p_cuLaunchKernel(scene.kernel, 1, 1, 1, 1, 1, 1, 0, scene.captured, params, NULL);
	return code != 0 ? code : (int)drv.p_cuMemFreeAsync(p, scene.captured);
}

static void set_up(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	CUgraph graph = NULL;
	size_t bytes = 2u << 20;

	must("cuInit", (int)drv.p_cuInit(0));
	must("retain", (int)drv.p_cuDevicePrimaryCtxRetain(&scene.context, 0));
	must("set", (int)drv.p_cuCtxSetCurrent(scene.context));
	must("stream", (int)drv.p_cuStreamCreate(&scene.captured, CU_STREAM_NON_BLOCKING));
	must("idle", (int)drv.p_cuStreamCreate(&scene.idle, CU_STREAM_NON_BLOCKING));
	must("event", (int)drv.p_cuEventCreate(&scene.event, CU_EVENT_DISABLE_TIMING));
	must("module", (int)drv.p_cuModuleLoadData(&scene.module, facts_ptx));
	must("function", (int)drv.p_cuModuleGetFunction(&scene.kernel, scene.module, "spin"));
	must("block", (int)drv.p_cuMemAlloc(&scene.block, 1 << 20));
	must("pinned", (int)drv.p_cuMemHostAlloc(&scene.pinned, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	must("pool", (int)drv.p_cuDeviceGetDefaultMemPool(&scene.pool, 0));
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	must("reserve", (int)drv.p_cuMemAddressReserve(&scene.mapped, bytes, 0, 0, 0));
	must("create", (int)drv.p_cuMemCreate(&handle, bytes, &prop, 0));
	must("map", (int)drv.p_cuMemMap(scene.mapped, bytes, 0, handle, 0));
	must("access", (int)drv.p_cuMemSetAccess(scene.mapped, bytes, &access, 1));
	must("begin", (int)drv.p_cuStreamBeginCapture(scene.captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
	must("fill", fill_capture());
	must("end", (int)drv.p_cuStreamEndCapture(scene.captured, &graph));
	must("nodes", find_nodes(graph, &scene.done));
	must("instantiate", (int)drv.p_cuGraphInstantiate(&scene.exec, graph, 0));
	/* Once before any capture, so that lazy set-up of the first launch is over. */
	must("launch", (int)drv.p_cuGraphLaunch(scene.exec, scene.idle));
	must("record", (int)drv.p_cuEventRecord(scene.event, scene.idle));
	must("sync", (int)drv.p_cuCtxSynchronize());
}

struct observation {
	const struct safe_call *call;
	int code;
};

static void *from_other_thread(void *arg)
{
	struct observation *o = arg;
	int code = (int)drv.p_cuCtxSetCurrent(scene.context);
	o->code = code != 0 ? code : o->call->make();
	return NULL;
}

/* Makes the call inside one fresh capture. Returns 1 if the capture survived. */
static int observe(const struct safe_call *call, CUstreamCaptureMode mode, int other, int *code)
{
	struct observation o = {call, -1};
	CUgraph graph = NULL;
	pthread_t thread;
	int end;

	must("begin", (int)drv.p_cuStreamBeginCapture(scene.captured, mode));
	must("fill", fill_capture());
	if (!other) {
		o.code = call->make();
	} else {
		must("thread", pthread_create(&thread, NULL, from_other_thread, &o));
		pthread_join(thread, NULL);
	}
	end = (int)drv.p_cuStreamEndCapture(scene.captured, &graph);
	if (graph != NULL)
		drv.p_cuGraphDestroy(graph);
	*code = o.code;
	/* Whatever the call put on the idle stream must be done before the next one is asked. */
	drv.p_cuCtxSynchronize();
	return end == 0 && graph != NULL;
}

static void observe_all(const struct safe_call *call)
{
	static const char *const modes[] = {"global", "thread_local", "relaxed"};
	static const CUstreamCaptureMode values[] = {
		CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED};
	int survived = 0, succeeded = 0, code;

	for (int m = 0; m < 3; m++) {
		for (int other = 0; other < 2; other++) {
			int lives = observe(call, values[m], other, &code);
			printf("safe.%s.%s.%s=%d,survives=%d\n", modes[m], other ? "other" : "same", call->name, code, lives);
			survived += lives;
			succeeded += code == 0;
		}
	}
	printf("summary.%s=%s\n", call->name, survived < 6 ? "unsafe" : succeeded < 6 ? "refused" : "safe");
	fflush(stdout);
}

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Median over 201 batches; a batch of 64 calls keeps the clock's own 20 ns out of the figure. */
static void measure(const char *name)
{
	double took[201];
	for (size_t c = 0; c < safe_call_count; c++) {
		if (strcmp(safe_calls[c].name, name) != 0)
			continue;
		for (int batch = 0; batch < 201; batch++) {
			double begin = now_ns();
			for (int i = 0; i < 64; i++)
				safe_calls[c].make();
			took[batch] = (now_ns() - begin) / 64;
		}
		qsort(took, 201, sizeof took[0], by_value);
		printf("latency.%s.ns=%.1f\n", name, took[100]);
		return;
	}
	printf("latency.%s.ns=no such call\n", name);
}

int main(void)
{
	static const char *const timed[] = {
		"nothing", "cuCtxGetCurrent", "cuCtxGetId", "cuStreamGetId.idle", "cuStreamIsCapturing.idle",
		"cuPointerGetAttribute.memory_type", "cuPointerGetAttribute.buffer_id", "cuPointerGetAttribute.unknown",
		"cuMemGetAddressRange", "cuMemGetInfo", "cuMemPoolGetAttribute", "cuDevicePrimaryCtxGetState",
		"cuFuncGetModule", "cuEventQuery", "done.cuGraphKernelNodeGetParams"};
	load_driver();
	set_up();
	for (size_t c = 0; c < safe_call_count; c++)
		observe_all(&safe_calls[c]);
	for (size_t t = 0; t < sizeof timed / sizeof timed[0]; t++)
		measure(timed[t]);
	printf("result=done\n");
	return 0;
}
