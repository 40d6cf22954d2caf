/* Which events count while a process serves. */
#include "phaseguard/serving.h"

static tn_serving_what allocation(tn_serving_thread *t, const tn_event *e)
{
    if (!tn_serving_counts_kind(e->kind))
        return TN_SERVING_NOTHING;
    int retry = t->refused && t->kind == e->kind && t->device == e->device && e->bytes <= t->refused_bytes;
    t->refused = e->result != 0;
    t->kind = e->kind;
    t->device = e->device;
    t->refused_bytes = e->bytes;
    return retry ? TN_SERVING_RETRY : TN_SERVING_ALLOCATION;
}

/* Only a reading that nothing else can have moved says that this call grew. */
static tn_serving_what charge(const tn_event *e)
{
    if (e->aux <= e->bytes || !(e->aux2 & TN_CHARGE_ALONE) || e->aux2 & (TN_CHARGE_NO_BEFORE | TN_CHARGE_BLIND))
        return TN_SERVING_NOTHING;
    switch (e->kind) {
    case TN_CHARGE_CONTEXT:
    case TN_CHARGE_MODULE:
    case TN_CHARGE_LAUNCH:
    case TN_CHARGE_STREAM:
    case TN_CHARGE_EVENT:
    case TN_CHARGE_LIMIT:
    case TN_CHARGE_MANAGED:
    case TN_CHARGE_SYNC:
    case TN_CHARGE_FIRST_USE:
    case TN_CHARGE_PEER:
    case TN_CHARGE_PINNED:
    case TN_CHARGE_ARRAY:
        return TN_SERVING_CHARGE;
    case TN_CHARGE_GRAPH:
        return TN_SERVING_GRAPH;
    default: /* readings of the whole device, which are nobody's growth; pools, below */
        return TN_SERVING_NOTHING;
    }
}

tn_serving_what tn_serving_pool(tn_serving_held *held, const tn_event *e)
{
    uint64_t before = held->reserved;
    if (e->type != TN_EV_CHARGE || (e->kind != TN_CHARGE_POOL && e->kind != TN_CHARGE_GRAPH_MEMORY))
        return TN_SERVING_NOTHING;
    held->reserved = e->bytes;
    if (e->bytes <= before)
        return TN_SERVING_NOTHING;
    return e->kind == TN_CHARGE_POOL ? TN_SERVING_POOL : TN_SERVING_GRAPH;
}

tn_serving_what tn_serving_event(tn_serving_thread *t, const tn_event *e)
{
    switch (e->type) {
    case TN_EV_ALLOC:
        if (e->result == 0 && tn_serving_tier(e)) {
            t->refused = 0;
            return TN_SERVING_SERVED;
        }
        return allocation(t, e);
    case TN_EV_ARENA: /* a tier took memory from the driver */
        return e->result == 0 ? TN_SERVING_ALLOCATION : TN_SERVING_NOTHING;
    case TN_EV_CHARGE:
        return charge(e);
    default:
        return TN_SERVING_NOTHING;
    }
}

void tn_serving_add(tn_serving_counts *c, tn_serving_what what, const tn_event *e, int first)
{
    switch (what) {
    case TN_SERVING_ALLOCATION:
        c->driver_allocations++;
        c->first_uses += (uint64_t)(first != 0);
        break;
    case TN_SERVING_RETRY:
        c->retries++;
        break;
    case TN_SERVING_SERVED:
        c->served_allocations++;
        return;
    case TN_SERVING_POOL:
        c->pool_growths++;
        return;
    case TN_SERVING_GRAPH:
        c->graph_growths++;
        return;
    case TN_SERVING_CHARGE:
        c->charge_growths++;
        return;
    default:
        return;
    }
    if (e->result != 0)
        c->refused++;
    else
        c->requested_bytes += e->bytes;
}
