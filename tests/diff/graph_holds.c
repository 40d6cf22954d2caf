/* Graphs hold addresses of blocks that have been freed: by kernels, copies, memsets, in child graphs, in graphs made by hand. Others who
   ask for memory then, of the same size and at other places in the program, keep what they wrote; once the graph is gone too, everything may be had again.
   The replay itself writes into memory that nobody has: a neighbour keeps that there, so that it is no fault. */
#include "observe.h"

#define BYTES 40000
#define OTHERS 4

static cudaStream_t s;
static CUfunction slow_fill;

static void *others[OTHERS];

static int take_others(void)
{
	int code = (int)cudaMalloc(&others[0], BYTES);
	code |= (int)cudaMalloc(&others[1], BYTES);
	code |= (int)cuMemAlloc((CUdeviceptr *)&others[2], BYTES);
	code |= (int)cudaMalloc(&others[3], BYTES);
	for (int i = 0; i < OTHERS; i++)
		code |= (int)cudaMemset(others[i], 0x70 + i, BYTES);
	return code | (int)cudaDeviceSynchronize();
}

/* How many keep what they wrote. One that stands where the freed block stood may be written over natively: it does not count, either way. */
static int intact(const void *freed)
{
	static unsigned char host[BYTES];
	int kept = 0;
	for (int i = 0; i < OTHERS; i++) {
		uintptr_t apart = (uintptr_t)others[i] - (uintptr_t)freed;
		if (freed != NULL && (apart < BYTES || (uintptr_t)0 - apart < BYTES)) {
			kept++;
			continue;
		}
		int same = cudaMemcpy(host, others[i], BYTES, cudaMemcpyDeviceToHost) == cudaSuccess;
		for (int k = 0; same && k < BYTES; k++)
			same = host[k] == 0x70 + i;
		kept += same;
	}
	return kept;
}

static int free_others(void)
{
	int code = 0;
	for (int i = 0; i < OTHERS; i++)
		code |= (int)cudaFree(others[i]);
	return code;
}

static int work(int kind, void *p, const void *source)
{
	switch (kind) {
	case 0: return (int)cudaMemsetAsync(p, 0x11, BYTES, s);
	case 1: return obs_slow_fill(slow_fill, s, p, 0x12, BYTES, 1);
	case 2: return (int)cudaMemcpyAsync(p, source, BYTES, cudaMemcpyDeviceToDevice, s);
	default: return (int)cudaMemsetAsync((char *)p + BYTES / 2, 0x14, 64, s);
	}
}

/* A graph of the work on p; as a child of another one where asked. */
static int build(int kind, int child, void *p, const void *source, cudaGraph_t *graph)
{
	cudaGraph_t inner = NULL, outer = NULL;
	cudaGraphNode_t node;
	int code = (int)cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
	code |= work(kind, p, source);
	code |= (int)cudaStreamEndCapture(s, &inner);
	if (child) {
		code |= (int)cudaGraphCreate(&outer, 0);
		code |= (int)cudaGraphAddChildGraphNode(&node, outer, NULL, 0, inner);
		code |= (int)cudaGraphDestroy(inner);
		inner = outer;
	}
	*graph = inner;
	return code;
}

static void one(const char *name, int kind, int child)
{
	char key[64];
	void *p, *source, *beside;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	int code = (int)cudaMalloc(&p, BYTES) | (int)cudaMalloc(&source, BYTES) | (int)cudaMalloc(&beside, BYTES);
	code |= (int)cudaMemset(source, 0x13, BYTES) | (int)cudaDeviceSynchronize();
	code |= build(kind, child, p, source, &graph);
	code |= (int)cudaGraphInstantiateWithFlags(&exec, graph, 0);
	code |= (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s);
	snprintf(key, sizeof key, "%s.made", name);
	obs_last(key, code);
	snprintf(key, sizeof key, "%s.free", name);
	obs_last(key, cudaFree(p));
	snprintf(key, sizeof key, "%s.others", name);
	obs_last(key, take_others());
	for (int i = 0; i < 3; i++)
		code |= (int)cudaGraphLaunch(exec, s);
	code |= (int)cudaStreamSynchronize(s);
	snprintf(key, sizeof key, "%s.replayed", name);
	obs(key, "%d,intact=%d", code, intact(p));
	code = free_others();
	code |= (int)cudaGraphExecDestroy(exec) | (int)cudaGraphDestroy(graph);
	code |= take_others();
	snprintf(key, sizeof key, "%s.gone", name);
	obs(key, "%d,intact=%d", code, intact(NULL));
	code = free_others() | (int)cudaFree(source) | (int)cudaFree(beside);
	snprintf(key, sizeof key, "%s.end", name);
	obs_last(key, code);
}

/* Freed while it is being captured: the graph that nobody has seen yet already holds it. */
static void in_between(void)
{
	void *p, *beside;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	int code = (int)cudaMalloc(&p, BYTES) | (int)cudaMalloc(&beside, BYTES) | (int)cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed);
	code |= (int)cudaMemsetAsync(p, 0x15, BYTES, s) | (int)cudaFree(p);
	obs_last("between.free", code);
	code = (int)cudaMalloc(&others[0], BYTES) | (int)cudaMalloc(&others[1], BYTES);
	code |= (int)cudaStreamEndCapture(s, &graph);
	code |= (int)cudaFree(others[0]) | (int)cudaFree(others[1]);
	obs_last("between.end", code);
	obs_last("between.others", take_others());
	code = (int)cudaGraphInstantiateWithFlags(&exec, graph, 0) | (int)cudaGraphLaunch(exec, s) | (int)cudaStreamSynchronize(s);
	obs("between.replayed", "%d,intact=%d", code, intact(p));
	code = (int)cudaGraphExecDestroy(exec) | (int)cudaGraphDestroy(graph) | free_others() | (int)cudaFree(beside);
	obs_last("between.gone", code);
}

int main(void)
{
	obs_last("init", (int)cudaFree(NULL) | (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	slow_fill = obs_kernel("fake_slow_fill");
	one("memset", 0, 0);
	one("kernel", 1, 0);
	one("copy", 2, 0);
	one("inside", 3, 0);
	one("child.memset", 0, 1);
	one("child.kernel", 1, 1);
	in_between();
	obs_last("sync", cudaDeviceSynchronize());
	return 0;
}
