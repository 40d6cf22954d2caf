/* A model's load and unload, a growing scratch buffer whose pointer is overwritten, and what comes back each time. */
#include "observe.h"

static size_t free_now(void)
{
	size_t f = 0;
	cudaMemGetInfo(&f, NULL);
	return f;
}

int main(void)
{
	void *weights[20], *scratch = NULL, *next;
	size_t before, bytes;
	int code = cudaFree(NULL);
	obs_code("init", code);
	before = free_now();
	for (int round = 0; round < 3; round++) {
		char k[32];
		code = 0;
		for (int i = 0; i < 20; i++)
			code |= (int)cudaMalloc(&weights[i], 50 * MIB);
		snprintf(k, sizeof k, "%d.load", round);
		obs_code(k, code);
		snprintf(k, sizeof k, "%d.used_MiB", round);
		obs(k, "%zu", (before - free_now()) / MIB);
		for (int i = 0; i < 20; i++)
			code |= (int)cudaFree(weights[i]);
		snprintf(k, sizeof k, "%d.unload", round);
		obs_code(k, code);
		snprintf(k, sizeof k, "%d.back", round);
		obs_code(k, before == free_now());
	}
	code = 0;
	for (bytes = 4 * MIB; bytes <= 256 * MIB; bytes *= 2) {
		code |= (int)cudaMalloc(&next, bytes);
		if (scratch != NULL) {
			code |= (int)cudaMemcpy(next, scratch, bytes / 2, cudaMemcpyDeviceToDevice);
			code |= (int)cudaFree(scratch);
		}
		scratch = next;
	}
	obs_last("grown", code);
	obs("scratch_MiB", "%zu", (before - free_now()) / MIB);
	obs_last("again", cudaMalloc(&scratch, 32 * MIB)); /* the old address is lost */
	obs("lost_MiB", "%zu", (before - free_now()) / MIB);
	obs_last("reset", cudaDeviceReset());
	obs_last("malloc", cudaMalloc(&scratch, 32 * MIB));
	return 0;
}
