/*
 * Several pools on one device, each of which answers for its own blocks alone: the default one, two of the program's own, blocks of one site out of each of
 * them, the current pool changed between, blocks freed while another pool is the current one, high marks, trims and thresholds of one and not of the others.
 * `pool_several alone`: blocks of the default pool that no tier serves, in the step in which the arena of those ends that one does, with and without these.
 */
#include "observe.h"

#define POOLS 3

static cudaMemPool_t pools[POOLS];
static cudaStream_t stream;

static void show(const char *when)
{
	static const enum cudaMemPoolAttr what[] = {cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReservedMemCurrent,
	                                            cudaMemPoolAttrReservedMemHigh};
	char key[80];
	for (int p = 0; p < POOLS; p++) {
		unsigned long long v[4] = {1, 1, 1, 1};
		int code = 0;
		for (int i = 0; i < 4 && pools[p]; i++)
			code |= (int)cudaMemPoolGetAttribute(pools[p], what[i], &v[i]);
		snprintf(key, sizeof key, "%s.pool%d", when, p);
		obs(key, "%d,used=%llu,high=%llu,reserved=%llu,high=%llu", code, v[0], v[1], v[2], v[3]);
	}
}

/* Out of the current pool, from one site whichever that is. */
static __attribute__((noinline)) void *current(size_t bytes)
{
	void *p = NULL;
	int code = (int)cudaMallocAsync(&p, bytes, stream);
	if (code != 0)
		obs_code("alloc", code);
	return p;
}

/* Out of the default one, from a site of its own, while that is the current one. */
static __attribute__((noinline)) void *ordinary(size_t bytes)
{
	void *p = NULL;
	int code = (int)cudaMallocAsync(&p, bytes, stream);
	if (code != 0)
		obs_code("ordinary", code);
	return p;
}

static __attribute__((noinline)) void *named(int pool, size_t bytes)
{
	void *p = NULL;
	int code = (int)cudaMallocFromPoolAsync(&p, bytes, pools[pool], stream);
	if (code != 0)
		obs_code("named", code);
	return p;
}

static void use(int pool) { obs_last("use", cudaDeviceSetMemPool(0, pools[pool])); }

/* Which pool a block says that it is of. */
static void is_of(const char *key, void *block, int pool)
{
	CUmemoryPool of = NULL;
	int code = (int)cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)(uintptr_t)block);
	obs(key, "%d,%d", code, of == (CUmemoryPool)pools[pool]);
}

static int alone(void)
{
	void *served = ordinary(9 * MIB), *other = named(0, 7 * MIB);
	show("both");
	obs_last("free", (int)cudaFreeAsync(served, stream) | (int)cudaStreamSynchronize(stream));
	show("other");
	served = ordinary(2 * MIB);
	obs_last("trim", (int)cudaStreamSynchronize(stream) | (int)cudaMemPoolTrimTo(pools[0], 0));
	show("again");
	obs_last("free.other", (int)cudaFreeAsync(other, stream) | (int)cudaStreamSynchronize(stream));
	show("served");
	obs_last("free.served", (int)cudaFreeAsync(served, stream) | (int)cudaStreamSynchronize(stream));
	show("none");
	return 0;
}

int main(int argc, char **argv)
{
	struct cudaMemPoolProps props;
	void *o, *p[POOLS], *q[POOLS], *n[POOLS];
	uint64_t zero = 0, much = 512 * MIB;
	memset(&props, 0, sizeof props);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	obs_last("make", (int)cudaStreamCreate(&stream) | (int)cudaDeviceGetDefaultMemPool(&pools[0], 0) | (int)cudaMemPoolCreate(&pools[1], &props) |
	                     (int)cudaMemPoolCreate(&pools[2], &props));
	show("fresh");
	if (argc > 1 && strcmp(argv[1], "alone") == 0)
		return alone();
	o = ordinary(3 * MIB);
	show("ordinary");
	for (int i = 0; i < POOLS; i++) {
		use(i);
		p[i] = current((size_t)(5 + 10 * i) * MIB);
		is_of("of.current", p[i], i);
		n[i] = named((i + 1) % POOLS, (size_t)(1 + i) * MIB);
		is_of("of.named", n[i], (i + 1) % POOLS);
	}
	show("each");
	is_of("of.ordinary", o, 0);
	/* The current one is the last; what is freed is another's. */
	obs_last("free", (int)cudaFreeAsync(p[0], stream) | (int)cudaFreeAsync(n[0], stream));
	show("freed");
	obs_last("sync", cudaStreamSynchronize(stream));
	show("synchronized");
	obs_last("high", (int)cudaMemPoolSetAttribute(pools[1], cudaMemPoolAttrUsedMemHigh, &zero) |
	                     (int)cudaMemPoolSetAttribute(pools[1], cudaMemPoolAttrReservedMemHigh, &zero));
	show("high.1");
	obs_last("high.0", cudaMemPoolSetAttribute(pools[0], cudaMemPoolAttrUsedMemHigh, &zero));
	show("high.0");
	/* One keeps what it has, the others do not. */
	obs_last("threshold", cudaMemPoolSetAttribute(pools[0], cudaMemPoolAttrReleaseThreshold, &much));
	use(0);
	for (int i = 0; i < POOLS; i++)
		q[i] = i == 0 ? ordinary(20 * MIB) : named(i, (size_t)(70 + i) * MIB);
	show("more");
	for (int i = 0; i < POOLS; i++)
		obs_last("free.more", cudaFreeAsync(q[i], stream));
	obs_last("sync.more", cudaStreamSynchronize(stream));
	show("kept");
	obs_last("trim.1", cudaMemPoolTrimTo(pools[1], 0));
	show("trim.1");
	obs_last("trim.0", cudaMemPoolTrimTo(pools[0], 0));
	show("trim.0");
	obs_last("free.plainly", (int)cudaFree(o) | (int)cudaFree(p[1]));
	show("plainly");
	obs_last("end", (int)cudaFreeAsync(p[2], stream) | (int)cudaFreeAsync(n[1], stream) | (int)cudaFreeAsync(n[2], stream) | (int)cudaStreamSynchronize(stream));
	show("end");
	obs_last("destroy", cudaMemPoolDestroy(pools[2]));
	pools[2] = NULL;
	o = ordinary(4 * MIB);
	show("destroyed");
	/* Two sorts of blocks of one pool, the most of each at another time. */
	obs_last("last.high", (int)cudaFreeAsync(o, stream) | (int)cudaStreamSynchronize(stream) | (int)cudaMemPoolTrimTo(pools[0], 0) |
	                          (int)cudaMemPoolSetAttribute(pools[0], cudaMemPoolAttrUsedMemHigh, &zero));
	show("turns");
	for (int i = 0; i < 3; i++) {
		o = ordinary((size_t)(10 + 7 * i) * MIB);
		show("turns.one");
		obs_last("turns.free", cudaFreeAsync(o, stream));
		o = named(0, (size_t)(15 + 2 * i) * MIB);
		show("turns.other");
		obs_last("turns.free", cudaFreeAsync(o, stream));
	}
	o = ordinary(MIB);
	obs_last("last", (int)cudaFreeAsync(o, stream) | (int)cudaStreamSynchronize(stream));
	return 0;
}
