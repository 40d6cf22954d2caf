/*
 * Two copies of the runtime in one process: one this program needs, one opened RTLD_LOCAL from another path (a copy of the
 * file that the loader gave us). A failure in either leaves its error in that one; memory of one may be freed by the other.
 */
#include "observe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct {
	cudaError_t (*cudaMalloc)(void **, size_t);
	cudaError_t (*cudaFree)(void *);
	cudaError_t (*cudaMallocAsync)(void **, size_t, cudaStream_t);
	cudaError_t (*cudaGetLastError)(void);
	cudaError_t (*cudaPeekAtLastError)(void);
	cudaError_t (*cudaMemGetInfo)(size_t *, size_t *);
	cudaError_t (*cudaDeviceSynchronize)(void);
} other;

static void errors(const char *key) { obs(key, "%d,%d", (int)cudaPeekAtLastError(), (int)other.cudaPeekAtLastError()); }

/* Copies the file that cudaGetLastError lies in to `to`. */
static int copy_runtime(const char *to)
{
	Dl_info info;
	static char buffer[1 << 16];
	ssize_t n;
	if (dladdr(dlsym(RTLD_DEFAULT, "cudaGetLastError"), &info) == 0)
		return -1;
	int in = open(info.dli_fname, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);
	while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof buffer)) > 0)
		if (write(out, buffer, (size_t)n) != n)
			return -1;
	return in >= 0 && out >= 0 ? close(in) | close(out) : -1;
}

int main(void)
{
	char folder[] = "/tmp/two_runtimes.XXXXXX", path[64];
	void *p = KEPT, *q = KEPT;
	size_t a = 0, b = 0;
	if (mkdtemp(folder) == NULL)
		return 9;
	snprintf(path, sizeof path, "%s/libcudart.so.13", folder);
	obs_code("copied", copy_runtime(path));
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	obs("open", "%s", h != NULL ? "yes" : dlerror());
	unlink(path);
	rmdir(folder);
	if (h == NULL)
		return 9;
#define FIND(name) \
	*(void **)&other.name = dlsym(h, #name); \
	obs("find." #name, "%d,%d", other.name != NULL, other.name != name)
	FIND(cudaMalloc);
	FIND(cudaFree);
	FIND(cudaMallocAsync);
	FIND(cudaGetLastError);
	FIND(cudaPeekAtLastError);
	FIND(cudaMemGetInfo);
	FIND(cudaDeviceSynchronize);
	obs_code("first.malloc", cudaMalloc(&p, MIB));
	obs_code("second.malloc", other.cudaMalloc(&q, MIB));
	errors("fresh");
	obs_code("first.refused", cudaMalloc(&p, TOO_MUCH));
	errors("first.failed");
	obs_code("first.clears", cudaGetLastError());
	errors("first.cleared");
	obs_out("second.refused", other.cudaMalloc(&p, TOO_MUCH), &p);
	errors("second.failed");
	obs_code("first.works", cudaMalloc(&p, MIB));
	errors("first.worked");
	obs_code("first.bad_free", cudaFree(&p));
	errors("both.failed");
	obs_code("second.clears", other.cudaGetLastError());
	errors("second.cleared");
	obs_code("first.frees_second", cudaFree(q));
	obs_code("second.frees_first", other.cudaFree(p));
	obs_code("second.frees_again", other.cudaFree(p));
	errors("second.failed.2");
	obs_code("second.async_refused", other.cudaMallocAsync(&q, TOO_MUCH, NULL));
	errors("second.failed.3");
	obs_code("first.clears.2", cudaGetLastError());
	obs_code("second.clears.2", other.cudaGetLastError());
	obs_code("first.query", cudaMemGetInfo(&a, NULL));
	obs_code("second.query", other.cudaMemGetInfo(NULL, &b));
	obs_code("query.after", a <= b);
	obs_code("second.malloc.2", other.cudaMalloc(&q, 100));
	obs_code("second.sync", other.cudaDeviceSynchronize());
	obs_code("close", dlclose(h));
	obs_code("first.frees_orphan", cudaFree(q));
	obs_last("end", cudaSuccess);
	return 0;
}
