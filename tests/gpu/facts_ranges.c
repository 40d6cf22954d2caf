/*
 * What a pointer is known as: address ranges, alignment, buffer ids, pointer attributes of every
 * family, and the answers of the IPC export.
 */
#include "facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUdeviceptr as_device(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

static void describe_range(const char *label, CUdeviceptr p, size_t offset)
{
	CUdeviceptr base = 0, start = 0;
	size_t bytes = 0, range = 0, mapping = 0;
	char key[96];
	int code = (int)drv.p_cuMemGetAddressRange(&base, &bytes, p + offset);
	int size_code = (int)drv.p_cuPointerGetAttribute(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + offset);
	int start_code = (int)drv.p_cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + offset);
	int map_code = (int)drv.p_cuPointerGetAttribute(&mapping, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, p + offset);

	snprintf(key, sizeof key, "%s+%zu.address_range", label, offset);
	fact(key, "%d,bytes=%zu,base=%s", code, bytes, code != 0 ? "none" : base == p ? "start" : "other");
	snprintf(key, sizeof key, "%s+%zu.range_size", label, offset);
	fact(key, "%d,%zu", size_code, range);
	snprintf(key, sizeof key, "%s+%zu.range_start", label, offset);
	fact(key, "%d,%s", start_code, start == 0 ? "null" : start == p ? "start" : "other");
	snprintf(key, sizeof key, "%s+%zu.mapping_size", label, offset);
	fact(key, "%d,%zu", map_code, mapping);
}

void section_ranges(int arg)
{
	static const size_t sizes[] = {1, 511, 512, 513, 4096, MIB, MIB + 1, 2 * MIB, 3 * MIB, 3 * MIB + 1};
	char label[32], key[96];
	unsigned long long id = 0, last_id = 0;
	int growing = 1;
	void *p = NULL;
	(void)arg;

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		snprintf(label, sizeof label, "%zu", sizes[i]);
		fact(label, "%d", (int)cudaMalloc(&p, sizes[i]));
		snprintf(key, sizeof key, "%s.aligned", label);
		fact(key, "512=%d,2M=%s", (uintptr_t)p % 512 == 0,
		     sizes[i] <= MIB ? "any" : (uintptr_t)p % (2 * MIB) == 0 ? "yes" : "no");
		describe_range(label, as_device(p), 0);
		if (sizes[i] > 1)
			describe_range(label, as_device(p), sizes[i] - 1);
		/* Right behind a whole slot another block may stand; only sizes that leave slack are asked. */
		if (sizes[i] % 512 != 0)
			describe_range(label, as_device(p), sizes[i]);
		id = 0;
		if (drv.p_cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, as_device(p)) != CUDA_SUCCESS ||
		    id <= last_id)
			growing = 0;
		last_id = id;
		if (i % 2 == 0) {
			cudaFree(p);
			snprintf(key, sizeof key, "%s.freed", label);
			describe_range(key, as_device(p), 0);
		}
	}
	fact("buffer_id_grows", "%d", growing);
}

static void describe(const char *label, void *p)
{
	struct cudaPointerAttributes a;
	char key[96];
	int code;
	static const struct {
		const char *name;
		CUpointer_attribute attribute;
	} asked[] = {
		{"memory_type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
		{"is_managed", CU_POINTER_ATTRIBUTE_IS_MANAGED},
		{"ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL},
		{"sync_memops", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS},
		{"legacy_ipc", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE},
		{"mapped", CU_POINTER_ATTRIBUTE_MAPPED},
		{"handle_types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES},
		{"access_flags", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS},
		{"rdma_capable", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE},
	};

	memset(&a, 0x5a, sizeof a);
	code = (int)cudaPointerGetAttributes(&a, p);
	snprintf(key, sizeof key, "%s.runtime", label);
	fact(key, "%d,type=%d,device=%d,dev=%s,host=%s", code, (int)a.type, a.device,
	     a.devicePointer == NULL ? "null" : a.devicePointer == p ? "same" : "other",
	     a.hostPointer == NULL ? "null" : a.hostPointer == p ? "same" : "other");
	for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
		/* Wide enough for every one of them; the small ones write its low bytes (little endian). */
		unsigned long long value = 0;
		int got = (int)drv.p_cuPointerGetAttribute(&value, asked[i].attribute, as_device(p));
		snprintf(key, sizeof key, "%s.%s", label, asked[i].name);
		fact(key, "%d,%lld", got, (long long)(int)value);
	}
	CUmemoryPool pool = NULL;
	CUcontext context = NULL;
	code = (int)drv.p_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, as_device(p));
	snprintf(key, sizeof key, "%s.pool", label);
	fact(key, "%d,%s", code, pool == NULL ? "none" : "set");
	code = (int)drv.p_cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, as_device(p));
	snprintf(key, sizeof key, "%s.context", label);
	fact(key, "%d,%s", code, context == NULL ? "none" : "set");
	fact("last", "%d", (int)cudaGetLastError());
}

void section_attributes(int arg)
{
	void *device = NULL, *async = NULL, *managed = NULL, *pinned = NULL, *mapped = NULL;
	void *heap = aligned_alloc(4096, 8192);
	(void)arg;

	fact("allocations", "%d,%d,%d,%d,%d,%d", (int)cudaMalloc(&device, 3 * MIB),
	     (int)cudaMallocAsync(&async, MIB, NULL), (int)cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal),
	     (int)cudaMallocHost(&pinned, MIB), (int)cudaHostAlloc(&mapped, MIB, cudaHostAllocWriteCombined),
	     (int)cudaHostRegister(heap, 8192, 0));
	fact("sync", "%d", (int)cudaDeviceSynchronize());
	describe("device", device);
	describe("device_interior", (char *)device + MIB);
	describe("async", async);
	describe("managed", managed);
	describe("pinned", pinned);
	describe("pinned_interior", (char *)pinned + 4096);
	describe("write_combined", mapped);
	describe("registered", heap);
	fact("unregister", "%d", (int)cudaHostUnregister(heap));
	describe("heap", heap);
	fact("frees", "%d,%d,%d,%d,%d", (int)cudaFree(device), (int)cudaFree(async), (int)cudaFree(managed),
	     (int)cudaFreeHost(pinned), (int)cudaFreeHost(mapped));
	describe("freed_device", device);
	describe("null", NULL);
	free(heap);
}

void section_ipc(int arg)
{
	cudaIpcMemHandle_t first, second;
	void *a = NULL, *b = NULL, *async = NULL, *managed = NULL, *pinned = NULL;
	(void)arg;

	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	fact("allocations", "%d,%d,%d,%d,%d", (int)cudaMalloc(&a, MIB), (int)cudaMalloc(&b, MIB),
	     (int)cudaMallocAsync(&async, MIB, NULL), (int)cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal),
	     (int)cudaMallocHost(&pinned, MIB));
	fact("first", "%d", (int)cudaIpcGetMemHandle(&first, a));
	fact("second", "%d", (int)cudaIpcGetMemHandle(&second, b));
	fact("handles_differ", "%d", memcmp(&first, &second, sizeof first) != 0);
	fact("interior", "%d", (int)cudaIpcGetMemHandle(&first, (char *)b + 4096));
	fact("interior_same_handle", "%d", memcmp(&first, &second, sizeof first) == 0);
	fact_code("async", (int)cudaIpcGetMemHandle(&first, async));
	fact_code("managed", (int)cudaIpcGetMemHandle(&first, managed));
	fact_code("pinned", (int)cudaIpcGetMemHandle(&first, pinned));
	/* The exporter cannot open its own handle. */
	fact_code("open_own", (int)cudaIpcOpenMemHandle(&a, second, cudaIpcMemLazyEnablePeerAccess));
}
