/* A pool's attributes through allocations, frees, trims and resets of the high marks; the default pool and one's own. */
#include "observe.h"

static cudaMemPool_t pool;

static void show(const char *name)
{
	static const enum cudaMemPoolAttr what[] = {cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh,
	                                            cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrReservedMemHigh};
	unsigned long long v[4] = {1, 1, 1, 1};
	int code = 0;
	for (int i = 0; i < 4; i++)
		code |= (int)cudaMemPoolGetAttribute(pool, what[i], &v[i]);
	obs(name, "%d,used=%llu,high=%llu,reserved=%llu,high=%llu", code, v[0], v[1], v[2], v[3]);
}

static void run(const char *name, int own)
{
	cudaStream_t s;
	void *p, *q;
	uint64_t v = 0;
	int one = 77;
	obs("pool", "%s", name);
	obs_code("stream", cudaStreamCreate(&s));
	show("fresh");
	if (own) {
		obs_last("alloc.p", cudaMallocFromPoolAsync(&p, 10 * MIB, pool, s));
		obs_last("alloc.q", cudaMallocFromPoolAsync(&q, 40 * MIB + 1, pool, s));
	} else {
		obs_last("alloc.p", cudaMallocAsync(&p, 10 * MIB, s));
		obs_last("alloc.q", cudaMallocAsync(&q, 40 * MIB + 1, s));
	}
	show("allocated");
	obs_last("free.p", cudaFreeAsync(p, s));
	show("freed");
	obs_last("sync", cudaStreamSynchronize(s));
	obs_last("reset_high", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &v));
	show("reset");
	v = 1;
	obs_last("reset_high.1", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &v));
	obs_last("set_used", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &v));
	obs_last("trim", cudaMemPoolTrimTo(pool, 0));
	obs_last("opportunistic", cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &one));
	obs_code("opportunistic.value", one);
	one = 0;
	obs_last("opportunistic.set", cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &one));
	obs_last("free.q", cudaFree(q));
	obs_last("sync.2", cudaStreamSynchronize(s));
	obs_last("trim.2", cudaMemPoolTrimTo(pool, 0));
	show("end");
	obs_last("get.null", cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)99, &v));
	obs_last("stream.destroy", cudaStreamDestroy(s));
}

int main(void)
{
	struct cudaMemPoolProps props;
	cudaMemPool_t current = NULL;
	void *p = KEPT;
	obs_last("default", cudaDeviceGetDefaultMemPool(&pool, 0));
	run("default", 0);
	memset(&props, 0, sizeof props);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	obs_last("create", cudaMemPoolCreate(&pool, &props));
	run("own", 1);
	obs_last("set", cudaDeviceSetMemPool(0, pool));
	obs_last("get", cudaDeviceGetMemPool(&current, 0));
	obs_code("is_own", current == pool);
	obs_last("alloc", cudaMallocAsync(&p, MIB, NULL));
	show("as_current");
	obs_last("destroy", cudaMemPoolDestroy(pool));
	obs_last("get.2", cudaDeviceGetMemPool(&current, 0));
	obs_code("back_to_default", current != pool);
	obs_last("free", cudaFreeAsync(p, NULL));
	obs_last("sync", cudaDeviceSynchronize());
	cudaMemPool_t bad = (cudaMemPool_t)KEPT;
	props.location.id = 55;
	obs_out("create.bad_device", cudaMemPoolCreate(&bad, &props), &bad);
	obs_last("create.last", cudaSuccess);
	return 0;
}
