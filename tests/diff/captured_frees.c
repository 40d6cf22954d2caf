/* Blocks from before a capture, freed while one is active: every family, by its own call and by the others, in each mode, from the
   capturing thread and from another, with and without a Relaxed exchange. What it does to the capture and to the block. */
#include "observe.h"

enum { PLAIN, PINNED, ORDERED, KINDS };
enum { FREE, FREE_HOST, FREE_ASYNC, FREE_ASYNC_CAPTURING, FREE_NULL, FREE_HOST_NULL, FREE_ASYNC_NULL, CALLS };

static cudaStream_t capturing, aside;

static const char *const kinds[] = {"plain", "pinned", "ordered"};
static const char *const calls[] = {"cudaFree", "cudaFreeHost", "cudaFreeAsync", "cudaFreeAsync.capturing", "cudaFree.null", "cudaFreeHost.null",
	"cudaFreeAsync.null"};

struct step {
	void *p;
	int call, exchange, code, last;
};

static int free_by(int call, void *p)
{
	switch (call) {
	case FREE: return (int)cudaFree(p);
	case FREE_HOST: return (int)cudaFreeHost(p);
	case FREE_ASYNC: return (int)cudaFreeAsync(p, aside);
	case FREE_ASYNC_CAPTURING: return (int)cudaFreeAsync(p, capturing);
	case FREE_NULL: return (int)cudaFree(NULL);
	case FREE_HOST_NULL: return (int)cudaFreeHost(NULL);
	default: return (int)cudaFreeAsync(NULL, capturing);
	}
}

static void *step(void *arg)
{
	struct step *s = arg;
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	if (s->exchange)
		cudaThreadExchangeStreamCaptureMode(&mode);
	s->code = free_by(s->call, s->p);
	s->last = (int)cudaGetLastError();
	if (s->exchange)
		cudaThreadExchangeStreamCaptureMode(&mode);
	return NULL;
}

static void *make(int kind)
{
	void *p = NULL;
	int code = kind == PLAIN ? (int)cudaMalloc(&p, 3000) : kind == PINNED ? (int)cudaMallocHost(&p, 3000) : (int)cudaMallocAsync(&p, 3000, aside);
	if (code != 0 || cudaStreamSynchronize(aside) != cudaSuccess)
		obs("make", "%d", code);
	return p;
}

/* Whether the block is still there: its own call frees it, once. */
static int still_there(int kind, void *p)
{
	int code = free_by(kind == PLAIN ? FREE : kind == PINNED ? FREE_HOST : FREE_ASYNC, p);
	cudaGetLastError();
	return code == 0;
}

static void one(int mode, int other, int exchange, int kind, int call)
{
	static const char *const modes[] = {"global", "thread_local", "relaxed"};
	char key[128];
	cudaGraph_t graph = NULL;
	struct step s = {make(kind), call, exchange, -1, -1};
	int begun = (int)cudaStreamBeginCapture(capturing, (enum cudaStreamCaptureMode)mode);
	if (other)
		on_thread(step, &s);
	else
		step(&s);
	int ended = (int)cudaStreamEndCapture(capturing, &graph), last = (int)cudaGetLastError();
	/* A stream-ordered free is done only once its stream has passed it. */
	int passed = (int)cudaStreamSynchronize(aside);
	snprintf(key, sizeof key, "%s.%s%s.%s.%s", modes[mode], other ? "other" : "same", exchange ? ".exchanged" : "", kinds[kind], calls[call]);
	obs(key, "%d,%d,last=%d,end=%d,last=%d,survives=%d,passed=%d,there=%d", begun, s.code, s.last, ended, last, graph != NULL, passed,
	    s.code == 0 && call <= FREE_ASYNC ? 0 : still_there(kind, s.p));
	if (graph != NULL)
		cudaGraphDestroy(graph);
}

int main(void)
{
	obs_last("made", (int)cudaFree(NULL) | (int)cudaStreamCreateWithFlags(&capturing, cudaStreamNonBlocking) |
	                     (int)cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking));
	for (int mode = 0; mode < 3; mode++)
		for (int other = 0; other < 2; other++)
			for (int exchange = 0; exchange < 2; exchange++)
				for (int kind = 0; kind < KINDS; kind++)
					for (int call = 0; call < CALLS; call++)
						one(mode, other, exchange, kind, call);
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
