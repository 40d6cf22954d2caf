/*
 * An engine in small, for the report: three threads load weights at once, each with a module of its own, then scratch and a pool, a graph
 * with memory nodes, a larger stack and heap, managed memory, streams; a model is unloaded and another one loaded. It knows nothing of Tenure
 * but the marks of tenure.h. Driver API throughout; the kernels are PTX, so no nvcc is needed. `engine quiet` loads by one thread after the
 * other. Prints what it did; exit 1 on any CUDA error.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/tenure.h"
#include "tests/gpu/explain/engine_kernels.h"

#define MIB (1024ull * 1024ull)
#define LOADERS 3
#define LAYERS 24

static void check(CUresult r, const char *what, int line)
{
	if (r == 0)
		return;
	fprintf(stderr, "engine: line %d: %s = %d\n", line, what, (int)r);
	exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

static CUcontext context;
static CUdevice device;
static int one_by_one;

typedef struct model {
	CUdeviceptr weight[LOADERS][LAYERS], scale[LOADERS][LAYERS];
	CUmodule module[LOADERS];
} model;

typedef struct loader {
	model *into;
	int number;
} loader;

/* Sizes that differ by thread and layer; every layer has a small block beside the large one, as scales and biases are. */
static void *load(void *arg)
{
	const loader *l = arg;
	model *m = l->into;
	CUstream stream;
	CUfunction f;
	void *host;
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemHostAlloc(&host, 8 * MIB, 0));
	CHECK(cuModuleLoadData(&m->module[l->number], engine_ptx));
	CHECK(cuModuleGetFunction(&f, m->module[l->number], "poke"));
	for (int i = 0; i < LAYERS; i++) {
		size_t bytes = (size_t)(3 + 5 * l->number + i) * MIB + (size_t)i * 4096;
		CHECK(cuMemAlloc(&m->weight[l->number][i], bytes));
		CHECK(cuMemAlloc(&m->scale[l->number][i], 3000 + (size_t)i * 7000));
		CHECK(cuMemcpyHtoDAsync(m->weight[l->number][i], host, 3 * MIB, stream));
		void *args[] = {&m->scale[l->number][i]};
		CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
	}
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemFreeHost(host));
	CHECK(cuStreamDestroy(stream));
	return NULL;
}

static void load_model(model *m)
{
	pthread_t thread[LOADERS];
	loader l[LOADERS];
	for (int i = 0; i < LOADERS; i++) {
		l[i] = (loader){m, i};
		if (pthread_create(&thread[i], NULL, load, &l[i]) != 0)
			exit(1);
		if (one_by_one)
			pthread_join(thread[i], NULL);
	}
	for (int i = 0; i < LOADERS && !one_by_one; i++)
		pthread_join(thread[i], NULL);
}

static void unload_model(model *m)
{
	for (int t = 0; t < LOADERS; t++) {
		for (int i = 0; i < LAYERS; i++) {
			CHECK(cuMemFree(m->weight[t][i]));
			CHECK(cuMemFree(m->scale[t][i]));
		}
		CHECK(cuModuleUnload(m->module[t]));
	}
}

/* A graph that allocates, writes and frees inside, launched a few times. */
static void graph_with_memory(CUfunction poke, CUstream stream)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode alloc, kernel, release;
	CUDA_MEM_ALLOC_NODE_PARAMS a = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
						      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
					.bytesize = 40 * MIB};
	CHECK(cuGraphCreate(&graph, 0));
	CHECK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &a));
	void *args[] = {&a.dptr};
	CUDA_KERNEL_NODE_PARAMS k = {.func = poke, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1, .kernelParams = args};
	CHECK(cuGraphAddKernelNode(&kernel, graph, &alloc, 1, &k));
	CHECK(cuGraphAddMemFreeNode(&release, graph, &kernel, 1, a.dptr));
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphUpload(exec, stream));
	for (int i = 0; i < 5; i++)
		CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	tenure_mark("graph launched");
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	tenure_mark("graph destroyed");
}

static void pool_work(CUstream stream)
{
	CUdeviceptr p[8];
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 8; i++)
			CHECK(cuMemAllocAsync(&p[i], (size_t)(1 + i) * 5 * MIB + 300, stream));
		if (round == 1)
			tenure_mark("pool in use");
		for (int i = 0; i < 8; i++)
			CHECK(cuMemFreeAsync(p[i], stream));
		CHECK(cuStreamSynchronize(stream));
	}
}

static void managed(CUfunction poke, CUstream stream)
{
	CUdeviceptr p;
	CHECK(cuMemAllocManaged(&p, 64 * MIB, CU_MEM_ATTACH_GLOBAL));
	CHECK(cuMemsetD8(p, 1, 64 * MIB));
	void *args[] = {&p};
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL));
	CHECK(cuStreamSynchronize(stream));
	tenure_mark("managed touched");
	CHECK(cuMemFree(p));
	tenure_mark("managed freed");
}

int main(int argc, char **argv)
{
	static model first, second;
	CUmodule module;
	CUfunction poke, deep;
	CUstream stream[40];
	CUdeviceptr word;
	one_by_one = argc > 1 && strcmp(argv[1], "quiet") == 0;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	tenure_mark("context");
	load_model(&first);
	tenure_mark("model loaded");
	CHECK(cuModuleLoadData(&module, engine_ptx));
	CHECK(cuModuleGetFunction(&poke, module, "poke"));
	CHECK(cuModuleGetFunction(&deep, module, "deep"));
	CHECK(cuMemAlloc(&word, 4096));
	for (int i = 0; i < 40; i++)
		CHECK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	tenure_mark("streams");
	void *args[] = {&word};
	CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 3072));
	CHECK(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * MIB));
	CHECK(cuLaunchKernel(deep, 1, 1, 1, 32, 1, 1, 0, stream[0], args, NULL));
	CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, stream[0], args, NULL));
	CHECK(cuStreamSynchronize(stream[0]));
	tenure_mark("limits raised");
	pool_work(stream[1]);
	graph_with_memory(poke, stream[2]);
	managed(poke, stream[3]);
	unload_model(&first);
	tenure_mark("model unloaded");
	load_model(&second);
	tenure_mark("second model loaded");
	tenure_phase(TENURE_SERVING);
	for (int i = 0; i < 50; i++) {
		CUdeviceptr scratch;
		CHECK(cuMemAlloc(&scratch, (size_t)(1 + i % 7) * MIB + 5));
		CHECK(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, stream[i % 40], args, NULL));
		CHECK(cuStreamSynchronize(stream[i % 40]));
		CHECK(cuMemFree(scratch));
	}
	tenure_mark("served");
	printf("engine: done\n");
	return 0;
}
