/* The places of a lane: blocks with the stream that works on each, streams, kernels, and the count of live bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/generator/generator.h"
#include "tests/generator/kernels.h"

/* What the program needs for itself: without it there is nothing to observe. */
static void need(cudaError_t code, const char *what)
{
	if (code == cudaSuccess)
		return;
	fprintf(stderr, "generated: %s: %d\n", what, (int)code);
	exit(3);
}

void lane_begin(struct lane *l, int thread)
{
	memset(l, 0, sizeof *l);
	l->thread = thread;
	l->hash = program.seed;
	l->heap = calloc(4, REACH);
	l->scratch = calloc(1, REACH);
	if (l->heap == NULL || l->scratch == NULL)
		need(cudaErrorMemoryAllocation, "memory");
	for (size_t i = 0; i < 4 * REACH; i++)
		l->heap[i] = (unsigned char)(i * 7 + (i >> 8) * 13 + (size_t)thread);
	for (int d = 0; d < program.devices; d++) {
		l->places[d].streams[1] = cudaStreamPerThread;
		for (int i = 0; i < BLOCKS; i++)
			l->places[d].blocks[i].busy = -1;
		for (int i = 0; i < EVENTS; i++)
			l->places[d].event_stream[i] = -1;
	}
}

void lane_device(struct lane *l, int device)
{
	struct place *p = &l->places[device];
	if (l->at != p)
		need(cudaSetDevice(device), "cudaSetDevice");
	l->at = p;
	if (p->join != NULL)
		return;
	need(cudaEventCreateWithFlags(&p->join, cudaEventDisableTiming), "cudaEventCreateWithFlags");
	need(cudaHostAlloc((void **)&p->host, 2 * REACH, cudaHostAllocDefault), "cudaHostAlloc");
	memset(p->host, 0, 2 * REACH);
	l->live[KIND_PINNED] += (int64_t)(2 * REACH);
}

cudaStream_t stream_of(struct lane *l, int place)
{
	return place < CREATED || l->at->stream_made[place] ? l->at->streams[place] : l->at->streams[0];
}

/* A place without a stream of its own means the legacy stream. */
static int effective(struct lane *l, int place)
{
	return place < CREATED || l->at->stream_made[place] ? place : 0;
}

void block_order(struct lane *l, struct block *b, int stream)
{
	stream = effective(l, stream);
	if (b->busy >= 0 && b->busy != stream) {
		need(cudaEventRecord(l->at->join, stream_of(l, b->busy)), "cudaEventRecord");
		need(cudaStreamWaitEvent(stream_of(l, stream), l->at->join, 0), "cudaStreamWaitEvent");
	}
	b->busy = stream;
}

void stream_idle(struct lane *l, int stream)
{
	for (int i = 0; i < BLOCKS; i++)
		if (l->at->blocks[i].busy == stream)
			l->at->blocks[i].busy = -1;
}

void block_wait(struct lane *l, struct block *b)
{
	if (b->busy < 0)
		return;
	int stream = b->busy;
	need(cudaStreamSynchronize(stream_of(l, stream)), "cudaStreamSynchronize");
	stream_idle(l, stream);
	b->busy = -1;
}

void streams_wait(struct lane *l)
{
	for (int i = 0; i < STREAMS; i++)
		if (effective(l, i) == i)
			need(cudaStreamSynchronize(stream_of(l, i)), "cudaStreamSynchronize");
	blocks_idle(l);
}

void blocks_idle(struct lane *l)
{
	for (int i = 0; i < BLOCKS; i++)
		l->at->blocks[i].busy = -1;
}

void block_born(struct lane *l, struct block *b, enum kind kind, void *p, size_t bytes, size_t counted)
{
	memset(b, 0, sizeof *b);
	b->busy = -1;
	b->kind = p == NULL ? KIND_NONE : kind;
	b->p = p;
	b->bytes = bytes;
	b->counted = p == NULL ? 0 : counted;
	b->generation = ++l->generation;
	l->live[kind] += (int64_t)b->counted;
}

void block_gone(struct lane *l, struct block *b)
{
	l->live[b->kind] -= (int64_t)b->counted;
	memset(b, 0, sizeof *b);
	b->busy = -1;
}

void block_written(struct block *b, size_t offset, size_t bytes)
{
	if (offset <= b->defined && offset + bytes > b->defined)
		b->defined = offset + bytes;
}

bool block_linear(const struct block *b)
{
	return b->kind != KIND_NONE && b->kind != KIND_ARRAY && b->kind != KIND_MIPMAP && !b->stale &&
	       (b->kind != KIND_VMM || b->mapped);
}

bool block_there(const struct block *b) { return b->kind != KIND_NONE; }

bool block_readable(const struct block *b) { return block_linear(b) && b->defined != 0; }

struct block *block_find(struct lane *l, int place, bool (*fits)(const struct block *))
{
	for (int i = 0; i < BLOCKS; i++) {
		struct block *b = &l->at->blocks[(place + i) % BLOCKS];
		if (fits(b)) {
			observe(l, "on", (place + i) % BLOCKS);
			return b;
		}
	}
	return NULL;
}

bool kernels_load(struct lane *l, const struct op *op)
{
	struct place *p = l->at;
	if (p->module != NULL)
		return true;
	return op->cu->p_cuModuleLoadData(&p->module, generator_ptx) == CUDA_SUCCESS &&
	       op->cu->p_cuModuleGetFunction(&p->fill, p->module, "fake_fill") == CUDA_SUCCESS &&
	       op->cu->p_cuModuleGetFunction(&p->add, p->module, "fake_add") == CUDA_SUCCESS &&
	       op->cu->p_cuModuleGetFunction(&p->copy, p->module, "fake_copy") == CUDA_SUCCESS;
}

static CUresult launch(struct lane *l, const struct op *op, CUfunction f, void **parameters, int stream)
{
	return op->cu->p_cuLaunchKernel(f, 1, 1, 1, 128, 1, 1, 0, (CUstream)stream_of(l, stream), parameters, NULL);
}

CUresult kernel_fill(struct lane *l, const struct op *op, void *to, unsigned char value, size_t bytes, int stream)
{
	uint64_t at = (uintptr_t)to, n = bytes;
	void *parameters[] = {&at, &value, &n};
	return launch(l, op, l->at->fill, parameters, stream);
}

CUresult kernel_add(struct lane *l, const struct op *op, void *to, unsigned value, size_t words, int stream)
{
	uint64_t at = (uintptr_t)to, n = words;
	void *parameters[] = {&at, &value, &n};
	return launch(l, op, l->at->add, parameters, stream);
}

CUresult kernel_copy(struct lane *l, const struct op *op, void *to, const void *from, size_t bytes, int stream)
{
	uint64_t at = (uintptr_t)to, source = (uintptr_t)from, n = bytes;
	void *parameters[] = {&at, &source, &n};
	return launch(l, op, l->at->copy, parameters, stream);
}
