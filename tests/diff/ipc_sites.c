/* An allocator hands out several blocks and exports one of them, which one the argument says; another process reads it. A plan made where one was
   exported meets a run that exports another, or an address inside it. */
#include "observe.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

#define BLOCKS 4
#define BYTES 3000

/* The one place that calls CUDA, as in an allocator that several parts of a program use. */
__attribute__((noinline)) static void *allocate(size_t bytes)
{
	void *p = NULL;
	int code = (int)cudaMalloc(&p, bytes);
	if (code != 0)
		obs("allocate", "%d", code);
	return p;
}

static int import(const char *hex)
{
	cudaIpcMemHandle_t h;
	void *p = KEPT;
	for (size_t i = 0; i < sizeof h; i++) {
		unsigned byte;
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return 3;
		((unsigned char *)&h)[i] = (unsigned char)byte;
	}
	obs_out("child.open", cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess), &p);
	CUdeviceptr base = 0;
	size_t size = 0;
	int code = (int)cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)p);
	obs("child.range", "%d,%d,%zu", code, base == (CUdeviceptr)(uintptr_t)p, size);
	unsigned char first = 0;
	code = (int)cudaMemcpy(&first, p, 1, cudaMemcpyDeviceToHost);
	obs("child.content", "%d,%d", code, first);
	obs_bytes("child.all", p, first, BYTES);
	obs_last("child.close", cudaIpcCloseMemHandle(p));
	return 0;
}

static void export_to_child(const char *self, void *p)
{
	cudaIpcMemHandle_t h;
	char hex[2 * sizeof h + 1];
	int status = -1, code = (int)cudaIpcGetMemHandle(&h, p);
	obs_last("export", code);
	if (code != 0)
		return;
	for (size_t i = 0; i < sizeof h; i++)
		sprintf(hex + 2 * i, "%02x", ((unsigned char *)&h)[i]);
	pid_t child;
	char *args[] = {(char *)self, (char *)"import", hex, NULL};
	code = posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ);
	if (code == 0)
		waitpid(child, &status, 0);
	obs("child", "%d,exit=%d", code, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

int main(int argc, char **argv)
{
	void *p[BLOCKS], *elsewhere, *scratch[3];
	if (argc > 2)
		return import(argv[2]);
	int which = argc > 1 ? atoi(argv[1]) : 2;
	/* From four lines: four sites with one innermost frame. */
	p[0] = allocate(BYTES);
	p[1] = allocate(BYTES);
	p[2] = allocate(BYTES);
	p[3] = allocate(BYTES);
	int code = 0;
	for (int i = 0; i < 3; i++)
		code |= (int)cudaMalloc(&scratch[i], BYTES);
	code |= (int)cudaMalloc(&elsewhere, BYTES);
	for (int i = 0; i < BLOCKS; i++)
		code |= (int)cudaMemset(p[i], 0x41 + i % 2, BYTES);
	obs_last("made", code | (int)cudaMemset(elsewhere, 0x51, BYTES) | (int)cudaDeviceSynchronize());
	export_to_child(argv[0], p[which]);
	export_to_child(argv[0], (char *)p[which] + (which % 2 ? 1024 : 0));
	obs_bytes("kept", p[which], 0x41 + which % 2, BYTES);
	obs_bytes("elsewhere", elsewhere, 0x51, BYTES);
	for (int i = 0; i < BLOCKS; i++)
		code |= (int)cudaFree(p[i]);
	for (int i = 0; i < 3; i++)
		code |= (int)cudaFree(scratch[i]);
	obs_last("frees", code | (int)cudaFree(elsewhere));
	return 0;
}
