/*
 * Shared by the differential programs: each prints what it alone can observe as stable key=value lines (codes, flags and
 * relations; never addresses, free-memory figures or times), so that runs on a card, on the fake GPU and under the shim
 * can be compared line by line. Also the PTX of a few kernels whose names and parameters the fake GPU knows.
 *
 * Ownership: a program need not free what it made. Threads: obs() may be called from any thread and from a child; the
 * order of lines from several threads is the program's matter. C17 and C++17.
 */
#ifndef TESTS_DIFF_OBSERVE_H
#define TESTS_DIFF_OBSERVE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
/* Far above any card. */
#define TOO_MUCH ((size_t)4 << 40)
/* What out-parameters hold before a call, to see whether it wrote them. */
#define KEPT ((void *)(uintptr_t)0x1230)

/* make_cudaExtent is for C++ and for those who include all of the runtime. */
static inline struct cudaExtent obs_extent(size_t width, size_t height, size_t depth)
{
	struct cudaExtent e;
	e.width = width;
	e.height = height;
	e.depth = depth;
	return e;
}

/* Prints KEY=VALUE in one write. */
__attribute__((format(printf, 2, 3))) static inline void obs(const char *key, const char *format, ...)
{
	char line[512];
	va_list args;
	int used = snprintf(line, sizeof line, "%s=", key);
	va_start(args, format);
	used += vsnprintf(line + used, sizeof line - (size_t)used - 1, format, args);
	va_end(args);
	if ((size_t)used > sizeof line - 2)
		used = (int)sizeof line - 2;
	line[used++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)used) != used)
		_exit(99);
}

/* KEY=CODE, of a call at driver level or one whose effect on the runtime's last error is of no interest. */
static inline void obs_code(const char *key, int code) { obs(key, "%d", code); }

/* KEY=CODE,last=CODE: the runtime's last error, which is cleared. */
static inline void obs_last(const char *key, int code) { obs(key, "%d,last=%d", code, (int)cudaGetLastError()); }

/* KEY=CODE,STATE: what became of an out-parameter (its address) of pointer size that held KEPT: null, kept or set. */
static inline void obs_out(const char *key, int code, const void *out_address)
{
	void *out;
	memcpy(&out, out_address, sizeof out);
	obs(key, "%d,%s", code, out == NULL ? "null" : out == KEPT ? "kept" : "set");
}

/* KEY=1 if `bytes` bytes at `where` in device memory all hold `value`, else 0, or the copy's code as "copy N". The copy
   is synchronous. */
static inline void obs_bytes(const char *key, const void *where, int value, size_t bytes)
{
	unsigned char *host = (unsigned char *)malloc(bytes);
	int code = (int)cudaMemcpy(host, where, bytes, cudaMemcpyDeviceToHost), same = 1;
	for (size_t i = 0; code == 0 && i < bytes; i++)
		same &= host[i] == (unsigned char)value;
	free(host);
	if (code != 0)
		obs(key, "copy %d", code);
	else
		obs(key, "%d", same);
}

/* 1 if a device has a primary context, 0 if not, -1 if that cannot be asked. Makes none. */
static inline int primary_active(int device)
{
	unsigned flags;
	int active = 0;
	return cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS ? active : -1;
}

/* Runs fn(arg) on a fresh thread and waits for it. */
static inline void on_thread(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, fn, arg) != 0) {
		obs("thread", "not started");
		exit(98);
	}
	pthread_join(thread, NULL);
}

/* The name and every parameter are those of the fake GPU's built-in kernels; each runs as one thread. */
#define OBS_WAIT \
	"  cvt.u64.u32 %limit, %ms;\n  mul.lo.u64 %limit, %limit, 1000000;\n  mov.u64 %begin, %globaltimer;\n" \
	"wait:\n  mov.u64 %now, %globaltimer;\n  sub.u64 %gone, %now, %begin;\n" \
	"  setp.lt.u64 %more, %gone, %limit;\n  @%more bra wait;\n"
#define OBS_FILL \
	"  ld.param.u64 %to, [dst];\n  ld.param.u8 %v, [value];\n  ld.param.u64 %n, [bytes];\n  mov.u64 %i, 0;\n" \
	"next:\n  setp.ge.u64 %more, %i, %n;\n  @%more bra done;\n  add.u64 %at, %to, %i;\n" \
	"  st.global.u8 [%at], %v;\n  add.u64 %i, %i, 1;\n  bra next;\ndone:\n  ret;\n"
#define OBS_REGISTERS "  .reg .u64 %limit, %begin, %now, %gone, %to, %n, %i, %at;\n  .reg .u32 %ms;\n  .reg .u16 %v;\n  .reg .pred %more;\n"
static const char obs_ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry fake_spin(.param .u32 ms)\n{\n" OBS_REGISTERS "  ld.param.u32 %ms, [ms];\n" OBS_WAIT "  ret;\n}\n"
	".visible .entry fake_fill(.param .u64 dst, .param .u8 value, .param .u64 bytes)\n{\n" OBS_REGISTERS OBS_FILL "}\n"
	".visible .entry fake_slow_fill(.param .u64 dst, .param .u8 value, .param .u64 bytes, .param .u32 ms)\n{\n"
	OBS_REGISTERS "  ld.param.u32 %ms, [ms];\n" OBS_WAIT OBS_FILL "}\n";

/* A kernel by name in the current context; ends the program where it cannot be had. */
static inline CUfunction obs_kernel(const char *name)
{
	CUmodule module;
	CUfunction function;
	int code = (int)cuModuleLoadData(&module, obs_ptx);
	if (code == 0)
		code = (int)cuModuleGetFunction(&function, module, name);
	if (code != 0) {
		obs("kernel", "%s %d", name, code);
		exit(97);
	}
	return function;
}

/* fake_slow_fill: after `ms` milliseconds fills `bytes` bytes at `dst`. */
static inline int obs_slow_fill(CUfunction slow_fill, CUstream stream, void *dst, int value, size_t bytes, unsigned ms)
{
	CUdeviceptr to = (CUdeviceptr)(uintptr_t)dst;
	unsigned char v = (unsigned char)value;
	void *params[] = {&to, &v, &bytes, &ms};
	return (int)cuLaunchKernel(slow_fill, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* fake_spin: keeps `stream` busy for `ms` milliseconds. */
static inline int obs_spin(CUfunction spin, CUstream stream, unsigned ms)
{
	void *params[] = {&ms};
	return (int)cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

#endif
