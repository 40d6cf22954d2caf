/* Weak references to CUDA's names in a program that does link the runtime: found, the same by every way, and working. */
#include "observe.h"

#include <dlfcn.h>

#pragma weak cudaMalloc
#pragma weak cudaFree
#pragma weak cudaMemGetInfo
extern int cudaNoSuchThing(void) __attribute__((weak));

int main(void)
{
	void *p = KEPT;
	int (*volatile nothing)(void) = cudaNoSuchThing;
	cudaError_t (*volatile allocate)(void **, size_t) = cudaMalloc;
	obs("weak", "%d,%d,%d", allocate != NULL, cudaFree != NULL, cudaMemGetInfo != NULL);
	obs_code("weak.nothing", nothing != NULL);
	obs_code("same_as_default", (void *)allocate == dlsym(RTLD_DEFAULT, "cudaMalloc"));
	obs_out("malloc", allocate(&p, 100), &p);
	obs_last("free", cudaFree(p));
	obs_last("free.again", cudaFree(p));
	return 0;
}
