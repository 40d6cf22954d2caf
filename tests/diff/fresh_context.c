/* The first CUDA call of a thread is an allocation that a plan may serve: afterwards the thread has the context that the runtime would have
   bound, and calls of the driver work in it. The same where a context of the driver's own is current, and where it changes between two. */
#include "observe.h"

static CUcontext primary, own;
static CUfunction fill, fill_own;

static const char *which(void)
{
	CUcontext c = NULL;
	if (cuCtxGetCurrent(&c) != CUDA_SUCCESS)
		return "failed";
	return c == NULL ? "none" : c == primary ? "primary" : c == own ? "own" : "another";
}

static int fill_by(CUfunction function, CUdeviceptr to, unsigned char value, size_t bytes)
{
	void *params[] = {&to, &value, &bytes};
	return (int)cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL) | (int)cuCtxSynchronize();
}

struct visit {
	const char *name;
	int family, device;
	CUcontext context;
};

/* One site for all threads: what the first got by the runtime's binding, the next get too. */
static int take(int family, void **p)
{
	return family == 0 ? (int)cudaMalloc(p, 5000) : family == 1 ? (int)cudaMallocHost(p, 5000) : (int)cudaMallocAsync(p, 5000, cudaStreamPerThread);
}

static void *visit(void *arg)
{
	const struct visit *v = arg;
	char key[96];
	void *p = NULL, *q = NULL;
	unsigned char got[2] = {0, 0};
	int device = -1;
	snprintf(key, sizeof key, "%s.before", v->name);
	obs(key, "%s", which());
	int code = v->context != NULL ? (int)cuCtxSetCurrent(v->context) : 0;
	code |= take(v->family, &p);
	snprintf(key, sizeof key, "%s.taken", v->name);
	obs(key, "%d,%s,last=%d", code, which(), (int)cudaPeekAtLastError());
	/* By the driver alone, in what the allocation left current. */
	code = fill_by(v->context == own ? fill_own : fill, (CUdeviceptr)(uintptr_t)p, 0x31, 5000);
	code |= (int)cuMemcpyDtoH(got, (CUdeviceptr)(uintptr_t)p + 4998, 2);
	snprintf(key, sizeof key, "%s.launched", v->name);
	obs(key, "%d,%d", code, got[0] == 0x31 && got[1] == 0x31);
	code = (int)cudaGetDevice(&device);
	snprintf(key, sizeof key, "%s.device", v->name);
	obs(key, "%d,%d", code, device);
	code = take(v->family, &q);
	CUcontext of = NULL;
	code |= v->family == 0 ? (int)cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)q) : 0;
	snprintf(key, sizeof key, "%s.owner", v->name);
	obs(key, "%d,%s", code, of == NULL ? "not asked" : of == primary ? "primary" : of == own ? "own" : "another");
	code = v->family == 1 ? (int)cudaFreeHost(p) | (int)cudaFreeHost(q) : (int)cudaFree(p) | (int)cudaFree(q);
	snprintf(key, sizeof key, "%s.freed", v->name);
	obs(key, "%d,%s", code, which());
	return NULL;
}

static void *only_driver(void *arg)
{
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)KEPT;
	obs_out("driver_first", cuMemAlloc(&p, 5000), &p);
	obs("driver_first.current", "%s", which());
	(void)arg;
	return NULL;
}

int main(void)
{
	static const char *const families[] = {"device", "pinned", "ordered"};
	CUctxCreateParams none;
	char names[12][64];
	int n = 0;
	obs_last("init", cudaFree(NULL));
	obs_code("current", cuCtxGetCurrent(&primary));
	fill = obs_kernel("fake_fill");
	memset(&none, 0, sizeof none);
	obs_code("create", cuCtxCreate(&own, &none, 0, 0));
	fill_own = obs_kernel("fake_fill");
	obs_code("back", cuCtxSetCurrent(primary));
	for (int round = 0; round < 2; round++)
		for (int family = 0; family < 3; family++) {
			snprintf(names[n], sizeof names[n], "%s.%s.fresh", round ? "again" : "first", families[family]);
			on_thread(visit, &(struct visit){names[n++], family, 0, NULL});
			snprintf(names[n], sizeof names[n], "%s.%s.own", round ? "again" : "first", families[family]);
			on_thread(visit, &(struct visit){names[n++], family, 0, own});
		}
	on_thread(only_driver, NULL);
	/* One thread, from one context to the other and back. */
	void *p[4];
	int code = take(0, &p[0]) | (int)cuCtxSetCurrent(own) | take(0, &p[1]) | (int)cuCtxPushCurrent(primary) | take(0, &p[2]);
	obs("pushed", "%d,%s", code, which());
	CUcontext popped = NULL;
	code = (int)cuCtxPopCurrent(&popped) | take(0, &p[3]);
	obs("popped", "%d,%s", code, which());
	for (int i = 0; i < 4; i++) {
		CUcontext of = NULL;
		char key[32];
		code = (int)cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)p[i]);
		snprintf(key, sizeof key, "owner.%d", i);
		obs(key, "%d,%s", code, of == primary ? "primary" : of == own ? "own" : "another");
	}
	/* The context goes, and what was taken in it; the rest stays. */
	obs_code("destroy", cuCtxDestroy(own));
	obs_code("current.end", cuCtxSetCurrent(primary));
	for (int i = 0; i < 4; i++) {
		char key[32];
		snprintf(key, sizeof key, "free.%d", i);
		obs_last(key, cudaFree(p[i]));
	}
	return 0;
}
