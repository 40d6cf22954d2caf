/*
 * Contexts and the per-thread state. A context lives for the whole process, active or not.
 * Everything here is used with fk_lock held unless its comment says otherwise.
 */
#ifndef FAKEGPU_FAKE_CONTEXT_H
#define FAKEGPU_FAKE_CONTEXT_H

#include "fake.h"

/* ---- contexts (context.c) ---- */
struct fk_ctx {
    struct fk_ctx *next;
    int device;
    bool primary, active;
    unsigned flags, refs;
    uint64_t id;
    CUresult error; /* sticky */
    struct fk_stream *streams, *legacy;
    unsigned stream_count;
    size_t charge, stream_charge, limit_charge, stack_charge;
    size_t limits[16];
    bool limits_dirty;
    unsigned peers; /* bit per device whose memory this context may touch */
    unsigned version;
};
extern struct fk_ctx *fk_contexts;
struct fk_tls { struct fk_ctx *stack[32]; int depth; CUstreamCaptureMode mode; bool fail_now, in_host; /* in_host: a host function or callback of a stream runs */ };
extern __thread struct fk_tls fk_tls;
struct fk_ctx *fk_current(void);
/** The calling thread's usable context: 201 without one, 709 if destroyed, its sticky error if it has one. */
CUresult fk_need_ctx(struct fk_ctx **out);
/** CUDA_SUCCESS, or the sticky error of the current context if there is one. */
CUresult fk_ctx_error(void);
CUresult fk_need_device(CUdevice dev, struct fk_dev **out);
/** Destroys what the context owns, as a reset does. Default-pool blocks survive. */
void fk_ctx_teardown(struct fk_ctx *c);
void fk_ctx_fault(struct fk_ctx *c, CUresult error);

CUresult fk_stack_charge(struct fk_ctx *c, size_t stack);

#endif
