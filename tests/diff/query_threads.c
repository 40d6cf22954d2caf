/* Threads that never chose a device: what they find, what they make, and that nobody else's context changes. */
#include "observe.h"

static const char *prefix;

static void key(char *out, const char *name) { snprintf(out, 64, "%s.%s", prefix, name); }

static void *asks_driver(void *arg)
{
	char k[64];
	size_t a = 1, b = 2;
	CUcontext c = (CUcontext)KEPT;
	(void)arg;
	key(k, "cuMemGetInfo");
	obs_code(k, cuMemGetInfo(&a, &b));
	key(k, "outputs_kept");
	obs_code(k, a == 1 && b == 2);
	key(k, "current");
	obs_out(k, cuCtxGetCurrent(&c), &c);
	key(k, "active");
	obs_code(k, primary_active(0));
	return NULL;
}

static void *asks_attributes(void *arg)
{
	char k[64];
	struct cudaPointerAttributes a;
	CUcontext c = (CUcontext)KEPT;
	int n = 0;
	key(k, "attributes");
	obs_last(k, cudaPointerGetAttributes(&a, arg));
	key(k, "type");
	obs_code(k, (int)a.type);
	key(k, "count");
	obs_code(k, cudaGetDeviceCount(&n));
	key(k, "version");
	obs_code(k, cudaRuntimeGetVersion(&n));
	key(k, "current");
	obs_out(k, cuCtxGetCurrent(&c), &c);
	key(k, "active");
	obs_code(k, primary_active(0));
	return NULL;
}

static void *asks_runtime(void *arg)
{
	char k[64];
	size_t a, b;
	CUcontext c = (CUcontext)KEPT, primary = NULL;
	(void)arg;
	key(k, "cudaMemGetInfo");
	obs_last(k, cudaMemGetInfo(&a, &b));
	key(k, "current");
	obs_out(k, cuCtxGetCurrent(&c), &c);
	if (cuDevicePrimaryCtxRetain(&primary, 0) == 0) {
		key(k, "is_primary");
		obs_code(k, primary == c);
		key(k, "release");
		obs_code(k, cuDevicePrimaryCtxRelease(0));
	}
	return NULL;
}

int main(void)
{
	void *p;
	obs_code("init", cuInit(0));
	prefix = "early.driver";
	on_thread(asks_driver, NULL);
	prefix = "early.attributes";
	on_thread(asks_attributes, &p);
	prefix = "early.runtime";
	on_thread(asks_runtime, NULL);
	prefix = "after.driver";
	on_thread(asks_driver, NULL);
	prefix = "main.driver";
	asks_driver(NULL);
	obs_last("malloc", cudaMalloc(&p, 100));
	prefix = "late.attributes";
	on_thread(asks_attributes, p);
	prefix = "late.driver";
	on_thread(asks_driver, NULL);
	obs_last("free", cudaFree(p));
	return 0;
}
