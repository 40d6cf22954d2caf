/*
 * A small cuBLAS program that knows nothing of Tenure. It allocates one block of every family the
 * runtime and the driver offer, multiplies matrices with cuBLAS, and prints key=value lines that are
 * the same in every run: codes, sizes, and a checksum over every byte it read back. No addresses, no
 * times and no free-memory figures are printed, so a bare run and a recorded one can be compared
 * byte by byte. Built twice, against the static and against the shared cudart (build.sh).
 */
#define _GNU_SOURCE
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MATRIX_DIM 512
#define MATRIX_BYTES ((size_t)MATRIX_DIM * MATRIX_DIM * sizeof(float))

static uint64_t checksum = 14695981039346656037ull;

static void mix(const void *data, size_t bytes)
{
	const unsigned char *at = data;
	for (size_t i = 0; i < bytes; i++)
		checksum = (checksum ^ at[i]) * 1099511628211ull;
}

static void must(const char *what, int code)
{
	printf("%s=%d\n", what, code);
	if (code != 0) {
		printf("result=failed at %s\n", what);
		exit(1);
	}
}

/* Small integers: every product and sum is exact in float, whatever order cuBLAS adds in. */
static void fill(float *m, unsigned seed)
{
	for (size_t i = 0; i < (size_t)MATRIX_DIM * MATRIX_DIM; i++) {
		seed = seed * 1664525u + 1013904223u;
		m[i] = (float)((int)(seed >> 28) - 8);
	}
}

/* Sets a block to a byte pattern, reads the first 4 KiB back and mixes them into the checksum. */
static void touch(void *block, size_t bytes, int value)
{
	unsigned char head[4096];
	size_t n = bytes < sizeof head ? bytes : sizeof head;
	must("touch.memset", cudaMemset(block, value, bytes));
	must("touch.copy", cudaMemcpy(head, block, n, cudaMemcpyDeviceToHost));
	mix(head, n);
}

static void plain_families(void)
{
	void *p;
	size_t pitch;
	struct cudaPitchedPtr p3;
	struct cudaExtent extent = {256, 16, 4};

	must("cudaMalloc", cudaMalloc(&p, 3u << 20));
	touch(p, 3u << 20, 1);
	must("cudaFree", cudaFree(p));
	must("cudaMallocPitch", cudaMallocPitch(&p, &pitch, 1000, 64));
	printf("pitch=%zu\n", pitch);
	touch(p, pitch * 64, 2);
	must("cudaFree.pitch", cudaFree(p));
	must("cudaMalloc3D", cudaMalloc3D(&p3, extent));
	touch(p3.ptr, p3.pitch * 16 * 4, 3);
	must("cudaFree.3d", cudaFree(p3.ptr));
	must("cudaMallocManaged", cudaMallocManaged(&p, 1u << 20, cudaMemAttachGlobal));
	touch(p, 1u << 20, 4);
	must("cudaFree.managed", cudaFree(p));
}

static void host_families(void)
{
	void *p;
	must("cudaMallocHost", cudaMallocHost(&p, 1u << 20));
	memset(p, 5, 1u << 20);
	mix(p, 4096);
	must("cudaFreeHost", cudaFreeHost(p));
	must("cudaHostAlloc", cudaHostAlloc(&p, 1u << 20, cudaHostAllocMapped | cudaHostAllocPortable));
	memset(p, 6, 1u << 20);
	mix(p, 4096);
	must("cudaFreeHost.mapped", cudaFreeHost(p));
	p = aligned_alloc(4096, 1u << 20);
	if (p == NULL)
		must("aligned_alloc", 1);
	memset(p, 7, 1u << 20);
	must("cudaHostRegister", cudaHostRegister(p, 1u << 20, cudaHostRegisterDefault));
	must("cudaHostUnregister", cudaHostUnregister(p));
	mix(p, 4096);
	free(p);
}

static void array_families(void)
{
	struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
	struct cudaExtent extent = {32, 32, 8};
	cudaArray_t array;
	cudaMipmappedArray_t mipmap;

	must("cudaMallocArray", cudaMallocArray(&array, &format, 64, 64, 0));
	must("cudaFreeArray", cudaFreeArray(array));
	must("cudaMalloc3DArray", cudaMalloc3DArray(&array, &format, extent, 0));
	must("cudaFreeArray.3d", cudaFreeArray(array));
	must("cudaMallocMipmappedArray", cudaMallocMipmappedArray(&mipmap, &format, extent, 3, 0));
	must("cudaFreeMipmappedArray", cudaFreeMipmappedArray(mipmap));
}

static void pool_families(cudaStream_t stream)
{
	struct cudaMemPoolProps props;
	cudaMemPool_t pool;
	void *p;

	must("cudaMallocAsync", cudaMallocAsync(&p, 2u << 20, stream));
	must("memset.async", cudaMemsetAsync(p, 8, 2u << 20, stream));
	must("cudaFreeAsync", cudaFreeAsync(p, stream));
	memset(&props, 0, sizeof props);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	must("cudaMemPoolCreate", cudaMemPoolCreate(&pool, &props));
	must("cudaMallocFromPoolAsync", cudaMallocFromPoolAsync(&p, 1u << 20, pool, stream));
	must("cudaFreeAsync.pool", cudaFreeAsync(p, stream));
	must("sync.pool", cudaStreamSynchronize(stream));
	must("cudaMemPoolTrimTo", cudaMemPoolTrimTo(pool, 0));
	must("cudaMemPoolDestroy", cudaMemPoolDestroy(pool));
}

/* The driver's entry points come from the runtime, so neither build needs libcuda at link time. */
static void *driver_entry(const char *name)
{
	void *entry = NULL;
	enum cudaDriverEntryPointQueryResult found;
	cudaError_t code = cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found);
	if (code != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == NULL)
		must(name, 1);
	return entry;
}

#define DRIVER(name) __typeof__(&name) call_##name = (__typeof__(&name))driver_entry(#name)

static void driver_families(void)
{
	DRIVER(cuMemCreate);
	DRIVER(cuMemRelease);
	DRIVER(cuMemAddressReserve);
	DRIVER(cuMemAddressFree);
	DRIVER(cuMemMap);
	DRIVER(cuMemUnmap);
	DRIVER(cuMemSetAccess);
	/* The type follows the header's renaming to _v2, the name asked for stays plain, as the resolver wants it. */
	DRIVER(cuMemAlloc);
	DRIVER(cuMemFree);
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUmemAccessDesc access;
	CUdeviceptr at;
	size_t bytes = 4u << 20;

	must("cuMemAlloc", call_cuMemAlloc(&at, 12345));
	touch((void *)(uintptr_t)at, 12345, 9);
	must("cuMemFree", call_cuMemFree(at));
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	must("cuMemAddressReserve", call_cuMemAddressReserve(&at, bytes, 0, 0, 0));
	must("cuMemCreate", call_cuMemCreate(&handle, bytes, &prop, 0));
	must("cuMemMap", call_cuMemMap(at, bytes, 0, handle, 0));
	must("cuMemSetAccess", call_cuMemSetAccess(at, bytes, &access, 1));
	touch((void *)(uintptr_t)at, bytes, 10);
	must("cuMemUnmap", call_cuMemUnmap(at, bytes));
	must("cuMemRelease", call_cuMemRelease(handle));
	must("cuMemAddressFree", call_cuMemAddressFree(at, bytes));
}

/* A probe far above any card: real programs do this, and nothing may stick afterwards. */
static void refused_request(void)
{
	void *p = (void *)(uintptr_t)0x1234;
	printf("probe.4TiB=%d\n", (int)cudaMalloc(&p, (size_t)4 << 40));
	printf("probe.output_null=%d\n", p == NULL);
	printf("probe.last_error=%d\n", (int)cudaGetLastError());
	printf("probe.last_error_again=%d\n", (int)cudaGetLastError());
}

static void multiply(cudaStream_t stream)
{
	float *host_a = malloc(MATRIX_BYTES), *host_b = malloc(MATRIX_BYTES), *host_c = malloc(MATRIX_BYTES);
	float *a, *b, *c;
	const float one = 1.0f, zero = 0.0f;
	cublasHandle_t blas;

	if (host_a == NULL || host_b == NULL || host_c == NULL)
		must("malloc", 1);
	fill(host_a, 1);
	fill(host_b, 2);
	must("cublasCreate", (int)cublasCreate(&blas));
	must("cublasSetStream", (int)cublasSetStream(blas, stream));
	must("cudaMalloc.a", cudaMalloc((void **)&a, MATRIX_BYTES));
	must("cudaMalloc.b", cudaMalloc((void **)&b, MATRIX_BYTES));
	must("cudaMalloc.c", cudaMalloc((void **)&c, MATRIX_BYTES));
	must("copy.a", cudaMemcpy(a, host_a, MATRIX_BYTES, cudaMemcpyHostToDevice));
	must("copy.b", cudaMemcpy(b, host_b, MATRIX_BYTES, cudaMemcpyHostToDevice));
	for (int round = 0; round < 4; round++) {
		must("cublasSgemm", (int)cublasSgemm(blas, round & 1 ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N,
		                                     MATRIX_DIM, MATRIX_DIM, MATRIX_DIM, &one, a, MATRIX_DIM, b,
		                                     MATRIX_DIM, &zero, c, MATRIX_DIM));
		must("sync", cudaStreamSynchronize(stream));
		must("copy.c", cudaMemcpy(host_c, c, MATRIX_BYTES, cudaMemcpyDeviceToHost));
		mix(host_c, MATRIX_BYTES);
	}
	must("cublasSgemmStridedBatched",
	     (int)cublasSgemmStridedBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, 64, 64, 64, &one, a, 64, 4096, b, 64,
	                                    4096, &zero, c, 64, 4096, 32));
	must("copy.batched", cudaMemcpy(host_c, c, MATRIX_BYTES, cudaMemcpyDeviceToHost));
	mix(host_c, (size_t)64 * 64 * 32 * sizeof(float));
	must("cublasDestroy", (int)cublasDestroy(blas));
	must("cudaFree.a", cudaFree(a));
	must("cudaFree.b", cudaFree(b));
	must("cudaFree.c", cudaFree(c));
	free(host_a);
	free(host_b);
	free(host_c);
}

int main(void)
{
	cudaStream_t stream;
	setvbuf(stdout, NULL, _IOLBF, 0);
	must("cudaSetDevice", cudaSetDevice(0));
	must("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	plain_families();
	host_families();
	array_families();
	pool_families(stream);
	driver_families();
	refused_request();
	multiply(stream);
	must("cudaStreamDestroy", cudaStreamDestroy(stream));
	must("cudaDeviceSynchronize", cudaDeviceSynchronize());
	printf("checksum=%016llx\n", (unsigned long long)checksum);
	printf("result=done\n");
	return 0;
}
