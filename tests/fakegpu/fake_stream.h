/*
 * Work, operations and streams. An operation is counted: its queue, its stream and waiting events hold it.
 * Everything here is used with fk_lock held unless its comment says otherwise.
 */
#ifndef FAKEGPU_FAKE_STREAM_H
#define FAKEGPU_FAKE_STREAM_H

#include "fake.h"

/* ---- work (work.c executes it, stream.c queues it, graph.c stores it) ---- */
enum fk_work_type { FK_W_EMPTY, FK_W_COPY, FK_W_FILL, FK_W_KERNEL, FK_W_HOST, FK_W_CALLBACK, FK_W_RECORD, FK_W_WAIT,
                    FK_W_ALLOC, FK_W_FREE, FK_W_MEMOP, FK_W_GRAPH, FK_W_CHILD };
struct fk_kernel {
    struct fk_func *f;
    unsigned grid[3], block[3], shared;
    bool known; /* argument layout known: args holds a copy */
    unsigned char args[64];
    void *ptrs[8];
};
struct fk_work {
    enum fk_work_type type;
    union {
        CUDA_MEMCPY3D_PEER copy;
        CUDA_MEMSET_NODE_PARAMS fill;
        struct fk_kernel kernel;
        CUDA_HOST_NODE_PARAMS host;
        struct { CUstreamCallback fn; void *data; CUstream handle; } callback;
        struct fk_event *event;
        struct { CUdeviceptr p; size_t bytes; int device; } mem;
        struct { CUstreamBatchMemOpParams *ops; unsigned count, flags; } memop;
        struct fk_plan *plan;
        struct fk_graph *child;
    } u;
    void *owned; /* freed with the work */
};
struct fk_range { CUdeviceptr p; size_t n; bool write; };
/** Device ranges that the work touches; returns how many (at most 4). */
int fk_work_ranges(const struct fk_work *w, struct fk_range *out);
/** Runs the work of one operation. Called without the lock. */
CUresult fk_work_run(struct fk_work *w, struct fk_op *op);
void fk_work_release(struct fk_work *w);

struct fk_op {
    struct fk_op *next;
    int refs;
    bool done, running, fault;
    uint64_t done_ns, stream_id, seq; /* seq: order of submission */
    struct fk_ctx *ctx;
    struct fk_op **deps;
    int ndeps;
    struct fk_work w;
};
void fk_op_unref(struct fk_op *op);

/* ---- streams (stream.c) ---- */
struct fk_stream {
    struct fk_stream *next;
    struct fk_ctx *ctx;
    uint64_t id;
    unsigned flags;
    int priority;
    bool legacy, per_thread, worker, destroyed;
    pid_t owner;
    struct fk_op *head, *tail, *last;
    struct fk_op **pending; /* waits that the next operation takes along */
    int npending;
    pthread_cond_t wake;
    struct fk_capture *cap;
    bool cap_origin;
    struct fk_node **cap_deps;
    size_t ncap_deps;
    CUstreamAttrValue attrs[32];
};
#define FK_STREAM_PT(h, pt, out) FK_TRY(fk_stream_get(h, pt, out))
/** Resolves a handle (0, legacy, per-thread or created) in the current context. */
CUresult fk_stream_get(CUstream h, int pt, struct fk_stream **out);
/** Queues work, or adds it to the graph that the stream captures. Takes over w->owned. `out` (may be NULL) gets a reference. */
CUresult fk_submit(struct fk_stream *s, struct fk_work *w, struct fk_op **out);
CUresult fk_enqueue(struct fk_stream *s, struct fk_work *w, struct fk_op **out);
void fk_stream_depend(struct fk_stream *s, struct fk_op *op);
void fk_wait_op(struct fk_op *op);
void fk_wait_stream(struct fk_stream *s);
void fk_wait_ctx(struct fk_ctx *c);
/** Waits for all work of a device that is queued now. */
void fk_wait_device(int ordinal);
/** What a synchronising call does besides waiting: settles pool frees, trims pools to their thresholds, and forgets the plain blocks freed in
 *  the order of that stream of the context (0: of all). */
void fk_synchronised(struct fk_ctx *c, uint64_t stream);
/** Marks every unfinished operation that touches [p, p+n) to fail with 700; waits for brief ones that a card would have done. */
void fk_fault_users(CUdeviceptr p, size_t n);
/** True while any stream has work. */
bool fk_anything_busy(void);
bool fk_stream_busy(struct fk_stream *s);
struct fk_stream *fk_legacy_stream(struct fk_ctx *c);
void fk_streams_destroy(struct fk_ctx *c);
void fk_stream_free(struct fk_stream *s);
extern pthread_mutex_t fk_lock;
extern pthread_cond_t fk_done;
uint64_t fk_now_ns(void);

#endif
