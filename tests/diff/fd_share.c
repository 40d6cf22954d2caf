/*
 * `fd_share WHAT`: memory shared by file descriptor with another process: a handle of virtual memory (vmm), or a pool with a
 * block in it (pool). The child is this program again; it reads what the parent wrote and writes what the parent reads.
 */
#include "observe.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static struct cudaMemPoolProps pool_props;

static void prepare(void)
{
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access_desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	pool_props.allocType = cudaMemAllocationTypePinned;
	pool_props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	pool_props.location.type = cudaMemLocationTypeDevice;
}

static void *map(const char *key, CUmemGenericAllocationHandle h)
{
	char k[64];
	CUdeviceptr va = 0;
	int code = (int)cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0);
	code |= (int)cuMemMap(va, 2 * MIB, 0, h, 0);
	code |= (int)cuMemSetAccess(va, 2 * MIB, &access_desc, 1);
	snprintf(k, sizeof k, "%s.mapped", key);
	obs_code(k, code);
	return (void *)(uintptr_t)va;
}

/* Runs this program with three arguments and waits for it. */
static void child(char *self, const char *what, int fd, const char *data)
{
	char number[16], k[64];
	char *args[] = {self, (char *)what, number, (char *)data, NULL};
	pid_t pid;
	int status = -1;
	snprintf(number, sizeof number, "%d", fd);
	int code = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, environ);
	if (code == 0)
		waitpid(pid, &status, 0);
	snprintf(k, sizeof k, "%s.child", what);
	obs(k, "%d,exit=%d", code, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

static int child_vmm(int fd)
{
	CUmemGenericAllocationHandle h;
	int code = (int)cudaFree(NULL) | (int)cuMemImportFromShareableHandle(&h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	obs_code("vmm.child.import", code);
	if (code != 0)
		return 3;
	char *p = map("vmm.child", h);
	obs_bytes("vmm.child.content", p, 0x91, 4096);
	obs_last("vmm.child.write", (int)cudaMemset(p + 4096, 0x92, 4096) | (int)cudaDeviceSynchronize());
	obs_code("vmm.child.end", (int)cuMemUnmap((CUdeviceptr)(uintptr_t)p, 2 * MIB) | (int)cuMemRelease(h));
	return 0;
}

static int child_pool(int fd, const char *hex)
{
	cudaMemPool_t pool;
	struct cudaMemPoolPtrExportData data;
	char *p = KEPT;
	for (size_t i = 0; i < sizeof data; i++) {
		unsigned byte;
		if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
			return 3;
		((unsigned char *)&data)[i] = (unsigned char)byte;
	}
	int code = (int)cudaMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd, cudaMemHandleTypePosixFileDescriptor, 0);
	obs_last("pool.child.import", code);
	if (code != 0)
		return 4;
	obs_out("pool.child.pointer", cudaMemPoolImportPointer((void **)&p, pool, &data), &p);
	if ((void *)p == KEPT)
		return 5;
	obs_bytes("pool.child.content", p, 0x93, 4096);
	obs_last("pool.child.write", (int)cudaMemset(p + 4096, 0x94, 4096) | (int)cudaDeviceSynchronize());
	void *q = KEPT;
	obs_last("pool.child.alloc", cudaMallocFromPoolAsync(&q, 100, pool, NULL));
	obs_last("pool.child.free", cudaFreeAsync(p, NULL));
	obs_last("pool.child.sync", cudaStreamSynchronize(NULL));
	return 0;
}

static void share_vmm(char *self)
{
	CUmemGenericAllocationHandle h;
	int fd = -1;
	obs_code("vmm.create", cuMemCreate(&h, 2 * MIB, &prop, 0));
	char *p = map("vmm", h);
	obs_last("vmm.fill", (int)cudaMemset(p, 0x91, 4096) | (int)cudaDeviceSynchronize());
	obs_code("vmm.export", cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	child(self, "vmm", dup(fd), "-");
	obs_bytes("vmm.before", p, 0x91, 4096);
	obs_bytes("vmm.written", p + 4096, 0x92, 4096);
	cudaIpcMemHandle_t ipc;
	obs_last("vmm.ipc", cudaIpcGetMemHandle(&ipc, p));
	obs_code("vmm.end", (int)cuMemUnmap((CUdeviceptr)(uintptr_t)p, 2 * MIB) | (int)cuMemRelease(h) | close(fd));
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	obs_code("private.create", cuMemCreate(&h, 2 * MIB, &prop, 0));
	obs_code("private.export", cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	obs_code("private.release", cuMemRelease(h));
}

static void share_pool(char *self)
{
	cudaMemPool_t pool, plain;
	struct cudaMemPoolPtrExportData data;
	char hex[2 * sizeof data + 1], *p;
	int fd = -1;
	obs_last("pool.create", cudaMemPoolCreate(&pool, &pool_props));
	obs_last("pool.alloc", cudaMallocFromPoolAsync((void **)&p, 8192, pool, NULL));
	obs_last("pool.fill", (int)cudaMemsetAsync(p, 0x93, 4096, NULL) | (int)cudaStreamSynchronize(NULL));
	obs_last("pool.export", cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	obs_last("pool.export.pointer", cudaMemPoolExportPointer(&data, p));
	for (size_t i = 0; i < sizeof data; i++)
		sprintf(hex + 2 * i, "%02x", ((unsigned char *)&data)[i]);
	child(self, "pool", dup(fd), hex);
	obs_bytes("pool.before", p, 0x93, 4096);
	obs_bytes("pool.written", p + 4096, 0x94, 4096);
	obs_last("pool.free", (int)cudaFreeAsync(p, NULL) | (int)cudaStreamSynchronize(NULL));
	obs_last("default", cudaDeviceGetDefaultMemPool(&plain, 0));
	obs_last("default.export", cudaMemPoolExportToShareableHandle(&fd, plain, cudaMemHandleTypePosixFileDescriptor, 0));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "vmm";
	prepare();
	if (argc > 3)
		return strcmp(what, "vmm") == 0 ? child_vmm(atoi(argv[2])) : child_pool(atoi(argv[2]), argv[3]);
	obs_code("init", cudaFree(NULL));
	if (strcmp(what, "pool") == 0)
		share_pool(argv[0]);
	else
		share_vmm(argv[0]);
	return 0;
}
