/* What a pointer says of itself: all attributes in one call, SYNC_MEMOPS set, interior pointers, buffer numbers. */
#include "observe.h"

static unsigned long long buffer_id(CUdeviceptr p)
{
	unsigned long long id = 0;
	return cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p) == CUDA_SUCCESS ? id : 0;
}

static void several(const char *name, void *p)
{
	unsigned type = 77, managed = 77;
	int ordinal = 77, sync = 77;
	CUdeviceptr start = 0;
	size_t size = 77;
	CUpointer_attribute what[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
	                              CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
	                              CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	void *to[] = {&type, &managed, &ordinal, &sync, &start, &size};
	int code = (int)cuPointerGetAttributes(6, what, to, (CUdeviceptr)(uintptr_t)p);
	obs(name, "%d,type=%u,managed=%u,device=%d,sync=%d,offset=%d,size=%zu", code, type, managed, ordinal, sync,
	    start != 0 ? (int)((uintptr_t)p - start) : -1, size);
}

int main(void)
{
	void *plain, *pinned, *async, *p, *heap = malloc(100);
	obs_code("plain", cudaMalloc(&plain, 5000));
	obs_code("pinned", cudaMallocHost(&pinned, 5000));
	obs_code("async", cudaMallocAsync(&async, 5000, NULL));
	obs_code("sync", cudaDeviceSynchronize());
	several("plain.all", plain);
	several("plain.inside", (char *)plain + 4999);
	several("plain.behind", (char *)plain + 5000);
	several("pinned.all", pinned);
	several("pinned.inside", (char *)pinned + 100);
	several("async.all", async);
	several("heap.all", heap);
	several("null.all", NULL);

	int on = 1;
	obs_code("sync_memops", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)plain));
	several("plain.sync", plain);
	obs_code("sync_memops.heap", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)heap));
	obs_code("sync_memops.wrong", cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)plain));

	unsigned long long first = buffer_id((CUdeviceptr)(uintptr_t)plain), next, grew = 1;
	for (int i = 0; i < 5; i++, first = next) {
		cudaMalloc(&p, 100);
		next = buffer_id((CUdeviceptr)(uintptr_t)p);
		grew &= next > first;
		cudaFree(p);
	}
	obs("ids_grow", "%llu", grew);
	obs_last("frees", (int)cudaFree(plain) | (int)cudaFreeHost(pinned) | (int)cudaFree(async));
	several("plain.freed", plain);
	free(heap);
	return 0;
}
