/*
 * What concerns the whole device: calls that must not wait while work is held up, the reset of a device, and the
 * illegal access that some programs end with.
 */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "tests/generator/generator.h"

#define GATE_MS 2000

/* Holds a stream until opened, or until time is up: a call in between that waits for it then shows, and does not hang. */
static void CUDART_CB hold(void *arg)
{
	struct timespec pause = {0, 20000}, now, begin;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		nanosleep(&pause, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!__atomic_load_n((int *)arg, __ATOMIC_ACQUIRE) &&
	         (now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < GATE_MS);
}

/* One call that does not wait for unrelated work; what it allocates is freed after the gate is open. */
void do_gate(struct lane *l, struct op *op)
{
	void *p = NULL;
	size_t free_bytes, total;
	uint32_t what = pick(&op->random, 8);
	int open = 0, code;
	if (program.threads > 1 || op->stream < CREATED || !l->at->stream_made[op->stream])
		return;
	streams_wait(l);
	cudaStream_t held = l->at->streams[op->stream];
	observe(l, "function", (int)cudaLaunchHostFunc(held, hold, &open));
	switch (what) {
	case 0: code = (int)cudaFree(NULL); break;
	case 1: code = (int)cudaFree(l->heap); break;
	case 2: code = (int)cudaMemGetInfo(&free_bytes, &total); break;
	case 3: code = (int)cudaMallocAsync(&p, 4096, cudaStreamPerThread); break;
	case 4: code = (int)op->cu->p_cuMemAlloc((CUdeviceptr *)&p, 4096); break;
	case 5: code = (int)cudaMallocHost(&p, 4096); break;
	case 6: code = (int)cudaHostUnregister(l->heap); break;
	default: code = (int)cudaMalloc(&p, 4096);
	}
	observe(l, "what", what);
	observe(l, "code", code);
	observe(l, "held", (int)cudaStreamQuery(held));
	__atomic_store_n(&open, 1, __ATOMIC_RELEASE);
	observe(l, "wait", (int)cudaStreamSynchronize(held));
	if (p != NULL)
		observe(l, "free", what == 5 ? (int)cudaFreeHost(p) : what == 3 ? (int)cudaFreeAsync(p, cudaStreamPerThread) : (int)cudaFree(p));
}

/* ---- reset ---- */

static void put_away(struct lane *l, struct op *op, struct block *b)
{
	if (b->kind == KIND_VMM || b->kind == KIND_POOL || (b->kind == KIND_ASYNC && !program.survivors))
		block_free(l, op, b);
}

void reset_prepare(struct lane *l, struct op *op)
{
	lane_device(l, op->device);
	streams_wait(l);
	for (int i = 0; i < GRAPHS; i++)
		graph_drop(l, &l->at->graphs[i]);
	for (int i = 0; i < BLOCKS; i++)
		put_away(l, op, &l->at->blocks[i]);
	put_away(l, op, &l->inbox[op->device]);
	put_away(l, op, &l->outbox[op->device]);
	streams_wait(l);
	for (int i = 0; i < POOLS; i++) {
		if (l->at->pools[i] != NULL)
			observe(l, "pool", (int)cudaMemPoolDestroy(l->at->pools[i]));
		l->at->pools[i] = NULL;
	}
}

void reset_device(struct lane *l, struct op *op)
{
	(void)op;
	observe(l, "reset", (int)cudaDeviceReset());
}

/* Stream-ordered blocks outlive a reset and can be freed once; the others are gone. */
static void forget(struct lane *l, struct block *b)
{
	if (b->kind == KIND_NONE)
		return;
	if (b->kind == KIND_ASYNC) {
		b->stale = true;
		b->defined = 0;
		b->busy = -1;
		b->generation = ++l->generation;
		return;
	}
	struct block dead = *b;
	block_gone(l, b);
	/* With one thread nobody can have the address yet. */
	if (program.threads > 1 || dead.kind == KIND_ARRAY || dead.kind == KIND_MIPMAP)
		return;
	if (dead.kind == KIND_PINNED)
		observe(l, "dead", (int)cudaFreeHost(dead.p));
	else if (dead.kind != KIND_REGISTERED)
		observe(l, "dead", (int)cudaFree(dead.p));
}

void reset_forget(struct lane *l, struct op *op)
{
	struct place *p = l->at;
	for (int i = 0; i < BLOCKS; i++)
		forget(l, &p->blocks[i]);
	forget(l, &l->inbox[op->device]);
	forget(l, &l->outbox[op->device]);
	for (int i = CREATED; i < STREAMS; i++) {
		p->streams[i] = NULL;
		p->stream_made[i] = false;
	}
	for (int i = 0; i < EVENTS; i++) {
		p->events[i] = NULL;
		p->event_stream[i] = -1;
	}
	p->module = NULL;
	p->last_id = 0;
	p->join = NULL;
	p->host = NULL;
	l->live[KIND_PINNED] -= (int64_t)(2 * REACH);
	l->at = NULL;
	lane_device(l, op->device);
}

/* ---- fault ---- */

/* An address that no allocation ever has. What follows shows the context as it is afterwards, and after a reset. */
void do_fault(struct lane *l, struct op *op)
{
	void *p = (void *)KEPT;
	streams_wait(l);
	if (!kernels_load(l, op)) {
		observe(l, "no_kernels", 1);
		return;
	}
	observe(l, "launch", (int)kernel_fill(l, op, (void *)0x10000, 1, 64, 1));
	observe(l, "wait", (int)cudaStreamSynchronize(cudaStreamPerThread));
	observe(l, "malloc", (int)cudaMalloc(&p, 4096));
	observe_output(l, "p", p);
	observe(l, "driver", (int)op->cu->p_cuMemAlloc((CUdeviceptr *)&p, 4096));
	observe(l, "free", (int)cudaFree(l->heap));
	observe(l, "get", (int)cudaGetLastError());
	observe(l, "get", (int)cudaGetLastError());
	observe(l, "reset", (int)cudaDeviceReset());
	observe(l, "malloc", (int)cudaMalloc(&p, 4096));
}
