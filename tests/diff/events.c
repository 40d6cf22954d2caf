/* Events: before they are recorded, while work is in flight, after it, twice recorded, without timing, on other streams. */
#include "observe.h"

#include <stdatomic.h>

static atomic_int go;
static void CUDART_CB hold(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3000 && !atomic_load(&go); i++)
		usleep(1000);
}

int main(void)
{
	cudaStream_t s;
	cudaEvent_t e, f, plain;
	float ms = -1;
	obs_code("made", (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) | (int)cudaEventCreate(&e) | (int)cudaEventCreate(&f) |
	                     (int)cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
	obs_last("query.fresh", cudaEventQuery(e));
	obs_last("sync.fresh", cudaEventSynchronize(e));
	obs_last("elapsed.fresh", cudaEventElapsedTime(&ms, e, f));
	obs_last("record.e", cudaEventRecord(e, s));
	obs_last("hold", cudaLaunchHostFunc(s, hold, NULL));
	obs_last("record.f", cudaEventRecord(f, s));
	obs_last("query.f", cudaEventQuery(f));
	obs_last("peek", cudaPeekAtLastError());
	obs_last("stream_query", cudaStreamQuery(s));
	obs_last("elapsed.in_flight", cudaEventElapsedTime(&ms, e, f));
	atomic_store(&go, 1);
	obs_last("sync.f", cudaEventSynchronize(f));
	obs_last("query.done", cudaEventQuery(f));
	obs_last("stream_query.done", cudaStreamQuery(s));
	int code = (int)cudaEventElapsedTime(&ms, e, f);
	obs("elapsed", "%d,%d", code, ms >= 0);
	obs_last("record.plain", cudaEventRecord(plain, s));
	obs_last("sync.plain", cudaEventSynchronize(plain));
	obs_last("elapsed.plain", cudaEventElapsedTime(&ms, e, plain));
	obs_last("record.legacy", cudaEventRecord(e, NULL));
	obs_last("wait.legacy", cudaStreamWaitEvent(s, e, 0));
	obs_last("flags", cudaEventRecordWithFlags(e, s, 77));
	obs_last("sync.stream", cudaStreamSynchronize(s));
	obs_last("destroy.in_use", (int)cudaEventRecord(e, s) | (int)cudaEventDestroy(e));
	obs_last("destroy", (int)cudaEventDestroy(f) | (int)cudaEventDestroy(plain));
	obs_last("bad", cudaEventRecord(NULL, s));
	obs_last("bad.query", cudaEventQuery(NULL));
	obs_last("end", (int)cudaStreamDestroy(s) | (int)cudaDeviceSynchronize());
	return 0;
}
