/* libnames.so: a library whose names begin as CUDA's do, and one that asks for the malloc behind it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int cudnnCreate(void);
int cublasCreate_v2(void);
int curl_easy_init(void);
int cudaMallocCustom(void);
int next_malloc_works(void);

int cudnnCreate(void) { return 4301; }
int cublasCreate_v2(void) { return 4302; }
int curl_easy_init(void) { return 4303; }
int cudaMallocCustom(void) { return 4304; }

int next_malloc_works(void)
{
	void *(*next)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	void *(*again)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	void *p = next != NULL ? next(100) : NULL;
	int works = p != NULL && next == again;
	free(p);
	return works;
}
