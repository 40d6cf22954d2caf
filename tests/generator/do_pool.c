/* Pools: made, asked, trimmed, ended; and virtual memory: every step from the reservation to its end. */
#include <string.h>

#include "tests/generator/generator.h"

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

static void create(struct lane *l, struct op *op, int place)
{
	struct cudaMemPoolProps props;
	memset(&props, 0, sizeof props);
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = op->device;
	cudaMemPool_t pool = NULL;
	int code = (int)cudaMemPoolCreate(&pool, &props);
	observe(l, "create", code);
	if (code == 0)
		l->at->pools[place] = pool;
}

static void destroy(struct lane *l, struct op *op, int place)
{
	/* Its blocks first: a pool with blocks lives on behind its handle, until they are freed. */
	for (int i = 0; i < BLOCKS; i++) {
		struct block *b = &l->at->blocks[i];
		if (b->kind == KIND_POOL && b->pool == place)
			block_free(l, op, b);
	}
	streams_wait(l);
	observe(l, "destroy", (int)cudaMemPoolDestroy(l->at->pools[place]));
	l->at->pools[place] = NULL;
}

static void ask(struct lane *l, struct op *op, cudaMemPool_t pool)
{
	static const enum cudaMemPoolAttr flags[] = {cudaMemPoolReuseFollowEventDependencies, cudaMemPoolReuseAllowOpportunistic,
		cudaMemPoolReuseAllowInternalDependencies};
	uint64_t used = 0, reserved = 0, threshold = 77;
	int flag = 77;
	observe(l, "used", (int)cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
	observe(l, "bytes", (int64_t)used);
	observe(l, "reserved", (int)op->cu->p_cuMemPoolGetAttribute((CUmemoryPool)pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
	/* How much it is depends on when work ended, and may be less than what is used: a stream-ordered block that cudaFree ended is counted
	 * there for good. */
	observe(l, "whole", reserved % (2u << 20) == 0);
	observe(l, "threshold", (int)cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
	observe(l, "bytes", (int64_t)threshold);
	observe(l, "flag", (int)cudaMemPoolGetAttribute(pool, flags[pick(&op->random, 3)], &flag));
	observe(l, "value", flag);
}

void do_pool(struct lane *l, struct op *op)
{
	int place = op->stream % POOLS;
	cudaMemPool_t pool = l->at->pools[place];
	uint64_t value;
	int zero = 0;
	if (pool == NULL) {
		create(l, op, place);
		return;
	}
	switch (pick(&op->random, 6)) {
	case 0: destroy(l, op, place); break;
	case 1: /* trimming frees what nothing uses, so nothing may be on its way */
		streams_wait(l);
		observe(l, "trim", (int)cudaMemPoolTrimTo(pool, pick(&op->random, 2) ? 0 : op->bytes));
		break;
	case 2:
		value = pick(&op->random, 2) ? UINT64_MAX : op->bytes;
		observe(l, "set_threshold", (int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
		break;
	case 3:
		value = 0;
		observe(l, "set_high", (int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
		observe(l, "high", (int)cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &value));
		observe(l, "bytes", (int64_t)value);
		break;
	case 4: {
		cudaMemPool_t current = NULL, standard = NULL;
		observe(l, "default", (int)cudaDeviceGetDefaultMemPool(&standard, op->device));
		observe(l, "current", (int)cudaDeviceGetMemPool(&current, op->device));
		observe(l, "same", standard == current && standard != pool);
		observe(l, "refused", (int)cudaMemPoolDestroy(standard));
		observe(l, "flag", (int)cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &zero));
		break;
	}
	default: ask(l, op, pool);
	}
}

/* ---- virtual memory ---- */

static CUmemAllocationProp properties(int device)
{
	CUmemAllocationProp prop;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	return prop;
}

void vmm_alloc(struct lane *l, struct op *op, struct block *b)
{
	size_t grain = 2 * MIB, bytes;
	CUmemAllocationProp prop = properties(op->device);
	CUmemGenericAllocationHandle handle = KEPT;
	CUdeviceptr p = KEPT;
	CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	observe(l, "granularity", (int)op->cu->p_cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	observe(l, "bytes", (int64_t)grain);
	bytes = grain * (1 + pick(&op->random, 3));
	int code = (int)op->cu->p_cuMemAddressReserve(&p, bytes, 0, 0, 0);
	observe(l, "reserve", code);
	if (code != 0)
		return;
	code = (int)op->cu->p_cuMemCreate(&handle, bytes, &prop, 0);
	observe(l, "create", code);
	if (code != 0) {
		observe(l, "unreserve", (int)op->cu->p_cuMemAddressFree(p, bytes));
		return;
	}
	block_born(l, b, KIND_VMM, (void *)(uintptr_t)p, bytes, bytes);
	b->handle = handle;
	if (chance(&op->random, 4)) {
		observe(l, "map_partial", (int)op->cu->p_cuMemMap(p, bytes, grain, handle, 0));
		observe(l, "map_odd", (int)op->cu->p_cuMemMap(p, 4096, 0, handle, 0));
	}
	code = (int)op->cu->p_cuMemMap(p, bytes, 0, handle, 0);
	observe(l, "map", code);
	if (code != 0)
		return;
	code = (int)op->cu->p_cuMemSetAccess(p, bytes, &access, 1);
	observe(l, "access", code);
	b->mapped = code == 0;
}

void vmm_free(struct lane *l, struct op *op, struct block *b)
{
	CUdeviceptr p = address(b->p);
	size_t bytes = b->bytes;
	bool release_first = chance(&op->random, 2);
	block_wait(l, b);
	if (!b->released && release_first)
		observe(l, "release", (int)op->cu->p_cuMemRelease(b->handle));
	observe(l, "unmap", (int)op->cu->p_cuMemUnmap(p, bytes));
	if (!b->released && !release_first)
		observe(l, "release", (int)op->cu->p_cuMemRelease(b->handle));
	if (chance(&op->random, 4))
		observe(l, "unmap_twice", (int)op->cu->p_cuMemUnmap(p, bytes));
	observe(l, "unreserve", (int)op->cu->p_cuMemAddressFree(p, bytes));
	block_gone(l, b);
}

/* Steps on a mapping that is there. */
void do_vmm(struct lane *l, struct op *op)
{
	struct block *b = NULL;
	for (int i = 0; i < BLOCKS && b == NULL; i++)
		if (l->at->blocks[(op->block + i) % BLOCKS].kind == KIND_VMM)
			b = &l->at->blocks[(op->block + i) % BLOCKS];
	if (b == NULL) {
		b = &l->at->blocks[op->block];
		if (b->kind == KIND_NONE)
			vmm_alloc(l, op, b);
		return;
	}
	CUdeviceptr p = address(b->p);
	CUmemGenericAllocationHandle handle = KEPT;
	CUmemLocation where = properties(op->device).location;
	unsigned long long flags = 77;
	switch (pick(&op->random, 7)) {
	case 0:
		if (!b->mapped)
			break;
		observe(l, "retain", (int)op->cu->p_cuMemRetainAllocationHandle(&handle, b->p));
		if (!b->released)
			observe(l, "same", handle == b->handle);
		observe(l, "release", (int)op->cu->p_cuMemRelease(handle));
		break;
	case 1: /* the memory stays as long as it is mapped */
		if (!b->released && b->mapped) {
			observe(l, "release", (int)op->cu->p_cuMemRelease(b->handle));
			b->released = true;
		}
		break;
	case 2:
		observe(l, "get_access", (int)op->cu->p_cuMemGetAccess(&flags, &where, p));
		observe(l, "flags", (int64_t)flags);
		break;
	case 3: observe(l, "mapped_unreserve", b->mapped ? (int)op->cu->p_cuMemAddressFree(p, b->bytes) : 1); break;
	case 4: observe(l, "mapped_free", (int)op->cu->p_cuMemFree(p)); break;
	case 5: observe(l, "map_again", b->mapped && !b->released ? (int)op->cu->p_cuMemMap(p, b->bytes, 0, b->handle, 0) : 1); break;
	default:
		if (b->bytes > 2 * MIB)
			observe(l, "unmap_partial", (int)op->cu->p_cuMemUnmap(p, 2 * MIB));
	}
}
