/*
 * Shared by the files of `generated`, a program made of random CUDA calls that a seed decides completely, and whose
 * observations are the same in every run: codes, relations and the contents of memory, never addresses or times.
 *
 * An operation is a function of (seed, index) alone and works on numbered places, so that any subset of a program's
 * operations is a program too. Threads: each thread owns a `struct lane` with everything its operations touch; lanes
 * meet only at the barrier between rounds, where blocks change hands. What one thread sees never depends on another.
 */
#ifndef TESTS_GENERATOR_GENERATOR_H
#define TESTS_GENERATOR_GENERATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/generator/driver.h"

#define MIB ((size_t)1 << 20)
/* Far above any card; real programs probe with such sizes. */
#define HUGE_BYTES ((size_t)4 << 40)
/* What an output holds before a call, to see whether the call wrote it. */
#define KEPT ((uintptr_t)0x1230)

#define MAX_THREADS 8
#define MAX_DEVICES 2
#define BLOCKS 14
#define STREAMS 6 /* place 0 is the legacy stream, 1 the thread's own, the others are created */
#define CREATED 2
#define EVENTS 4
#define POOLS 2
#define GRAPHS 2
/* Operations between two barriers. */
#define ROUND 64
/* Bytes of a block that are written and read back at most. */
#define REACH ((size_t)16 << 10)

/* The kinds of memory, named as the report names them. */
#define KINDS(X) \
	X(NONE, none) X(DEVICE, device) X(PITCH, pitch) X(ASYNC, async) X(POOL, pool) X(MANAGED, managed) X(PINNED, pinned) \
	X(REGISTERED, registered) X(ARRAY, array) X(MIPMAP, mipmap) X(VMM, vmm_handle) X(GRAPH, graph)
#define KIND_ENUM(name, text) KIND_##name,
enum kind { KINDS(KIND_ENUM) KIND_COUNT };

struct random {
	uint64_t state;
};

/* The next 64 bits. */
uint64_t draw(struct random *r);
/* A number below n; 0 where n is 0. */
static inline uint32_t pick(struct random *r, uint32_t n) { return n == 0 ? 0 : (uint32_t)(draw(r) >> 33) % n; }
/* True once in n. */
static inline bool chance(struct random *r, uint32_t n) { return pick(r, n) == 0; }

enum op_kind {
	OP_ALLOC, OP_FREE, OP_FILL, OP_COPY, OP_READ, OP_STREAM, OP_EVENT, OP_CAPTURE, OP_LAUNCH, OP_POOL, OP_VMM, OP_QUERY,
	OP_ERROR, OP_REFUSED, OP_GATE, OP_CARD, OP_HAND, OP_CONTEXT, OP_RESET, OP_FAULT, OP_KINDS
};

/* One operation, decided by seed and index; `random` yields what the operation decides by itself. */
struct op {
	uint32_t index;
	enum op_kind kind;
	int thread, device;
	int block, other; /* places */
	int stream;
	size_t bytes;
	const struct driver *cu; /* one of the two ways to the driver */
	struct random random;
};

/* Ordinary bytes at an address unless kind is ARRAY or MIPMAP, whose p is a handle. */
struct block {
	enum kind kind;
	void *p;
	size_t bytes;   /* usable from p on */
	size_t counted; /* what is alive for the journal */
	size_t defined; /* a prefix whose contents are known to be written */
	size_t pitch, width, height;
	int busy;       /* place of the stream that works on it, -1: none */
	int pool;
	bool stale;     /* outlived a reset: may only be freed */
	bool released, mapped; /* VMM: its handle is given back; it is mapped */
	uint64_t handle;
	unsigned generation;
};

struct graph {
	cudaGraphExec_t exec;
	int blocks[8];
	unsigned generations[8];
	int block_count;
};

/* What a thread has on one device. */
struct place {
	struct block blocks[BLOCKS];
	cudaStream_t streams[STREAMS];
	bool stream_made[STREAMS], blocking[STREAMS];
	cudaEvent_t events[EVENTS];
	int event_stream[EVENTS]; /* where it was last recorded, -1: never */
	cudaMemPool_t pools[POOLS];
	struct graph graphs[GRAPHS];
	cudaEvent_t join;
	CUmodule module;
	CUfunction fill, add, copy;
	uint64_t last_id; /* of the youngest block seen: ids only grow */
	unsigned char *host;  /* two pinned pages of REACH bytes for copies that are to be asynchronous */
};

/* A thread's part of the program. */
struct lane {
	int thread;
	struct place places[MAX_DEVICES];
	struct place *at; /* of the current device */
	struct block outbox[MAX_DEVICES], inbox[MAX_DEVICES];
	uint64_t hash;
	int64_t live[KIND_COUNT];
	unsigned generation;
	unsigned char *heap, *scratch; /* 4 REACH of ordinary memory, REACH of copied back bytes */
	void *to_register[BLOCKS * MAX_DEVICES]; /* ordinary memory to register, kept until the end */
	uint64_t spent_ns[OP_KINDS], carried[OP_KINDS]; /* for --times */
	uint64_t observed, acted; /* in this operation; operations that observed anything but the last error */
	char line[8192];
	size_t line_used;
};

struct program {
	uint64_t seed;
	uint32_t ops;
	int threads, devices;
	bool alone;   /* nobody else uses the card: a part of it can be asked for */
	bool survivors; /* stream-ordered blocks live through resets */
	bool fault;   /* the last operation is an illegal access */
	bool placed;  /* a free of plain memory may not have waited: nothing is taken from it */
	bool trace, list, times;
	uint32_t reset_rounds; /* one round in so many begins with a reset of a device; 0: none does */
	size_t card_bytes;
	unsigned char *included; /* by index; NULL: all */
};
extern struct program program;

/* ---- ops.c: what the seed says ---- */

/* The operation of that index. */
void op_decide(struct op *op, uint32_t index);
const char *op_kind_name(enum op_kind kind);
/* A few words on it, for people, in text. */
void op_describe(const struct op *op, char *text, size_t size);
/* Whether this round may hold captures; then no thread waits for a whole device. */
bool round_captures(uint32_t index);
/* Whether the operation takes part in this run. */
bool op_included(uint32_t index);

/* ---- observe.c ---- */

/* Begins and ends what one operation observes; a line of --trace. */
void observe_begin(struct lane *l, const struct op *op);
void observe_end(struct lane *l);
/* One observation: name is a constant, value must be the same in every run. */
void observe(struct lane *l, const char *name, int64_t value);
/* The contents of memory. */
void observe_bytes(struct lane *l, const char *name, const void *bytes, size_t count);
/* What a call made of an output that held KEPT: 0 NULL, 1 kept, 2 an address. */
void observe_output(struct lane *l, const char *name, const void *output);

/* ---- places.c: order between streams, bookkeeping ---- */

void lane_begin(struct lane *l, int thread);
/* Makes the operation's device current, and `at` its place. */
void lane_device(struct lane *l, int device);
cudaStream_t stream_of(struct lane *l, int place);
/* Puts work on the block behind what is under way: afterwards `stream` is its stream. */
void block_order(struct lane *l, struct block *b, int stream);
/* Waits until nothing works on the block. */
void block_wait(struct lane *l, struct block *b);
/* Waits for all streams of this thread on the current device. */
void streams_wait(struct lane *l);
/* Nothing of this thread works on anything on the current device. */
void blocks_idle(struct lane *l);
void stream_idle(struct lane *l, int stream);
/* A new block is there, or one is gone, for the program's own count of live bytes. */
void block_born(struct lane *l, struct block *b, enum kind kind, void *p, size_t bytes, size_t counted);
void block_gone(struct lane *l, struct block *b);
/* n bytes from offset on are written. */
void block_written(struct block *b, size_t offset, size_t bytes);
/* The first block from a place on, going round, that answers to `fits`; NULL: none does. */
struct block *block_find(struct lane *l, int place, bool (*fits)(const struct block *));
bool block_there(const struct block *b);
/* Whether anything in it is known to be written. */
bool block_readable(const struct block *b);
/* Whether it has bytes at an address that work can reach. */
bool block_linear(const struct block *b);
/* Kernels of the current device, loaded at the first need; false where they could not be. */
bool kernels_load(struct lane *l, const struct op *op);
/* Launches fill: value into bytes from to on. */
CUresult kernel_fill(struct lane *l, const struct op *op, void *to, unsigned char value, size_t bytes, int stream);
CUresult kernel_add(struct lane *l, const struct op *op, void *to, unsigned value, size_t words, int stream);
CUresult kernel_copy(struct lane *l, const struct op *op, void *to, const void *from, size_t bytes, int stream);

/* ---- do_*.c: each carries out one kind of operation on the op's lane, the op's device being current ---- */

void do_alloc(struct lane *l, struct op *op);
void do_free(struct lane *l, struct op *op);
void do_fill(struct lane *l, struct op *op);
void do_copy(struct lane *l, struct op *op);
void do_read(struct lane *l, struct op *op);
void do_stream(struct lane *l, struct op *op);
void do_event(struct lane *l, struct op *op);
void do_capture(struct lane *l, struct op *op);
void do_launch(struct lane *l, struct op *op);
void do_pool(struct lane *l, struct op *op);
void do_vmm(struct lane *l, struct op *op);
void do_query(struct lane *l, struct op *op);
void do_error(struct lane *l, struct op *op);
void do_refused(struct lane *l, struct op *op);
void do_gate(struct lane *l, struct op *op);
void do_card(struct lane *l, struct op *op);
void do_hand(struct lane *l, struct op *op);
void do_context(struct lane *l, struct op *op);
void do_fault(struct lane *l, struct op *op);

/* Frees the block by a call of its own family, whatever its state; observes the code. */
void block_free(struct lane *l, struct op *op, struct block *b);
/* A VMM block, in one of the legal orders. */
void vmm_free(struct lane *l, struct op *op, struct block *b);
void vmm_alloc(struct lane *l, struct op *op, struct block *b);
void graph_drop(struct lane *l, struct graph *g);

/* The three steps of a reset of the op's device, a barrier between each two: every thread puts away what does not
   end with a context; the op's thread resets; every thread forgets what has ended and binds the device anew. The last is taken by one thread after the other: each finds the context that the first has made. */
void reset_prepare(struct lane *l, struct op *op);
void reset_device(struct lane *l, struct op *op);
void reset_forget(struct lane *l, struct op *op);

#endif
