/* Allocation of every kind, at both levels. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "tests/generator/generator.h"

enum way {
	MALLOC, PITCH, CUBE, ARRAY, ARRAY_3D, MIPMAP, MANAGED, MALLOC_HOST, HOST_ALLOC, REGISTER, MALLOC_ASYNC, FROM_POOL,
	DRIVER, DRIVER_PITCH, DRIVER_MANAGED, DRIVER_ALLOC_HOST, DRIVER_HOST_ALLOC, DRIVER_REGISTER, DRIVER_ASYNC, DRIVER_POOL,
	VMM, WAYS
};

static const unsigned char weights[WAYS] = {[MALLOC] = 18, [PITCH] = 3, [CUBE] = 2, [ARRAY] = 3, [ARRAY_3D] = 2, [MIPMAP] = 2,
	[MANAGED] = 2, [MALLOC_HOST] = 2, [HOST_ALLOC] = 2, [REGISTER] = 2, [MALLOC_ASYNC] = 15, [FROM_POOL] = 8, [DRIVER] = 10,
	[DRIVER_PITCH] = 2, [DRIVER_MANAGED] = 1, [DRIVER_ALLOC_HOST] = 1, [DRIVER_HOST_ALLOC] = 1, [DRIVER_REGISTER] = 1,
	[DRIVER_ASYNC] = 8, [DRIVER_POOL] = 4, [VMM] = 5};

static enum way draw_way(struct random *r)
{
	unsigned sum = 0, way = 0;
	for (int i = 0; i < WAYS; i++)
		sum += weights[i];
	unsigned at = pick(r, sum);
	while (at >= weights[way])
		at -= weights[way++];
	return (enum way)way;
}

static const unsigned host_flags[] = {cudaHostAllocDefault, cudaHostAllocPortable, cudaHostAllocMapped,
	cudaHostAllocWriteCombined, cudaHostAllocPortable | cudaHostAllocMapped};
#define HOST_FLAGS 5

static void alloc_array(struct lane *l, struct op *op, struct block *b, enum way way)
{
	static const struct cudaChannelFormatDesc formats[] = {{8, 0, 0, 0, cudaChannelFormatKindUnsigned},
		{16, 16, 0, 0, cudaChannelFormatKindUnsigned}, {32, 0, 0, 0, cudaChannelFormatKindFloat},
		{32, 32, 32, 32, cudaChannelFormatKindFloat}};
	static const unsigned texels[] = {1, 4, 4, 16};
	uint32_t f = pick(&op->random, 4);
	size_t w = 1 + pick(&op->random, 96), h = pick(&op->random, 3) == 0 ? 0 : 1 + pick(&op->random, 64);
	size_t depth = way == ARRAY_3D && h != 0 && chance(&op->random, 2) ? 1 + pick(&op->random, 8) : 0;
	unsigned levels = 1;
	void *p = (void *)KEPT;
	int code;
	if (way == ARRAY) {
		code = (int)cudaMallocArray((cudaArray_t *)&p, &formats[f], w, h, 0);
	} else if (way == ARRAY_3D) {
		code = (int)cudaMalloc3DArray((cudaArray_t *)&p, &formats[f], (struct cudaExtent){w, h, depth}, 0);
	} else {
		w += 8;
		h = h == 0 ? 0 : h + 8;
		levels = 1 + pick(&op->random, 3);
		code = (int)cudaMallocMipmappedArray((cudaMipmappedArray_t *)&p, &formats[f], (struct cudaExtent){w, h, 0}, levels, 0);
	}
	observe(l, "code", code);
	observe_output(l, "array", p);
	if (code != 0)
		return;
	size_t counted = 0, lw = w, lh = h;
	for (unsigned i = 0; i < levels; i++) {
		counted += lw * (lh ? lh : 1) * (depth ? depth : 1) * texels[f];
		lw = lw > 1 ? lw / 2 : lw;
		lh = lh > 1 ? lh / 2 : lh;
	}
	size_t row = w * texels[f];
	block_born(l, b, way == MIPMAP ? KIND_MIPMAP : KIND_ARRAY, p, row * (h ? h : 1), counted);
	b->width = depth == 0 ? row : 0; /* a flat one can be copied to and from */
	b->height = h ? h : 1;
}

static void alloc_pitched(struct lane *l, struct op *op, struct block *b, enum way way)
{
	size_t w = 1 + pick(&op->random, 2000), h = 1 + pick(&op->random, 40), depth = 1, pitch = 0;
	void *p = (void *)KEPT;
	int code;
	if (way == PITCH) {
		code = (int)cudaMallocPitch(&p, &pitch, w, h);
	} else if (way == DRIVER_PITCH) {
		static const unsigned elements[] = {4, 8, 16, 2};
		code = (int)op->cu->p_cuMemAllocPitch((CUdeviceptr *)&p, &pitch, w, h, elements[pick(&op->random, 4)]);
	} else {
		struct cudaPitchedPtr out = {p, 0, 0, 0};
		depth = 1 + pick(&op->random, 4);
		code = (int)cudaMalloc3D(&out, (struct cudaExtent){w, h, depth});
		p = out.ptr;
		pitch = out.pitch;
		observe(l, "xsize", (int64_t)out.xsize);
		observe(l, "ysize", (int64_t)out.ysize);
	}
	observe(l, "code", code);
	observe_output(l, "p", p);
	observe(l, "pitch", code == 0 ? (int64_t)pitch : 0);
	if (code != 0)
		return;
	block_born(l, b, KIND_PITCH, p, pitch * h * depth, pitch * h * depth);
	b->pitch = pitch;
	b->width = w;
	b->height = h * depth;
}

static void alloc_registered(struct lane *l, struct op *op, struct block *b, int driver)
{
	int slot = op->device * BLOCKS + op->block;
	size_t bytes = 4096 * (size_t)(1 + pick(&op->random, 8));
	if (l->to_register[slot] == NULL && posix_memalign(&l->to_register[slot], 4096, 8 * 4096) != 0)
		return;
	unsigned flags = pick(&op->random, 2) ? cudaHostRegisterPortable | cudaHostRegisterMapped : cudaHostRegisterDefault;
	void *p = l->to_register[slot];
	int code = driver ? (int)op->cu->p_cuMemHostRegister(p, bytes, flags) : (int)cudaHostRegister(p, bytes, flags);
	observe(l, "code", code);
	if (code == 0)
		block_born(l, b, KIND_REGISTERED, p, bytes, bytes);
}

static int alloc_plain(struct lane *l, struct op *op, enum way way, enum kind *kind, void **p, size_t bytes, int *stream, int *pool)
{
	CUdeviceptr *d = (CUdeviceptr *)p;
	cudaStream_t s = stream_of(l, op->stream);
	unsigned flags = host_flags[pick(&op->random, HOST_FLAGS)];
	*pool = (int)pick(&op->random, POOLS);
	*stream = -1;
	cudaMemPool_t from = l->at->pools[*pool];
	if (from == NULL && (way == FROM_POOL || way == DRIVER_POOL))
		way = way == FROM_POOL ? MALLOC_ASYNC : DRIVER_ASYNC;
	switch (way) {
	case MANAGED: *kind = KIND_MANAGED; return (int)cudaMallocManaged(p, bytes, cudaMemAttachGlobal);
	case DRIVER_MANAGED: *kind = KIND_MANAGED; return (int)op->cu->p_cuMemAllocManaged(d, bytes, CU_MEM_ATTACH_GLOBAL);
	case MALLOC_HOST: *kind = KIND_PINNED; return (int)cudaMallocHost(p, bytes);
	case HOST_ALLOC: *kind = KIND_PINNED; return (int)cudaHostAlloc(p, bytes, flags);
	case DRIVER_ALLOC_HOST: *kind = KIND_PINNED; return (int)op->cu->p_cuMemAllocHost(p, bytes);
	case DRIVER_HOST_ALLOC: *kind = KIND_PINNED; return (int)op->cu->p_cuMemHostAlloc(p, bytes, flags);
	case MALLOC_ASYNC: *kind = KIND_ASYNC, *stream = op->stream; return (int)cudaMallocAsync(p, bytes, s);
	case DRIVER_ASYNC: *kind = KIND_ASYNC, *stream = op->stream; return (int)op->cu->p_cuMemAllocAsync(d, bytes, (CUstream)s);
	case FROM_POOL: *kind = KIND_POOL, *stream = op->stream; return (int)cudaMallocFromPoolAsync(p, bytes, from, s);
	case DRIVER_POOL:
		*kind = KIND_POOL, *stream = op->stream;
		return (int)op->cu->p_cuMemAllocFromPoolAsync(d, bytes, (CUmemoryPool)from, (CUstream)s);
	case DRIVER: *kind = KIND_DEVICE; return (int)op->cu->p_cuMemAlloc(d, bytes);
	default: *kind = KIND_DEVICE; return (int)cudaMalloc(p, bytes);
	}
}

/* What every new block shows: its start, its extent, its type, and that its id is younger than all before. */
static void observe_new(struct lane *l, struct op *op, const struct block *b)
{
	CUdeviceptr base = 0, p = (CUdeviceptr)(uintptr_t)b->p;
	size_t size = 0;
	uint64_t id = 0;
	/* Between 1 MiB and 2 MiB the alignment depends on what other threads have allocated. */
	unsigned grain = b->kind == KIND_DEVICE && b->bytes > 2 * MIB ? 2 * MIB : 512;
	observe(l, "aligned", p % grain == 0);
	if (b->kind == KIND_PINNED || !chance(&op->random, 3))
		return;
	int code = (int)op->cu->p_cuMemGetAddressRange(&base, &size, p);
	observe(l, "range", code);
	observe(l, "base", base == p);
	observe(l, "size", (int64_t)size);
	observe(l, "id", (int)op->cu->p_cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
	observe(l, "younger", id > l->at->last_id);
	l->at->last_id = id;
}

void do_alloc(struct lane *l, struct op *op)
{
	struct block *b = &l->at->blocks[op->block];
	enum way way = draw_way(&op->random);
	if (b->kind != KIND_NONE)
		block_free(l, op, b);
	if (b->kind != KIND_NONE)
		return; /* the free was refused: observed there */
	observe(l, "way", way);
	if (way == ARRAY || way == ARRAY_3D || way == MIPMAP) {
		alloc_array(l, op, b, way);
	} else if (way == PITCH || way == DRIVER_PITCH || way == CUBE) {
		alloc_pitched(l, op, b, way);
	} else if (way == REGISTER || way == DRIVER_REGISTER) {
		alloc_registered(l, op, b, way == DRIVER_REGISTER);
	} else if (way == VMM) {
		vmm_alloc(l, op, b);
	} else {
		enum kind kind;
		void *p = (void *)KEPT;
		int stream, pool;
		size_t bytes = op->bytes;
		/* Their cost grows with their size, on the host. */
		if (way == MANAGED || way == DRIVER_MANAGED || way == MALLOC_HOST || way == HOST_ALLOC || way == DRIVER_ALLOC_HOST || way == DRIVER_HOST_ALLOC)
			bytes = bytes > 65536 ? 65536 : bytes;
		int code = alloc_plain(l, op, way, &kind, &p, bytes, &stream, &pool);
		observe(l, "code", code);
		observe_output(l, "p", p);
		if (code != 0 || p == NULL)
			return;
		block_born(l, b, kind, p, bytes, bytes);
		b->pool = pool;
		if (stream >= 0)
			block_order(l, b, stream);
		observe_new(l, op, b);
	}
}
