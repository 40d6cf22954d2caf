/* Names that begin as CUDA's do but are not, RTLD_NEXT from a library, the same look-up twice, and what dlerror says. */
#include "observe.h"

#include <dlfcn.h>

static void twice(const char *key, void *handle, const char *name)
{
	dlerror();
	void *a = dlsym(handle, name);
	const char *error = dlerror();
	void *b = dlsym(handle, name);
	dlerror();
	obs(key, "%d,same=%d,error=%s", a != NULL, a == b, error != NULL ? "set" : "none");
}

static int lies_in(const void *p, const char *library)
{
	Dl_info info;
	return p != NULL && dladdr(p, &info) != 0 && strstr(info.dli_fname, library) != NULL;
}

int main(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
	path[n > 0 ? n : 0] = 0;
	strcpy(strrchr(path, '/'), "/libnames.so");
	void *names = dlopen(path, RTLD_NOW | RTLD_LOCAL), *runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *self = dlopen(NULL, RTLD_NOW);
	obs("handles", "%d,%d,%d,%d", names != NULL, runtime != NULL, driver != NULL, self != NULL);
	if (names == NULL || runtime == NULL || driver == NULL)
		return 9;
	twice("cudnnCreate", names, "cudnnCreate");
	twice("cublasCreate_v2", names, "cublasCreate_v2");
	twice("curl_easy_init", names, "curl_easy_init");
	twice("cudaMallocCustom", names, "cudaMallocCustom");
	twice("cudaMalloc.names", names, "cudaMalloc_");
	twice("malloc.next", RTLD_NEXT, "malloc");
	twice("malloc.default", RTLD_DEFAULT, "malloc");
	twice("cudaMalloc.default", RTLD_DEFAULT, "cudaMalloc");
	twice("cudaMalloc.next", RTLD_NEXT, "cudaMalloc");
	twice("cudaMalloc.self", self, "cudaMalloc");
	twice("cudaMalloc.runtime", runtime, "cudaMalloc");
	twice("cudaFreeNothing", runtime, "cudaFreeNothing");
	twice("cuMemAlloc_v2", driver, "cuMemAlloc_v2");
	twice("cuMemAlloc", driver, "cuMemAlloc");
	twice("cuMemAlloc_v9", driver, "cuMemAlloc_v9");
	twice("cuGetErrorName", driver, "cuGetErrorName");
	obs("error_name.in_driver", "%d", lies_in(dlsym(driver, "cuGetErrorName"), "libcuda.so"));
	int (*says)(void) = (int (*)(void))dlsym(names, "cudnnCreate");
	obs_code("cudnnCreate.says", says());
	says = (int (*)(void))dlsym(names, "next_malloc_works");
	obs_code("next_malloc_works", says());
	cudaError_t (*allocate)(void **, size_t) = (cudaError_t(*)(void **, size_t))dlsym(runtime, "cudaMalloc");
	cudaError_t (*release)(void *) = (cudaError_t(*)(void *))dlsym(RTLD_DEFAULT, "cudaFree");
	void *p = KEPT;
	obs_out("call", allocate(&p, 100), &p);
	obs_last("call.free", release(p));
	obs_last("call.refused", allocate(&p, TOO_MUCH));
	CUresult (*old)(unsigned *, unsigned) = (CUresult(*)(unsigned *, unsigned))dlsym(driver, "cuMemAlloc");
	CUresult (*now)(CUdeviceptr *, size_t) = (CUresult(*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
	obs_code("variants_differ", (void *)old != (void *)now);
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	obs_out("driver.call", now(&d, 100), &d);
	obs_code("driver.free", cuMemFree(d));
	int (*saw)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "interposer_saw");
	if (saw != NULL)
		obs_code("interposer_saw", saw());
	obs_code("close", dlclose(names) | dlclose(runtime) | dlclose(driver));
	return 0;
}
