/*
 * Which calls bring the primary context to life, what a thread without one may do, and what a forked
 * child and a program that is already exiting get.
 */
#define _GNU_SOURCE
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const context_variants[] = {"free_null",   "free_host_null", "malloc_zero", "bad_free",
                                        "set_device",  "attributes",     "properties",  "last_error",
                                        "device_count", "query",         "malloc",      NULL};

void section_context(int arg)
{
	struct cudaPointerAttributes attributes;
	struct cudaDeviceProp prop;
	CUcontext bound = NULL;
	size_t free_bytes, total;
	void *p = NULL;
	int code = -1, count;

	fact("cuInit", "%d", (int)drv.p_cuInit(0));
	fact("active_before", "%d", primary_active());
	switch (arg) {
	case 0: code = (int)cudaFree(NULL); break;
	case 1: code = (int)cudaFreeHost(NULL); break;
	case 2: code = (int)cudaMalloc(&p, 0); break;
	case 3: code = (int)cudaFree((void *)(uintptr_t)0x1000); break;
	case 4: code = (int)cudaSetDevice(0); break;
	case 5: code = (int)cudaPointerGetAttributes(&attributes, &code); break;
	case 6: code = (int)cudaGetDeviceProperties(&prop, 0); break;
	case 7: code = (int)cudaGetLastError(); break;
	case 8: code = (int)cudaGetDeviceCount(&count); break;
	case 9: code = (int)cudaMemGetInfo(&free_bytes, &total); break;
	case 10: code = (int)cudaMalloc(&p, MIB); break;
	}
	fact("code", "%d", code);
	fact("active_after", "%d", primary_active());
	FACT_THEN("cuCtxGetCurrent", drv.p_cuCtxGetCurrent(&bound), "%s", bound == NULL ? "none" : "bound");
}

struct blocks {
	void *runtime_block;
	CUdeviceptr driver_block;
};

/* What the driver's allocation calls write where they cannot succeed. */
static void driver_allocations(const char *prefix)
{
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)SENTINEL;
	void *host = SENTINEL;
	size_t pitch = 77;
	char key[64];
#define DRIVER_FACT(name, call, out) \
	do { \
		snprintf(key, sizeof key, "%s%s", prefix, name); \
		fact_alloc(key, (int)(call), &(out)); \
		d = (CUdeviceptr)(uintptr_t)SENTINEL; \
		host = SENTINEL; \
	} while (0)
	DRIVER_FACT("cuMemAlloc", drv.p_cuMemAlloc(&d, MIB), d);
	DRIVER_FACT("cuMemAllocPitch", drv.p_cuMemAllocPitch(&d, &pitch, 1000, 10, 4), d);
	snprintf(key, sizeof key, "%s%s", prefix, "cuMemAllocPitch.pitch");
	fact(key, "%zu", pitch);
	DRIVER_FACT("cuMemAllocManaged", drv.p_cuMemAllocManaged(&d, MIB, CU_MEM_ATTACH_GLOBAL), d);
	DRIVER_FACT("cuMemAllocAsync", drv.p_cuMemAllocAsync(&d, MIB, NULL), d);
	DRIVER_FACT("cuMemAllocHost", drv.p_cuMemAllocHost(&host, MIB), host);
	DRIVER_FACT("cuMemHostAlloc", drv.p_cuMemHostAlloc(&host, MIB, 0), host);
}

static void without_context(void *arg)
{
	struct blocks *b = arg;
	CUcontext bound = NULL;
	size_t free_bytes, total;

	FACT_THEN("current", drv.p_cuCtxGetCurrent(&bound), "%s", bound == NULL ? "none" : "bound");
	driver_allocations("");
	fact("cuMemGetInfo", "%d", (int)drv.p_cuMemGetInfo(&free_bytes, &total));
	fact("cuMemFree", "%d", (int)drv.p_cuMemFree(b->driver_block));
	FACT_THEN("current_after_driver", drv.p_cuCtxGetCurrent(&bound), "%s", bound == NULL ? "none" : "bound");
	fact_code("cudaFree", (int)cudaFree(b->runtime_block));
	FACT_THEN("current_after_runtime", drv.p_cuCtxGetCurrent(&bound), "%s", bound == NULL ? "none" : "bound");
}

static void runtime_binds(void *arg)
{
	void *p = NULL;
	CUdeviceptr d = 0;
	(void)arg;
	fact("fresh.cudaMalloc", "%d", (int)cudaMalloc(&p, MIB));
	fact("fresh.cuMemAlloc", "%d", (int)drv.p_cuMemAlloc(&d, MIB));
	fact("fresh.frees", "%d,%d", (int)cudaFree(p), (int)drv.p_cuMemFree(d));
}

static void own_last_error(void *arg)
{
	(void)arg;
	fact("other_thread.last_error", "%d", (int)cudaPeekAtLastError());
}

void section_threads(int arg)
{
	struct blocks b = {NULL, 0};
	void *p = NULL;
	(void)arg;

	fact("cudaMalloc", "%d", (int)cudaMalloc(&b.runtime_block, MIB));
	fact("main.cuMemAlloc", "%d", (int)drv.p_cuMemAlloc(&b.driver_block, MIB));
	on_thread(without_context, &b);
	on_thread(runtime_binds, NULL);
	fact("refused", "%d", (int)cudaMalloc(&p, HUGE_BYTES));
	on_thread(own_last_error, NULL);
	fact("this_thread.last_error", "%d", (int)cudaPeekAtLastError());
}

static void in_child(const char *label, void *block)
{
	void *p = SENTINEL;
	size_t free_bytes, total;
	int status;
	pid_t child = fork();

	if (child == 0) {
		fact_alloc("child.cudaMalloc", (int)cudaMalloc(&p, MIB), &p);
		fact("child.last", "%d", (int)cudaGetLastError());
		driver_allocations("child.");
		fact("child.cudaMemGetInfo", "%d", (int)cudaMemGetInfo(&free_bytes, &total));
		if (block != NULL)
			fact("child.cudaFree", "%d", (int)cudaFree(block));
		p = SENTINEL;
		fact_alloc("child.cudaMallocHost", (int)cudaMallocHost(&p, MIB), &p);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		fact(label, "no child");
		return;
	}
	fact(label, "%s %d", WIFSIGNALED(status) ? "signal" : "exit",
	     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void section_fork(int arg)
{
	void *block = NULL;
	(void)arg;
	/* The first child starts CUDA itself; only the second has a parent that did. */
	in_child("before_cuda.ended", NULL);
	fact("cudaMalloc", "%d", (int)cudaMalloc(&block, MIB));
	in_child("after_cuda.ended", block);
	fact("parent.cudaFree", "%d", (int)cudaFree(block));
}

static void *late_block, *late_other;
static CUdeviceptr late_driver_block;

static void late_atexit_first(void)
{
	void *p = SENTINEL;
	fact_alloc("atexit_early.cudaMalloc", (int)cudaMalloc(&p, MIB), &p);
	fact("atexit_early.cudaFree", "%d", (int)cudaFree(late_block));
}

static void late_atexit_second(void)
{
	void *p = SENTINEL;
	fact_alloc("atexit_late.cudaMalloc", (int)cudaMalloc(&p, MIB), &p);
	fact("atexit_late.cudaFree", "%d", (int)cudaFree(p));
}

__attribute__((destructor)) static void late_destructor(void)
{
	void *p = SENTINEL;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)SENTINEL;
	if (late_other == NULL)
		return;
	fact("destructor.cudaFree", "%d", (int)cudaFree(late_other));
	fact_alloc("destructor.cudaMalloc", (int)cudaMalloc(&p, MIB), &p);
	fact_alloc("destructor.cuMemAlloc", (int)drv.p_cuMemAlloc(&d, MIB), &d);
	fact("destructor.cuMemFree", "%d", (int)drv.p_cuMemFree(late_driver_block));
}

void section_late(int arg)
{
	(void)arg;
	/* Handlers run in reverse order: "early" was registered before CUDA's own, so it runs after them. */
	atexit(late_atexit_first);
	fact("cudaMalloc", "%d", (int)cudaMalloc(&late_block, MIB));
	fact("cudaMalloc.other", "%d", (int)cudaMalloc(&late_other, MIB));
	fact("cuMemAlloc", "%d", (int)drv.p_cuMemAlloc(&late_driver_block, MIB));
	atexit(late_atexit_second);
}
