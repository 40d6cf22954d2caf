/* A free in a context's legacy default stream is an operation there, before which all streams that block have to come so far and behind which their
 * later work comes (seen on an H200; an allocation is none). A served free enqueues nothing, so an event takes its place where the context has such
 * streams. Any thread. */
#ifndef TENURE_SHIM_SERVE_BARRIER_H
#define TENURE_SHIM_SERVE_BARRIER_H

#include "shim/hook.h"

/* The free of a served block in `stream` has just been answered. Inside its hook. */
void tn_serve_barrier(tn_hook_frame *f, void *stream);

/* The context is gone, and its event with it. */
void tn_serve_barrier_context_ended(uint32_t ctx);

#endif
