/* Tells the marks (serve/marks.h) what the hooks see, while a plan serves: `tn_serving_marks` is NULL until then, and all of this does nothing
 * but remember what cannot be asked for later. Called by the thread whose call it is, inside its hook, any thread; no lock is held around a
 * CUDA call. A signal handler that came into a hook tells only that there was work, somewhere. */
#ifndef TENURE_SHIM_SERVE_MARKS_H
#define TENURE_SHIM_SERVE_MARKS_H

#include <stdint.h>

#include "serve/marks.h"
#include "shim/cuda_abi.h"
#include "shim/hook.h"

extern tn_marks *tn_serving_marks __attribute__((visibility("hidden")));

static inline tn_marks *tn_serve_marks(void) { return __atomic_load_n(&tn_serving_marks, __ATOMIC_ACQUIRE); }
#define TN_SERVES() __builtin_expect(tn_serve_marks() != NULL, 0)

/* Makes the marks, where there are none yet. 0, or -1 where there is no memory. Once served,
 * for as long as the process lives. By one thread at a time. */
int tn_serve_marks_start(void);

/* The mark of a stream as its caller names it, for a block that is given back in its order: tn_marks_of_stream() with the stream known. */
tn_work_mark tn_serve_stream_mark(tn_hook_frame *f, void *stream);

/* When a call begins that may cover work: now, also for the marks. */
static inline uint64_t tn_serve_begin(void)
{
    uint64_t now = tn_stamp();
    return TN_SERVES() ? tn_marks_begin(tn_serve_marks(), now) : now;
}

/* The stamp of work whose call has returned; 0: nothing serves. */
static inline uint64_t tn_serve_tick(void) { return TN_SERVES() ? tn_marks_tick(&tn_hot_page->tick) : 0; }

/* ---- what the hooks tell; each looks first whether anything serves */

void tn_serve_tell_work(tn_hook_frame *f, uint32_t number, void *stream, uint64_t stamp);
static inline void tn_serve_work(tn_hook_frame *f, uint32_t number, void *stream, uint64_t stamp)
{
    if (TN_SERVES()) tn_serve_tell_work(f, number, stream, stamp);
}

/* A successful wait (TN_WAIT_*) that began at f->begun. */
void tn_serve_tell_wait(tn_hook_frame *f, int what, uint32_t ctx, uint32_t number, uint64_t event);
static inline void tn_serve_wait(tn_hook_frame *f, int what, uint32_t ctx, uint32_t number, uint64_t event)
{
    if (TN_SERVES()) tn_serve_tell_wait(f, what, ctx, number, event);
}

/* Around the record of an event, by f->handle; `number` 0: in more than a stream. */
void tn_serve_record_begin(tn_hook_frame *f, const void *event, int external);
void tn_serve_record_end(tn_hook_frame *f, int r, const void *event, uint32_t number, void *stream);
void tn_serve_join(tn_hook_frame *f, uint32_t ctx, uint32_t number, void *stream, const void *event);
/* An event is made, or about to be destroyed. */
void tn_serve_event_fresh(tn_hook_frame *f, const void *event);
/* Others than cuEventRecord record it: another process, a launch. */
void tn_serve_event_shared(const void *event);
/* A graph records events. */
void tn_serve_events_end(void);

void tn_serve_stream_made(uint32_t number, uint64_t flags);
void tn_serve_stream_ended(uint32_t number);

/* Contexts by number, so that they can be waited for: known; about to end, which waits for a wait of ours for it; not ended after all; gone. */
void tn_serve_marks_context_known(uint32_t number, void *handle);
void tn_serve_marks_context_green(uint32_t number, uint8_t device);
void tn_serve_marks_context_ends(uint32_t number);
void tn_serve_marks_context_stays(uint32_t number, void *handle);
void tn_serve_marks_context_ended(uint32_t number);

#endif
