/* Copies and memsets that touch what was freed, by every function of the driver that names it as device memory, and some of the runtime's: refused,
   with the blocks beside it as they were. Also behind calls that went well a hundred times, in a capture, and while a stream has not yet come to the
   free of a plain block, which the driver knows so long. With an argument: the functions that take any address, which on a card end the program, and batches;
   with two: only plain blocks that are freed in the order of streams for which nobody waits, many times. */
#include "observe.h"

#include <time.h>

#define BYTES ((size_t)512)
#define WARM 100
#define MANY 300

static CUdeviceptr gone, live;
static unsigned char host[4096];
static cudaStream_t s, other;
static CUfunction spin;
static CUcontext context;

static CUdeviceptr device(const void *p) { return (CUdeviceptr)(uintptr_t)p; }
static void *pointer(CUdeviceptr p) { return (void *)(uintptr_t)p; }

/* Three in a row; the one in the middle goes. */
static void *rows[3];
static void make(void)
{
	int code = 0;
	for (int i = 0; i < 3; i++)
		code |= (int)cudaMalloc(&rows[i], BYTES) | (int)cudaMemset(rows[i], 0x40 + i, BYTES);
	obs_last("made", code | (int)cudaFree(rows[1]) | (int)cudaDeviceSynchronize());
	live = device(rows[0]);
	gone = device(rows[1]);
}

static void linear(void)
{
	obs_last("cudaMemcpy.h2d", cudaMemcpy(pointer(gone), host, 16, cudaMemcpyHostToDevice));
	obs_last("cudaMemcpy.d2h", cudaMemcpy(host, pointer(gone), 16, cudaMemcpyDeviceToHost));
	obs_last("cudaMemcpy.d2d.dst", cudaMemcpy(pointer(gone), pointer(live), 16, cudaMemcpyDeviceToDevice));
	obs_last("cudaMemcpy.d2d.src", cudaMemcpy(pointer(live), pointer(gone), 16, cudaMemcpyDeviceToDevice));
	obs_last("cudaMemcpyAsync.h2d", cudaMemcpyAsync(pointer(gone), host, 16, cudaMemcpyHostToDevice, s));
	obs_last("cudaMemcpyAsync.d2h", cudaMemcpyAsync(host, pointer(gone), 16, cudaMemcpyDeviceToHost, s));
	obs_last("cudaMemcpyAsync.d2d.dst", cudaMemcpyAsync(pointer(gone), pointer(live), 16, cudaMemcpyDeviceToDevice, s));
	obs_last("cudaMemcpyAsync.d2d.src", cudaMemcpyAsync(pointer(live), pointer(gone), 16, cudaMemcpyDeviceToDevice, s));
	obs_last("cudaMemset", cudaMemset(pointer(gone + 100), 1, 16));
	obs_last("cudaMemsetAsync", cudaMemsetAsync(pointer(gone + 511), 1, 1, s));
	obs_last("cudaMemset2D", cudaMemset2D(pointer(gone), 64, 1, 16, 4));
	obs_last("cudaMemcpy2D", cudaMemcpy2D(pointer(gone), 64, host, 64, 16, 4, cudaMemcpyHostToDevice));
	obs_code("HtoD", cuMemcpyHtoD(gone, host, 16));
	obs_code("DtoH", cuMemcpyDtoH(host, gone, 16));
	obs_code("DtoD.dst", cuMemcpyDtoD(gone, live, 16));
	obs_code("DtoD.src", cuMemcpyDtoD(live, gone, 16));
	obs_code("HtoDAsync", cuMemcpyHtoDAsync(gone, host, 16, s));
	obs_code("DtoHAsync", cuMemcpyDtoHAsync(host, gone, 16, s));
	obs_code("DtoDAsync.dst", cuMemcpyDtoDAsync(gone, live, 16, s));
	obs_code("DtoDAsync.src", cuMemcpyDtoDAsync(live, gone, 16, s));
	obs_code("Peer.dst", cuMemcpyPeer(gone, context, live, context, 16));
	obs_code("Peer.src", cuMemcpyPeer(live, context, gone, context, 16));
	obs_code("PeerAsync", cuMemcpyPeerAsync(gone, context, live, context, 16, s));
	obs_code("WriteValue32", cuStreamWriteValue32(s, gone, 1, 0));
	obs_code("WaitValue64", cuStreamWaitValue64(s, gone + 8, 0, CU_STREAM_WAIT_VALUE_GEQ));
	/* From a live block on into the one behind it. */
	obs_code("across.HtoD", cuMemcpyHtoD(live + BYTES - 8, host, 16));
	obs_code("across.DtoH", cuMemcpyDtoH(host, live + BYTES - 8, 16));
	obs_code("across.D8", cuMemsetD8(live + BYTES - 8, 1, 16));
	obs_code("across.D32Async", cuMemsetD32Async(live, 1, BYTES / 4 + 1, s));
}

static void sets(void)
{
	obs_code("D8", cuMemsetD8(gone, 1, 16));
	obs_code("D16", cuMemsetD16(gone, 1, 8));
	obs_code("D32", cuMemsetD32(gone, 1, 4));
	obs_code("D2D8", cuMemsetD2D8(gone, 64, 1, 8, 4));
	obs_code("D2D16", cuMemsetD2D16(gone, 64, 1, 8, 4));
	obs_code("D2D32", cuMemsetD2D32(gone, 64, 1, 8, 4));
	obs_code("D8Async", cuMemsetD8Async(gone, 1, 16, s));
	obs_code("D16Async", cuMemsetD16Async(gone, 1, 8, s));
	obs_code("D32Async", cuMemsetD32Async(gone, 1, 4, s));
	obs_code("D2D8Async", cuMemsetD2D8Async(gone, 64, 1, 8, 4, s));
	obs_code("D2D16Async", cuMemsetD2D16Async(gone, 64, 1, 8, 4, s));
	obs_code("D2D32Async", cuMemsetD2D32Async(gone, 64, 1, 8, 4, s));
}

static void structs(CUmemorytype type)
{
	CUDA_MEMCPY2D two;
	CUDA_MEMCPY3D three;
	CUDA_MEMCPY3D_PEER peer;
	memset(&two, 0, sizeof two);
	memset(&three, 0, sizeof three);
	memset(&peer, 0, sizeof peer);
	two.srcMemoryType = two.dstMemoryType = three.srcMemoryType = three.dstMemoryType = peer.srcMemoryType = peer.dstMemoryType = type;
	two.srcPitch = two.dstPitch = three.srcPitch = three.dstPitch = peer.srcPitch = peer.dstPitch = 32;
	three.srcHeight = three.dstHeight = peer.srcHeight = peer.dstHeight = 4;
	two.WidthInBytes = three.WidthInBytes = peer.WidthInBytes = 8;
	two.Height = three.Height = peer.Height = three.Depth = peer.Depth = 2;
	peer.srcContext = peer.dstContext = context;
	for (int side = 0; side < 2; side++) {
		two.dstDevice = three.dstDevice = peer.dstDevice = side == 0 ? gone : live;
		two.srcDevice = three.srcDevice = peer.srcDevice = side == 0 ? live : gone;
		obs_code("2D", cuMemcpy2D(&two));
		obs_code("2DUnaligned", cuMemcpy2DUnaligned(&two));
		obs_code("2DAsync", cuMemcpy2DAsync(&two, s));
		obs_code("3D", cuMemcpy3D(&three));
		obs_code("3DAsync", cuMemcpy3DAsync(&three, s));
		obs_code("3DPeer", cuMemcpy3DPeer(&peer));
		obs_code("3DPeerAsync", cuMemcpy3DPeerAsync(&peer, s));
	}
	/* Rows that begin in the live block and end behind it. */
	two.srcDevice = two.dstDevice = live;
	two.dstY = 14;
	obs_code("2D.fits", cuMemcpy2D(&two));
	two.dstY = 15;
	obs_code("2D.across", cuMemcpy2D(&two));
}

/* Where it was done a hundred times, from and to blocks that the program had. */
static void warmed(void)
{
	void *from, *to;
	int code = (int)cudaMalloc(&from, 4096) | (int)cudaMalloc(&to, 4096) | (int)cudaMemset(from, 7, 4096) | (int)cudaDeviceSynchronize();
	for (int i = 0; i < WARM; i++)
		code |= (int)cuMemcpyDtoDAsync(device(to), device(from), 64, s) | (int)cuMemcpyDtoHAsync(host, device(from), 64, s) |
		        (int)cuMemcpyHtoDAsync(device(to), host, 64, s) | (int)cuMemcpyAsync(device(to), device(from), 64, s) |
		        (int)cuMemsetD8Async(device(to), 1, 64, s);
	obs_last("warm", code | (int)cudaStreamSynchronize(s));
	obs_code("warm.whole", (int)cuMemcpyDtoDAsync(device(to), device(from), 4096, s) | (int)cuMemcpyDtoHAsync(host, device(from), 4096, s));
	obs_code("warm.across.src", cuMemcpyDtoHAsync(host, device(from) + 4090, 16, s));
	obs_code("warm.across.dst", cuMemcpyHtoDAsync(device(to) + 4090, host, 16, s));
	obs_last("warm.free", (int)cudaStreamSynchronize(s) | (int)cudaFree(from));
	obs_code("warm.DtoHAsync", cuMemcpyDtoHAsync(host, device(from), 64, s));
	obs_code("warm.DtoDAsync", cuMemcpyDtoDAsync(device(to), device(from), 64, s));
	obs_last("warm.free.to", cudaFree(to));
	obs_code("warm.HtoDAsync", cuMemcpyHtoDAsync(device(to), host, 64, s));
	obs_code("warm.D8Async", cuMemsetD8Async(device(to), 1, 64, s));
}

static void captured(void)
{
	cudaGraph_t graph = NULL;
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	obs_last("capture", cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	obs_code("capture.HtoDAsync", cuMemcpyHtoDAsync(gone, host, 16, s));
	obs_code("capture.DtoDAsync", cuMemcpyDtoDAsync(live, gone, 16, s));
	obs_code("capture.D8Async", cuMemsetD8Async(gone, 1, 16, s));
	obs_last("capture.status", cudaStreamIsCapturing(s, &status));
	obs("capture.is", "%d", (int)status);
	obs_out("capture.end", (int)cudaStreamEndCapture(s, &graph), &graph);
	(void)cudaGetLastError();
	if (graph != NULL)
		cudaGraphDestroy(graph);
}

static int type_of(const void *p)
{
	struct cudaPointerAttributes a;
	int code = (int)cudaPointerGetAttributes(&a, p);
	return code != 0 ? -code : (int)a.type;
}

static void state(const char *name, void *p)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	char key[64];
	snprintf(key, sizeof key, "%s.type", name);
	obs(key, "%d,%d,%d", type_of(p), type_of((char *)p + 100), type_of((char *)p + 5000));
	int range = (int)cuMemGetAddressRange(&base, &bytes, device(p) + 9);
	snprintf(key, sizeof key, "%s.range", name);
	obs(key, "%d,own=%d,%zu", range, base == device(p), bytes);
	snprintf(key, sizeof key, "%s.copy", name);
	obs(key, "%d,%d", (int)cuMemcpyDtoHAsync(host, device(p), 16, other), (int)cudaStreamSynchronize(other));
}

/* More of them at once than anybody would expect. */
static void many(void)
{
	static void *p[MANY];
	int code = 0, known = 0, left = 0;
	for (int i = 0; i < MANY; i++)
		code |= (int)cudaMalloc(&p[i], 512);
	code |= obs_spin(spin, s, 600);
	for (int i = 0; i < MANY; i++)
		code |= (int)cudaFreeAsync(p[i], s);
	for (int i = 0; i < MANY; i++)
		known += type_of(p[i]) == cudaMemoryTypeDevice;
	obs_last("pending.many", code | (int)cudaStreamSynchronize(s));
	for (int i = 0; i < MANY; i++)
		left += type_of(p[i]) == cudaMemoryTypeDevice;
	obs("pending.many.known", "%d,%d", known, left);
}

/* Plain blocks that are freed in the order of a stream that is busy. */
static void pending(void)
{
	void *a, *b, *ordered;
	struct timespec while_idle = {0, 600000000};
	int code = (int)cudaMalloc(&a, 5000) | (int)cudaMalloc(&b, 5000) | (int)cudaMemset(a, 1, 5000) | (int)cudaMemset(b, 1, 5000);
	obs_last("pending", code | (int)cudaDeviceSynchronize());
	state("pending.before", a);
	obs_last("pending.free", obs_spin(spin, s, 300) | (int)cudaFreeAsync(a, s));
	state("pending.not_passed", a);
	obs_last("pending.sync", cudaStreamSynchronize(s));
	state("pending.passed", a);
	obs_last("pending.free.b", obs_spin(spin, s, 100) | (int)cudaFreeAsync(b, s));
	state("pending.not_passed.b", b);
	nanosleep(&while_idle, NULL);
	state("pending.passed_unwaited", b);
	many();
	obs_last("ordered", (int)cudaMallocAsync(&ordered, 5000, s) | (int)cudaMemsetAsync(ordered, 1, 5000, s) | (int)cudaStreamSynchronize(s));
	obs_last("ordered.free", (int)cudaFreeAsync(ordered, s) | (int)cudaStreamSynchronize(s));
	state("ordered.passed", ordered);
}

static void any_address(void)
{
	CUdeviceptr to[2] = {gone, live}, from[2] = {live, gone};
	size_t sizes[2] = {16, 16}, none = 0;
	CUmemcpyAttributes attributes;
	CUstreamBatchMemOpParams words[2];
	memset(&attributes, 0, sizeof attributes);
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	obs_code("Memcpy.dst", cuMemcpy(gone, live, 16));
	obs_code("Memcpy.src", cuMemcpy(live, gone, 16));
	obs_code("MemcpyAsync.dst", cuMemcpyAsync(gone, live, 16, s));
	obs_code("MemcpyAsync.src", cuMemcpyAsync(live, gone, 16, s));
	obs_code("Memcpy.across", cuMemcpy(live + BYTES - 8, live, 16));
	obs_last("cudaMemcpy", cudaMemcpy(pointer(gone), pointer(live), 16, cudaMemcpyDefault));
	structs(CU_MEMORYTYPE_UNIFIED);
	obs_code("Batch.dst", cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &none, 1, s));
	obs_code("Batch.src", cuMemcpyBatchAsync(to + 1, from + 1, sizes, 1, &attributes, &none, 1, s));
	memset(words, 0, sizeof words);
	words[0].operation = words[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	words[0].writeValue.address = gone;
	obs_code("BatchMemOp", cuStreamBatchMemOp(s, 1, words, 0));
	words[0].writeValue.address = live + BYTES - 4;
	words[1].writeValue.address = gone;
	obs_code("BatchMemOp.second", cuStreamBatchMemOp(s, 2, words, 0));
	obs_code("BatchMemOp.fits", cuStreamBatchMemOp(s, 1, words, 0));
}

/* In a stream that works, and in one that has had no work yet. */
static int rounds(int count)
{
	int code = 0;
	for (int i = 0; i < count; i++) {
		void *p[2];
		code |= (int)cudaMalloc(&p[0], 4096) | (int)cudaMemsetAsync(p[0], 1, 4096, s) | (int)cudaFreeAsync(p[0], s);
		code |= (int)cudaMalloc(&p[1], 4096) | (int)cudaFreeAsync(p[1], other);
	}
	obs_code("rounds", code);
	return code != 0;
}

int main(int argc, char **argv)
{
	cudaEvent_t known;
	obs_last("streams", (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) | (int)cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	if (argc > 2) {
		obs_code("known", (int)cudaEventCreateWithFlags(&known, cudaEventDisableTiming) | (int)cudaEventRecord(known, other));
		return rounds(atoi(argv[2]));
	}
	obs_code("context", cuCtxGetCurrent(&context));
	spin = obs_kernel("fake_spin");
	make();
	if (argc > 1) {
		any_address();
	} else {
		linear();
		sets();
		structs(CU_MEMORYTYPE_DEVICE);
		warmed();
		captured();
	}
	obs_last("settled", cudaDeviceSynchronize());
	memset(host, 0, sizeof host);
	obs_bytes("beside.left", rows[0], 0x40, BYTES - 64);
	obs_bytes("beside.right", rows[2], 0x42, BYTES);
	if (argc == 1)
		pending();
	obs_last("end", (int)cudaFree(rows[0]) | (int)cudaFree(rows[2]) | (int)cudaDeviceSynchronize());
	return 0;
}
