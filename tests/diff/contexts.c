/* Contexts of the driver's own: made, pushed, popped, destroyed with memory in them; primary contexts kept and released. */
#include "observe.h"

static void current(const char *key, CUcontext expected)
{
	CUcontext c = (CUcontext)KEPT;
	int code = (int)cuCtxGetCurrent(&c);
	obs(key, "%d,%s", code, c == expected ? "expected" : c == NULL ? "none" : "another");
}

static void *allocates(void *arg)
{
	CUdeviceptr p = (CUdeviceptr)(uintptr_t)KEPT;
	obs_out("thread.alloc", cuMemAlloc(&p, 100), &p);
	obs_code("thread.set", cuCtxSetCurrent((CUcontext)arg));
	obs_out("thread.alloc.2", cuMemAlloc(&p, 100), &p);
	obs_code("thread.free", cuMemFree(p));
	return NULL;
}

int main(void)
{
	CUcontext a, b, primary, popped = NULL;
	CUdeviceptr p, q;
	void *r;
	obs_code("init", cuInit(0));
	CUctxCreateParams none;
	memset(&none, 0, sizeof none);
	obs_code("create.a", cuCtxCreate(&a, &none, 0, 0));
	current("current.a", a);
	obs_code("alloc.a", cuMemAlloc(&p, MIB));
	obs_code("create.b", cuCtxCreate(&b, &none, 0, 0));
	current("current.b", b);
	obs_code("alloc.b", cuMemAlloc(&q, MIB));
	CUcontext owner = NULL;
	obs_code("owner", cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	obs_code("owner.is_a", owner == a);
	obs_code("free.of_a_in_b", cuMemFree(p));
	obs_code("pop", cuCtxPopCurrent(&popped));
	obs_code("popped.is_b", popped == b);
	current("current.after_pop", a);
	obs_code("push", cuCtxPushCurrent(b));
	on_thread(allocates, a);
	current("current.after_thread", b);
	obs_code("primary.before", primary_active(0));
	/* The runtime works in a driver context that is current. */
	obs_last("cudaMalloc.in_b", cudaMalloc(&r, 100));
	obs_code("primary.after_malloc", primary_active(0));
	current("current.after_malloc", b);
	obs_code("destroy.b", cuCtxDestroy(b));
	current("current.after_destroy", NULL);
	obs_code("free.gone", cuMemFree(q));
	obs_last("cudaFree.gone", cudaFree(r));
	obs_code("set.a", cuCtxSetCurrent(a));
	obs_code("sync.a", cuCtxSynchronize());
	obs_code("destroy.a", cuCtxDestroy(a));

	obs_code("retain", cuDevicePrimaryCtxRetain(&primary, 0));
	obs_code("retain.again", cuDevicePrimaryCtxRetain(&primary, 0));
	obs_code("set.primary", cuCtxSetCurrent(primary));
	obs_code("alloc.primary", cuMemAlloc(&p, MIB));
	obs_code("release", cuDevicePrimaryCtxRelease(0));
	obs_code("active", primary_active(0));
	obs_code("free.primary", cuMemFree(p));
	obs_code("release.2", cuDevicePrimaryCtxRelease(0));
	obs_code("active.2", primary_active(0));
	obs_code("release.3", cuDevicePrimaryCtxRelease(0));
	obs_code("set.none", cuCtxSetCurrent(NULL));
	current("current.none", NULL);
	obs_last("cudaSetDevice", cudaSetDevice(0));
	obs_code("active.3", primary_active(0));
	obs_last("cudaMalloc", cudaMalloc(&r, 100));
	obs_code("reset.primary", cuDevicePrimaryCtxReset(0));
	obs_code("active.4", primary_active(0));
	return 0;
}
