/* Writes, copies in every direction, and the contents that come of them. Only a prefix of REACH bytes is worked on. */
#include <string.h>

#include "tests/generator/generator.h"

static CUdeviceptr address(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

static size_t reach(const struct block *b) { return b->bytes < REACH ? b->bytes : REACH; }

/* Waits where the call that follows takes no stream: it orders itself by the legacy stream alone. */
static void before_synchronous(struct lane *l, struct block *b) { block_wait(l, b); }

void do_fill(struct lane *l, struct op *op)
{
	struct block *b = block_find(l, op->block, block_linear);
	uint32_t way = pick(&op->random, 9);
	unsigned char value = (unsigned char)draw(&op->random);
	bool from_start = pick(&op->random, 4) != 0;
	if (b == NULL)
		return;
	size_t offset = from_start ? 0 : pick(&op->random, (uint32_t)reach(b)), bytes = reach(b) - offset;
	char *p = (char *)b->p + offset;
	int code;
	if (way < 4)
		before_synchronous(l, b);
	else
		block_order(l, b, op->stream);
	cudaStream_t s = stream_of(l, op->stream);
	switch (way) {
	case 0: code = (int)cudaMemset(p, value, bytes); break;
	case 1: code = (int)op->cu->p_cuMemsetD8(address(p), value, bytes); break;
	case 2:
		offset = 0;
		p = b->p;
		bytes = reach(b) / 4 * 4;
		code = (int)op->cu->p_cuMemsetD32(address(p), value * 0x01020304u, bytes / 4);
		break;
	case 3:
		code = (int)cudaMemset2D(p, bytes, value, bytes, 1);
		break;
	case 4:
	case 5: code = (int)cudaMemsetAsync(p, value, bytes, s); break;
	case 6: code = (int)op->cu->p_cuMemsetD8Async(address(p), value, bytes, (CUstream)s); break;
	default:
		if (!kernels_load(l, op)) {
			observe(l, "no_kernels", 1);
			return;
		}
		if (b->kind == KIND_REGISTERED || b->kind == KIND_PINNED) /* reachable by the same address only as the device says */
			code = (int)cudaMemsetAsync(p, value, bytes, s);
		else if (way == 7 || b->defined < 8 || offset != 0)
			code = (int)kernel_fill(l, op, p, value, bytes, op->stream);
		else {
			bytes = (b->defined < bytes ? b->defined : bytes) / 4 * 4;
			code = (int)kernel_add(l, op, p, value, bytes / 4, op->stream);
		}
	}
	observe(l, "way", way);
	observe(l, "code", code);
	if (way < 4)
		/* A set of device memory may return before it is done: it is the legacy stream's work. */
		b->busy = 0;
	if (code == 0)
		block_written(b, offset, bytes);
}

/* ---- copies ---- */

static bool on_host(const struct block *b) { return b->kind == KIND_PINNED || b->kind == KIND_REGISTERED; }

static void between_blocks(struct lane *l, struct op *op, struct block *to, struct block *from)
{
	uint32_t way = pick(&op->random, 8);
	size_t bytes = reach(to) < reach(from) ? reach(to) : reach(from);
	cudaStream_t s = stream_of(l, op->stream);
	int code;
	bool device = !on_host(to) && !on_host(from);
	if (way < 3) {
		before_synchronous(l, to);
		before_synchronous(l, from);
	} else {
		block_order(l, to, op->stream);
		block_order(l, from, op->stream);
	}
	switch (way) {
	case 0: code = (int)cudaMemcpy(to->p, from->p, bytes, cudaMemcpyDefault); break;
	case 1: code = (int)op->cu->p_cuMemcpy(address(to->p), address(from->p), bytes); break;
	case 2:
		code = device ? (int)op->cu->p_cuMemcpyDtoD(address(to->p), address(from->p), bytes)
		              : (int)cudaMemcpy(to->p, from->p, bytes, cudaMemcpyDefault);
		break;
	case 3:
		if (device) {
			code = (int)op->cu->p_cuMemcpyDtoDAsync(address(to->p), address(from->p), bytes, (CUstream)s);
			break;
		} /* fall through */
	case 4: code = (int)cudaMemcpyAsync(to->p, from->p, bytes, cudaMemcpyDefault, s); break;
	case 5: code = (int)cudaMemcpy2DAsync(to->p, bytes, from->p, bytes, bytes, 1, cudaMemcpyDefault, s); break;
	case 6: {
		struct cudaMemcpy3DParms c = {0};
		c.srcPtr = (struct cudaPitchedPtr){from->p, bytes, bytes, 1};
		c.dstPtr = (struct cudaPitchedPtr){to->p, bytes, bytes, 1};
		c.extent = (struct cudaExtent){bytes, 1, 1};
		c.kind = cudaMemcpyDefault;
		code = (int)cudaMemcpy3DAsync(&c, s);
		break;
	}
	default:
		if (device && kernels_load(l, op))
			code = (int)kernel_copy(l, op, to->p, from->p, bytes, op->stream);
		else
			code = (int)cudaMemcpyAsync(to->p, from->p, bytes, cudaMemcpyDefault, s);
	}
	observe(l, "way", way);
	observe(l, "code", code);
	if (way < 3)
		to->busy = from->busy = 0;
	if (code != 0)
		return;
	if (from->defined >= bytes)
		block_written(to, 0, bytes);
	else if (to->defined > from->defined)
		to->defined = from->defined;
}

static void from_memory(struct lane *l, struct op *op, struct block *to)
{
	uint32_t way = pick(&op->random, 5);
	size_t bytes = reach(to);
	const unsigned char *source = l->heap + pick(&op->random, (uint32_t)REACH);
	int code;
	if (way < 3)
		before_synchronous(l, to);
	else
		block_order(l, to, op->stream);
	cudaStream_t s = stream_of(l, op->stream);
	switch (way) {
	case 0: code = (int)cudaMemcpy(to->p, source, bytes, on_host(to) ? cudaMemcpyDefault : cudaMemcpyHostToDevice); break;
	case 1:
		code = on_host(to) ? (int)cudaMemcpy(to->p, source, bytes, cudaMemcpyDefault)
		                   : (int)op->cu->p_cuMemcpyHtoD(address(to->p), source, bytes);
		break;
	case 2: code = (int)cudaMemcpy2D(to->p, bytes, source, bytes, bytes, 1, cudaMemcpyDefault); break;
	case 3:
		if (!on_host(to)) {
			code = (int)op->cu->p_cuMemcpyHtoDAsync(address(to->p), source, bytes, (CUstream)s);
			break;
		} /* fall through */
	default: code = (int)cudaMemcpyAsync(to->p, source, bytes, cudaMemcpyDefault, s);
	}
	observe(l, "way", way);
	observe(l, "code", code);
	if (way < 3)
		to->busy = 0;
	if (code == 0)
		block_written(to, 0, bytes);
}

/* A flat array, there and back. */
static void through_array(struct lane *l, struct op *op, const struct block *array)
{
	size_t bytes = array->width * array->height;
	memset(l->scratch, 0, bytes);
	bool later = chance(&op->random, 2);
	cudaStream_t s = stream_of(l, op->stream);
	int put = later ? (int)cudaMemcpy2DToArrayAsync(array->p, 0, 0, l->heap, array->width, array->width, array->height, cudaMemcpyHostToDevice, s)
	                : (int)cudaMemcpy2DToArray(array->p, 0, 0, l->heap, array->width, array->width, array->height, cudaMemcpyHostToDevice);
	if (later)
		observe(l, "wait", (int)cudaStreamSynchronize(s));
	int get = (int)cudaMemcpy2DFromArray(l->scratch, array->width, array->p, 0, 0, array->width, array->height, cudaMemcpyDeviceToHost);
	observe(l, "put", put);
	observe(l, "get", get);
	observe_bytes(l, "array", l->scratch, bytes);
}

/* Both ends on different devices. */
static void between_devices(struct lane *l, struct op *op, struct block *to)
{
	int there = 1 - op->device;
	struct block *from = &l->places[there].blocks[op->other];
	if (program.devices < 2 || !block_linear(from) || on_host(from) || on_host(to) || from->busy >= 0 || from->kind == KIND_VMM || to->kind == KIND_VMM)
		return;
	size_t bytes = reach(to) < reach(from) ? reach(to) : reach(from);
	block_wait(l, to);
	observe(l, "peer", (int)cudaMemcpyPeer(to->p, op->device, from->p, there, bytes));
	/* Not ordered with any stream of ours: waited for. */
	observe(l, "wait", (int)cudaStreamSynchronize(cudaStreamLegacy));
	if (from->defined >= bytes)
		block_written(to, 0, bytes);
	else if (to->defined > from->defined)
		to->defined = from->defined;
}

static bool block_copied(const struct block *b)
{
	return block_linear(b) || (b->kind == KIND_ARRAY && b->width != 0 && b->width * b->height <= REACH);
}

void do_copy(struct lane *l, struct op *op)
{
	struct block *to = block_find(l, op->block, block_copied), *from = block_find(l, op->other, block_linear);
	uint32_t which = pick(&op->random, 10);
	if (to == NULL)
		return;
	if (to->kind == KIND_ARRAY) {
		through_array(l, op, to);
		return;
	}
	if (which < 3)
		from_memory(l, op, to);
	else if (which == 3)
		between_devices(l, op, to);
	else if (from != NULL && from != to)
		between_blocks(l, op, to, from);
	else
		from_memory(l, op, to);
}

void do_read(struct lane *l, struct op *op)
{
	struct block *b = block_find(l, op->block, block_readable);
	uint32_t way = pick(&op->random, 5);
	if (b == NULL)
		return;
	size_t bytes = b->defined < REACH ? b->defined : REACH;
	unsigned char *to = l->scratch;
	int code;
	switch (way) {
	case 0:
	case 1:
		block_wait(l, b);
		code = way == 0 || on_host(b) ? (int)cudaMemcpy(to, b->p, bytes, cudaMemcpyDefault)
		                              : (int)op->cu->p_cuMemcpyDtoH(to, address(b->p), bytes);
		break;
	case 2: /* a copy to ordinary memory has happened when the call returns */
		block_order(l, b, op->stream);
		code = (int)cudaMemcpyAsync(to, b->p, bytes, cudaMemcpyDefault, stream_of(l, op->stream));
		observe(l, "wait", (int)cudaStreamSynchronize(stream_of(l, op->stream)));
		break;
	case 3:
		block_order(l, b, op->stream);
		to = l->at->host;
		code = on_host(b) ? (int)cudaMemcpyAsync(to, b->p, bytes, cudaMemcpyDefault, stream_of(l, op->stream))
		                  : (int)op->cu->p_cuMemcpyDtoHAsync(to, address(b->p), bytes, (CUstream)stream_of(l, op->stream));
		observe(l, "wait", (int)op->cu->p_cuStreamSynchronize((CUstream)stream_of(l, op->stream)));
		break;
	default: /* the processor reads by itself what it can reach */
		block_wait(l, b);
		code = 0;
		if (on_host(b) || b->kind == KIND_MANAGED)
			to = b->p;
		else
			code = (int)cudaMemcpy(to, b->p, bytes, cudaMemcpyDeviceToHost);
	}
	observe(l, "way", way);
	observe(l, "code", code);
	if (code == 0)
		observe_bytes(l, "bytes", to, bytes);
}
