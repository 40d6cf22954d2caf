/* Frees by every call: the block's own, those of other families, and of addresses that are no block. */
#include "tests/generator/generator.h"

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

/* Calls that free; every one is tried on every kind of address. */
enum call { FREE, FREE_HOST, FREE_ASYNC, UNREGISTER, DRIVER_FREE, DRIVER_FREE_HOST, DRIVER_FREE_ASYNC, DRIVER_UNREGISTER, CALLS };

static int call_on(struct lane *l, const struct op *op, enum call call, void *p, int stream)
{
	switch (call) {
	case FREE: return (int)cudaFree(p);
	case FREE_HOST: return (int)cudaFreeHost(p);
	case FREE_ASYNC: return (int)cudaFreeAsync(p, stream_of(l, stream));
	case UNREGISTER: return (int)cudaHostUnregister(p);
	case DRIVER_FREE: return (int)op->cu->p_cuMemFree(address(p));
	case DRIVER_FREE_HOST: return (int)op->cu->p_cuMemFreeHost(p);
	case DRIVER_FREE_ASYNC: return (int)op->cu->p_cuMemFreeAsync(address(p), (CUstream)stream_of(l, stream));
	default: return (int)op->cu->p_cuMemHostUnregister(p);
	}
}

static bool ordered(const struct block *b) { return b->kind == KIND_ASYNC || b->kind == KIND_POOL; }

/* A call of the block's family. Plain blocks may be freed in stream order too. */
static enum call own_call(struct op *op, const struct block *b)
{
	bool driver = chance(&op->random, 2);
	switch (b->kind) {
	case KIND_PINNED: return driver ? DRIVER_FREE_HOST : FREE_HOST;
	case KIND_REGISTERED: return driver ? DRIVER_UNREGISTER : UNREGISTER;
	case KIND_ASYNC:
	case KIND_POOL:
		if (!b->stale && !chance(&op->random, 4))
			return driver ? DRIVER_FREE_ASYNC : FREE_ASYNC;
		break;
	case KIND_DEVICE:
		if (chance(&op->random, 8))
			return driver ? DRIVER_FREE_ASYNC : FREE_ASYNC;
		break;
	default: break;
	}
	return driver ? DRIVER_FREE : FREE;
}

static bool in_order(enum call call) { return call == FREE_ASYNC || call == DRIVER_FREE_ASYNC; }

/* Frees of plain memory wait for the whole device: whatever this thread had enqueued is done afterwards. The legacy
   stream is left out, as other threads use it too. */
static void observe_waited(struct lane *l)
{
	for (int i = 1; i < STREAMS; i++)
		if (i < CREATED || l->at->stream_made[i])
			observe(l, "idle", (int)cudaStreamQuery(stream_of(l, i)));
	blocks_idle(l);
}

void block_free(struct lane *l, struct op *op, struct block *b)
{
	void *p = b->p;
	if (b->kind == KIND_VMM) {
		vmm_free(l, op, b);
		return;
	}
	if (b->kind == KIND_ARRAY || b->kind == KIND_MIPMAP) {
		int code = b->kind == KIND_ARRAY ? (int)cudaFreeArray(p) : (int)cudaFreeMipmappedArray(p);
		observe(l, "free", code);
		if (code == 0)
			block_gone(l, b);
		return;
	}
	enum call call = own_call(op, b);
	bool waits = !in_order(call) && !ordered(b);
	if (in_order(call))
		block_order(l, b, op->stream);
	else if (ordered(b))
		block_wait(l, b); /* freed plainly while something works on it, it would be a fault */
	int code = call_on(l, op, call, p, op->stream);
	observe(l, "call", call);
	observe(l, "free", code);
	if (code != 0)
		return;
	block_gone(l, b);
	if (waits && chance(&op->random, 4) && !program.placed)
		observe_waited(l);
}

/* Twice, only where no other thread can have been given the address in between. */
static void free_twice(struct lane *l, struct op *op, struct block *b)
{
	void *p = b->p;
	enum kind kind = b->kind;
	block_free(l, op, b);
	if (b->kind != KIND_NONE || kind == KIND_ARRAY || kind == KIND_MIPMAP || kind == KIND_VMM || program.threads > 1)
		return;
	streams_wait(l);
	observe(l, "twice", call_on(l, op, (enum call)pick(&op->random, CALLS), p, op->stream));
}

static void free_wrongly(struct lane *l, struct op *op, struct block *b)
{
	enum call call = (enum call)pick(&op->random, CALLS);
	if (b->kind == KIND_ARRAY || b->kind == KIND_MIPMAP || b->kind == KIND_NONE)
		return; /* a handle's bits might be an address of somebody else's */
	if (ordered(b) || in_order(call))
		block_wait(l, b);
	if (b->stale && in_order(call))
		call = FREE_HOST;
	int code = call_on(l, op, call, b->p, op->stream);
	observe(l, "call", call);
	observe(l, "any", code);
	if (code == 0)
		block_gone(l, b);
}

static void free_inside(struct lane *l, struct op *op, struct block *b)
{
	static const enum call calls[] = {FREE, FREE_HOST, FREE_ASYNC, DRIVER_FREE, DRIVER_FREE_HOST, DRIVER_FREE_ASYNC};
	enum call call = calls[pick(&op->random, 6)];
	size_t offset = pick(&op->random, 2) ? 512 : 1;
	if (!block_linear(b) || b->bytes <= offset)
		return;
	observe(l, "call", call);
	observe(l, "inside", call_on(l, op, call, (char *)b->p + offset, op->stream));
}

static void free_nothing(struct lane *l, struct op *op)
{
	uint32_t which = pick(&op->random, CALLS + 2);
	if (which < CALLS)
		observe(l, "null", which == UNREGISTER || which == DRIVER_UNREGISTER ? 0 : call_on(l, op, (enum call)which, NULL, op->stream));
	else if (which == CALLS)
		observe(l, "null_array", (int)cudaFreeArray(NULL));
	else
		observe(l, "null_mipmap", (int)cudaFreeMipmappedArray(NULL));
}

void do_free(struct lane *l, struct op *op)
{
	struct block *b = block_find(l, op->block, block_there);
	uint32_t how = pick(&op->random, 16);
	if (how == 0) {
		free_nothing(l, op);
	} else if (how == 1) {
		int local = 0;
		void *nobody = pick(&op->random, 2) ? (void *)l->heap : (void *)&local;
		observe(l, "nobody", call_on(l, op, (enum call)pick(&op->random, CALLS), nobody, op->stream));
	} else if (b == NULL) {
		return;
	} else if (how < 4) {
		free_wrongly(l, op, b);
	} else if (how < 6) {
		free_inside(l, op, b);
	} else if (how < 8) {
		free_twice(l, op, b);
	} else {
		block_free(l, op, b);
	}
}
