/* How much is there? Asked by trying, from 512 GiB down, at places in the program that also take small blocks: every refusal is a refusal
   like the driver's, leaves no trace but the runtime's last error, and takes nothing; the small blocks go on. Within captures too. */
#include "observe.h"

#define GIB ((size_t)1 << 30)

static cudaStream_t s;

static int take(int kind, void **p, size_t bytes)
{
	switch (kind) {
	case 0: return (int)cudaMalloc(p, bytes);
	case 1: return (int)cudaMallocAsync(p, bytes, s);
	case 2: return (int)cuMemAlloc((CUdeviceptr *)p, bytes);
	default: return (int)cuMemAllocAsync((CUdeviceptr *)p, bytes, s);
	}
}

static int give(int kind, void *p) { return kind % 2 ? (int)cudaFreeAsync(p, s) | (int)cudaStreamSynchronize(s) : (int)cudaFree(p); }

static void small(const char *name, const char *when, int kind)
{
	char key[64];
	void *p = KEPT;
	int code = take(kind, &p, 3000);
	snprintf(key, sizeof key, "%s.%s", name, when);
	obs(key, "%d,%s,last=%d", code, p == NULL ? "null" : p == KEPT ? "kept" : "set", (int)cudaGetLastError());
	if (code != 0)
		return;
	snprintf(key, sizeof key, "%s.%s.fill", name, when);
	obs_last(key, (int)cudaMemsetAsync(p, 0x19, 3000, s) | (int)cudaStreamSynchronize(s));
	snprintf(key, sizeof key, "%s.%s.content", name, when);
	obs_bytes(key, p, 0x19, 3000);
	snprintf(key, sizeof key, "%s.%s.free", name, when);
	obs_last(key, give(kind, p));
}

static void probe(const char *name, int kind)
{
	char key[64];
	size_t before = 0, after = 0;
	small(name, "before", kind);
	(void)cudaMemGetInfo(&before, NULL);
	for (size_t bytes = 8192 * GIB; bytes >= 512 * GIB; bytes /= 2) {
		void *p = KEPT;
		int code = take(kind, &p, bytes);
		snprintf(key, sizeof key, "%s.%zu", name, bytes / GIB);
		obs(key, "%d,%s,last=%d", code, p == NULL ? "null" : p == KEPT ? "kept" : "set", (int)cudaGetLastError());
		if (bytes == 1024 * GIB)
			small(name, "between", kind);
	}
	(void)cudaMemGetInfo(&after, NULL);
	snprintf(key, sizeof key, "%s.took_nothing", name);
	obs(key, "%d", before - after < 64 * MIB || after >= before);
	small(name, "after", kind);
}

static void captured(const char *name, int kind, enum cudaStreamCaptureMode mode)
{
	cudaStream_t aside;
	cudaGraph_t graph = NULL;
	void *p = KEPT, *q = KEPT;
	int code = (int)cudaStreamCreateWithFlags(&aside, cudaStreamNonBlocking) | (int)cudaStreamBeginCapture(aside, mode);
	int first = take(kind, &p, 512 * GIB), last = (int)cudaGetLastError();
	int second = take(kind, &q, 3000), last_second = (int)cudaGetLastError();
	int ended = (int)cudaStreamEndCapture(aside, &graph);
	cudaGetLastError();
	obs(name, "%d,%d,last=%d,%d,last=%d,end=%d,survives=%d", code, first, last, second, last_second, ended, graph != NULL);
	if (second == 0 && q != KEPT)
		give(kind, q);
	if (graph != NULL)
		cudaGraphDestroy(graph);
	cudaStreamDestroy(aside);
	cudaGetLastError();
}

int main(void)
{
	static const char *const names[] = {"plain", "ordered", "driver", "driver_ordered"};
	static const char *const modes[] = {"global", "thread_local", "relaxed"};
	char key[64];
	obs_last("init", (int)cudaFree(NULL) | (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (int kind = 0; kind < 4; kind++)
		probe(names[kind], kind);
	for (int mode = 0; mode < 3; mode++)
		for (int kind = 0; kind < 4; kind++) {
			snprintf(key, sizeof key, "%s.%s", modes[mode], names[kind]);
			captured(key, kind, (enum cudaStreamCaptureMode)mode);
		}
	small("end", "plain", 0);
	return 0;
}
