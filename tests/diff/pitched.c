/* Pitched, 3D and array memory, with contents that go in and come back. */
#include "observe.h"

int main(void)
{
	void *p = KEPT;
	CUdeviceptr d = (CUdeviceptr)(uintptr_t)KEPT;
	size_t pitch = 7;
	unsigned char in[48], out[48];
	for (int i = 0; i < 48; i++)
		in[i] = (unsigned char)(i * 5);
	for (size_t width = 1; width <= 4096; width *= 16) {
		char k[32];
		snprintf(k, sizeof k, "pitch.%zu", width);
		int code = (int)cudaMallocPitch(&p, &pitch, width, 3);
		obs(k, "%d,%zu", code, pitch);
		code = (int)cuMemAllocPitch(&d, &pitch, width, 3, 16);
		snprintf(k, sizeof k, "driver.%zu", width);
		obs(k, "%d,%zu", code, pitch);
		obs_code("driver.free", cuMemFree(d));
		if (width != 16) {
			obs_last("free", cudaFree(p));
			continue;
		}
		obs_last("copy2d", cudaMemcpy2D(p, pitch, in, 16, 16, 3, cudaMemcpyHostToDevice));
		obs_last("back2d", cudaMemcpy2D(out, 16, p, pitch, 16, 3, cudaMemcpyDeviceToHost));
		obs_code("same", memcmp(in, out, 48) == 0);
		obs_last("free", cudaFree(p));
	}
	obs_code("driver.odd_element", cuMemAllocPitch(&d, &pitch, 64, 3, 5));
	obs_last("zero_width", cudaMallocPitch(&p, &pitch, 0, 3));
	obs_last("zero_height", cudaMallocPitch(&p, &pitch, 64, 0));

	struct cudaPitchedPtr three = {KEPT, 0, 0, 0};
	int code = (int)cudaMalloc3D(&three, obs_extent(40, 5, 4));
	obs("3d", "%d,%zu,%zu,%zu", code, three.pitch, three.xsize, three.ysize);
	obs_last("3d.memset", cudaMemset3D(three, 9, obs_extent(40, 5, 4)));
	obs_bytes("3d.content", (char *)three.ptr + 3 * 5 * three.pitch, 9, 40);
	obs_last("3d.free", cudaFree(three.ptr));
	obs_last("3d.again", cudaFree(three.ptr));
	return 0;
}
