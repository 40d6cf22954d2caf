/* What the parts of serving handles share: the word of each handle of a pool, which says who has it, and how often the program holds it and has it
 * mapped. For them alone. Words change by compare-and-swap; any thread, signal handlers inside hooks too. */
#ifndef TENURE_SHIM_SERVE_HANDLES_INSIDE_H
#define TENURE_SHIM_SERVE_HANDLES_INSIDE_H

#include <stdatomic.h>

#include "shim/serve_handles.h"
#include "tiers/handle_pool.h"

enum {
    TN_HANDLE_GONE = 0, /* not of a pool: any handle that is not in the table, or one that had left its pool and that the program has given back */
    TN_HANDLE_IN_POOL,
    TN_HANDLE_LIVE,     /* the program's, with its one reference */
    TN_HANDLE_RELEASED, /* it has released it, and has it mapped still; or it waits to be put back */
    TN_HANDLE_LEFT,     /* exported or retained: the program's alone, and not of the pool */
    TN_HANDLE_CLAIMED   /* as GONE: another number is about to stand here */
};
#define TN_HANDLE_PHASE(state) ((unsigned)((state) & 7))
#define TN_HANDLE_MAPPED ((uint64_t)1 << 3) /* it has been, since it was taken */
#define TN_HANDLE_REF ((uint64_t)1 << 8)    /* of one that has left: the program's references */
#define TN_HANDLE_REFS(state) ((uint32_t)((state) >> 8) & 0xffffff)
#define TN_HANDLE_MAP ((uint64_t)1 << 32)   /* mappings, and calls under way that may make one */
#define TN_HANDLE_MAPS(state) ((uint32_t)((state) >> 32))
/* The same mappings in another phase. */
#define TN_HANDLE_STATE(phase, refs, state) \
    ((uint64_t)(phase) | (uint64_t)(refs) * TN_HANDLE_REF | ((state) & (TN_HANDLE_MAPPED | (uint64_t)UINT32_MAX << 32)))

typedef struct tn_serve_pool {
    tn_handle_pool *handles;
    tn_hook_frame *frame; /* under whose hook handles are made or given back */
    uint64_t bytes;
    uint32_t detail, ctx;
    _Atomic uint32_t missing; /* that left, and that the program has given back since: to be replaced */
    uint8_t device;
} tn_serve_pool;

typedef struct tn_pooled {
    _Atomic uint64_t handle; /* 0: nobody's yet */
    _Atomic uint64_t state;
    _Atomic(tn_serve_pool *) of;
} tn_pooled;

/* The handle's place in the table; NULL: it is none of a pool, and never was. No lock. */
tn_pooled *tn_pooled_find(uint64_t handle);
/* A mapping may come: the handle stays where it is. 1; 0: it is none of a pool; -1: the program does not have it. */
int tn_pooled_pin(tn_pooled *e);
void tn_pooled_unpin(tn_hook_frame *f, tn_pooled *e);
/* It leaves its pool; `more`: references that the program got by the call. Where the program had none, ours is one too many. */
void tn_pooled_leave(const tn_hook_frame *f, tn_pooled *e, uint32_t more);
/* A RELEASED one without mappings goes back to its pool; the word decides which of several threads puts it there. Takes the pool's lock. */
void tn_pooled_put_back(tn_pooled *e);
/* Left for a later call to put back: from a signal handler inside a hook. */
void tn_pooled_unsettled(void);
/* Of one that has left `of`: an ARENA event says that it is gone. Its place in the table may be another's by now. */
void tn_pooled_tell_gone(tn_hook_frame *f, tn_serve_pool *of, uint64_t handle);
/* Around a call that may take a handle out of a pool without its saying which before it is done. */
void tn_pooled_retain_begins(void);
void tn_pooled_retain_ends(tn_hook_frame *f);

#endif
