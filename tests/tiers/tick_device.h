/* Another device for tests, whose queues join each other one by one. Marks are ticks of one counter, so that "everything up to now"
 * is a tick too. Any thread may call; one device at a time. */
#ifndef TENURE_TESTS_TIERS_TICK_DEVICE_H
#define TENURE_TESTS_TIERS_TICK_DEVICE_H

#include "tiers/work_mark.h"

enum { DEVICE_QUEUES = 8, DEVICE_ALL = 1000 }; /* queues are 1 to DEVICE_QUEUES */

/* Forgets all; a work table whose wait finishes what it waits for. */
tn_work device_begin(void);

/* Enqueues a piece of work; its mark. */
tn_work_mark device_enqueue(uint64_t queue);

/* All that is enqueued in the queue (in any) up to now is done. */
void device_finish(uint64_t queue);
void device_finish_all(void);

/* What `queue` runs from now on comes after what `from` has enqueued up to now. */
void device_join(uint64_t queue, uint64_t from);

/* The answers of the table. */
bool device_done(tn_work_mark mark);
bool device_ordered(tn_work_mark mark, uint64_t queue);

/* A set of the one mark. */
tn_work_set device_set(tn_work_mark mark);

#endif
