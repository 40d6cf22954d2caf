/* Stack limit and device heap raised, then a launch; a kernel by the limits as they were. */
#include "observe.h"

static void show(const char *key, enum cudaLimit what)
{
	size_t v = 0;
	int code = (int)cudaDeviceGetLimit(&v, what);
	obs(key, "%d,%zu,last=%d", code, v, (int)cudaGetLastError());
}

int main(void)
{
	size_t before = 0, after = 0;
	void *p;
	obs_code("init", cudaFree(NULL));
	CUfunction spin = obs_kernel("fake_spin");
	obs_code("launch", obs_spin(spin, NULL, 1) | (int)cudaDeviceSynchronize());
	show("stack", cudaLimitStackSize);
	show("heap", cudaLimitMallocHeapSize);
	obs_last("query", cudaMemGetInfo(&before, NULL));
	obs_last("stack.set", cudaDeviceSetLimit(cudaLimitStackSize, 32768));
	show("stack.2", cudaLimitStackSize);
	obs_code("launch.2", obs_spin(spin, NULL, 1) | (int)cudaDeviceSynchronize());
	obs_last("query.2", cudaMemGetInfo(&after, NULL));
	obs_code("stack.charged", before > after && before - after > 1024 * MIB);
	obs_last("stack.unchanged", cudaDeviceSetLimit(cudaLimitStackSize, 1024));
	obs_last("stack.too_much", cudaDeviceSetLimit(cudaLimitStackSize, (size_t)1 << 40));
	obs_last("bad", cudaDeviceSetLimit((enum cudaLimit)99, 1));
	obs_code("driver.stack", cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
	show("stack.3", cudaLimitStackSize);
	obs_last("malloc", cudaMalloc(&p, MIB));
	obs_last("memset", cudaMemset(p, 1, 64));
	obs_bytes("content", p, 1, 64);
	obs_last("end", (int)cudaFree(p) | (int)cudaDeviceSynchronize());
	return 0;
}
