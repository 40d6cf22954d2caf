/* Peer access: enabled once and twice, memory before and after it, pools, copies, disabled again. */
#include "observe.h"

int main(void)
{
	int can = -1;
	void *p, *q, *r, *async;
	cudaMemPool_t pool;
	enum cudaMemAccessFlags flags = (enum cudaMemAccessFlags)77;
	obs_last("can", cudaDeviceCanAccessPeer(&can, 0, 1));
	obs_code("can.value", can);
	obs_last("made", (int)cudaSetDevice(1) | (int)cudaMalloc(&q, MIB) | (int)cudaMemset(q, 4, MIB) | (int)cudaDeviceSynchronize());
	obs_last("made.0", (int)cudaSetDevice(0) | (int)cudaMalloc(&p, MIB));
	obs_last("copy_peer.before", cudaMemcpyPeer(p, 0, q, 1, 4096));
	obs_bytes("copied.before", p, 4, 4096);
	obs_last("enable", cudaDeviceEnablePeerAccess(1, 0));
	obs_last("enable.again", cudaDeviceEnablePeerAccess(1, 0));
	obs_last("enable.self", cudaDeviceEnablePeerAccess(0, 0));
	obs_last("enable.flags", cudaDeviceEnablePeerAccess(1, 5));
	CUfunction slow_fill = obs_kernel("fake_slow_fill");
	obs_code("kernel", obs_slow_fill(slow_fill, NULL, q, 6, 64, 1) | (int)cudaDeviceSynchronize());
	obs_bytes("kernel.content", q, 6, 64);
	obs_last("later", (int)cudaSetDevice(1) | (int)cudaMalloc(&r, MIB) | (int)cudaSetDevice(0));
	obs_code("kernel.later", obs_slow_fill(slow_fill, NULL, r, 7, 64, 1) | (int)cudaDeviceSynchronize());
	obs_bytes("kernel.later.content", r, 7, 64);
	obs_last("pool", cudaDeviceGetDefaultMemPool(&pool, 1));
	struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
	obs_last("pool.access", cudaMemPoolGetAccess(&flags, pool, &here));
	obs_code("pool.access.value", (int)flags);
	struct cudaMemAccessDesc desc = {{cudaMemLocationTypeDevice, 0}, cudaMemAccessFlagsProtReadWrite};
	obs_last("pool.set_access", cudaMemPoolSetAccess(pool, &desc, 1));
	obs_last("pool.access.2", cudaMemPoolGetAccess(&flags, pool, &here));
	obs_code("pool.access.2.value", (int)flags);
	obs_last("async", cudaMallocFromPoolAsync(&async, MIB, pool, NULL));
	obs_last("async.memset", (int)cudaMemsetAsync(async, 8, 64, NULL) | (int)cudaStreamSynchronize(NULL));
	obs_bytes("async.content", async, 8, 64);
	obs_last("async.free", cudaFreeAsync(async, NULL));
	obs_last("disable", cudaDeviceDisablePeerAccess(1));
	obs_last("disable.again", cudaDeviceDisablePeerAccess(1));
	obs_last("copy_peer.after", cudaMemcpyPeer(p, 0, q, 1, 64));
	obs_bytes("copied.after", p, 6, 64);
	obs_last("frees", (int)cudaFree(q) | (int)cudaFree(r) | (int)cudaFree(p));
	return 0;
}
