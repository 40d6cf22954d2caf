/* Requests that could be answered without their runtime, once a thread has been through it: what the runtime would have done must be so all the
   same. Its last error stays; a thread that sets another context or device between two requests is given memory there; after a reset and
   after a fault it is told what the runtime would say. Each site is warm by then. "devices": what takes a second one. */
#include "observe.h"

#define WARM 4

static CUcontext primary, own;

static int take(int ordered, void **p) { return ordered ? (int)cudaMallocAsync(p, 6000, cudaStreamPerThread) : (int)cudaMalloc(p, 6000); }
static int give(int ordered, void *p) { return ordered ? (int)cudaFreeAsync(p, cudaStreamPerThread) : (int)cudaFree(p); }

/* Takes and frees until nothing is new to anybody; the codes or-ed. */
static int warm(int ordered)
{
	int code = 0;
	for (int i = 0; i < WARM; i++) {
		void *p = NULL;
		code |= take(ordered, &p) | (p == NULL) | give(ordered, p);
	}
	return code;
}

static const char *name_of(CUcontext c) { return c == NULL ? "none" : c == primary ? "primary" : c == own ? "own" : "another"; }

static const char *current(void)
{
	CUcontext c = NULL;
	return cuCtxGetCurrent(&c) != CUDA_SUCCESS ? "failed" : name_of(c);
}

/* Takes one, says whose it is and what is current then, fills it by the driver alone, and frees it. */
static void one(const char *key, int ordered)
{
	void *p = NULL;
	CUcontext of = NULL;
	unsigned char got = 0;
	int device = -1, code = take(ordered, &p);
	if (!ordered)
		code |= (int)cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, (CUdeviceptr)(uintptr_t)p);
	code |= (int)cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)(uintptr_t)p);
	int filled = (int)cuMemsetD8((CUdeviceptr)(uintptr_t)p, 0x2a, 6000) | (int)cuMemcpyDtoH(&got, (CUdeviceptr)(uintptr_t)p + 5999, 1);
	obs(key, "%d,%s,%d,current=%s,filled=%d,%d,free=%d,last=%d", code, ordered ? "not asked" : name_of(of), device, current(), filled, got == 0x2a,
	    give(ordered, p), (int)cudaPeekAtLastError());
}

static void *fresh(void *arg)
{
	int ordered = arg != NULL;
	obs("fresh.before", "%s", current());
	one(ordered ? "fresh.ordered" : "fresh.plain", ordered);
	obs_code("fresh.warm", warm(ordered));
	obs_code("fresh.none", cuCtxSetCurrent(NULL));
	one("fresh.after_none", ordered);
	return NULL;
}

static void errors(int ordered)
{
	void *p = KEPT;
	obs_code("error.warm", warm(ordered));
	obs_code("error.made", cudaMalloc(&p, TOO_MUCH));
	obs("error.kept", "%d,%d", warm(ordered), (int)cudaPeekAtLastError());
	obs_code("error.taken", cudaGetLastError());
	obs("error.none", "%d,%d", warm(ordered), (int)cudaGetLastError());
	obs_last("error.free", give(ordered, (void *)(uintptr_t)0x1230));
	obs("error.null", "%d,%d,%d", give(ordered, NULL), take(ordered, NULL), (int)cudaGetLastError());
}

static void contexts(int ordered)
{
	CUcontext popped;
	obs_code("context.warm", warm(ordered));
	obs_code("context.set", cuCtxSetCurrent(own));
	one("context.own", ordered);
	obs_code("context.own.warm", warm(ordered));
	obs_code("context.back", cuCtxSetCurrent(primary));
	one("context.primary", ordered);
	obs_code("context.push", cuCtxPushCurrent(own));
	one("context.pushed", ordered);
	obs_code("context.pop", cuCtxPopCurrent(&popped));
	one("context.popped", ordered);
	/* Taken in one, freed in the other. */
	void *p = NULL;
	int code = take(ordered, &p) | (int)cuCtxSetCurrent(own);
	code |= warm(0);
	obs("context.elsewhere", "%d,%d,%s", code, give(ordered, p), current());
	obs_code("context.none", cuCtxSetCurrent(NULL));
	one("context.bound", ordered);
	obs_last("device.same", cudaSetDevice(0));
	one("device.set", ordered);
	obs_code("device.bad", cudaSetDevice(99));
	obs("device.bad.kept", "%d,%d", warm(ordered), (int)cudaGetLastError());
}

static void *on_second(void *arg)
{
	(void)arg;
	obs_code("second.warm", warm(0));
	obs_last("second.set", cudaSetDevice(1));
	one("second.there", 0);
	obs_code("second.there.warm", warm(0));
	obs_last("second.back", cudaSetDevice(0));
	one("second.here", 0);
	void *p = NULL;
	int code = take(0, &p) | (int)cudaSetDevice(1) | warm(0);
	obs("second.elsewhere", "%d,%d", code, give(0, p));
	one("second.again", 0);
	return NULL;
}

static void fault(void)
{
	void *plain = NULL, *ordered = NULL, *p = KEPT;
	CUfunction fill = obs_kernel("fake_fill");
	CUdeviceptr nowhere = 0x1000;
	unsigned char value = 1;
	size_t bytes = 1;
	void *params[] = {&nowhere, &value, &bytes};
	obs("fault.warm", "%d,%d", warm(0) | take(0, &plain), warm(1) | take(1, &ordered));
	obs_code("fault.launch", cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	obs_code("fault.seen", cudaDeviceSynchronize());
	obs_out("fault.take", take(0, &p), &p);
	p = KEPT;
	obs_out("fault.take_ordered", take(1, &p), &p);
	obs("fault.give", "%d,%d", give(0, plain), give(1, ordered));
	obs_code("fault.last", cudaGetLastError());
	obs_code("fault.last.again", cudaGetLastError());
}

int main(int argc, char **argv)
{
	CUctxCreateParams none;
	(void)argv;
	obs_last("init", cudaFree(NULL));
	if (argc > 1) {
		on_thread(on_second, NULL);
		return 0;
	}
	obs_code("current", cuCtxGetCurrent(&primary));
	memset(&none, 0, sizeof none);
	obs_code("create", cuCtxCreate(&own, &none, 0, 0));
	obs_code("back", cuCtxSetCurrent(primary));
	for (int ordered = 0; ordered < 2; ordered++) {
		on_thread(fresh, ordered ? &none : NULL);
		errors(ordered);
		contexts(ordered);
	}
	obs_code("destroy", cuCtxDestroy(own));
	obs_code("end", cuCtxSetCurrent(primary));
	obs("reset", "%d,%d,%d", warm(0), (int)cudaDeviceReset(), primary_active(0));
	obs("reset.after", "%d,%d,%d", warm(0), primary_active(0), (int)cudaGetLastError());
	fault();
	return 0;
}
