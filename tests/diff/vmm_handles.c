/*
 * What becomes of a handle of virtual memory: given back twice, used after it was given back, mapped at two places, given back while it is mapped,
 * unmapped by ranges that cover several mappings, a part of one, or nothing; exported, and retained by its address; released while a kernel runs.
 * `vmm_handles calm` exports and retains nothing, and runs no kernel: a plan of such a run has all of them in its pools. `vmm_handles leaving [calm]`:
 * each of twelve handles leaves its pool.
 */
#include "observe.h"

static CUmemAllocationProp prop;
static CUmemAccessDesc access_desc;
static CUdeviceptr va;
static int calm;
#define EACH (2 * MIB)

/* From one call site each, so that handles that are made again and again come from one. */
static __attribute__((noinline)) int make(CUmemGenericAllocationHandle *h)
{
	return (int)cuMemCreate(h, EACH, &prop, 0);
}

static int map(int place, CUmemGenericAllocationHandle h)
{
	return (int)cuMemMap(va + (size_t)place * EACH, EACH, 0, h, 0) | (int)cuMemSetAccess(va + (size_t)place * EACH, EACH, &access_desc, 1);
}

static int unmap(int place, int count) { return (int)cuMemUnmap(va + (size_t)place * EACH, (size_t)count * EACH); }

static void *at(int place) { return (void *)(uintptr_t)(va + (size_t)place * EACH); }

static int properties(CUmemGenericAllocationHandle h)
{
	CUmemAllocationProp got;
	memset(&got, 0x5a, sizeof got);
	int code = (int)cuMemGetAllocationPropertiesFromHandle(&got, h);
	return code != 0 ? code : got.type == prop.type && got.location.id == 0 && got.requestedHandleTypes == prop.requestedHandleTypes ? 0 : 999;
}

static void given_back(void)
{
	CUmemGenericAllocationHandle h, out = 0;
	obs_code("create", make(&h));
	obs_code("properties", properties(h));
	obs_code("properties.null", cuMemGetAllocationPropertiesFromHandle(NULL, h));
	obs_code("release", cuMemRelease(h));
	obs_code("release.again", cuMemRelease(h));
	obs_code("retain.unmapped", cuMemRetainAllocationHandle(&out, at(0)));
	obs_code("release.never_made", cuMemRelease(0));
}

static void while_mapped(void)
{
	CUmemGenericAllocationHandle h, other;
	size_t before = 0, after = 0;
	obs_code("mapped.create", make(&h) | map(0, h));
	obs_last("mapped.fill", (int)cudaMemset(at(0), 0x41, EACH) | (int)cudaDeviceSynchronize());
	obs_code("mapped.release", cuMemRelease(h));
	obs_code("mapped.release.again", cuMemRelease(h));
	obs_bytes("mapped.content", at(0), 0x41, 4096);
	/* Another handle is other memory. */
	obs_code("mapped.other", make(&other) | map(1, other));
	obs_last("mapped.other.fill", (int)cudaMemset(at(1), 0x42, EACH) | (int)cudaDeviceSynchronize());
	obs_bytes("mapped.content.kept", at(0), 0x41, 4096);
	obs_last("mapped.query", cudaMemGetInfo(&before, NULL));
	obs_code("mapped.unmap", unmap(0, 1));
	obs_last("mapped.query.2", cudaMemGetInfo(&after, NULL));
	obs("mapped.came_back_MiB", "%zu", (after - before) / MIB);
	obs_code("mapped.unmap.again", unmap(0, 1));
	obs_code("mapped.other.end", unmap(1, 1) | (int)cuMemRelease(other));
}

static void two_places(void)
{
	CUmemGenericAllocationHandle h, next;
	obs_code("twice.create", make(&h) | map(0, h) | map(3, h));
	obs_last("twice.fill", (int)cudaMemset(at(0), 0x43, 4096) | (int)cudaDeviceSynchronize());
	obs_bytes("twice.content", at(3), 0x43, 4096);
	obs_code("twice.unmap", unmap(0, 1));
	obs_code("twice.release", cuMemRelease(h));
	obs_code("twice.next", make(&next) | map(0, next));
	obs_last("twice.next.fill", (int)cudaMemset(at(0), 0x44, 4096) | (int)cudaDeviceSynchronize());
	obs_bytes("twice.content.kept", at(3), 0x43, 4096);
	obs_code("twice.unmap.2", unmap(3, 1));
	obs_code("twice.end", unmap(0, 1) | (int)cuMemRelease(next));
}

static void ranges(void)
{
	CUmemGenericAllocationHandle h[4];
	int code = 0;
	for (int i = 0; i < 4; i++)
		code |= make(&h[i]);
	obs_code("ranges.create", code);
	/* A gap at 2. */
	obs_code("ranges.map", map(0, h[0]) | map(1, h[1]) | map(3, h[2]) | map(4, h[3]));
	obs_code("ranges.map.taken", cuMemMap(va + EACH, EACH, 0, h[0], 0));
	obs_code("ranges.map.part", cuMemMap(va + 2 * EACH, EACH / 2, 0, h[0], 0));
	obs_code("ranges.unmap.odd", cuMemUnmap(va, EACH / 2));
	code = 0;
	for (int i = 0; i < 4; i++)
		code |= (int)cuMemRelease(h[i]);
	obs_code("ranges.release", code);
	obs_last("ranges.fill", (int)cudaMemset(at(1), 0x45, EACH) | (int)cudaMemset(at(4), 0x46, EACH) | (int)cudaDeviceSynchronize());
	obs_bytes("ranges.content", at(1), 0x45, EACH);
	obs_code("ranges.unmap", unmap(0, 5));
	obs_code("ranges.access.gone", cuMemSetAccess(va + EACH, EACH, &access_desc, 1));
	for (int round = 0; round < 3; round++) { /* all four are there again */
		code = 0;
		for (int i = 0; i < 4; i++)
			code |= make(&h[i]) | map(i, h[i]);
		code |= (int)cudaMemset(at(0), 0x50 + round, 4 * EACH) | (int)cudaDeviceSynchronize();
		obs_code("ranges.round", code);
		obs_bytes("ranges.round.content", at(3), 0x50 + round, EACH);
		code = unmap(0, 4);
		for (int i = 3; i >= 0; i--)
			code |= (int)cuMemRelease(h[i]);
		obs_code("ranges.round.end", code);
	}
}

/* Handles that the program shares: nobody else may ever get their memory. */
static void shared(void)
{
	CUmemGenericAllocationHandle h, again = 0, next;
	int fd = -1;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	obs_code("shared.create", make(&h) | map(0, h));
	obs_last("shared.fill", (int)cudaMemset(at(0), 0x61, EACH) | (int)cudaDeviceSynchronize());
	if (!calm) {
		obs_code("shared.export", cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		obs_code("shared.import", cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		obs_code("shared.import.map", map(2, again));
	}
	obs_code("shared.end", unmap(0, 1) | (int)cuMemRelease(h));
	obs_code("shared.next", make(&next) | map(1, next));
	obs_last("shared.next.fill", (int)cudaMemset(at(1), 0x62, EACH) | (int)cudaDeviceSynchronize());
	if (!calm) {
		obs_bytes("shared.content", at(2), 0x61, EACH);
		obs_code("shared.import.end", unmap(2, 1) | (int)cuMemRelease(again) | close(fd));
	}
	obs_code("shared.next.end", unmap(1, 1) | (int)cuMemRelease(next));
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
}

static void retained(void)
{
	CUmemGenericAllocationHandle h, again = 0, next;
	obs_code("retained.create", make(&h) | map(0, h));
	obs_last("retained.fill", (int)cudaMemset(at(0), 0x63, EACH) | (int)cudaDeviceSynchronize());
	if (calm) {
		again = h;
	} else {
		obs_code("retained.release", cuMemRelease(h)); /* and had back by its address */
		obs_code("retained.retain", cuMemRetainAllocationHandle(&again, (char *)at(0) + 4096));
	}
	obs_code("retained.same", again == h);
	obs_code("retained.unmap", unmap(0, 1));
	obs_code("retained.properties", properties(again));
	obs_code("retained.next", make(&next) | map(1, next));
	obs_last("retained.next.fill", (int)cudaMemset(at(1), 0x64, EACH) | (int)cudaDeviceSynchronize());
	obs_code("retained.map", map(0, again));
	obs_bytes("retained.content", at(0), 0x63, EACH);
	obs_code("retained.end", unmap(0, 1) | (int)cuMemRelease(again));
	obs_code("retained.release.again", cuMemRelease(again));
	obs_code("retained.next.end", unmap(1, 1) | (int)cuMemRelease(next));
	/* Twice, with the first reference kept. */
	obs_code("counted.create", make(&h) | map(0, h));
	again = h;
	if (!calm) {
		obs_code("counted.retain", cuMemRetainAllocationHandle(&again, at(0)));
		obs_code("counted.release", (int)cuMemRelease(h));
		obs_code("counted.properties", properties(h));
	}
	obs_code("counted.release.2", (int)cuMemRelease(again));
	obs_code("counted.properties.2", properties(h));
	obs_code("counted.unmap", unmap(0, 1));
}

/* Released while a kernel runs that does not use it. The next one may not be the same memory before that kernel is done; nobody sees how that
 * is brought about. */
static void busy(void)
{
	CUmemGenericAllocationHandle h;
	CUfunction spin = obs_kernel("fake_spin");
	cudaStream_t stream;
	obs_last("busy.stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int round = 0; round < 3; round++) {
		int code = (int)cuMemCreate(&h, 3 * EACH, &prop, 0) | (int)cuMemMap(va + 4 * EACH, 3 * EACH, 0, h, 0);
		code |= calm ? 0 : obs_spin(spin, stream, 30);
		code |= (int)cuMemSetAccess(va + 4 * EACH, 3 * EACH, &access_desc, 1) | (int)cudaMemsetAsync(at(4), 0x70 + round, 3 * EACH, NULL);
		code |= (int)cudaStreamSynchronize(NULL);
		obs_bytes("busy.content", at(6), 0x70 + round, 4096);
		code |= calm ? (int)cudaDeviceSynchronize() : 0;
		obs_code("busy", code | (int)cuMemUnmap(va + 4 * EACH, 3 * EACH) | (int)cuMemRelease(h));
	}
	obs_last("busy.end", (int)cudaStreamSynchronize(stream) | (int)cudaStreamDestroy(stream));
}

/* Numbers of mappings, as those who remember what they did with an address ask for them. */
static void numbers(void)
{
	CUmemGenericAllocationHandle h;
	unsigned long long first = 0, second = 0, plain = 0;
	void *p = NULL;
	int code = make(&h) | map(0, h) | (int)cuPointerGetAttribute(&first, CU_POINTER_ATTRIBUTE_BUFFER_ID, va);
	code |= unmap(0, 1) | (int)cuMemRelease(h) | make(&h) | map(0, h);
	code |= (int)cudaMalloc(&p, 100) | (int)cuPointerGetAttribute(&plain, CU_POINTER_ATTRIBUTE_BUFFER_ID, (CUdeviceptr)(uintptr_t)p);
	code |= (int)cuPointerGetAttribute(&second, CU_POINTER_ATTRIBUTE_BUFFER_ID, va);
	obs("numbers", "%d,%d,%d", code, second > first, plain > first);
	obs_code("numbers.end", unmap(0, 1) | (int)cuMemRelease(h) | (int)cudaFree(p));
}

static void reset(void)
{
	CUmemGenericAllocationHandle h;
	obs_code("reset.create", make(&h) | map(0, h));
	obs_last("reset", cudaDeviceReset());
	obs_last("reset.init", cudaFree(NULL));
	obs_code("reset.properties", properties(h));
	obs_code("reset.unmap", unmap(0, 1));
	obs_code("reset.release", cuMemRelease(h));
	obs_code("reset.again", make(&h) | map(0, h));
	obs_code("reset.end", unmap(0, 1) | (int)cuMemRelease(h) | (int)cuMemAddressFree(va, 8 * EACH));
}

/* After a store to nowhere the context is lost; handles are still made and released. */
static void fault(void)
{
	CUmemGenericAllocationHandle h, next = (CUmemGenericAllocationHandle)(uintptr_t)KEPT;
	CUfunction fill = obs_kernel("fake_fill");
	CUdeviceptr nowhere = 0x10;
	unsigned char value = 1;
	size_t bytes = 16;
	void *params[] = {&nowhere, &value, &bytes};
	obs_code("fault.create", make(&h));
	if (!calm) {
		obs_code("fault.launch", cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
		obs_last("fault", cudaDeviceSynchronize());
	}
	obs_code("fault.release", cuMemRelease(h));
	obs_out("fault.create.next", make(&next), &next);
}

/* Every one of them leaves, by an export or by its address, and is gone at the end of its round. */
static void leaving(void)
{
	for (int round = 0; round < 12; round++) {
		CUmemGenericAllocationHandle h, again = 0;
		CUdeviceptr spare = 0;
		int fd = -1, code;
		if (round == 6) /* a call that is made once, by which a test knows that it serves */
			obs_code("leaving.serving", (int)cuMemAddressReserve(&spare, 2 * MIB, 0, 0, 0) | (int)cuMemAddressFree(spare, 2 * MIB));
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		code = make(&h) | map(0, h) | (int)cudaMemset(at(0), 0x30 + round, EACH) | (int)cudaDeviceSynchronize();
		if (!calm && round % 2)
			code |= (int)cuMemRetainAllocationHandle(&again, at(0)) | (int)cuMemRelease(again);
		else if (!calm)
			code |= (int)cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) | close(fd);
		obs_bytes("leaving.content", at(0), 0x30 + round, EACH);
		code |= round % 3 ? unmap(0, 1) | (int)cuMemRelease(h) : (int)cuMemRelease(h) | unmap(0, 1);
		obs_code("leaving", code);
	}
}

int main(int argc, char **argv)
{
	calm = argc > 1 && strcmp(argv[argc - 1], "calm") == 0;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = access_desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	access_desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	obs_code("init", cudaFree(NULL));
	obs_code("reserve", cuMemAddressReserve(&va, 8 * EACH, 0, 0, 0));
	if (argc > 1 && strcmp(argv[1], "leaving") == 0) {
		leaving();
		return 0;
	}
	given_back();
	while_mapped();
	two_places();
	ranges();
	shared();
	retained();
	busy();
	numbers();
	reset();
	fault();
	return 0;
}
