#include "work_device.h"

#include <string.h>

/* A mark of all queues at once: its sequence is an index into what they had enqueued at the time. */
enum { ALL = 1000, SNAPSHOTS = 1 << 16 };

static uint64_t enqueued[DEVICE_QUEUES + 1], finished[DEVICE_QUEUES + 1];
static uint64_t (*snapshots)[DEVICE_QUEUES + 1];
static uint64_t snapshot_count, joined, waits;
static tn_mem_error wait_answer;

#define READ(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define WRITE(x, to) __atomic_store_n(&(x), to, __ATOMIC_RELEASE)

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void device_reset(void)
{
    memset(enqueued, 0, sizeof enqueued);
    memset(finished, 0, sizeof finished);
    snapshot_count = joined = waits = 0;
    wait_answer = TN_MEM_OK;
}

tn_work_mark device_enqueue(uint64_t queue)
{
    return (tn_work_mark){queue, __atomic_add_fetch(&enqueued[queue], 1, __ATOMIC_ACQ_REL)};
}

uint64_t device_enqueued(uint64_t queue)
{
    return READ(enqueued[queue]);
}

uint64_t device_finished(uint64_t queue)
{
    return READ(finished[queue]);
}

static void finish_up_to(uint64_t queue, uint64_t sequence)
{
    uint64_t seen = READ(finished[queue]);
    while (seen < sequence &&
           !__atomic_compare_exchange_n(&finished[queue], &seen, sequence, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

void device_finish(uint64_t queue, uint64_t pieces)
{
    finish_up_to(queue, least(READ(enqueued[queue]), READ(finished[queue]) + pieces));
}

void device_finish_all(void)
{
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        finish_up_to(q, READ(enqueued[q]));
}

void device_join(uint64_t queue)
{
    WRITE(joined, queue);
}

bool device_is_done(tn_work_mark mark)
{
    if (mark.queue != ALL)
        return READ(finished[mark.queue]) >= mark.sequence;
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        if (READ(finished[q]) < snapshots[mark.sequence][q])
            return false;
    return true;
}

void device_set_wait_answer(tn_mem_error error)
{
    wait_answer = error;
}

size_t device_waits(void)
{
    return READ(waits);
}

size_t device_alls(void)
{
    return READ(snapshot_count);
}

static bool table_done(void *self, tn_work_mark mark)
{
    (void)self;
    return device_is_done(mark);
}

static bool table_ordered(void *self, tn_work_mark mark, uint64_t queue)
{
    (void)self;
    return mark.queue == queue || queue == READ(joined);
}

static tn_work_mark table_all(void *self)
{
    (void)self;
    uint64_t index = __atomic_fetch_add(&snapshot_count, 1, __ATOMIC_ACQ_REL);
    if (snapshots == NULL)
        snapshots = calloc(SNAPSHOTS, sizeof *snapshots); /* by a test of one thread, or with the allocator's lock held */
    ck_assert(index < SNAPSHOTS);
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        snapshots[index][q] = READ(enqueued[q]);
    return (tn_work_mark){ALL, index};
}

static tn_mem_error table_wait(void *self, tn_work_mark mark)
{
    (void)self;
    __atomic_add_fetch(&waits, 1, __ATOMIC_ACQ_REL);
    if (wait_answer != TN_MEM_OK)
        return wait_answer;
    if (mark.queue != ALL)
        finish_up_to(mark.queue, mark.sequence);
    else
        for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
            finish_up_to(q, snapshots[mark.sequence][q]);
    return TN_MEM_OK;
}

static const tn_work_table table = {.done = table_done, .ordered = table_ordered, .all = table_all, .wait = table_wait};
const tn_work device_work = {.table = &table};
