/* Marks over a clock that a test turns by hand: each look at it is one later. For one thread, but for the clock itself. */
#ifndef TENURE_TESTS_SERVE_MARKS_CLOCK_H
#define TENURE_TESTS_SERVE_MARKS_CLOCK_H

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "serve/marks.h"

static _Atomic uint64_t clock_at, work_tick;
static inline uint64_t tick(void) { return atomic_fetch_add(&clock_at, 1) + 1; }

static inline tn_marks *marks_new(size_t streams, size_t events, tn_mem_error (*wait)(void *, uint32_t), void *self)
{
    tn_marks *m = NULL;
    tn_marks_options o = {.streams = streams, .events = events, .now = tick, .wait = wait, .tick = &work_tick, .self = self};
    ck_assert_int_eq(tn_marks_create(&o, &m), TN_MEM_OK);
    return m;
}

static inline bool is_done(tn_marks *m, tn_work_mark mark)
{
    tn_work w = tn_marks_work_table(m, 0);
    return mark.queue == TN_WORK_NO_QUEUE || w.table->done(w.self, mark);
}

static inline bool is_ordered(tn_marks *m, tn_work_mark mark, uint32_t stream)
{
    tn_work w = tn_marks_work_table(m, 0);
    return w.table->ordered(w.self, mark, stream);
}

static inline bool is_set_clean(tn_marks *m, tn_work_set set)
{
    tn_work w = tn_marks_work_table(m, 0);
    return tn_work_set_is_clean(&set, &w);
}

static inline tn_work_set uncovered(tn_marks *m, uint32_t ctx)
{
    tn_work_set set;
    memset(&set, 0xa5, sizeof set);
    tn_marks_uncovered(m, ctx, &set);
    return set;
}

static inline void record(tn_marks *m, uint64_t event, uint32_t stream)
{
    uint64_t answer = tn_marks_event_begins(m, event), begun = tick();
    tn_marks_event_recorded(m, event, answer, stream, begun, tick());
}

static inline void join(tn_marks *m, uint32_t ctx, uint32_t stream, uint64_t event)
{
    uint64_t begun = tick();
    tn_marks_joined(m, ctx, stream, event, begun, tick());
}

#endif
