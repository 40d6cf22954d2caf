/* What a device may still do with a block that its owner has given back. A mark names a point in a queue of work; a set gathers the marks
 * of one block, and the block is clean, so that another may have it, when all of them are done. What "done" means the caller says by a
 * table of functions. Plain values, no allocation; calls on one set must not overlap. */
#ifndef TENURE_TIERS_WORK_MARK_H
#define TENURE_TIERS_WORK_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tiers/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_WORK_NO_QUEUE ((uint64_t)0) /* a mark of no work; as the queue of a taker: it is not known where the block will be used */
#define TN_WORK_SET_MARKS 4

typedef struct tn_work_mark {
    uint64_t queue;    /* the caller's id of whatever runs its work in order, never given to another; TN_WORK_NO_QUEUE: no work at all */
    uint64_t sequence; /* of the last piece of work that may touch the block; rises within a queue, never wraps */
} tn_work_mark;

/* What the caller knows of its work. Called by any thread that calls an allocator, possibly with a lock of the allocator's held, so `done`,
 * `ordered` and `all` call no allocator and do not block; `wait` is called with no lock held. */
typedef struct tn_work_table {
    /* Whether the device has finished all up to the mark. Once true it stays true, and is true of the marks before it in its queue. */
    bool (*done)(void *self, tn_work_mark mark);
    /* Whether what is enqueued in `queue` from now on begins only when the mark is done: the same stream, or one that has joined it.
     * Stays true likewise. NULL: never. */
    bool (*ordered)(void *self, tn_work_mark mark, uint64_t queue);
    /* A mark that is done only when everything enqueued anywhere before this call is. */
    tn_work_mark (*all)(void *self);
    /* Blocks until the mark is done. NULL: the caller waits by itself. */
    tn_mem_error (*wait)(void *self, tn_work_mark mark);
} tn_work_table;

typedef struct tn_work {
    const tn_work_table *table;
    void *self;
} tn_work;

/* The marks of one block; all zero is the empty set, which is clean. */
typedef struct tn_work_set {
    tn_work_mark marks[TN_WORK_SET_MARKS];
    size_t count;
} tn_work_set;

/* Whether the table has what must be there: `done` and `all`. */
bool tn_work_is_valid(const tn_work *work);

/* Adds a mark. One of the same queue makes way for the later of the two; where there is no room, marks that are done go, and else
 * all become the one of table->all: later than need be, never too early. A mark of no work adds nothing. */
void tn_work_set_add(tn_work_set *set, const tn_work *work, tn_work_mark mark) __attribute__((hot));

/* Adds every mark of another set. */
void tn_work_set_merge(tn_work_set *set, const tn_work *work, const tn_work_set *other) __attribute__((hot));

/* Forgets the marks that are done; whether none is left. */
bool tn_work_set_is_clean(tn_work_set *set, const tn_work *work) __attribute__((hot));

/* Whether the block may be used by what `queue` runs from now on: each mark is done or ordered before it. */
bool tn_work_set_is_ready(tn_work_set *set, const tn_work *work, uint64_t queue) __attribute__((hot));

/* Waits for each mark and empties the set. ARGUMENT: the table cannot wait. Else the first error of `wait`; what is left in the set is
 * what was not waited for. */
TN_MEM_MUST_USE tn_mem_error tn_work_set_wait(tn_work_set *set, const tn_work *work);

#ifdef __cplusplus
}
#endif

#endif
