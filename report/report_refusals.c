/* A pool holds what its blocks took until a wait or a trim: by default it keeps nothing over a wait, with a release threshold
 * that much. Its idle bytes are what it may hold less what is live in it. */
#include "report/report_refusals.h"

#include <stdlib.h>

enum { RELEASE_THRESHOLD = 4 }; /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */

typedef struct pools { /* all stream-ordered ones of one process at one place; with TN_NO_INDEX for a place, what they all keep */
    uint32_t process, place;
    uint64_t live, held;
    uint64_t keep; /* the highest threshold set */
} pools;

struct tn_refusals_state {
    pools *pools;
    size_t pool_count, pool_capacity, capacity;
};

static tn_error begin(tn_report *report)
{
    report->refusals = calloc(1, sizeof(*report->refusals));
    if (!report->refusals)
        return TN_E_NOMEM;
    report->refusals->state = calloc(1, sizeof(struct tn_refusals_state));
    return report->refusals->state ? TN_OK : TN_E_NOMEM;
}

static void drop_state(tn_refusals *r)
{
    if (r->state)
        free(r->state->pools);
    free(r->state);
    r->state = NULL;
}

static void drop(tn_report *report)
{
    if (!report->refusals)
        return;
    drop_state(report->refusals);
    free(report->refusals->each);
    free(report->refusals);
    report->refusals = NULL;
}

static pools *pools_of(struct tn_refusals_state *s, uint32_t process, uint32_t place)
{
    for (size_t i = 0; i < s->pool_count; i++)
        if (s->pools[i].process == process && s->pools[i].place == place)
            return &s->pools[i];
    if (s->pool_count == s->pool_capacity) {
        size_t capacity = s->pool_capacity ? s->pool_capacity * 2 : 8;
        pools *grown = realloc(s->pools, capacity * sizeof(*grown));
        if (!grown)
            return NULL;
        s->pools = grown;
        s->pool_capacity = capacity;
    }
    s->pools[s->pool_count] = (pools){.process = process, .place = place};
    return &s->pools[s->pool_count++];
}

static tn_error change(const tn_moment *m, const tn_change *c)
{
    if (c->kind != TN_KIND_ASYNC && c->kind != TN_KIND_POOL)
        return TN_OK;
    pools *p = pools_of(m->report->refusals->state, m->process, c->place);
    if (!p)
        return TN_E_NOMEM;
    if (c->sign > 0)
        p->live += c->backed;
    else
        p->live -= c->backed;
    if (p->live > p->held)
        p->held = p->live;
    return TN_OK;
}

static void trim(struct tn_refusals_state *s, uint32_t process, uint64_t keep)
{
    for (size_t i = 0; i < s->pool_count; i++) {
        pools *p = &s->pools[i];
        uint64_t least = p->live > keep ? p->live : keep;
        if (p->process == process && p->held > least)
            p->held = least;
    }
}

static tn_refusal *refusal_of(tn_refusals *r, uint32_t process, uint32_t row)
{
    for (size_t i = r->count; i-- > 0;)
        if (r->each[i].row == row && r->each[i].process == process)
            return &r->each[i];
    return NULL;
}

static tn_error refused(const tn_moment *m)
{
    tn_refusals *r = m->report->refusals;
    uint32_t row = m->row;
    if (row == TN_NO_INDEX)
        return TN_OK;
    tn_refusal *one = refusal_of(r, m->process, row);
    if (!one) {
        if (r->count == r->state->capacity) {
            size_t capacity = r->state->capacity ? r->state->capacity * 2 : 8;
            tn_refusal *grown = realloc(r->each, capacity * sizeof(*grown));
            if (!grown)
                return TN_E_NOMEM;
            r->each = grown;
            r->state->capacity = capacity;
        }
        one = &r->each[r->count++];
        *one = (tn_refusal){.process = m->process, .row = row};
    }
    one->granted_later = 0;
    if (one->count++ > 0 && m->event->bytes <= one->requested)
        return TN_OK;
    uint32_t place = m->report->rows[row].place;
    const pools *p = pools_of(r->state, m->process, place);
    if (!p)
        return TN_E_NOMEM;
    one->requested = m->event->bytes;
    one->result = m->event->result;
    one->live = m->report->places[place].total.live_backed;
    one->idle = p->held - p->live;
    one->ns = m->ns;
    return TN_OK;
}

static tn_error event(const tn_moment *m)
{
    tn_refusals *r = m->report->refusals;
    const tn_event *e = m->event;
    pools *all = NULL;
    if (e->type == TN_EV_POOL || (e->type == TN_EV_WAIT && r->state->pool_count))
        all = pools_of(r->state, m->process, TN_NO_INDEX);
    switch (e->type) {
    case TN_EV_ALLOC:
        if (e->result != 0)
            return refused(m);
        if (r->count) {
            tn_refusal *one = refusal_of(r, m->process, m->row);
            if (one)
                one->granted_later = 1;
        }
        return TN_OK;
    case TN_EV_WAIT:
        if (e->kind <= TN_WAIT_EVENT || e->kind == TN_WAIT_FREE) /* queries and copies let go of nothing */
            trim(r->state, m->process, all ? all->keep : 0);
        return TN_OK;
    case TN_EV_POOL:
        if (e->kind == TN_POOL_TRIM)
            trim(r->state, m->process, e->bytes);
        if (e->kind == TN_POOL_SET && e->aux == RELEASE_THRESHOLD && all && e->bytes > all->keep)
            all->keep = e->bytes;
        return all ? TN_OK : TN_E_NOMEM;
    default:
        return TN_OK;
    }
}

static int by_request(const void *a, const void *b)
{
    const tn_refusal *x = a, *y = b;
    if (x->requested != y->requested)
        return x->requested > y->requested ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static tn_error end(tn_report *report)
{
    drop_state(report->refusals);
    if (report->refusals->count)
        qsort(report->refusals->each, report->refusals->count, sizeof(tn_refusal), by_request);
    return TN_OK;
}

const tn_watcher tn_refusals_watcher = {.types = TN_WATCH(TN_EV_ALLOC) | TN_WATCH(TN_EV_WAIT) | TN_WATCH(TN_EV_POOL),
                                        .begin = begin, .event = event, .change = change, .end = end, .drop = drop};
