/* For the files of the checks alone: what a context has for them, and what is told. Any thread; states are atomic words, and nothing is locked. */
#ifndef TENURE_SHIM_SERVE_CHECKS_INSIDE_H
#define TENURE_SHIM_SERVE_CHECKS_INSIDE_H

#include <stdatomic.h>

#include "shim/cuda_abi.h"
#include "shim/serve_checks.h"

#define TN_CHECKS_LATE 256u /* canaries of a context on their way to the host at once */

/* A stream-ordered block that was freed, whose canary is being copied. */
typedef struct tn_checks_late {
    _Atomic int state;
    uint32_t site, free_site, gap, ctx;
    uint64_t address, bytes, flags;
    uint8_t device;
    CUevent event; /* behind the copy; kept for the next */
} tn_checks_late;

typedef struct tn_checks_context {
    _Atomic uint32_t ctx;
    _Atomic int state;
    _Atomic uint32_t under_way;
    CUcontext handle;
    CUstream own;          /* waits for nothing of the program's, and nothing for it */
    unsigned char *copies; /* TN_CHECKS_LATE times TN_CANARY_MAX bytes, pinned */
    tn_checks_late *late;
} tn_checks_context;

/* ---- serve_checks.c */
/* What is behind a block of `bytes` and is its own: of its slot, or of the gap that was asked for with it. */
uint32_t tn_checks_gap(const tn_plan_row *row, uint64_t asked, uint64_t bytes);
/* One CHECK event: TN_CHECK_*, of its free (TN_SITE_NONE: none), and what of the canary is overwritten. */
void tn_checks_tell(tn_hook_frame *f, unsigned what, const tn_entry *block, uint32_t free_site, uint64_t flags, uint64_t first, uint64_t count);
/* What a canary looks like now: TN_CHECK_*, with the first byte that is another and how many are. */
unsigned tn_checks_look(const unsigned char *at, uint32_t gap, uint64_t *first, uint64_t *count);

/* ---- serve_checks_contexts.c */
/* NULL where there is none. `make`: the context is current, and gets its own now. */
tn_checks_context *tn_checks_of(tn_hook_frame *f, tn_context c, int make);
/* Makes the context current where another one is; 0 where that cannot be. *pushed: by this call, for tn_checks_leave. The second: the context
 * of a stream. */
int tn_checks_enter(const tn_checks_context *k, int *pushed);
int tn_checks_enter_of_stream(tn_hook_frame *f, tn_context c, void *stream, int *pushed);
void tn_checks_leave(int pushed);
/* In the order of the stream, whose context is current: the copy of the canary, and the event by which its arrival is known. 0: it is not looked at. */
int tn_checks_send(tn_hook_frame *f, tn_checks_context *k, const tn_entry *block, uint32_t gap, uint64_t flags, CUstream stream);
/* Looks at those of this call's context that have arrived. The caller is inside a call of that context, so it is there. */
void tn_checks_look_at_late(tn_hook_frame *f, tn_checks_context *k);
/* Has live blocks looked at when the process ends; to be called once CUDA is at work, so that it is done before CUDA's own end. */
void tn_checks_watch_the_end(void);

#endif
