/* atexit that queries, destructors that free, a library's destructor, and a thread still running at the end. */
#include "observe.h"

static void *early, *late_block, *destructor_block;
static CUdeviceptr driver_block;

static void first_in(void)
{
	void *p = KEPT;
	size_t f = 1, t = 1;
	obs_code("first_in.query", cudaMemGetInfo(&f, &t));
	obs_out("first_in.malloc", cudaMalloc(&p, 100), &p);
	obs_code("first_in.free", cudaFree(early));
}

static void last_in(void)
{
	void *p = KEPT;
	size_t f = 1, t = 1;
	int code = (int)cudaMemGetInfo(&f, &t);
	obs("last_in.query", "%d,%d", code, f > 1);
	obs_out("last_in.malloc", cudaMalloc(&p, 100), &p);
	obs_code("last_in.free", cudaFree(late_block));
	obs_code("last_in.driver_free", cuMemFree(driver_block));
}

__attribute__((destructor)) static void destructor(void)
{
	void *p = KEPT;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	struct cudaPointerAttributes a;
	obs_code("destructor.free", cudaFree(destructor_block));
	obs_out("destructor.malloc", cudaMalloc(&p, 100), &p);
	obs_out("destructor.driver", cuMemAlloc(&d, 100), &d);
	obs_code("destructor.attributes", cudaPointerGetAttributes(&a, destructor_block));
	obs_code("destructor.last", cudaGetLastError());
}

static void *idle(void *arg)
{
	void *p;
	obs_code("thread.malloc", cudaMalloc(&p, 100));
	*(volatile int *)arg = 1;
	for (;;)
		pause();
	return NULL;
}

int main(void)
{
	static volatile int ready;
	pthread_t thread;
	atexit(first_in);
	obs_code("early", cudaMalloc(&early, MIB));
	obs_code("late", cudaMalloc(&late_block, MIB));
	obs_code("destructor", cudaMalloc(&destructor_block, MIB));
	obs_code("driver", cuMemAlloc(&driver_block, MIB));
	atexit(last_in);
	pthread_create(&thread, NULL, idle, (void *)(uintptr_t)&ready);
	while (!ready)
		usleep(1000);
	return 0;
}
