/* The journal's own numbers for contexts and streams, which outlive the reuse of handles. Owned by the process;
 * any thread; the maps inside have their own locks, and no CUDA call is made under them. A stream is known
 * by (context, handle) and, for per-thread default streams, by the thread. */
#ifndef TENURE_SHIM_IDENTITY_H
#define TENURE_SHIM_IDENTITY_H

#include <stdint.h>

#include "shim/hook.h"

typedef struct tn_context { uint32_t number; uint8_t device; } tn_context;

/* The context current on this thread; number 0 where there is none or no driver is known. The first time a context
 * is met a CONTEXT event (kind SEEN) and its device's record are written. */
tn_context tn_context_current(tn_hook_frame *f);
/* The context of a stream as its caller names it, which need not be the current one: what a stream-ordered call allocates is there. Number 0
 * where it is not known. */
tn_context tn_context_of_stream(tn_hook_frame *f, void *stream);
/* The number of a stream that this thread has lately met in the context of number `ctx`; `stream` as of tn_launch_stream(). 0: ask tn_stream_number(). */
uint32_t tn_stream_known(const tn_thread *t, const void *stream, uint32_t ctx) __attribute__((hot));
/* The context with this handle; `device` where it is known, else -1 to ask the driver (it must be current then). */
tn_context tn_context_of(tn_hook_frame *f, void *handle, int device);
/* The program has made this one itself: it is no primary context. */
void tn_context_made(void *handle);
int tn_context_is_made(void *handle);
/* Whether the process knows one context and no other, so that every default stream is of that one. Where another comes, `generation` is raised. */
int tn_context_is_alone(void);
/* Its number where it is known, else 0; any thread, whatever is current. */
uint32_t tn_context_number(void *handle);
/* Forgets a handle whose context is gone. */
void tn_context_gone(void *handle);
/* Forgets one whose context may end by the real call that follows, since another thread may be given the same handle the moment it is free; number 0:
 * it was not known. *made: tn_context_is_made(). Where the context stays, all of it goes back. */
tn_context tn_context_leaves(void *handle, int *made);
void tn_context_back(void *handle, tn_context context, int made);
/* The primary context's handle of a device as last retained, or NULL. */
void *tn_context_primary(int device);
void tn_context_set_primary(int device, void *handle);

/* The number of a stream as its caller names it (NULL and the two special handles included); f->ptds says what NULL
 * means. The first time a STREAM event (kind SEEN, LEGACY or PER_THREAD) is written. 0 for TN_STREAM_NONE. */
uint32_t tn_stream_number(tn_hook_frame *f, void *handle);
/* A stream was made: a new number under this handle, with a STREAM event. */
void tn_stream_created(tn_hook_frame *f, void *handle, uint64_t flags, int priority);
/* Forgets a handle; returns the number it had, 0 if it was never seen. Before the real call, since another thread may be given
 * the same handle the moment it is free; where the call is refused the number goes back. */
uint32_t tn_stream_gone(void *handle);
void tn_stream_back(void *handle, uint32_t number);
/* Forgets the per-thread default streams of a thread that ends. */
void tn_thread_streams_gone(uint32_t serial);

#endif
