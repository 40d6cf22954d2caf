/* The second of two small blocks is exported; another process opens it, reads the right bytes and writes one back. */
#include "observe.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static int import(const char *hex)
{
	cudaIpcMemHandle_t h;
	void *p = KEPT, *again = KEPT;
	for (size_t i = 0; i < sizeof h; i++) {
		unsigned byte;
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return 3;
		((unsigned char *)&h)[i] = (unsigned char)byte;
	}
	obs_out("child.open", cudaIpcOpenMemHandle(&p, h, cudaIpcMemLazyEnablePeerAccess), &p);
	if (p == KEPT || p == NULL)
		return 4;
	obs_bytes("child.content", p, 0x82, 1000);
	CUdeviceptr base = 0;
	size_t size = 0;
	int code = (int)cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)p);
	obs("child.range", "%d,%d,%zu", code, base == (CUdeviceptr)(uintptr_t)p, size);
	obs_last("child.open.again", cudaIpcOpenMemHandle(&again, h, cudaIpcMemLazyEnablePeerAccess));
	obs_code("child.same", again == p);
	obs_last("child.free", cudaFree(p));
	obs_last("child.memset", (int)cudaMemset((char *)p + 500, 0x83, 100) | (int)cudaDeviceSynchronize());
	obs_last("child.close", cudaIpcCloseMemHandle(p));
	obs_last("child.close.again", cudaIpcCloseMemHandle(again));
	obs_last("child.close.thrice", cudaIpcCloseMemHandle(again));
	return 0;
}

int main(int argc, char **argv)
{
	void *a, *b;
	cudaIpcMemHandle_t ha, hb;
	char hex[2 * sizeof hb + 1];
	if (argc > 1)
		return import(argv[1]);
	obs_last("made", (int)cudaMalloc(&a, 1000) | (int)cudaMalloc(&b, 1000) | (int)cudaMemset(a, 0x81, 1000) |
	                     (int)cudaMemset(b, 0x82, 1000) | (int)cudaDeviceSynchronize());
	obs_last("export.a", cudaIpcGetMemHandle(&ha, a));
	obs_last("export.b", cudaIpcGetMemHandle(&hb, b));
	obs_code("differ", memcmp(&ha, &hb, sizeof ha) != 0);
	for (size_t i = 0; i < sizeof hb; i++)
		sprintf(hex + 2 * i, "%02x", ((unsigned char *)&hb)[i]);
	pid_t child;
	int status = -1;
	char *args[] = {argv[0], hex, NULL};
	int code = posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ);
	if (code == 0)
		waitpid(child, &status, 0);
	obs("child", "%d,exit=%d", code, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
	obs_bytes("a", a, 0x81, 1000);
	obs_bytes("b.before", b, 0x82, 500);
	obs_bytes("b.written", (char *)b + 500, 0x83, 100);
	obs_last("frees", (int)cudaFree(a) | (int)cudaFree(b));
	obs_last("export.freed", cudaIpcGetMemHandle(&ha, a));
	return 0;
}
