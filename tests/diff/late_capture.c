/*
 * A capture begins while another thread waits: one allocates anew what it has just freed while a kernel uses it, which a plan's only place for it makes wait for
 * that kernel. The kernel may take longer than anybody should be kept; a capture then begins all the same, and is whole. `late_capture MS`; `late_capture MS calm`
 * waits before the free, so that a plan of it has one place.
 */
#include "observe.h"

#include <stdatomic.h>

static CUfunction slow_fill;
static CUcontext context;
static unsigned ms;
static int calm, allocated, content = -1;
static _Atomic int freed;

static __attribute__((noinline)) int take(void **p) { return (int)cudaMalloc(p, 2 * MIB); }

static void *allocates(void *arg)
{
	void *p = NULL, *again = NULL;
	cudaStream_t s;
	(void)arg;
	int code = (int)cuCtxSetCurrent(context) | (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) | take(&p);
	code |= obs_slow_fill(slow_fill, (CUstream)s, p, 7, 2 * MIB, ms);
	code |= calm ? (int)cudaDeviceSynchronize() : 0;
	atomic_store(&freed, 1);
	/* From here on nothing waits for the device, which would end a capture that has begun. */
	code |= (int)cudaFree(p) | take(&again) | (int)cudaMemsetAsync(again, 9, 2 * MIB, s) | (int)cudaStreamSynchronize(s);
	unsigned char last = 0;
	code |= (int)cudaMemcpyAsync(&last, (char *)again + 2 * MIB - 1, 1, cudaMemcpyDeviceToHost, s) | (int)cudaStreamSynchronize(s);
	content = last;
	allocated = code | (int)cudaFree(again);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	cudaStream_t t;
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec = NULL;
	void *mine = NULL;
	calm = argc > 2;
	ms = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
	obs_code("init", (int)cudaFree(NULL) | (int)cuCtxGetCurrent(&context));
	slow_fill = obs_kernel("fake_slow_fill");
	obs_last("made", (int)cudaMalloc(&mine, 4096) | (int)cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	if (pthread_create(&thread, NULL, allocates, NULL) != 0)
		return 1;
	while (!atomic_load(&freed))
		sched_yield();
	usleep(100000); /* it waits by now, for its free or for its memory; had it not begun, nothing would be seen of it here */
	obs_last("begin", cudaStreamBeginCapture(t, cudaStreamCaptureModeRelaxed));
	obs_last("captured", cudaMemsetAsync(mine, 5, 4096, t));
	obs_last("end", cudaStreamEndCapture(t, &graph));
	pthread_join(thread, NULL);
	obs("allocates", "%d,content=%d", allocated, content);
	obs_last("instantiate", cudaGraphInstantiate(&exec, graph, 0));
	obs_last("launch", (int)cudaGraphLaunch(exec, t) | (int)cudaStreamSynchronize(t));
	obs_bytes("content", mine, 5, 4096);
	return 0;
}
