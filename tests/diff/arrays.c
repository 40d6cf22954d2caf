/* Arrays and mipmaps: made and freed at both levels, filled and read, and freed by what does not fit. */
#include "observe.h"

int main(void)
{
	struct cudaChannelFormatDesc f = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	cudaArray_t a = (cudaArray_t)KEPT, level = (cudaArray_t)KEPT;
	cudaMipmappedArray_t m = (cudaMipmappedArray_t)KEPT;
	CUarray d = (CUarray)KEPT;
	CUmipmappedArray dm = (CUmipmappedArray)KEPT;
	float in[64], out[64];
	for (int i = 0; i < 64; i++)
		in[i] = (float)i;
	obs_out("cudaMallocArray", cudaMallocArray(&a, &f, 16, 4, 0), &a);
	obs_last("in", cudaMemcpy2DToArray(a, 0, 0, in, 64, 64, 4, cudaMemcpyHostToDevice));
	obs_last("out", cudaMemcpy2DFromArray(out, 64, a, 0, 0, 64, 4, cudaMemcpyDeviceToHost));
	obs_code("same", memcmp(in, out, sizeof in) == 0);
	obs_last("cudaFreeArray", cudaFreeArray(a));
	obs_last("null", cudaFreeArray(NULL));
	a = (cudaArray_t)KEPT;
	obs_out("3d", cudaMalloc3DArray(&a, &f, obs_extent(8, 8, 8), 0), &a);
	struct cudaChannelFormatDesc got;
	struct cudaExtent e;
	unsigned flags;
	int code = (int)cudaArrayGetInfo(&got, &e, &flags, a);
	obs("info", "%d,%d,%zux%zux%zu,%u", code, got.x, e.width, e.height, e.depth, flags);
	obs_last("3d.free", cudaFreeArray(a));
	a = (cudaArray_t)KEPT;
	obs_out("refused", cudaMalloc3DArray(&a, &f, obs_extent((size_t)1 << 40, 8, 8), 0), &a);
	obs_last("refused.last", cudaSuccess);
	obs_out("zero", cudaMallocArray(&a, &f, 0, 0, 0), &a);
	obs_last("zero.last", cudaSuccess);
	obs_out("mipmap", cudaMallocMipmappedArray(&m, &f, obs_extent(64, 64, 0), 4, 0), &m);
	obs_out("level", cudaGetMipmappedArrayLevel(&level, m, 1), &level);
	obs_last("level.5", cudaGetMipmappedArrayLevel(&level, m, 5));
	obs_last("mipmap.free", cudaFreeMipmappedArray(m));

	CUDA_ARRAY_DESCRIPTOR desc = {32, 8, CU_AD_FORMAT_UNSIGNED_INT8, 4};
	obs_out("driver", cuArrayCreate(&d, &desc), &d);
	CUDA_ARRAY_DESCRIPTOR back = {0, 0, 0, 0};
	code = (int)cuArrayGetDescriptor(&back, d);
	obs("driver.desc", "%d,%zux%zu,%u", code, back.Width, back.Height, back.NumChannels);
	obs_code("driver.destroy", cuArrayDestroy(d));
	desc.NumChannels = 3;
	d = (CUarray)KEPT;
	obs_out("driver.three_channels", cuArrayCreate(&d, &desc), &d);
	CUDA_ARRAY3D_DESCRIPTOR desc3 = {16, 16, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	obs_out("driver.mipmap", cuMipmappedArrayCreate(&dm, &desc3, 3), &dm);
	obs_code("driver.mipmap.destroy", cuMipmappedArrayDestroy(dm));
	/* An array of one level's, freed at the other. */
	obs_code("driver.3d", cuArray3DCreate(&d, &desc3));
	obs_last("driver.3d.runtime_free", cudaFreeArray((cudaArray_t)d));
	return 0;
}
