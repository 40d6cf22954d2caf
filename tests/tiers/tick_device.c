#include "tick_device.h"

#include <string.h>

static uint64_t ticks;
static uint64_t last[DEVICE_QUEUES + 1];     /* the tick of the queue's last piece of work */
static uint64_t finished[DEVICE_QUEUES + 1]; /* of the queue, all up to that tick is done */
static uint64_t joined[DEVICE_QUEUES + 1][DEVICE_QUEUES + 1];

#define GET(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)

static void raise_to(uint64_t *value, uint64_t to)
{
    uint64_t seen = GET(*value);
    while (seen < to && !__atomic_compare_exchange_n(value, &seen, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

bool device_done(tn_work_mark mark)
{
    if (mark.queue != DEVICE_ALL)
        return GET(finished[mark.queue]) >= mark.sequence;
    for (int q = 1; q <= DEVICE_QUEUES; q++)
        if (GET(finished[q]) < mark.sequence)
            return false;
    return true;
}

bool device_ordered(tn_work_mark mark, uint64_t queue)
{
    return mark.queue == queue || (mark.queue != DEVICE_ALL && GET(joined[queue][mark.queue]) >= mark.sequence);
}

static bool done(void *self, tn_work_mark mark)
{
    (void)self;
    return device_done(mark);
}

static bool ordered(void *self, tn_work_mark mark, uint64_t queue)
{
    (void)self;
    return device_ordered(mark, queue);
}

static tn_work_mark all(void *self)
{
    (void)self;
    return (tn_work_mark){DEVICE_ALL, __atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST)};
}

static tn_mem_error wait_for(void *self, tn_work_mark mark)
{
    (void)self;
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        if (mark.queue == q || mark.queue == DEVICE_ALL)
            raise_to(&finished[q], mark.sequence);
    return TN_MEM_OK;
}

tn_work device_begin(void)
{
    static const tn_work_table table = {.done = done, .ordered = ordered, .all = all, .wait = wait_for};
    ticks = 0;
    memset(last, 0, sizeof last);
    memset(finished, 0, sizeof finished);
    memset(joined, 0, sizeof joined);
    return (tn_work){.table = &table};
}

tn_work_mark device_enqueue(uint64_t queue)
{
    uint64_t tick = __atomic_add_fetch(&ticks, 1, __ATOMIC_SEQ_CST);
    raise_to(&last[queue], tick);
    return (tn_work_mark){queue, tick};
}

void device_finish(uint64_t queue)
{
    raise_to(&finished[queue], GET(ticks));
}

void device_finish_all(void)
{
    for (uint64_t q = 1; q <= DEVICE_QUEUES; q++)
        device_finish(q);
}

void device_join(uint64_t queue, uint64_t from)
{
    raise_to(&joined[queue][from], GET(last[from]));
}

tn_work_set device_set(tn_work_mark mark)
{
    return (tn_work_set){.marks = {mark}, .count = mark.queue != TN_WORK_NO_QUEUE};
}
