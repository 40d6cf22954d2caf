/* Arithmetic of the report's lines during the replay. A line knows its own peak at once; what it held at the moment of its
 * device's peak, or of the device's lowest point after the largest free-down, it knows by keeping its bytes whenever it changes for the
 * first time after such a moment. One thread. */
#ifndef TENURE_REPORT_REPORT_STAT_H
#define TENURE_REPORT_REPORT_STAT_H

#include "report/report_model.h"

/* Before any change of the line's bytes, and once at the end. */
static inline void tn_stat_settle(tn_stat *s, const tn_moments *m)
{
    if (s->peak_epoch != m->peak_epoch) {
        s->peak_epoch = m->peak_epoch;
        s->at_peak = s->live_backed;
    }
    if (s->low_epoch != m->low_epoch) {
        s->low_epoch = m->low_epoch;
        s->at_low = s->live_backed;
    }
}

static inline void tn_stat_add(tn_stat *s, const tn_moments *m, uint64_t requested, uint64_t backed)
{
    tn_stat_settle(s, m);
    s->live_requested += requested;
    s->live_backed += backed;
    if (s->live_requested > s->peak_requested)
        s->peak_requested = s->live_requested;
    if (s->live_backed > s->peak_backed)
        s->peak_backed = s->live_backed;
}

static inline void tn_stat_take(tn_stat *s, const tn_moments *m, uint64_t requested, uint64_t backed)
{
    tn_stat_settle(s, m);
    s->live_requested -= requested;
    s->live_backed -= backed;
}

/* What is there when its process ends is no longer there, and yet was never freed. */
static inline void tn_stat_leave(tn_stat *s, const tn_moments *m, uint64_t requested, uint64_t backed)
{
    tn_stat_take(s, m, requested, backed);
    s->left_requested += requested;
    s->left_backed += backed;
}

/* After all lines of a place have taken a change in; `live`: the bytes of its total now. */
static inline void tn_moments_after(tn_moments *m, uint64_t live, uint64_t ns)
{
    if (live > m->peak) {
        m->peak = live;
        m->peak_epoch++;
        m->peak_ns = ns;
    }
    if (live > m->high)
        m->high = live;
    if (m->high - live > m->drop) {
        m->drop = m->high - live;
        m->low_epoch++;
        m->low_ns = ns;
    }
}

/* The end of a process is no free-down: what went with it is taken off where the fall began, too. */
static inline void tn_moments_leave(tn_moments *m, uint64_t backed)
{
    m->high -= backed < m->high ? backed : m->high;
}

#endif
