/* What the hooks tell of work, waits, events and joins while a plan serves (serve/marks.h). Called on the thread of the call, inside its hook;
 * without a plan one word is read. A wait's and a record's stamp of before their call is f->begun. */
#ifndef TENURE_SHIM_SERVE_MARKS_H
#define TENURE_SHIM_SERVE_MARKS_H

#include "serve/marks.h"
#include "shim/hook.h"

extern tn_marks *tn_serving_marks __attribute__((visibility("hidden"))); /* NULL: no plan serves */

/* Once, when a plan begins to serve; from then on every launch goes the long way of its hook. 0, or -1: no memory. */
int tn_serve_marks_start(void);

void tn_serve_told_stream(tn_hook_frame *f, int kind, uint32_t number, uint32_t ctx, void *handle, uint64_t flags);
void tn_serve_told_work(tn_hook_frame *f, uint32_t stream, uint64_t stamp);
void tn_serve_told_wait(tn_hook_frame *f, int what, uint32_t ctx, uint32_t stream, uint64_t event);
/* Around cuEventRecord and its kin; `captured`: it became a node. */
void tn_serve_event_begins(tn_hook_frame *f, uint64_t event);
void tn_serve_event_recorded(tn_hook_frame *f, int r, uint64_t event, uint32_t stream, int captured);
void tn_serve_told_join(tn_hook_frame *f, uint32_t ctx, uint32_t stream, uint64_t event);

#endif
