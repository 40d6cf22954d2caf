/* libwork.so: a plug-in that uses CUDA for itself; loaded in several ways by loader.c. */
#include "observe.h"

int work_alloc(const char *key);
int work_fails(const char *key);

int work_alloc(const char *key)
{
	char k[64];
	void *p = KEPT;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	size_t f = 1;
	snprintf(k, sizeof k, "%s.malloc", key);
	obs_out(k, cudaMalloc(&p, 3000), &p);
	snprintf(k, sizeof k, "%s.content", key);
	obs_last(k, cudaMemset(p, 5, 3000));
	obs_bytes(k, p, 5, 3000);
	snprintf(k, sizeof k, "%s.driver", key);
	obs_out(k, cuMemAlloc(&d, 3000), &d);
	snprintf(k, sizeof k, "%s.query", key);
	obs_last(k, cudaMemGetInfo(&f, NULL));
	snprintf(k, sizeof k, "%s.frees", key);
	obs_last(k, (int)cudaFree(p) | (int)cuMemFree(d));
	snprintf(k, sizeof k, "%s.free.again", key);
	obs_last(k, cudaFree(p));
	return 0;
}

int work_fails(const char *key)
{
	void *p = KEPT;
	obs_out(key, cudaMalloc(&p, TOO_MUCH), &p);
	return (int)cudaPeekAtLastError();
}
