/* Which calls make a primary context and which leave none behind; each is asked in a process of its own. */
#include "observe.h"

#include <sys/wait.h>

static char memory[4096] __attribute__((aligned(4096)));
static struct cudaPointerAttributes attributes;
static struct cudaDeviceProp properties;
static void *out;
static size_t a, b;
static cudaMemPool_t pool;

static int c_count(void) { int n; return (int)cudaGetDeviceCount(&n); }
static int c_properties(void) { return (int)cudaGetDeviceProperties(&properties, 0); }
static int c_attributes(void) { return (int)cudaPointerGetAttributes(&attributes, memory); }
static int c_last(void) { return (int)cudaGetLastError(); }
static int c_driver_query(void) { return (int)cuMemGetInfo(&a, &b); }
static int c_total(void) { return (int)cuDeviceTotalMem(&a, 0); }
static int c_driver_alloc(void) { CUdeviceptr p; return (int)cuMemAlloc(&p, 100); }
static int c_driver_free(void) { return (int)cuMemFree((CUdeviceptr)(uintptr_t)memory); }
static int c_pool(void) { return (int)cudaDeviceGetDefaultMemPool(&pool, 0); }
static int c_driver_pool(void) { CUmemoryPool p; return (int)cuDeviceGetDefaultMemPool(&p, 0); }
static int c_get_device(void) { int d; return (int)cudaGetDevice(&d); }
static int c_query(void) { return (int)cudaMemGetInfo(&a, &b); }
static int c_malloc(void) { return (int)cudaMalloc(&out, 100); }
static int c_malloc_zero(void) { return (int)cudaMalloc(&out, 0); }
static int c_free_null(void) { return (int)cudaFree(NULL); }
static int c_free_bad(void) { return (int)cudaFree(memory); }
static int c_set_device(void) { return (int)cudaSetDevice(0); }
static int c_reset(void) { return (int)cudaDeviceReset(); }
static int c_sync(void) { return (int)cudaDeviceSynchronize(); }
static int c_register(void) { return (int)cudaHostRegister(memory, 4096, 0); }
static int c_reserve(void) { CUdeviceptr p; return (int)cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0); }

static const struct {
	const char *name;
	int (*call)(void);
} calls[] = {{"count", c_count}, {"properties", c_properties}, {"attributes", c_attributes}, {"last", c_last},
             {"driver_query", c_driver_query}, {"total", c_total}, {"driver_alloc", c_driver_alloc}, {"driver_free", c_driver_free},
             {"pool", c_pool}, {"driver_pool", c_driver_pool}, {"get_device", c_get_device}, {"query", c_query}, {"malloc", c_malloc},
             {"malloc_zero", c_malloc_zero}, {"free_null", c_free_null}, {"free_bad", c_free_bad}, {"set_device", c_set_device},
             {"reset", c_reset}, {"sync", c_sync}, {"register", c_register}, {"reserve", c_reserve}};

int main(void)
{
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		pid_t child = fork();
		if (child == 0) {
			CUcontext c = (CUcontext)KEPT;
			int init = (int)cuInit(0), before = primary_active(0), code = calls[i].call(), after = primary_active(0);
			int current = (int)cuCtxGetCurrent(&c);
			obs(calls[i].name, "%d,%d,%d->%d,current=%d,%s", init, code, before, after, current, c == NULL ? "none" : "bound");
			_exit(0);
		}
		int status = -1;
		waitpid(child, &status, 0);
		if (status != 0)
			obs(calls[i].name, "child ended with %d", status);
	}
	return 0;
}
