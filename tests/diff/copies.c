/* Every copy and memset of the driver, with contents checked; built twice, for the legacy and the per-thread default stream. */
#include "observe.h"

#define BYTES 4096

static unsigned char in[BYTES], out[BYTES];
static CUdeviceptr a, b;
static CUarray array;

/* Clears b and out between steps, so that a copy that did nothing is seen. */
static void begin(void)
{
	cudaDeviceSynchronize();
	cuMemcpyHtoD(a, in, BYTES);
	cuMemsetD8(b, 0, BYTES);
	cudaDeviceSynchronize();
	memset(out, 0, sizeof out);
}

/* What arrived: a checksum of the output, or of b where nothing came to the host. */
static void end(const char *key, int code)
{
	unsigned long sum = 0, host = 0;
	int sync = (int)cudaDeviceSynchronize();
	static unsigned char device[BYTES];
	cuMemcpyDtoH(device, b, BYTES);
	for (int i = 0; i < BYTES; i++) {
		sum = sum * 31 + device[i];
		host = host * 31 + out[i];
	}
	obs(key, "%d,sync=%d,device=%lx,host=%lx", code, sync, sum, host);
}

#define STEP(key, call) (begin(), end(key, (int)(call)))

int main(void)
{
	CUDA_ARRAY_DESCRIPTOR desc = {64, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1};
	CUcontext c;
	CUstream s;
	for (int i = 0; i < BYTES; i++)
		in[i] = (unsigned char)(i * 7 + i / 256);
	obs_code("init", cudaFree(NULL));
	obs_code("made", (int)cuMemAlloc(&a, BYTES) | (int)cuMemAlloc(&b, BYTES) | (int)cuArrayCreate(&array, &desc) |
	                     (int)cuCtxGetCurrent(&c) | (int)cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	STEP("Memcpy", cuMemcpy(b, a, 1000));
	STEP("HtoD", cuMemcpyHtoD(b + 8, in, 100));
	STEP("DtoH", cuMemcpyDtoH(out, a + 3, 100));
	STEP("DtoD", cuMemcpyDtoD(b + 5, a + 9, 77));
	STEP("MemcpyAsync", cuMemcpyAsync(b, a, 999, s));
	STEP("MemcpyAsync.default", cuMemcpyAsync(b, a, 998, NULL));
	STEP("HtoDAsync", cuMemcpyHtoDAsync(b, in + 50, 60, s));
	STEP("DtoHAsync", cuMemcpyDtoHAsync(out, a, 61, s));
	STEP("DtoDAsync", cuMemcpyDtoDAsync(b, a + 1, 62, s));
	STEP("Peer", cuMemcpyPeer(b, c, a, c, 200));
	STEP("PeerAsync", cuMemcpyPeerAsync(b, c, a, c, 201, s));
	STEP("HtoA", (int)cuMemcpyHtoA(array, 0, in, 64) | (int)cuMemcpyAtoH(out, array, 0, 64));
	STEP("DtoA", (int)cuMemcpyDtoA(array, 0, a + 64, 64) | (int)cuMemcpyAtoD(b, array, 0, 64));
	STEP("HtoAAsync", (int)cuMemcpyHtoAAsync(array, 0, in + 5, 64, s) | (int)cuMemcpyAtoHAsync(out, array, 0, 64, s));
	STEP("AtoA", cuMemcpyAtoA(array, 0, array, 0, 32));
	CUDA_MEMCPY2D two;
	memset(&two, 0, sizeof two);
	two.srcMemoryType = two.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	two.srcDevice = a;
	two.dstDevice = b;
	two.srcPitch = 64;
	two.dstPitch = 128;
	two.WidthInBytes = 40;
	two.Height = 6;
	STEP("2D", cuMemcpy2D(&two));
	STEP("2DUnaligned", cuMemcpy2DUnaligned(&two));
	STEP("2DAsync", cuMemcpy2DAsync(&two, s));
	two.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	two.dstArray = array;
	STEP("2D.array", (int)cuMemcpy2D(&two) | (int)cuMemcpyAtoH(out, array, 0, 64));
	two.dstMemoryType = CU_MEMORYTYPE_HOST;
	two.dstHost = out;
	STEP("2D.host", cuMemcpy2D(&two));
	CUDA_MEMCPY3D three;
	memset(&three, 0, sizeof three);
	three.srcMemoryType = three.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	three.srcDevice = a;
	three.dstDevice = b;
	three.srcPitch = three.dstPitch = 32;
	three.srcHeight = three.dstHeight = 8;
	three.WidthInBytes = 20;
	three.Height = 7;
	three.Depth = 3;
	STEP("3D", cuMemcpy3D(&three));
	STEP("3DAsync", cuMemcpy3DAsync(&three, s));
	three.Depth = 0;
	STEP("3D.zero", cuMemcpy3D(&three));
	CUDA_MEMCPY3D_PEER peer;
	memset(&peer, 0, sizeof peer);
	peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	peer.srcContext = peer.dstContext = c;
	peer.srcDevice = a;
	peer.dstDevice = b;
	peer.srcPitch = peer.dstPitch = 32;
	peer.srcHeight = peer.dstHeight = 8;
	peer.WidthInBytes = 21;
	peer.Height = 5;
	peer.Depth = 2;
	STEP("3DPeer", cuMemcpy3DPeer(&peer));
	STEP("3DPeerAsync", cuMemcpy3DPeerAsync(&peer, s));
	STEP("D8", cuMemsetD8(b, 0x5a, 100));
	STEP("D16", cuMemsetD16(b, 0x1234, 50));
	STEP("D32", cuMemsetD32(b, 0x12345678, 25));
	STEP("D2D8", cuMemsetD2D8(b, 64, 0x5b, 10, 5));
	STEP("D2D16", cuMemsetD2D16(b, 64, 0x2345, 10, 5));
	STEP("D2D32", cuMemsetD2D32(b, 64, 0x3456789a, 10, 5));
	STEP("D8Async", cuMemsetD8Async(b, 0x5c, 101, s));
	STEP("D16Async", cuMemsetD16Async(b, 0x1235, 51, s));
	STEP("D32Async", cuMemsetD32Async(b, 0x12345679, 26, s));
	STEP("D2D8Async", cuMemsetD2D8Async(b, 64, 0x5d, 11, 6, s));
	STEP("D2D16Async", cuMemsetD2D16Async(b, 64, 0x2346, 11, 6, s));
	STEP("D2D32Async", cuMemsetD2D32Async(b, 64, 0x3456789b, 11, 6, s));
	STEP("D16.odd", cuMemsetD16(b + 1, 1, 4));
	STEP("D8.zero", cuMemsetD8(b, 1, 0));
	STEP("HtoD.zero", cuMemcpyHtoD(b, in, 0));
	STEP("HtoD.too_long", cuMemcpyHtoD(b, in, (size_t)1 << 32));
	STEP("DtoD.heap", cuMemcpyDtoD((CUdeviceptr)(uintptr_t)in, a, 16));
	STEP("D8.unknown", cuMemsetD8((CUdeviceptr)(uintptr_t)64, 1, 16));
	obs_last("end", (int)cuArrayDestroy(array) | (int)cuStreamDestroy(s) | (int)cuMemFree(a) | (int)cuMemFree(b));
	return 0;
}
