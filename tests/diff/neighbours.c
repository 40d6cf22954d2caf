/* Blocks that stand side by side: each has its own extent, number and attributes, and the death of one is nothing to the next. */
#include "observe.h"

#define BLOCKS 6

static CUdeviceptr at(const void *p, size_t offset) { return (CUdeviceptr)(uintptr_t)p + offset; }

/* The block's own start and extent as seen from any of its bytes; whether the byte behind it is still its own. */
static void extent(const char *key, const void *p, size_t bytes)
{
	CUdeviceptr base[3] = {0, 0, 0};
	size_t size[3] = {0, 0, 0};
	const size_t offsets[3] = {0, bytes / 2, bytes - 1};
	int code = 0, same = 1;
	for (int i = 0; i < 3; i++) {
		code |= (int)cuMemGetAddressRange(&base[i], &size[i], at(p, offsets[i]));
		same &= base[i] == at(p, 0) && size[i] == bytes;
	}
	CUdeviceptr behind = 0;
	int beyond = (int)cuMemGetAddressRange(&behind, &size[0], at(p, bytes));
	obs(key, "%d,own=%d,behind=%d", code, same, beyond == 0 && behind == at(p, 0));
}

static void attributes(const char *key, const void *p, size_t inside)
{
	CUdeviceptr start = 0, pointer = 0;
	size_t size = 0;
	unsigned type = 77, managed = 77;
	int ordinal = 77, legacy = 77, sync = 77;
	unsigned long long kinds = 77;
	CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
		CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES};
	void *to[] = {&start, &size, &pointer, &type, &managed, &ordinal, &legacy, &sync, &kinds};
	int code = (int)cuPointerGetAttributes(9, what, to, at(p, inside));
	obs(key, "%d,start=%d,size=%zu,pointer=%d,type=%u,managed=%u,device=%d,legacy=%d,sync=%d,handles=%llu", code, start == at(p, 0), size,
	    pointer == at(p, inside), type, managed, ordinal, legacy, sync, kinds);
	CUdeviceptr one = 0;
	size_t own = 0;
	int codes = (int)cuPointerGetAttribute(&one, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at(p, inside));
	codes |= (int)cuPointerGetAttribute(&own, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at(p, inside));
	char second[96];
	snprintf(second, sizeof second, "%s.one_by_one", key);
	obs(second, "%d,%d", codes, one == start && own == size);
}

static void mapping(const char *key, const void *p)
{
	CUdeviceptr base = 0;
	size_t size = 0;
	int code = (int)cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, at(p, 0));
	code |= (int)cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, at(p, 0));
	obs(key, "%d,contains=%d,%zu", code, base <= at(p, 0) && at(p, 0) - base < size, size);
}

static void dead(const char *key, const void *p)
{
	struct cudaPointerAttributes a;
	CUdeviceptr base = 0;
	unsigned long long id = 0;
	int range = (int)cuMemGetAddressRange(&base, NULL, at(p, 0));
	int number = (int)cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at(p, 0));
	int code = (int)cudaPointerGetAttributes(&a, p);
	obs(key, "range=%d,number=%d,attributes=%d,type=%d", range, number, code, (int)a.type);
}

static unsigned long long number(const void *p)
{
	unsigned long long id = 0;
	return cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at(p, 0)) == CUDA_SUCCESS ? id : 0;
}

static void family(const char *name, int pool)
{
	static const size_t sizes[BLOCKS] = {1, 512, 700, 4096, 100000, 3 * MIB};
	void *p[BLOCKS], *late;
	unsigned long long ids[BLOCKS], youngest = 0;
	char key[64];
	int code = 0, grow = 1;
	for (int i = 0; i < BLOCKS; i++) {
		code |= pool ? (int)cudaMallocAsync(&p[i], sizes[i], NULL) : (int)cudaMalloc(&p[i], sizes[i]);
		ids[i] = number(p[i]);
		grow &= ids[i] > youngest;
		youngest = ids[i];
	}
	code |= (int)cudaDeviceSynchronize();
	obs(name, "%d,grow=%d", code, grow);
	for (int i = 0; i < BLOCKS; i++) {
		snprintf(key, sizeof key, "%s.%zu.extent", name, sizes[i]);
		extent(key, p[i], sizes[i]);
		snprintf(key, sizeof key, "%s.%zu.attributes", name, sizes[i]);
		attributes(key, p[i], sizes[i] / 3);
		snprintf(key, sizeof key, "%s.%zu.mapping", name, sizes[i]);
		if (!pool && sizes[i] <= 2 * MIB)
			mapping(key, p[i]);
	}
	/* One of the middle goes. What is asked for then is another block with a younger number, wherever it stands. */
	snprintf(key, sizeof key, "%s.free", name);
	obs_last(key, pool ? (int)cudaFreeAsync(p[2], NULL) | (int)cudaStreamSynchronize(NULL) : (int)cudaFree(p[2]));
	if (!pool) {
		snprintf(key, sizeof key, "%s.dead", name);
		dead(key, p[2]);
	}
	snprintf(key, sizeof key, "%s.left", name);
	extent(key, p[1], sizes[1]);
	snprintf(key, sizeof key, "%s.right", name);
	extent(key, p[3], sizes[3]);
	snprintf(key, sizeof key, "%s.same_numbers", name);
	obs(key, "%d", number(p[1]) == ids[1] && number(p[3]) == ids[3]);
	code = pool ? (int)cudaMallocAsync(&late, 700, NULL) : (int)cudaMalloc(&late, 700);
	snprintf(key, sizeof key, "%s.younger", name);
	obs(key, "%d,%d", code, number(late) > youngest);
	p[2] = late;
	for (int i = 0; i < BLOCKS; i++)
		code |= pool ? (int)cudaFreeAsync(p[i], NULL) : (int)cudaFree(p[i]);
	snprintf(key, sizeof key, "%s.end", name);
	obs_last(key, code | (int)cudaDeviceSynchronize());
}

int main(void)
{
	CUmemoryPool pool = NULL, of = NULL;
	void *p;
	obs_code("init", cudaFree(NULL));
	family("plain", 0);
	family("ordered", 1);
	family("plain.again", 0);
	obs_last("alloc", cudaMallocAsync(&p, 100, NULL));
	obs_code("default", cuDeviceGetDefaultMemPool(&pool, 0));
	obs_code("pool_of", cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at(p, 0)));
	obs_code("is_default", pool == of);
	obs_last("free", (int)cudaFreeAsync(p, NULL) | (int)cudaDeviceSynchronize());
	return 0;
}
