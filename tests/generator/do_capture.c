/*
 * A capture from begin to end with random calls inside, legal ones and such as end it; then its graph is launched a
 * few times, and may stay for later launches. With several threads a capture is never Global, never holds a call that
 * ends the captures of others, and is of a stream that the legacy stream does not wait for.
 */
#include <string.h>

#include "tests/generator/generator.h"

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

static size_t reach(const struct block *b) { return b->bytes < REACH ? b->bytes : REACH; }

void graph_drop(struct lane *l, struct graph *g)
{
	if (g->exec != NULL)
		observe(l, "exec_destroy", (int)cudaGraphExecDestroy(g->exec));
	memset(g, 0, sizeof *g);
}

static bool graph_valid(struct lane *l, const struct graph *g)
{
	for (int i = 0; i < g->block_count; i++)
		if (l->at->blocks[g->blocks[i]].generation != g->generations[i])
			return false;
	return true;
}

static bool block_of_device(const struct block *b)
{
	return block_linear(b) && b->kind != KIND_PINNED && b->kind != KIND_REGISTERED;
}

static struct block *graph_block(struct lane *l, struct graph *g, int place)
{
	struct block *b = block_find(l, place, block_of_device);
	if (b == NULL)
		return NULL;
	block_wait(l, b);
	g->blocks[g->block_count] = (int)(b - l->at->blocks);
	g->generations[g->block_count++] = b->generation;
	return b;
}

/* Work that becomes nodes. The blocks were waited for before the capture began. */
static void capture_work(struct lane *l, struct op *op, struct graph *g, cudaStream_t s, int stream)
{
	if (g->block_count == 0)
		return;
	struct block *b = &l->at->blocks[g->blocks[pick(&op->random, (uint32_t)g->block_count)]];
	struct block *c = &l->at->blocks[g->blocks[pick(&op->random, (uint32_t)g->block_count)]];
	unsigned char value = (unsigned char)draw(&op->random);
	size_t both = reach(b) < reach(c) ? reach(b) : reach(c);
	switch (pick(&op->random, 5)) {
	case 0: observe(l, "memset", (int)cudaMemsetAsync(b->p, value, reach(b), s)); break;
	case 1: observe(l, "memsetD8", (int)op->cu->p_cuMemsetD8Async(address(b->p), value, reach(b), (CUstream)s)); break;
	case 2:
		if (b != c)
			observe(l, "memcpy", (int)cudaMemcpyAsync(b->p, c->p, both, cudaMemcpyDeviceToDevice, s));
		break;
	case 3:
		if (l->at->module != NULL)
			observe(l, "kernel", (int)kernel_fill(l, op, b->p, value, reach(b), stream));
		break;
	default:
		if (l->at->module != NULL && b != c)
			observe(l, "kernel_copy", (int)kernel_copy(l, op, b->p, c->p, both, stream));
	}
}

/* Memory nodes: allocated and freed inside. */
static void capture_memory(struct lane *l, struct op *op, cudaStream_t s)
{
	void *p = (void *)KEPT;
	size_t bytes = 256 * (size_t)(1 + pick(&op->random, 64));
	int code = pick(&op->random, 2) ? (int)cudaMallocAsync(&p, bytes, s)
	                                : (int)op->cu->p_cuMemAllocAsync((CUdeviceptr *)&p, bytes, (CUstream)s);
	observe(l, "node", code);
	observe_output(l, "p", p);
	if (code != 0)
		return;
	struct cudaPointerAttributes a;
	observe(l, "attributes", (int)cudaPointerGetAttributes(&a, p));
	observe(l, "type", a.type);
	observe(l, "memset", (int)cudaMemsetAsync(p, 1, bytes, s));
	observe(l, "free_node", pick(&op->random, 2) ? (int)cudaFreeAsync(p, s)
	                                             : (int)op->cu->p_cuMemFreeAsync(address(p), (CUstream)s));
}

/* Calls that are safe in every mode. */
static void capture_safe(struct lane *l, struct op *op, const struct block *b)
{
	size_t free_bytes, total;
	struct cudaPointerAttributes a;
	CUdeviceptr base = 0;
	cudaEvent_t e;
	cudaStream_t t;
	void *p = (void *)KEPT;
	switch (pick(&op->random, 7)) {
	case 0: observe(l, "MemGetInfo", (int)cudaMemGetInfo(&free_bytes, &total)); break;
	case 1:
		observe(l, "attributes", (int)cudaPointerGetAttributes(&a, b->p));
		observe(l, "type", a.type);
		break;
	case 2:
		observe(l, "range", (int)op->cu->p_cuMemGetAddressRange(&base, &total, address(b->p)));
		break;
	case 3:
		observe(l, "event", (int)cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
		observe(l, "destroy", (int)cudaEventDestroy(e));
		break;
	case 4:
		observe(l, "stream", (int)cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
		observe(l, "destroy", (int)cudaStreamDestroy(t));
		break;
	case 5:
		observe(l, "malloc0", (int)cudaMalloc(&p, 0));
		observe_output(l, "p", p);
		break;
	default: {
		enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
		observe(l, "exchange", (int)cudaThreadExchangeStreamCaptureMode(&mode));
		observe(l, "was", mode);
		int code = (int)cudaMalloc(&p, 4096);
		observe(l, "malloc", code);
		observe_output(l, "p", p);
		if (code == 0)
			observe(l, "free", (int)op->cu->p_cuMemFree(address(p)));
		observe(l, "exchange", (int)cudaThreadExchangeStreamCaptureMode(&mode));
		observe(l, "was", mode);
	}
	}
}

/* A call that may be refused and end the capture. Blocks that it does allocate are freed, those it does free are gone. */
static void capture_unsafe(struct lane *l, struct op *op, struct block *b, cudaStream_t s, int stream)
{
	void *p = (void *)KEPT;
	int code;
	uint32_t what = pick(&op->random, 14);
	observe(l, "unsafe", what);
	switch (what) {
	case 0: case 1:
		code = what == 0 ? (int)cudaMalloc(&p, 4096) : (int)op->cu->p_cuMemAlloc((CUdeviceptr *)&p, 4096);
		observe(l, "code", code);
		observe_output(l, "p", p);
		if (code == 0)
			observe(l, "free", (int)cudaFree(p));
		break;
	case 2:
		code = (int)cudaMallocHost(&p, 4096);
		observe(l, "code", code);
		observe_output(l, "p", p);
		if (code == 0)
			observe(l, "free", (int)cudaFreeHost(p));
		break;
	case 3: case 4:
		if (b->kind != KIND_DEVICE && b->kind != KIND_PITCH && b->kind != KIND_MANAGED)
			break;
		code = what == 3 ? (int)cudaFree(b->p) : (int)op->cu->p_cuMemFree(address(b->p));
		observe(l, "code", code);
		if (code == 0)
			block_gone(l, b);
		break;
	case 5: observe(l, "code", (int)cudaFree(NULL)); break;
	case 6: observe(l, "code", (int)cudaFreeHost(NULL)); break;
	case 7: /* the only one that a Relaxed mode does not allow either */
		if (program.threads == 1)
			observe(l, "code", pick(&op->random, 2) ? (int)cudaDeviceSynchronize() : (int)op->cu->p_cuCtxSynchronize());
		break;
	case 8: observe(l, "code", (int)cudaStreamQuery(s)); break;
	case 9: observe(l, "code", (int)cudaStreamSynchronize(s)); break;
	case 10:
		if (l->at->events[0] != NULL && l->at->event_stream[0] >= 0) {
			code = (int)cudaEventQuery(l->at->events[0]); /* all work was waited for before the capture */
			observe(l, "code", code);
		}
		break;
	case 11: /* the legacy stream */
		if (program.threads == 1 && (b->kind == KIND_DEVICE || b->kind == KIND_PITCH)) {
			b->defined = 0;
			b->busy = 0;
			observe(l, "code", (int)cudaMemsetAsync(b->p, 3, reach(b), NULL));
		}
		break;
	case 12: /* a block from before the capture is not the graph's to free */
		if (b->kind == KIND_ASYNC || b->kind == KIND_POOL)
			observe(l, "code", (int)cudaFreeAsync(b->p, s));
		break;
	default: {
		uint64_t used = 0;
		if (l->at->pools[0] != NULL)
			observe(l, "code", (int)cudaMemPoolGetAttribute(l->at->pools[0], cudaMemPoolAttrUsedMemCurrent, &used));
	}
	}
	(void)stream;
}

/* A second stream joins the capture and comes back; where it does not, the capture is ended here, and true returned.
   Mostly the stream outlives the capture, in *later. */
static bool capture_fork(struct lane *l, struct op *op, struct graph *g, cudaStream_t s, cudaStream_t *later)
{
	cudaStream_t t;
	cudaEvent_t e;
	bool comes_back = !chance(&op->random, 6);
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	cudaGraph_t graph = NULL;
	if (*later != NULL)
		return false;
	int code = (int)cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
	code = code != 0 ? code : (int)cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
	observe(l, "fork", code);
	if (code != 0)
		return false;
	*later = t;
	observe(l, "record", (int)cudaEventRecord(e, s));
	observe(l, "behind", (int)cudaStreamWaitEvent(t, e, 0));
	observe(l, "asked", (int)cudaStreamIsCapturing(t, &status));
	observe(l, "status", status);
	if (status == cudaStreamCaptureStatusActive) {
		if (g->block_count > 0) {
			struct block *b = &l->at->blocks[g->blocks[0]];
			observe(l, "memset", (int)cudaMemsetAsync(b->p, 9, reach(b), t));
		}
		if (comes_back) {
			observe(l, "record", (int)cudaEventRecord(e, t));
			observe(l, "behind", (int)cudaStreamWaitEvent(s, e, 0));
		} else {
			observe(l, "unjoined", (int)cudaStreamEndCapture(s, &graph));
			observe(l, "graph", graph != NULL);
		}
	}
	observe(l, "destroy", (int)cudaEventDestroy(e));
	if (chance(&op->random, 4)) {
		observe(l, "destroy", (int)cudaStreamDestroy(t));
		*later = NULL;
	}
	return status == cudaStreamCaptureStatusActive && !comes_back;
}

/* Every block of a graph is written whole before the capture and before each launch, so that all that its nodes can
   read is known. */
static void define(struct lane *l, struct block *b)
{
	if (b->defined < reach(b)) {
		block_wait(l, b);
		observe(l, "define", (int)cudaMemset(b->p, 5, reach(b)));
		b->busy = 0;
		b->defined = reach(b);
		block_wait(l, b);
	}
}

static void launch(struct lane *l, struct op *op, struct graph *g)
{
	int stream = op->stream;
	cudaStream_t s = stream_of(l, stream);
	for (int i = 0; i < g->block_count; i++)
		define(l, &l->at->blocks[g->blocks[i]]);
	for (int i = 0; i < g->block_count; i++)
		block_order(l, &l->at->blocks[g->blocks[i]], stream);
	int code = (int)cudaGraphLaunch(g->exec, s);
	observe(l, "launch", code);
	/* What the nodes left is compared at once: a block of which the graph wrote a part stays as defined as it was. */
	observe(l, "wait", (int)cudaStreamSynchronize(s));
	stream_idle(l, stream < CREATED || l->at->stream_made[stream] ? stream : 0);
	for (int i = 0; i < g->block_count; i++) {
		struct block *b = &l->at->blocks[g->blocks[i]];
		b->busy = -1;
		size_t bytes = b->defined < REACH ? b->defined : REACH;
		if (bytes == 0)
			continue;
		observe(l, "read", (int)cudaMemcpy(l->scratch, b->p, bytes, cudaMemcpyDefault));
		observe_bytes(l, "bytes", l->scratch, bytes);
	}
}

static int choose_stream(struct lane *l, const struct op *op)
{
	for (int i = 0; i < STREAMS; i++) {
		int s = (op->stream + i) % STREAMS;
		if (s >= CREATED ? l->at->stream_made[s] && (program.threads == 1 || !l->at->blocking[s]) : s == 1 && program.threads == 1)
			return s;
	}
	return -1;
}

void do_capture(struct lane *l, struct op *op)
{
	static const enum cudaStreamCaptureMode modes[] = {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed, cudaStreamCaptureModeGlobal};
	struct graph g = {0}, *slot = &l->at->graphs[pick(&op->random, GRAPHS)];
	enum cudaStreamCaptureMode mode = modes[pick(&op->random, program.threads > 1 ? 2 : 3)];
	cudaStream_t later = NULL;
	bool ended = false;
	int stream = choose_stream(l, op), steps = 1 + (int)pick(&op->random, 6);
	if (stream < 0 || !round_captures(op->index))
		return;
	if (!kernels_load(l, op))
		observe(l, "no_kernels", 1);
	struct block *b = graph_block(l, &g, op->block);
	if (graph_block(l, &g, op->other) == b && b != NULL)
		g.block_count = 1;
	for (int i = 0; i < g.block_count; i++)
		define(l, &l->at->blocks[g.blocks[i]]);
	/* Whatever still works for this thread would be waited for by a call that is not allowed inside. */
	streams_wait(l);
	cudaStream_t s = stream_of(l, stream);
	observe(l, "begin", (int)cudaStreamBeginCapture(s, mode));
	for (int i = 0; i < steps && !ended; i++) {
		uint32_t what = pick(&op->random, 10);
		enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
		if (what < 5)
			capture_work(l, op, &g, s, stream);
		else if (what == 5)
			capture_memory(l, op, s);
		else if (what == 6)
			ended = capture_fork(l, op, &g, s, &later);
		else if (what < 9 && b != NULL)
			capture_safe(l, op, b);
		else if (b != NULL && b->kind != KIND_NONE)
			capture_unsafe(l, op, b, s, stream);
		observe(l, "asked", (int)cudaStreamIsCapturing(s, &status));
		observe(l, "status", status);
	}
	cudaGraph_t graph = (cudaGraph_t)KEPT;
	int code = (int)cudaStreamEndCapture(s, &graph);
	observe(l, "end", code);
	observe_output(l, "graph", graph);
	if (later != NULL)
		observe(l, "destroy", (int)cudaStreamDestroy(later));
	if (code != 0 || graph == NULL)
		return;
	if (!graph_valid(l, &g)) {
		/* A block of its nodes was freed inside: what instantiating does then is not defined. */
		observe(l, "destroy", (int)cudaGraphDestroy(graph));
		return;
	}
	size_t nodes = 0;
	observe(l, "nodes", (int)cudaGraphGetNodes(graph, NULL, &nodes));
	observe(l, "count", (int64_t)nodes);
	code = pick(&op->random, 2) ? (int)cudaGraphInstantiate(&g.exec, graph, 0) : (int)cudaGraphInstantiateWithFlags(&g.exec, graph, 0);
	observe(l, "instantiate", code);
	observe(l, "destroy", (int)cudaGraphDestroy(graph));
	if (code != 0)
		return;
	for (uint32_t i = pick(&op->random, 3); i > 0 && graph_valid(l, &g); i--)
		launch(l, op, &g);
	if (chance(&op->random, 2)) {
		graph_drop(l, slot);
		*slot = g;
	} else {
		graph_drop(l, &g);
	}
}

void do_launch(struct lane *l, struct op *op)
{
	struct graph *g = &l->at->graphs[pick(&op->random, GRAPHS)];
	for (int i = 0; i < GRAPHS && g->exec == NULL; i++)
		g = &l->at->graphs[i];
	if (g->exec == NULL)
		return;
	if (graph_valid(l, g))
		launch(l, op, g);
	else
		graph_drop(l, g);
}
