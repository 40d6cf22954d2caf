/* A function is of one context, a kernel of a library of none: when a library's code takes memory, which handles are taken for which, and
   launches into the default streams of two contexts. `kernel_contexts casts` asks what is near that: casts, nodes, attributes, the runtime. */
#include "observe.h"

#define REGION ((size_t)256)
#define REGIONS 64

/* A context with a block whose regions are filled one by launch. */
struct place {
	CUcontext context;
	CUdeviceptr block;
	CUfunction fill, slow_fill;
	unsigned char expected[REGIONS];
	int next; /* the first region that is not filled yet */
};

static const CUctxCreateParams none;
static CUlibrary library;
static CUkernel fill, slow_fill;

static void create(CUcontext *c)
{
	CUctxCreateParams params = none;
	int code = (int)cuCtxCreate(c, &params, 0, 0);
	if (code != 0) {
		obs("create", "%d", code);
		exit(97);
	}
}

/* The kernels of observe.h, and a variable: where the code is loaded the device's free memory becomes less by as much at least. */
static void load(void)
{
	static const char variable[] = ".visible .global .align 16 .b8 large[67108864];\n";
	static char text[sizeof obs_ptx + sizeof variable];
	const char *kernels = strstr(obs_ptx, ".visible .entry");
	snprintf(text, sizeof text, "%.*s%s%s", (int)(kernels - obs_ptx), obs_ptx, variable, kernels);
	obs_code("library", cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	obs_code("kernel", (int)cuLibraryGetKernel(&fill, library, "fake_fill") | (int)cuLibraryGetKernel(&slow_fill, library, "fake_slow_fill"));
}

static int launch_fill(CUfunction f, CUstream stream, CUdeviceptr to, unsigned char value)
{
	size_t bytes = REGION;
	void *params[] = {&to, &value, &bytes};
	return (int)cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static int fill_next(struct place *p, CUfunction f, CUstream stream, int value)
{
	p->expected[p->next] = (unsigned char)value;
	return launch_fill(f, stream, p->block + REGION * (size_t)p->next++, (unsigned char)value);
}

/* In its context: whether every region holds what it should. Waits for all that was launched there. */
static int as_expected(const struct place *p)
{
	static _Thread_local unsigned char got[REGION * REGIONS];
	int same = cuCtxSynchronize() == CUDA_SUCCESS && cuMemcpyDtoH(got, p->block, sizeof got) == CUDA_SUCCESS;
	for (size_t i = 0; i < sizeof got; i++)
		same &= got[i] == p->expected[i / REGION];
	return same;
}

static int start_over(struct place *p)
{
	memset(p->expected, 0, sizeof p->expected);
	p->next = 0;
	return (int)cuMemsetD8(p->block, 0, REGION * REGIONS) | (int)cuCtxSynchronize();
}

static int make(struct place *p)
{
	create(&p->context);
	return (int)cuMemAlloc(&p->block, REGION * REGIONS) | (int)cuKernelGetFunction(&p->fill, fill) |
	       (int)cuKernelGetFunction(&p->slow_fill, slow_fill) | start_over(p);
}

/* ---- memory: how often the free figure moved by what a load of the library moves it */

static size_t unit; /* 0: it does not move it */

static size_t free_now(void)
{
	size_t now = 0, total;
	if (cuMemGetInfo(&now, &total) != CUDA_SUCCESS)
		obs("memory", "not told");
	return now;
}

/* Loads since `before`, negative where memory came back. */
static int loads_since(size_t before)
{
	if (unit == 0)
		return 0;
	double moved = ((double)before - (double)free_now()) / (double)unit;
	return (int)(moved + (moved < 0 ? -0.5 : 0.5));
}

static void moved(const char *key, int code, size_t before) { obs(key, "%d,moved=%d", code, loads_since(before)); }

static void memory(void)
{
	CUcontext first, second;
	CUfunction f, again, other, refused = (CUfunction)KEPT;
	CUdeviceptr block;
	create(&second); /* what the first of several contexts takes beside itself is none of this */
	cuCtxDestroy(second);
	create(&first);
	obs_code("block", (int)cuMemAlloc(&block, REGION) | (int)cuMemsetD8(block, 1, REGION) | (int)cuCtxSynchronize());
	size_t before = free_now();
	load();
	obs("load.moved", "%d", free_now() != before);
	int code = (int)cuKernelGetFunction(&f, fill);
	unit = before - free_now();
	if (unit > before)
		unit = 0;
	obs("lookup", "%d,moved=%d", code, unit > 0);
	before = free_now();
	code = (int)cuKernelGetFunction(&again, fill);
	moved("lookup.again", code, before);
	obs("lookup.same", "%d", f == again);
	moved("lookup.other_kernel", (int)cuKernelGetFunction(&other, slow_fill), before);
	obs("lookup.other_kernel.same", "%d", f == other);
	moved("launch", launch_fill(f, NULL, block, 2), before);
	moved("launch.wait", (int)cuCtxSynchronize(), before);
	moved("launch.kernel", launch_fill((CUfunction)fill, NULL, block, 3) | (int)cuCtxSynchronize(), before);
	size_t alone = free_now();
	for (int round = 0; round < 2; round++) {
		const char *name = round == 0 ? "second" : "third";
		char key[64];
		create(&second);
		before = free_now();
		code = (int)cuKernelGetFunction(&other, fill);
		snprintf(key, sizeof key, "%s.lookup", name);
		moved(key, code, before);
		snprintf(key, sizeof key, "%s.lookup.same", name);
		obs(key, "%d", other == f);
		before = free_now();
		code = (int)cuKernelGetFunction(&again, fill);
		snprintf(key, sizeof key, "%s.lookup.again", name);
		moved(key, code, before);
		code = (int)cuCtxSetCurrent(first) | (int)cuKernelGetFunction(&again, fill);
		snprintf(key, sizeof key, "%s.lookup.first", name);
		moved(key, code, before);
		snprintf(key, sizeof key, "%s.lookup.first.same", name);
		obs(key, "%d", again == f);
		code = (int)cuCtxDestroy(second);
		snprintf(key, sizeof key, "%s.gone", name);
		moved(key, code, alone);
	}
	obs_code("lookup.nowhere", cuKernelGetFunction(NULL, fill));
	obs_code("current.none", cuCtxSetCurrent(NULL));
	while (cuCtxPopCurrent(&second) == CUDA_SUCCESS)
		;
	code = (int)cuKernelGetFunction(&refused, fill);
	obs_out("lookup.no_context", code, &refused);
	obs_code("current.first", cuCtxSetCurrent(first));
	before = free_now();
	moved("unload", (int)cuLibraryUnload(library), before);
	obs_code("first.end", cuCtxDestroy(first));
}

/* ---- which handle is taken for which */

static void handles(struct place *p)
{
	CUmodule module, of_fill = NULL, of_slow = NULL;
	CUlibrary of_kernel = NULL;
	CUfunction plain, out;
	obs_code("plain", (int)cuModuleLoadData(&module, obs_ptx) | (int)cuModuleGetFunction(&plain, module, "fake_fill"));
	obs_code("module.of_function", cuFuncGetModule(&of_fill, p->fill));
	obs("module.one", "%d", cuFuncGetModule(&of_slow, p->slow_fill) == CUDA_SUCCESS && of_slow == of_fill);
	int code = (int)cuFuncGetModule(&of_slow, plain);
	obs("module.of_plain", "%d,%d", code, of_slow == module);
	obs_code("module.of_kernel", cuFuncGetModule(&of_slow, (CUfunction)fill));
	code = (int)cuKernelGetLibrary(&of_kernel, fill);
	obs("library.of_kernel", "%d,%d", code, of_kernel == library);
	obs_code("library.of_function", cuKernelGetLibrary(&of_kernel, (CUkernel)p->fill));
	obs_code("library.of_plain", cuKernelGetLibrary(&of_kernel, (CUkernel)plain));
	obs_code("function.of_kernel", cuKernelGetFunction(&out, fill));
	obs_code("function.of_function", cuKernelGetFunction(&out, (CUkernel)p->fill));
	obs_code("function.of_plain", cuKernelGetFunction(&out, (CUkernel)plain));
	obs_code("plain.unload", cuModuleUnload(module));
}

/* ---- launches */

static void results(const char *name, int code, struct place *a, struct place *b)
{
	char key[64];
	struct place *const both[] = {a, b};
	snprintf(key, sizeof key, "%s.launches", name);
	obs_code(key, code);
	for (int i = 0; i < 2; i++) {
		code = (int)cuCtxSetCurrent(both[i]->context);
		snprintf(key, sizeof key, "%s.%d", name, i);
		obs(key, "%d,%d", code, as_expected(both[i]));
		if (start_over(both[i]) != 0)
			obs(key, "not cleared");
	}
}

/* From one context to the other with every launch. `how` chooses the stream and the handle. */
static int in_turns(struct place *a, struct place *b, int how, int times)
{
	struct place *const both[] = {a, b};
	int code = 0;
	for (int i = 0; i < times; i++) {
		struct place *p = both[i % 2];
		CUfunction f = p->fill;
		int mix = how == 4 ? i / 2 % 4 : how;
		code |= (int)cuCtxSetCurrent(p->context);
		if (how == 5)
			code |= (int)cuKernelGetFunction(&f, fill);
		code |= fill_next(p, mix == 1 || mix == 3 ? (CUfunction)fill : f, mix == 2 || mix == 3 ? CU_STREAM_PER_THREAD : NULL, i + 1);
	}
	return code;
}

static void turns(const char *when, struct place *a, struct place *b)
{
	static const char *const names[] = {"functions", "kernels", "per_thread", "per_thread_kernels", "mixed", "looked_up"};
	char key[64];
	for (int how = 0; how < 6; how++) {
		snprintf(key, sizeof key, "%s.%s", when, names[how]);
		int code = in_turns(a, b, how, 2 * REGIONS);
		results(key, code, a, b);
	}
	/* Work is under way in the one while the other goes on. */
	cuCtxSetCurrent(a->context);
	a->expected[0] = 0x5a;
	int code = obs_slow_fill(a->slow_fill, NULL, (void *)(uintptr_t)a->block, 0x5a, REGION, 20);
	a->next = 1;
	code |= in_turns(a, b, 0, 20);
	snprintf(key, sizeof key, "%s.beside_slow", when);
	results(key, code, a, b);
}

/* A function of `a` where `b` is current: refused without a trace. */
static void refused(const char *when, struct place *a, struct place *b)
{
	CUmodule module;
	CUfunction plain;
	char key[64];
	cuCtxSetCurrent(a->context);
	int code = (int)cuModuleLoadData(&module, obs_ptx) | (int)cuModuleGetFunction(&plain, module, "fake_fill") |
	           (int)cuCtxSetCurrent(b->context);
	snprintf(key, sizeof key, "%s.ready", when);
	obs_code(key, code);
	for (int i = 0; i < 2; i++) {
		CUfunction f = i == 0 ? a->fill : plain;
		snprintf(key, sizeof key, "%s.%s", when, i == 0 ? "function" : "plain");
		obs(key, "%d,%d", launch_fill(f, NULL, b->block, 0x66), launch_fill(f, NULL, a->block, 0x66));
		snprintf(key, sizeof key, "%s.%s.sync", when, i == 0 ? "function" : "plain");
		obs_code(key, cuCtxSynchronize());
	}
	code = fill_next(b, (CUfunction)fill, NULL, 7) | fill_next(b, b->fill, NULL, 8);
	results(when, code, a, b);
	cuCtxSetCurrent(a->context);
	snprintf(key, sizeof key, "%s.end", when);
	obs_code(key, cuModuleUnload(module));
}

struct worker {
	struct place of[2]; /* both contexts, with blocks of its own */
	int how, code;
};

static void *works(void *arg)
{
	struct worker *w = (struct worker *)arg;
	w->code = in_turns(&w->of[0], &w->of[1], w->how, 2 * REGIONS);
	return NULL;
}

static void threads(const char *when, struct place *a, struct place *b)
{
	struct worker w[2];
	pthread_t t[2];
	char key[64];
	for (int how = 4; how < 6; how++) {
		int code = 0;
		for (int i = 0; i < 2; i++) {
			/* Each begins in another context. */
			w[i].of[0] = i == 0 ? *a : *b;
			w[i].of[1] = i == 0 ? *b : *a;
			w[i].how = how;
			for (int k = 0; k < 2; k++)
				code |= (int)cuCtxSetCurrent(w[i].of[k].context) | (int)cuMemAlloc(&w[i].of[k].block, REGION * REGIONS) |
				        start_over(&w[i].of[k]);
		}
		for (int i = 0; i < 2; i++)
			code |= pthread_create(&t[i], NULL, works, &w[i]);
		for (int i = 0; i < 2; i++) {
			pthread_join(t[i], NULL);
			code |= w[i].code;
		}
		for (int i = 0; i < 2; i++) {
			snprintf(key, sizeof key, "%s.%s.%d", when, how == 4 ? "mixed" : "looked_up", i);
			results(key, code, &w[i].of[0], &w[i].of[1]);
			for (int k = 0; k < 2; k++)
				cuMemFree(w[i].of[k].block);
		}
	}
}

/* ---- what is near */

static void casts(struct place *a, struct place *b)
{
	CUstream of_a;
	CUmodule module = NULL, of_function = NULL;
	CUfunction found = NULL;
	const char *name = NULL;
	size_t offset, size;
	int value = -1;
	cuCtxSetCurrent(a->context);
	obs_code("stream", cuStreamCreate(&of_a, CU_STREAM_NON_BLOCKING));
	int code = (int)cuLibraryGetModule(&module, library) | (int)cuFuncGetModule(&of_function, a->fill);
	obs("library.module", "%d,%d", code, module == of_function);
	code = (int)cuModuleGetFunction(&found, module, "fake_fill");
	obs("library.module.function", "%d,%d", code, found == a->fill);
	obs_code("name.kernel", cuFuncGetName(&name, (CUfunction)fill));
	obs_code("name.function", cuKernelGetName(&name, (CUkernel)a->fill));
	obs_code("parameter.kernel", cuFuncGetParamInfo((CUfunction)fill, 0, &offset, &size));
	obs_code("parameter.function", cuKernelGetParamInfo((CUkernel)a->fill, 0, &offset, &size));
	obs_code("attribute.kernel", cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUfunction)fill));
	obs_code("attribute.function", cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, (CUkernel)a->fill, 0));
	/* A kernel's attribute goes to its functions on the device; a function's stays. */
	const CUfunction_attribute shared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	obs_code("attribute.set", cuKernelSetAttribute(shared, 60000, fill, 0));
	code = (int)cuFuncGetAttribute(&value, shared, a->fill);
	obs("attribute.set.first", "%d,%d", code, value);
	code = (int)cuFuncSetAttribute(b->fill, shared, 70000) | (int)cuFuncGetAttribute(&value, shared, b->fill);
	obs("attribute.own", "%d,%d", code, value);
	code = (int)cuFuncGetAttribute(&value, shared, a->fill);
	obs("attribute.own.first", "%d,%d", code, value);
	code = (int)cuKernelGetAttribute(&value, shared, fill, 0);
	obs("attribute.own.kernel", "%d,%d", code, value);
	/* By a stream of `a` and by the per-thread default stream where `b` is current. */
	cuCtxSetCurrent(b->context);
	obs_code("per_thread.function", launch_fill(a->fill, CU_STREAM_PER_THREAD, b->block, 0x66));
	obs_code("per_thread.sync", cuCtxSynchronize());
	code = fill_next(a, a->fill, of_a, 1);
	obs_code("stream.function", code);
	code = fill_next(a, (CUfunction)fill, of_a, 2);
	obs_code("stream.kernel", code);
	obs_code("stream.sync", cuStreamSynchronize(of_a));
	results("stream", 0, a, b);
	/* A node takes either; a kernel's is in the node's context. */
	CUDA_KERNEL_NODE_PARAMS node;
	CUgraph graph;
	CUgraphNode added;
	CUgraphExec exec;
	unsigned char v = 3;
	CUdeviceptr to = a->block;
	size_t bytes = REGION;
	void *params[] = {&to, &v, &bytes};
	for (int i = 0; i < 3; i++) {
		char key[64];
		cuCtxSetCurrent(b->context);
		memset(&node, 0, sizeof node);
		node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimX = node.blockDimY = node.blockDimZ = 1;
		node.kernelParams = params;
		node.func = i == 0 ? a->fill : i == 1 ? (CUfunction)fill : NULL;
		node.kern = i == 2 ? fill : NULL;
		node.ctx = i == 0 ? NULL : a->context;
		v = (unsigned char)(v + 1);
		a->expected[0] = v;
		code = (int)cuGraphCreate(&graph, 0);
		int node_code = (int)cuGraphAddKernelNode(&added, graph, NULL, 0, &node);
		snprintf(key, sizeof key, "node.%d.add", i);
		obs(key, "%d,%d", code, node_code);
		if (node_code != 0)
			continue;
		cuCtxSetCurrent(a->context);
		code = (int)cuGraphInstantiate(&exec, graph, 0) | (int)cuGraphLaunch(exec, of_a) | (int)cuStreamSynchronize(of_a);
		snprintf(key, sizeof key, "node.%d.launch", i);
		obs(key, "%d,%d", code, as_expected(a));
		cuGraphExecDestroy(exec);
		cuGraphDestroy(graph);
	}
	/* The runtime in a context of the driver's. */
	struct place *const both[] = {a, b};
	code = 0;
	for (int i = 0; i < 2; i++)
		code |= (int)cuCtxSetCurrent(both[i]->context) | start_over(both[i]);
	for (int i = 0; i < 8; i++) {
		struct place *p = both[i % 2];
		to = p->block + REGION * (size_t)p->next;
		v = p->expected[p->next++] = (unsigned char)(i + 1);
		dim3 one;
		one.x = one.y = one.z = 1;
		code |= (int)cuCtxSetCurrent(p->context) | (int)cudaLaunchKernel((const void *)fill, one, one, params, 0, NULL);
	}
	results("runtime", code, a, b);
	cuCtxSetCurrent(b->context);
	obs_code("stream.function_of_current", launch_fill(b->fill, of_a, a->block, 0x66));
	obs("stream.sync.end", "%d,%d", (int)cuStreamSynchronize(of_a), (int)cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	static struct place a, b, c;
	obs_code("init", cuInit(0));
	int near = argc > 1 && strcmp(argv[1], "casts") == 0;
	if (!near)
		memory();
	load();
	obs_code("first", make(&a));
	obs_code("second", make(&b));
	if (near) {
		casts(&a, &b);
		return 0;
	}
	handles(&b);
	turns("two", &a, &b);
	refused("apart", &a, &b);
	threads("threads", &a, &b);
	/* One of them ends, and another one comes. */
	obs_code("second.end", (int)cuCtxSetCurrent(a.context) | (int)cuCtxDestroy(b.context));
	int code = fill_next(&a, a.fill, NULL, 1) | fill_next(&a, (CUfunction)fill, NULL, 2) | fill_next(&a, a.fill, CU_STREAM_PER_THREAD, 3);
	obs("alone", "%d,%d", code, as_expected(&a));
	create(&c.context);
	code = (int)cuMemAlloc(&c.block, REGION * REGIONS) | start_over(&c) | fill_next(&c, (CUfunction)fill, NULL, 4); /* loads it */
	obs("third.kernel", "%d,%d", code, as_expected(&c));
	code = (int)cuKernelGetFunction(&c.fill, fill) | (int)cuKernelGetFunction(&c.slow_fill, slow_fill) | fill_next(&c, c.fill, NULL, 5);
	obs("third.function", "%d,%d", code, as_expected(&c));
	obs_code("over", start_over(&c) | (int)cuCtxSetCurrent(a.context) | start_over(&a));
	turns("after", &a, &c);
	refused("after.apart", &c, &a);
	threads("after.threads", &a, &c);
	obs_code("unload", cuLibraryUnload(library));
	obs_code("end", (int)cuCtxDestroy(a.context) | (int)cuCtxDestroy(c.context));
	return 0;
}
