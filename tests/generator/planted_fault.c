/*
 * A shim with a fault, for the test that a difference is noticed and shrinks: once a managed block has been made, a
 * refused cudaFree loses the runtime's error. Preloaded in the place of the shim under test. No state but one flag,
 * atomic.
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>

static int armed;

cudaError_t cudaMallocManaged(void **p, size_t bytes, unsigned flags)
{
	cudaError_t (*real)(void **, size_t, unsigned);
	*(void **)&real = dlsym(RTLD_NEXT, "cudaMallocManaged");
	__atomic_store_n(&armed, 1, __ATOMIC_RELAXED);
	return real(p, bytes, flags);
}

cudaError_t cudaFree(void *p)
{
	cudaError_t (*real)(void *);
	*(void **)&real = dlsym(RTLD_NEXT, "cudaFree");
	cudaError_t code = real(p);
	if (code != cudaSuccess && __atomic_load_n(&armed, __ATOMIC_RELAXED))
		cudaGetLastError();
	return code;
}
