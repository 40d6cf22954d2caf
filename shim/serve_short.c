#include "shim/serve_short.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/callsite.h"
#include "shim/identity.h"
#include "shim/launch.h"
#include "shim/phase.h"
#include "shim/python.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/record_memory.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_graphs.h"
#include "shim/serve_info.h"
#include "shim/serve_marks.h"

/* ---- what has to be so */

/* Whether nothing that a frame would look at asks for one. */
static inline __attribute__((always_inline)) int is_bare(const tn_thread *t, const tn_hot *hot)
{
    return !(t->busy | (int)t->marks | atomic_load_explicit(&hot->long_way, memory_order_relaxed) | atomic_load_explicit(&hot->captures, memory_order_relaxed)) &&
           t->hot && __atomic_load_n(hot->attention, __ATOMIC_RELAXED) == 0 && !tn_charge_tick_is_due(t->stamp) && !tn_fault_is_seen();
}

/* Whether the call is one by itself, or the driver's below the hook of a runtime that has named the site; then *inherits. */
static inline __attribute__((always_inline)) int is_outermost(const tn_thread *t, const tn_short_call *call, int *inherits)
{
    *inherits = 0;
    if (TN_LIKELY(!t->outer.frame)) return 1;
    if (call->copy || t->outer.level != TN_LEVEL_RUNTIME || (uintptr_t)call->stack >= (uintptr_t)t->outer.frame || t->outer.site == TN_SITE_NONE ||
        !tn_cudart_holds(call->caller))
        return 0;
    *inherits = 1;
    return 1;
}

/* Whether the context that is current is the one that this thread has looked up last, and its runtime has nothing to do there. */
static inline __attribute__((always_inline)) int is_context_known(const tn_thread *t, const tn_hot *hot, const tn_short_call *call, void **context)
{
    uint64_t generation = atomic_load_explicit(&hot->generation, memory_order_relaxed);
    if (!t->known.handle || t->known.generation != generation) return 0; /* maybe there is no driver at all, and nothing to ask */
    if (hot->get_current(context) != 0 || *context != t->known.handle) return 0;
    return !call->copy || (t->through.copy == call->copy && t->through.context == *context && t->through.generation == generation);
}

static inline int is_hidden(const tn_hot *hot, const tn_short_call *call)
{
    unsigned bits = atomic_load_explicit(&hot->row[call->driver], memory_order_relaxed) | atomic_load_explicit(&hot->row[call->api], memory_order_relaxed);
    return (bits & TN_ROW_HIDDEN) != 0;
}

/* ---- what both tell */

static inline uint32_t site_of(const tn_thread *t, const tn_hot *hot, const tn_short_call *call, int inherits)
{
    return inherits ? t->outer.site : tn_python_site(hot->journal, tn_callsite(call->caller, call->stack, call->api));
}

static inline void count(tn_thread *t, const tn_short_call *call) { t->counters[call->api]++; }

static inline tn_event *event_of(tn_thread *t, const tn_hot *hot, const tn_short_call *call, int inherits, uint64_t stamp)
{
    tn_launches_end(t, stamp);
    t->stamp = stamp;
    t->recorded++;
    tn_event *e = tn_journal_slot(hot->journal, t->journal, 0);
    if (!e) return NULL;
    e->tsc = stamp;
    e->phase = tn_phase_now();
    e->api = call->driver;
    e->outer_api = inherits ? t->outer.api : call->api == call->driver ? 0 : call->api;
    return e;
}

/* ---- a request */

static inline int take(tn_thread *t, const tn_hot *hot, const tn_short_call *call, tn_family family, uint32_t flags, size_t bytes, uint32_t stream,
                       int inherits, void **out)
{
    const tn_serve_section *s = tn_serve_section_of(t->known.device);
    if (!s) return 0;
    uint32_t site = site_of(t, hot, call, inherits), index = tn_serve_row(s, site);
    if (index == TN_SERVE_NO_ROW) return 0;
    const tn_plan_row *row = &s->plan->rows[index];
    if (row->family != family || (family == TN_FAMILY_PINNED && row->detail != flags) || row->discipline == TN_D_T1) return 0;
    tn_place *place = tn_serve_place_ready(t->known.number);
    if (!place) return 0;
    tn_place_answer answer;
    tn_place_take(place, index, tn_serve_asked(s, bytes), stream, tn_phase_now(), 0, &answer);
    if (!answer.address) return 0;
    if (family == TN_FAMILY_ASYNC) tn_serve_pooled(t->known.device, bytes, TN_POOLED_TAKEN);
    if (family == TN_FAMILY_PINNED) memset(answer.address, 0, bytes);
    uint64_t now = tn_stamp(), extra = flags | (uint64_t)answer.tier << 32;
    uint8_t kind = family == TN_FAMILY_DEVICE ? TN_KIND_DEVICE : family == TN_FAMILY_ASYNC ? TN_KIND_ASYNC : TN_KIND_PINNED;
    tn_entry entry = {.addr = (uint64_t)(uintptr_t)answer.address, .bytes = bytes, .site = site, .ctx = t->known.number, .stream = stream, .kind = kind,
                      .device = t->known.device, .extra = extra, .tsc = now};
    (void)tn_ledger_insert_new(TN_SPACE_ADDRESS, &entry); /* the tier had no such block */
    count(t, call);
    tn_event *e = event_of(t, hot, call, inherits, now);
    if (TN_LIKELY(e)) {
        e->kind = kind;
        e->device = t->known.device;
        e->site = site;
        e->ctx = t->known.number;
        e->stream = stream;
        e->addr = entry.addr;
        e->bytes = bytes;
        e->aux2 = extra;
        tn_guard_served(t, e);
        tn_journal_commit(e, TN_EV_ALLOC);
    }
    *out = answer.address;
    return 1;
}

int tn_short_take(const tn_short_call *call, tn_family family, uint32_t flags, size_t bytes, const void *stream, void **out)
{
    tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    void *context;
    uint32_t number = 0;
    int inherits;
    if (!TN_LIKELY(is_bare(t, hot)) || !TN_LIKELY(is_outermost(t, call, &inherits)) || !TN_LIKELY(is_context_known(t, hot, call, &context)) ||
        is_hidden(hot, call))
        return 0;
    if (stream != TN_STREAM_NONE &&
        (!(number = tn_stream_known(t, stream, t->known.number)) || !tn_serve_is_of_context(number, t->known.number) || tn_serve_pool_is_own(t->known.device)))
        return 0;
    int errno_in = *t->error;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    int served = take(t, hot, call, family, flags, bytes, number, inherits, out);
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    *t->error = errno_in;
    return served;
}

/* ---- a free */

static inline int give(tn_thread *t, const tn_hot *hot, const tn_short_call *call, int kind, void *address, uint32_t stream, int inherits)
{
    tn_entry e;
    tn_work_set uncovered;
    tn_marks *m = tn_serve_marks();
    uint64_t begun = tn_stamp();
    if (!tn_ledger_remove(TN_SPACE_ADDRESS, (uint64_t)(uintptr_t)address, &e)) return 0;
    const tn_serve_section *s = tn_serve_section_of(e.device);
    if (call->copy && e.ctx != t->known.number) s = NULL; /* of another context: its runtime may have something to do there */
    uint32_t row = s && e.kind == kind && tn_is_served(&e) && tn_route_tier(tn_route_of(e.extra)) != TN_ROUTE_T1 ? tn_serve_row(s, e.site) : TN_SERVE_NO_ROW;
    tn_place *place = row == TN_SERVE_NO_ROW ? NULL : tn_serve_place_ready(e.ctx);
    if (place) {
        if (kind != TN_KIND_ASYNC) {
            tn_marks_uncovered(m, kind == TN_KIND_PINNED || tn_serve_has_peers() ? 0 : e.ctx, &uncovered);
        } else {
            uncovered.marks[0] = tn_marks_of_stream(m, stream);
            uncovered.count = uncovered.marks[0].queue != TN_WORK_NO_QUEUE;
        }
    }
    if (!place || tn_serve_has_unread() || tn_place_give(place, row, address, e.stream, &uncovered) != TN_MEM_OK) {
        tn_ledger_insert(TN_SPACE_ADDRESS, &e, NULL);
        return 0;
    }
    if (kind == TN_KIND_ASYNC) tn_serve_pooled(e.device, e.bytes, TN_POOLED_FREED);
    count(t, call);
    tn_event *v = event_of(t, hot, call, inherits, begun);
    if (TN_LIKELY(v)) {
        v->kind = e.kind;
        v->device = e.device;
        v->site = site_of(t, hot, call, inherits);
        v->ctx = e.ctx;
        v->stream = stream;
        v->addr = e.addr;
        v->bytes = e.bytes;
        v->aux = e.backed;
        v->aux2 = e.site;
        tn_journal_commit(v, TN_EV_FREE);
    }
    return 1;
}

int tn_short_give(const tn_short_call *call, int kind, void *address, const void *stream)
{
    tn_thread *t = &tn_self;
    const tn_hot *hot = tn_hot_page;
    void *context;
    uint32_t number = 0;
    int inherits;
    if (!TN_LIKELY(is_bare(t, hot)) || !TN_LIKELY(is_outermost(t, call, &inherits)) || !tn_serve_owns((uint64_t)(uintptr_t)address) ||
        !TN_LIKELY(is_context_known(t, hot, call, &context)) || is_hidden(hot, call))
        return 0;
    if (stream != TN_STREAM_NONE && (!(number = tn_stream_known(t, stream, t->known.number)) || !tn_marks_knows(tn_serve_marks(), number) ||
                                     tn_marks_is_barrier(tn_serve_marks(), number)))
        return 0;
    int errno_in = *t->error;
    t->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    int freed = give(t, hot, call, kind, address, number, inherits);
    atomic_signal_fence(memory_order_seq_cst);
    t->busy = 0;
    *t->error = errno_in;
    return freed;
}
