/*
 * One process and two devices: blocks of both by the same sites, interleaved; streams of one used while the other is current; frees with
 * another current device; peers, where without "calm" a block is freed while the other device still writes into it, which only memory that is
 * placed survives. "stray" has a context on the second device and allocates there nothing. "second" uses that one alone. "unseen" frees by the driver's
 * own function, past every hook, and asks for blocks of another site where those were.
 */
#define _GNU_SOURCE
#include <link.h>

#include "work.h"

static cudaStream_t streams[2];

static void on(int device) { obs_code("set", (int)cudaSetDevice(device)); }

__attribute__((noinline)) static char *plain(size_t bytes)
{
	char *p = NULL;
	obs_last("plain", cudaMalloc((void **)&p, bytes));
	return p;
}

__attribute__((noinline)) static char *ordered(int device)
{
	char *p = NULL;
	obs_last("ordered", cudaMallocAsync((void **)&p, MIB, streams[device]));
	return p;
}

static int device_of(const void *p)
{
	struct cudaPointerAttributes at = {0};
	return cudaPointerGetAttributes(&at, p) == 0 ? at.device : -1;
}

static void *thread(void *arg)
{
	int device = *(int *)arg;
	if (cudaSetDevice(device) != 0)
		return NULL;
	*(int *)arg = work(streams[device], 40 + device);
	return NULL;
}

static void both_at_once(void)
{
	pthread_t threads[2];
	int results[2] = {0, 1};
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, thread, &results[i]) != 0)
			exit(98);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	obs("threads", "%d,%d", results[0] == ALL_GOOD, results[1] == ALL_GOOD);
}

static void peers(int calm)
{
	on(0);
	obs_last("enable.1", cudaDeviceEnablePeerAccess(1, 0));
	on(1);
	obs_last("enable.0", cudaDeviceEnablePeerAccess(0, 0));
	char *q = plain(MIB);
	obs_last("fill.1", cudaMemset(q, 9, MIB));
	obs_code("wait.1", (int)cudaDeviceSynchronize());
	on(0);
	char *p = plain(MIB);
	obs_last("copy", cudaMemcpyPeer(p, 0, q, 1, MIB));
	obs_bytes("copied", p, 9, MIB);
	CUfunction fill = obs_kernel("fake_slow_fill");
	/* A kernel of device 0 writes into memory of device 1, which is freed meanwhile and asked for again. */
	obs_code("kernel", obs_slow_fill(fill, (CUstream)streams[0], q, 5, MIB, 30));
	if (calm && cudaStreamSynchronize(streams[0]) != 0)
		return;
	on(1);
	obs_last("free.1", cudaFree(q));
	char *r = plain(MIB);
	obs_code("again", holds_value(r, 77, MIB, streams[1]));
	on(0);
	obs_code("wait.0", (int)cudaStreamSynchronize(streams[0]));
	on(1);
	obs_bytes("kept", r, 77, MIB);
	obs_last("free.again", cudaFree(r));
	on(0);
	obs_last("free.0", cudaFree(p));
}

static void figures(cudaMemPool_t pool)
{
	static const enum cudaMemPoolAttr what[] = {cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReservedMemCurrent,
	                                            cudaMemPoolAttrReservedMemHigh};
	unsigned long long v[4] = {1, 1, 1, 1};
	int code = 0;
	for (int i = 0; i < 4; i++)
		code |= (int)cudaMemPoolGetAttribute(pool, what[i], &v[i]);
	obs("figures", "%d,%llu,%llu,%llu,%llu", code, v[0], v[1], v[2], v[3]);
}

static int second_alone(void)
{
	cudaMemPool_t pool = NULL;
	on(1);
	obs_last("stream", cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking));
	obs_last("pool", cudaDeviceGetDefaultMemPool(&pool, 1));
	char *p = ordered(1);
	figures(pool);
	/* As it is: still the default one, whose figures are not the program's alone to see. */
	obs_last("pool.set", cudaDeviceSetMemPool(1, pool));
	char *q = ordered(1);
	figures(pool);
	obs_last("free.p", cudaFreeAsync(p, streams[1]));
	obs_last("free.q", cudaFreeAsync(q, streams[1]));
	obs_code("done", (int)cudaStreamSynchronize(streams[1]));
	figures(pool);
	obs("work", "%d", work(streams[1], 3) == ALL_GOOD);
	return 0;
}

/* The function itself, by the driver's table of symbols. */
static void *behind_the_hooks(const char *name)
{
	struct link_map *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	for (const ElfW(Dyn) *d = driver ? driver->l_ld : NULL; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			symbols = (const ElfW(Sym) *)d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB)
			names = (const char *)d->d_un.d_ptr;
	}
	for (const ElfW(Sym) *s = symbols; s && (const char *)s < names; s++)
		if (strcmp(names + s->st_name, name) == 0 && s->st_value)
			return (void *)(driver->l_addr + s->st_value);
	return NULL;
}

__attribute__((noinline)) static void left_to_the_driver(char **p, int *code)
{
	*code |= (int)cudaMalloc((void **)p, 2 * MIB);
}
__attribute__((noinline)) static void placed(char **p, size_t bytes, int *code)
{
	*code |= (int)cudaMalloc((void **)p, bytes);
}

static int unseen(void)
{
	enum { BLOCKS = 8 };
	char *p[BLOCKS];
	CUresult (*release)(CUdeviceptr) = (CUresult(*)(CUdeviceptr))behind_the_hooks("cuMemFree_v2");
	int code = release == NULL;
	for (int i = 0; i < BLOCKS; i++)
		left_to_the_driver(&p[i], &code);
	for (int i = 0; i < BLOCKS && !code; i++)
		code |= (int)release((CUdeviceptr)p[i]);
	obs_code("gone", code);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < BLOCKS; i++)
			placed(&p[i], (size_t)(2 + round) * MIB, &code);
		for (int i = 0; i < BLOCKS; i++)
			obs_code("free", (int)cudaFree(p[i]));
	}
	obs_code("placed", code);
	return 0;
}

int main(int argc, char **argv)
{
	int stray = argc > 1 && strcmp(argv[1], "stray") == 0;
	if (argc > 1 && strcmp(argv[1], "second") == 0)
		return second_alone();
	if (argc > 1 && strcmp(argv[1], "unseen") == 0)
		return unseen();
	for (int device = 1; device >= 0; device--) {
		on(device);
		obs_last("stream", cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
	}
	if (stray) {
		obs("work", "%d", work(streams[0], 3) == ALL_GOOD);
		return 0;
	}
	/* The first memory of device 1 is by its stream while device 0 is current; then again by one that was used while its own was. */
	char *first = ordered(1);
	obs("first.lies", "%d", device_of(first));
	obs_last("first.free", cudaFreeAsync(first, streams[1]));
	on(1);
	first = ordered(1);
	obs_last("first.free", cudaFreeAsync(first, streams[1]));
	for (int round = 0; round < 4; round++) {
		int device = round % 2;
		on(device);
		obs("work", "%d", work(streams[device], round) == ALL_GOOD);
	}
	char *of[2], *async[2];
	for (int device = 0; device < 2; device++) {
		on(device);
		of[device] = plain(MIB * (size_t)(3 + device));
	}
	on(0);
	for (int device = 0; device < 2; device++)
		async[device] = ordered(device); /* the second by a stream of the device that is not current */
	obs("lies", "%d,%d,%d,%d", device_of(of[0]), device_of(of[1]), device_of(async[0]), device_of(async[1]));
	for (int device = 0; device < 2; device++)
		obs_last("fill", cudaMemsetAsync(async[device], 20 + device, MIB, streams[device]));
	obs_code("done", (int)cudaStreamSynchronize(streams[0]) | (int)cudaStreamSynchronize(streams[1]));
	obs_bytes("of.0", async[0], 20, MIB);
	obs_bytes("of.1", async[1], 21, MIB);
	/* All with device 0 current. */
	obs_last("free.0", cudaFree(of[0]));
	obs_last("free.1", cudaFree(of[1]));
	obs_last("free.twice", cudaFree(of[1]));
	obs_last("free_async.1", cudaFreeAsync(async[1], streams[1]));
	obs_last("free_async.0", cudaFreeAsync(async[0], streams[0]));
	both_at_once();
	peers(argc > 1);
	return 0;
}
