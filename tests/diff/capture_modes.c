/* Memory calls during a capture in each mode, from this thread and another, with and without a Relaxed exchange. */
#include "observe.h"

static void *block, *pinned;
static void *out;
static CUdeviceptr device_out;
static char memory[4096] __attribute__((aligned(4096)));
static size_t a, b;
static cudaMemPool_t pool;
static struct cudaPointerAttributes attributes;

static int do_malloc(void) { return (int)cudaMalloc(&out, 100); }
static int do_malloc_zero(void) { return (int)cudaMalloc(&out, 0); }
static int do_driver_malloc(void) { return (int)cuMemAlloc(&device_out, 100); }
static int do_pitch(void) { return (int)cudaMallocPitch(&out, &a, 100, 3); }
static int do_pinned(void) { return (int)cudaMallocHost(&out, 100); }
static int do_managed(void) { return (int)cudaMallocManaged(&out, 100, cudaMemAttachGlobal); }
static int do_register(void) { return (int)cudaHostRegister(memory, 4096, 0); }
static int do_free_null(void) { return (int)cudaFree(NULL); }
static int do_free_bad(void) { return (int)cudaFree(memory); }
static int do_query(void) { return (int)cudaMemGetInfo(&a, &b); }
static int do_attributes(void) { return (int)cudaPointerGetAttributes(&attributes, block); }
static int do_driver_range(void) { return (int)cuMemGetAddressRange(&device_out, &a, (CUdeviceptr)(uintptr_t)block); }
static int do_pool(void) { return (int)cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &a); }
static int do_sync(void) { return (int)cudaDeviceSynchronize(); }
static int do_legacy(void) { return (int)cudaMemset(block, 1, 64); }
static int do_host_pointer(void) { return (int)cudaHostGetDevicePointer(&out, pinned, 0); }

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {{"malloc", do_malloc}, {"malloc_zero", do_malloc_zero}, {"driver_malloc", do_driver_malloc}, {"pitch", do_pitch},
             {"pinned", do_pinned}, {"managed", do_managed}, {"register", do_register}, {"free_null", do_free_null},
             {"free_bad", do_free_bad}, {"query", do_query}, {"attributes", do_attributes}, {"range", do_driver_range},
             {"pool", do_pool}, {"sync", do_sync}, {"legacy", do_legacy}, {"host_pointer", do_host_pointer}};

struct step {
	int call, exchange, code, last;
};

static void *step(void *arg)
{
	struct step *s = arg;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	if (s->exchange)
		cudaThreadExchangeStreamCaptureMode(&mode);
	s->code = calls[s->call].call();
	s->last = (int)cudaGetLastError();
	if (s->exchange)
		cudaThreadExchangeStreamCaptureMode(&mode);
	return NULL;
}

int main(void)
{
	static const char *const modes[] = {"global", "thread_local", "relaxed"};
	cudaStream_t s;
	obs_code("made", (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) | (int)cudaMalloc(&block, 64) |
	                     (int)cudaMallocHost(&pinned, 64) | (int)cudaDeviceGetDefaultMemPool(&pool, 0));
	for (int mode = 0; mode < 3; mode++)
		for (int other = 0; other < 2; other++)
			for (int exchange = 0; exchange < 2; exchange++)
				for (int call = 0; call < (int)(sizeof calls / sizeof calls[0]); call++) {
					char k[96];
					cudaGraph_t graph = NULL;
					struct step one = {call, exchange, -1, -1};
					int begun = (int)cudaStreamBeginCapture(s, (enum cudaStreamCaptureMode)mode);
					if (other)
						on_thread(step, &one);
					else
						step(&one);
					int ended = (int)cudaStreamEndCapture(s, &graph);
					snprintf(k, sizeof k, "%s.%s%s.%s", modes[mode], other ? "other" : "same", exchange ? ".exchanged" : "", calls[call].name);
					obs(k, "%d,%d,last=%d,end=%d,survives=%d", begun, one.code, one.last, ended, graph != NULL);
					if (calls[call].call == do_register && one.code == 0)
						cudaHostUnregister(memory);
					if (graph != NULL)
						cudaGraphDestroy(graph);
					cudaGetLastError();
				}
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
