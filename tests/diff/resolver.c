/* The resolver: asked for itself, with and without a status, by several versions and flags; what it gives is called. */
#include "observe.h"

typedef CUresult (*resolver_fn)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
typedef CUresult (*alloc_fn)(CUdeviceptr *, size_t);
typedef CUresult (*free_fn)(CUdeviceptr);

static void *ask(resolver_fn resolver, const char *key, const char *name, int version, cuuint64_t flags)
{
	void *f = KEPT, *quiet = KEPT;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	int code = (int)resolver(name, &f, version, flags, &status), code_quiet = (int)resolver(name, &quiet, version, flags, NULL);
	obs(key, "%d,%d,status=%d,%s,same=%d", code, code_quiet, (int)status, f == KEPT ? "kept" : f == NULL ? "null" : "set", f == quiet);
	return f == KEPT ? NULL : f;
}

int main(void)
{
	static const int versions[] = {2000, 3020, 11020, 12000, 13000, 13090, 99000};
	static const char *const names[] = {"cuMemAlloc", "cuMemFreeAsync", "cuMemAlloc_v2", "cuMemAllocAsync_ptsz", "cuGetProcAddress",
	                                    "cuNoSuchFunction", "", "cuMemGetInfo", "cuGetErrorString", "cuStreamBeginCapture"};
	char k[96];
	obs_code("init", cudaFree(NULL));
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++)
			for (cuuint64_t flags = 0; flags <= 3; flags++) {
				snprintf(k, sizeof k, "%s.%d.%d", names[i], versions[v], (int)flags);
				ask(cuGetProcAddress, k, names[i], versions[v], flags);
			}
	resolver_fn self = (resolver_fn)ask(cuGetProcAddress, "self", "cuGetProcAddress", 12000, 0);
	for (int i = 0; i < 3 && self != NULL; i++)
		self = (resolver_fn)ask(self, "self.again", "cuGetProcAddress", 12000, 0);
	if (self == NULL)
		return 0;
	alloc_fn allocate = (alloc_fn)ask(self, "alloc", "cuMemAlloc", 12000, 0);
	free_fn release = (free_fn)ask(self, "free", "cuMemFree", 12000, 0);
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	obs_out("alloc.call", allocate(&d, 100), &d);
	obs_code("free.call", release(d));
	obs_code("free.call.again", release(d));
	obs_code("alloc.too_much", allocate(&d, TOO_MUCH));
	obs_last("runtime", cudaSuccess);
	/* The runtime's own. */
	void *f = KEPT;
	enum cudaDriverEntryPointQueryResult found = (enum cudaDriverEntryPointQueryResult)77;
	int code = (int)cudaGetDriverEntryPointByVersion("cuMemAlloc", &f, 12000, cudaEnableDefault, &found);
	obs("entry", "%d,%d,same=%d", code, (int)found, f == (void *)allocate);
	obs_out("entry.call", ((alloc_fn)f)(&d, 100), &d);
	obs_last("entry.free", cudaFree((void *)(uintptr_t)d));
	f = KEPT;
	code = (int)cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &f, 12000, cudaEnableDefault, &found);
	obs("entry.none", "%d,%d,%s,last=%d", code, (int)found, f == NULL ? "null" : "set", (int)cudaGetLastError());
	code = (int)cudaGetDriverEntryPointByVersion("cuMemFree", &f, 12000, cudaEnablePerThreadDefaultStream, NULL);
	obs("entry.thread", "%d,same=%d", code, f == (void *)release);
	return 0;
}
