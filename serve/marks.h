/* What a device may still be doing, as far as the calls tell: work that was enqueued into streams, and what has been waited for since. From
 * it an allocator knows when a freed block is clean (tiers/work_mark.h). The owner creates it once a process and never destroys it while
 * threads call; any thread may call any function at any time, none takes a lock, allocates, or calls the driver but `wait`.
 *
 * Streams and contexts are the numbers that the journal gives them, never given twice; per-thread default streams are streams of their own.
 * Times are stamps of one clock that all threads share. Work is told after its call has returned, a wait with the stamp of before its
 * call: so a wait that began at b covers the work of its streams whose stamp is <= b, and nothing is covered that could have been missed. */
#ifndef TENURE_SERVE_MARKS_H
#define TENURE_SERVE_MARKS_H

#include <stdint.h>

#include "tiers/metadata.h"
#include "tiers/work_mark.h"

typedef struct tn_marks tn_marks;

typedef struct tn_marks_options {
    size_t streams;  /* that may have work at once; those beyond are one stream a context, which only context waits cover. 0: 4096 */
    size_t events;   /* recorded and not destroyed, likewise: one that finds no place is forgotten, and waits for it cover nothing. 0: 16384 */
    uint64_t (*now)(void);                                  /* the stamp */
    /* Waits until all that context `ctx` (0: every context) was given before the call is done. Called with nothing of ours held. */
    tn_mem_error (*wait)(void *self, uint32_t ctx);
    void *self;
    const tn_metadata *metadata; /* NULL: malloc; not used after create */
} tn_marks_options;

/* ARGUMENT: no `now`. HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_marks_create(const tn_marks_options *options, tn_marks **out);
void tn_marks_destroy(tn_marks **m);

/* ---- told by the hooks */

/* A call that enqueued work into `stream` of context `ctx` has returned; `stamp` was read after it. */
void tn_marks_work(tn_marks *m, uint32_t ctx, uint32_t stream, uint64_t stamp);
/* A successful wait for a stream, or for all streams of a context (0: of every context), that began at `begun`. */
void tn_marks_waited_stream(tn_marks *m, uint32_t stream, uint64_t begun);
void tn_marks_waited_context(tn_marks *m, uint32_t ctx, uint64_t begun);
/* Event `event` (its handle) was recorded in `stream` (0: in all of context `ctx`) by a call that has returned; a later record of the same
 * handle takes its place. A wait for it covers what its stream had been given when it was recorded. `begun`: before the record's call. */
void tn_marks_event_recorded(tn_marks *m, uint64_t event, uint32_t ctx, uint32_t stream, uint64_t begun);
void tn_marks_waited_event(tn_marks *m, uint64_t event);
void tn_marks_event_destroyed(tn_marks *m, uint64_t event);
/* `stream` waits for `event` on the device: what it is given from now on is ordered after what the event covers. */
void tn_marks_joined(tn_marks *m, uint32_t stream, uint64_t event);
/* The stream ends: what it still has goes on, and only a context wait covers it from now on. */
void tn_marks_stream_ended(tn_marks *m, uint32_t stream);
/* The context is gone, and with it all its work. */
void tn_marks_context_ended(tn_marks *m, uint32_t ctx);

/* ---- asked by the allocators */

/* What is uncovered now in context `ctx` (0: anywhere), for a block that its owner gives back. Empty: the block is clean. */
void tn_marks_uncovered(tn_marks *m, uint32_t ctx, tn_work_set *set);
/* The mark of what `stream` has been given so far, done or not: for a block given back in the order of a stream. */
tn_work_mark tn_marks_of_stream(tn_marks *m, uint32_t stream);
/* The table by which an allocator of context `ctx` (0: of memory that every context uses) asks. Queues are stream numbers. */
tn_work tn_marks_work_table(tn_marks *m, uint32_t ctx);

#endif
