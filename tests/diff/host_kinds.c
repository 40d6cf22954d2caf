/* Pinned, mapped, write-combined and registered host memory: flags, device addresses, what refuses what. */
#include "observe.h"

static void one(const char *name, unsigned flags)
{
	char k[64];
	void *p = KEPT, *dev = KEPT;
	unsigned got = 99;
	snprintf(k, sizeof k, "%s.alloc", name);
	obs_out(k, cudaHostAlloc(&p, 10000, flags), &p);
	if (p == KEPT || p == NULL) {
		snprintf(k, sizeof k, "%s.last", name);
		obs_last(k, cudaSuccess);
		return;
	}
	snprintf(k, sizeof k, "%s.flags", name);
	int code = (int)cudaHostGetFlags(&got, p);
	obs(k, "%d,%u", code, got);
	snprintf(k, sizeof k, "%s.device_pointer", name);
	code = (int)cudaHostGetDevicePointer(&dev, p, 0);
	obs(k, "%d,%d", code, dev == p);
	snprintf(k, sizeof k, "%s.copy", name);
	memset(p, 5, 10000);
	void *q;
	code = (int)cudaMalloc(&q, 10000) | (int)cudaMemcpyAsync(q, p, 10000, cudaMemcpyHostToDevice, NULL);
	obs_last(k, code);
	snprintf(k, sizeof k, "%s.content", name);
	obs_bytes(k, q, 5, 10000);
	snprintf(k, sizeof k, "%s.frees", name);
	code = (int)cudaFree(q) | (int)cudaFreeHost(p);
	obs_last(k, code);
}

int main(void)
{
	static char memory[8 * 4096] __attribute__((aligned(4096)));
	void *dev = KEPT;
	unsigned flags = 99;
	obs_code("init", cudaFree(NULL));
	one("default", cudaHostAllocDefault);
	one("portable", cudaHostAllocPortable);
	one("mapped", cudaHostAllocMapped);
	one("write_combined", cudaHostAllocWriteCombined);
	one("all", cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined);
	one("bad", 0x4000);
	obs_last("register", cudaHostRegister(memory, sizeof memory, cudaHostRegisterPortable | cudaHostRegisterMapped));
	int code = (int)cudaHostGetFlags(&flags, memory);
	obs("register.flags", "%d,%u", code, flags);
	code = (int)cudaHostGetDevicePointer(&dev, memory + 100, 0);
	obs("register.device_pointer", "%d,%d", code, dev == memory + 100);
	obs_last("register.again", cudaHostRegister(memory, 4096, 0));
	obs_last("unregister.inside", cudaHostUnregister(memory + 4096));
	obs_last("free_host.registered", cudaFreeHost(memory));
	obs_code("driver.unregister", cuMemHostUnregister(memory));
	obs_last("unregister.again", cudaHostUnregister(memory));
	obs_code("driver.register", cuMemHostRegister(memory + 4096, 4096, 0));
	obs_last("unregister", cudaHostUnregister(memory + 4096));
	obs_last("register.null", cudaHostRegister(NULL, 4096, 0));
	obs_last("register.zero", cudaHostRegister(memory, 0, 0));
	obs_last("flags.unknown", cudaHostGetFlags(&flags, memory));
	obs_last("device_pointer.unknown", cudaHostGetDevicePointer(&dev, memory, 0));
	obs_last("free_host.null", cudaFreeHost(NULL));
	return 0;
}
