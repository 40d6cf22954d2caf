/* NVML beside CUDA, found by dlopen as monitors do: its memory figures, its refusals, its processes, before and after CUDA. */
#include "observe.h"

#include <dlfcn.h>

/* As NVIDIA's reference lays them out. */
struct memory {
	unsigned long long total, free, used;
};
struct memory_v2 {
	unsigned version;
	unsigned long long total, reserved, free, used;
};

static int (*get_count)(unsigned *);
static int (*get_handle)(unsigned, void **);
static int (*get_memory)(void *, struct memory *);
static int (*get_memory_v2)(void *, struct memory_v2 *);
static int (*get_processes)(void *, unsigned *, void *);

static unsigned long long figures(const char *key, void *device)
{
	struct memory a = {1, 1, 1};
	struct memory_v2 b;
	char k[64];
	memset(&b, 0, sizeof b);
	b.version = (unsigned)sizeof b | 2u << 24;
	int code = get_memory(device, &a), code2 = get_memory_v2(device, &b);
	snprintf(k, sizeof k, "%s.memory", key);
	obs(k, "%d,%d,total_same=%d,sums=%d,below=%d", code, code2, a.total == b.total, b.total == b.reserved + b.free + b.used, a.free <= a.total);
	return a.used;
}

int main(void)
{
	void *h = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *device = NULL, *p;
	unsigned count = 0;
	obs("open", "%d", h != NULL);
	if (h == NULL)
		return 9;
	int (*init)(void) = (int (*)(void))dlsym(h, "nvmlInit_v2"), (*end)(void) = (int (*)(void))dlsym(h, "nvmlShutdown");
	*(void **)&get_count = dlsym(h, "nvmlDeviceGetCount_v2");
	*(void **)&get_handle = dlsym(h, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&get_memory = dlsym(h, "nvmlDeviceGetMemoryInfo");
	*(void **)&get_memory_v2 = dlsym(h, "nvmlDeviceGetMemoryInfo_v2");
	*(void **)&get_processes = dlsym(h, "nvmlDeviceGetComputeRunningProcesses_v3");
	obs("found", "%d,%d,%d,%d", get_count != NULL, get_handle != NULL, get_memory != NULL, get_memory_v2 != NULL);
	obs("missing", "%d", dlsym(h, "nvmlNoSuchFunction") != NULL);
	obs_code("before_init", get_memory(NULL, &(struct memory){0, 0, 0}));
	obs_code("init", init());
	obs_code("count", ((void)get_count(&count), count >= 1));
	obs_code("handle", get_handle(0, &device));
	obs_code("handle.bad", get_handle(77, &p));
	figures("idle", device);
	obs_code("memory.null", get_memory(device, NULL));
	struct memory_v2 wrong;
	memset(&wrong, 0, sizeof wrong);
	obs_code("memory.wrong_version", get_memory_v2(device, &wrong) != 0);
	size_t total = 0;
	struct memory now;
	obs_last("cuda", cudaMalloc(&p, 64 * MIB));
	obs_last("query", cudaMemGetInfo(NULL, &total));
	unsigned long long used = figures("busy", device);
	obs_last("more", cudaMalloc(&p, 512 * MIB));
	obs_code("memory", get_memory(device, &now));
	obs("grew_MiB", "%llu", (now.used - used) / MIB);
	obs_code("totals", now.total >= total);
	int code = get_processes != NULL ? get_processes(device, NULL, NULL) : -1;
	obs("processes.null", "%d", code != 0);
	obs_last("free", cudaFree(p));
	obs_code("memory.2", get_memory(device, &now));
	obs_code("fell", now.used <= used + 2 * MIB);
	obs_code("shutdown", end());
	obs_code("after_shutdown", get_memory(device, &now));
	obs_last("end", cudaDeviceSynchronize());
	return 0;
}
