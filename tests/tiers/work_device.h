/* A device whose queues are two numbers each: what was enqueued and what is done. Tests let it proceed by hand and ask the allocators'
 * work table about it. One device a process; any thread may call, but for work_device_reset. */
#ifndef TENURE_TESTS_TIERS_WORK_DEVICE_H
#define TENURE_TESTS_TIERS_WORK_DEVICE_H

#include "fixture.h"

enum { DEVICE_QUEUES = 8 }; /* ids 1..DEVICE_QUEUES */

extern const tn_work device_work;

/* All queues empty, nothing joined, waits succeed. */
void device_reset(void);

/* A piece of work more in the queue: the mark of it. */
tn_work_mark device_enqueue(uint64_t queue);

/* What a queue has been given, has finished; finishing by count, or all. */
uint64_t device_enqueued(uint64_t queue);
uint64_t device_finished(uint64_t queue);
void device_finish(uint64_t queue, uint64_t pieces);
void device_finish_all(void);

/* From now on `queue` (0: none) begins its work only when that of all others is done. */
void device_join(uint64_t queue);

/* Whether the mark is done, as the table says it. */
bool device_is_done(tn_work_mark mark);

/* What a wait answers from now on; how many there were; how often all marks of a set became one of all work. */
void device_set_wait_answer(tn_mem_error error);
size_t device_waits(void);
size_t device_alls(void);

#endif
