/* Pinned memory that the first device's work used is freed and asked for again while a stream of the second device is held up by this very thread:
   nobody waits for that one. With "calm" the first device is waited for before the free, so that a plan has one place for both blocks. */
#define _GNU_SOURCE
#include <time.h>

#include "observe.h"

#define HELD_MS 3000

static int open_gate;

/* Until it is opened, or time is up: a call that waits for it then shows. */
static void CUDART_CB hold(void *arg)
{
	struct timespec pause = {0, 1000000};
	(void)arg;
	for (int i = 0; i < HELD_MS && !__atomic_load_n(&open_gate, __ATOMIC_ACQUIRE); i++)
		nanosleep(&pause, NULL);
}

static int take(unsigned char **p)
{
	return (int)cudaHostAlloc((void **)p, 65536, cudaHostAllocPortable);
}

int main(int argc, char **argv)
{
	unsigned char *p, *device;
	cudaStream_t held;
	int calm = argc > 1, code;
	(void)argv;
	obs_last("init", (int)cudaSetDevice(1) | (int)cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking) | (int)cudaSetDevice(0) |
	                     (int)cudaMalloc((void **)&device, 65536));
	CUfunction spin = obs_kernel("fake_spin");
	for (int round = 0; round < 3; round++) {
		open_gate = 0;
		code = take(&p) | (int)cudaMemset(device, round, 65536) | obs_spin(spin, NULL, 20);
		code |= (int)cudaMemcpyAsync(p, device, 65536, cudaMemcpyDeviceToHost, NULL);
		if (calm)
			code |= (int)cudaDeviceSynchronize();
		obs_last("freed", code | (int)cudaFreeHost(p));
		obs_last("held", cudaLaunchHostFunc(held, hold, NULL));
		obs_last("again", take(&p));
		obs_code("not_waited", cudaStreamQuery(held));
		__atomic_store_n(&open_gate, 1, __ATOMIC_RELEASE);
		obs_last("opened", cudaStreamSynchronize(held));
		(void)cudaGetLastError();
		obs("zero", "%d", p[0] | p[65535]);
		obs_last("end", cudaFreeHost(p));
	}
	return 0;
}
