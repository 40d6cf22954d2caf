/* Which work the program had waited for, kept while a journal is replayed: when may a freed block's memory serve another one? Work is marked
 * where it was enqueued; a wait covers the marks of its target up to the moment at which it began, and with them what that target had itself to
 * wait for on the device; a freed block is clean once nothing older than its free is uncovered. A tn_marks belongs to one replay and one thread. Stamps rise from call to call as the journal's do. */
#ifndef TENURE_PLANNER_TRACE_MARKS_H
#define TENURE_PLANNER_TRACE_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/tn_error.h"

typedef struct tn_marks tn_marks;

/* Told for each block that has become clean, in the order of their frees within one context or stream. */
typedef void (*tn_marks_clean)(void *user, uint32_t block);

/* `numbers`: how many contexts or streams there can be; one beyond is TN_E_LIMIT wherever it is named. NULL: no memory left. */
tn_marks *tn_marks_new(size_t numbers, tn_marks_clean clean, void *user);
void tn_marks_free(tn_marks *m);

/* A stream belongs to a context. Number 0 is no stream and no context. */
TN_MUST_USE tn_error tn_marks_stream(tn_marks *m, uint32_t stream, uint32_t ctx);
/* Work was enqueued, first and last at these stamps. */
TN_MUST_USE tn_error tn_marks_work(tn_marks *m, uint32_t stream, uint64_t first, uint64_t last);
/* What is enqueued on `to` from `at` on waits on the device for what was enqueued on `from` up to `upto`. */
TN_MUST_USE tn_error tn_marks_join(tn_marks *m, uint32_t to, uint64_t at, uint32_t from, uint64_t upto);
/* What one call enqueued on the stream, at this stamp of tn_marks_work()'s `last`, is done, and all of that work before it was covered. */
TN_MUST_USE tn_error tn_marks_done(tn_marks *m, uint32_t stream, uint64_t last);
/* A wait for all of a context's streams, for one stream: what was enqueued up to `upto` is done. */
TN_MUST_USE tn_error tn_marks_wait_context(tn_marks *m, uint32_t ctx, uint64_t upto);
TN_MUST_USE tn_error tn_marks_wait_stream(tn_marks *m, uint32_t stream, uint64_t upto);

/* A block freed at `stamp`. Plain: clean when all its context's streams are (ctx 0: every context's). Stream-ordered: when its own stream is.
 * Blocks must come with rising stamps. The callback may come at once. */
TN_MUST_USE tn_error tn_marks_freed(tn_marks *m, uint32_t block, uint32_t ctx, uint64_t stamp);
TN_MUST_USE tn_error tn_marks_freed_on(tn_marks *m, uint32_t block, uint32_t stream, uint64_t stamp);

/* The context is gone, and its work with it. */
TN_MUST_USE tn_error tn_marks_context_gone(tn_marks *m, uint32_t ctx, uint64_t stamp);

#endif
