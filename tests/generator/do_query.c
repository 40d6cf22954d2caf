/* Questions about memory, the error state, refused requests, contexts, blocks that change hands. */
#include <string.h>

#include "tests/generator/generator.h"

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

static void pointer_attributes(struct lane *l, const struct block *b, const void *p)
{
	struct cudaPointerAttributes a;
	memset(&a, 0, sizeof a);
	observe(l, "attributes", (int)cudaPointerGetAttributes(&a, p));
	observe(l, "type", a.type);
	observe(l, "device", a.device);
	observe(l, "device_pointer", a.devicePointer == p);
	observe(l, "host_pointer", a.hostPointer == p);
	(void)b;
}

static void driver_attribute(struct lane *l, struct op *op, const struct block *b, const void *p)
{
	static const CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
		CU_POINTER_ATTRIBUTE_MAPPED, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
	/* The last one is what the driver has mapped for several blocks, of other threads too; in a pool it depends on where the block stands. */
	bool last = program.threads == 1 && !(program.placed && b != NULL && (b->kind == KIND_ASYNC || b->kind == KIND_POOL));
	CUpointer_attribute a = which[pick(&op->random, sizeof which / sizeof which[0] - !last)];
	uint64_t value = 0;
	observe(l, "attribute", a);
	observe(l, "code", (int)op->cu->p_cuPointerGetAttribute(&value, a, address(p)));
	observe(l, "value", (int64_t)value);
}

static void address_range(struct lane *l, struct op *op, const struct block *b, size_t offset)
{
	CUdeviceptr base = KEPT;
	size_t size = 77;
	uint32_t nulls = pick(&op->random, 6);
	observe(l, "range", (int)op->cu->p_cuMemGetAddressRange(nulls == 0 ? NULL : &base, nulls == 1 ? NULL : &size, address(b->p) + offset));
	if (nulls != 0)
		observe(l, "base", base == address(b->p));
	if (nulls != 1)
		observe(l, "size", (int64_t)size);
}

static void memory_info(struct lane *l, struct op *op)
{
	size_t free_bytes = 0, total = 0, driver_total = 0;
	size_t *f = pick(&op->random, 4) ? &free_bytes : NULL, *t = pick(&op->random, 4) ? &total : NULL;
	observe(l, "runtime", (int)cudaMemGetInfo(f, t));
	observe(l, "driver", (int)op->cu->p_cuMemGetInfo(f, pick(&op->random, 4) ? &driver_total : NULL));
	observe(l, "total", t == NULL || total == program.card_bytes);
	observe(l, "driver_total", driver_total == 0 || driver_total == program.card_bytes);
	observe(l, "below", free_bytes < program.card_bytes);
}

void do_query(struct lane *l, struct op *op)
{
	const struct block *b = block_find(l, op->block, block_linear);
	uint32_t what = pick(&op->random, 8);
	size_t offset = b == NULL || pick(&op->random, 2) ? 0 : pick(&op->random, (uint32_t)(b->bytes > MIB ? MIB : b->bytes));
	if (what == 0) {
		memory_info(l, op);
	} else if (what == 1) {
		/* Ordinary memory, and NULL, are known to nobody. */
		const void *p = pick(&op->random, 2) ? l->heap : NULL;
		pointer_attributes(l, b, p);
		driver_attribute(l, op, b, p);
	} else if (b == NULL) {
		return;
	} else if (what == 2 && (b->kind == KIND_PINNED || b->kind == KIND_REGISTERED)) {
		void *d = NULL;
		unsigned flags = 0;
		observe(l, "pointer", pick(&op->random, 2) ? (int)cudaHostGetDevicePointer(&d, b->p, 0)
		                                           : (int)op->cu->p_cuMemHostGetDevicePointer((CUdeviceptr *)&d, b->p, 0));
		observe(l, "same", d == b->p);
		observe(l, "flags", (int)op->cu->p_cuMemHostGetFlags(&flags, b->p));
		observe(l, "value", flags);
	} else if (what < 5) {
		pointer_attributes(l, b, (char *)b->p + offset);
		driver_attribute(l, op, b, (char *)b->p + offset);
	} else {
		address_range(l, op, b, offset);
	}
}

void do_error(struct lane *l, struct op *op)
{
	void *p = (void *)KEPT;
	switch (pick(&op->random, 4)) {
	case 0:
	case 1: observe(l, "get", (int)cudaGetLastError()); break;
	case 2:
		observe(l, "null_output", (int)cudaMalloc(NULL, 4096));
		observe(l, "peek", (int)cudaPeekAtLastError());
		break;
	default:
		observe(l, "bad_flags", (int)cudaHostAlloc(&p, 4096, 0x8000));
		observe_output(l, "p", p);
		observe(l, "bad_managed", (int)cudaMallocManaged(&p, 4096, 0));
		observe_output(l, "p", p);
	}
}

/* Requests that no card can grant; the outputs show what each call makes of them. */
void do_refused(struct lane *l, struct op *op)
{
	static const size_t sizes[] = {HUGE_BYTES, (size_t)1 << 39, (size_t)1 << 62, ~(size_t)0};
	size_t bytes = pick(&op->random, 3) ? sizes[pick(&op->random, 4)] : program.card_bytes, pitch = 77;
	void *p = (void *)KEPT;
	CUdeviceptr d = KEPT;
	CUmemGenericAllocationHandle handle = KEPT;
	CUmemAllocationProp prop;
	int code;
	memset(&prop, 0, sizeof prop);
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = op->device;
	uint32_t what = pick(&op->random, 9);
	observe(l, "what", what);
	switch (what) {
	case 0:
	case 1: code = (int)cudaMalloc(&p, bytes); break;
	case 2: code = (int)op->cu->p_cuMemAlloc(&d, bytes); break;
	case 3: code = (int)cudaMallocPitch(&p, &pitch, (size_t)1 << 32, 1 << 12); break;
	case 4: code = (int)cudaMallocHost(&p, (size_t)1 << 62); break;
	case 5: code = (int)op->cu->p_cuMemHostAlloc(&p, (size_t)1 << 62, 0); break;
	case 6: code = (int)cudaMallocAsync(&p, HUGE_BYTES, stream_of(l, op->stream)); break;
	case 7: code = (int)op->cu->p_cuMemAllocAsync(&d, HUGE_BYTES, (CUstream)stream_of(l, op->stream)); break;
	default: code = (int)op->cu->p_cuMemCreate(&handle, HUGE_BYTES, &prop, 0);
	}
	observe(l, "code", code);
	observe_output(l, "p", p);
	observe_output(l, "d", (void *)(uintptr_t)d);
	observe(l, "handle_kept", handle == KEPT);
	if (chance(&op->random, 2))
		observe(l, "get", (int)cudaGetLastError());
}

/* More than half of the card: the second such block is refused. */
void do_card(struct lane *l, struct op *op)
{
	void *p = (void *)KEPT, *q = (void *)KEPT;
	size_t most = program.card_bytes / 100 * 60;
	if (!program.alone || program.threads > 1)
		return;
	streams_wait(l);
	int first = pick(&op->random, 2) ? (int)cudaMalloc(&p, most) : (int)op->cu->p_cuMemAlloc((CUdeviceptr *)&p, most);
	int second = (int)cudaMalloc(&q, most);
	observe(l, "first", first);
	observe(l, "second", second);
	observe_output(l, "p", p);
	observe_output(l, "q", q);
	if (first == 0)
		observe(l, "free", (int)cudaFree(p));
	if (second == 0)
		observe(l, "free", (int)cudaFree(q));
}

/* A block goes to the next thread at the end of the round, or one that has come is taken. */
void do_hand(struct lane *l, struct op *op)
{
	struct block *b = &l->at->blocks[op->block], *out = &l->outbox[op->device], *in = &l->inbox[op->device];
	if (b->kind == KIND_NONE && in->kind != KIND_NONE) {
		*b = *in;
		b->generation = ++l->generation;
		memset(in, 0, sizeof *in);
		observe(l, "taken", b->kind);
		observe(l, "bytes", (int64_t)b->bytes);
	} else if (b->kind != KIND_NONE && b->kind != KIND_POOL && b->kind != KIND_REGISTERED && out->kind == KIND_NONE) {
		block_wait(l, b);
		*out = *b;
		memset(b, 0, sizeof *b);
		b->busy = -1;
		observe(l, "given", out->kind);
	}
}

void do_context(struct lane *l, struct op *op)
{
	CUcontext current = NULL, primary = NULL, popped = NULL;
	unsigned flags;
	int active = -1, device = -1;
	CUdevice driver_device = -1;
	observe(l, "current", (int)op->cu->p_cuCtxGetCurrent(&current));
	observe(l, "retain", (int)op->cu->p_cuDevicePrimaryCtxRetain(&primary, op->device));
	observe(l, "same", current == primary && current != NULL);
	observe(l, "push", (int)op->cu->p_cuCtxPushCurrent(primary));
	observe(l, "device", (int)op->cu->p_cuCtxGetDevice(&driver_device));
	observe(l, "value", driver_device);
	observe(l, "pop", (int)op->cu->p_cuCtxPopCurrent(&popped));
	observe(l, "same", popped == primary);
	observe(l, "release", (int)op->cu->p_cuDevicePrimaryCtxRelease(op->device));
	observe(l, "state", (int)op->cu->p_cuDevicePrimaryCtxGetState(op->device, &flags, &active));
	observe(l, "active", active);
	observe(l, "get", (int)cudaGetDevice(&device));
	observe(l, "value", device);
	if (program.devices > 1) {
		/* A block of the other device, freed from here: the current device stays. */
		struct block *b = &l->places[1 - op->device].blocks[op->other];
		if (b->kind == KIND_DEVICE && b->busy < 0) {
			int code = pick(&op->random, 2) ? (int)cudaFree(b->p) : (int)op->cu->p_cuMemFree(address(b->p));
			observe(l, "from_here", code);
			if (code == 0)
				block_gone(l, b);
			observe(l, "get", (int)cudaGetDevice(&device));
			observe(l, "value", device);
		}
	}
}
