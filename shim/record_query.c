/* Memory queries, attributes, pools, sharing and limits: events that a planner reads, none of which changes what is
 * alive. */
#include <string.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/map.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_info.h"

static tn_map ordinals = TN_MAP_INIT; /* (native site, device) -> queries so far */

/* An event of the current context with its site, or NULL. */
static tn_event *plain_event(tn_hook_frame *f)
{
    tn_context c = tn_context_current(f);
    uint32_t site = tn_frame_site(f);
    tn_event *e = tn_event_new(f, rec_stamp(f));
    if (!e) return NULL;
    e->ctx = c.number;
    e->device = c.device;
    e->site = site;
    return e;
}

static void query(tn_hook_frame *f, uint64_t free_bytes, uint64_t total, int device)
{
    tn_event *e = plain_event(f);
    if (!e) return;
    if (device >= 0) e->device = (uint8_t)device;
    e->bytes = free_bytes;
    e->aux = total;
    e->aux2 = f->nested ? 0 : tn_map_count(&ordinals, f->thread->outer.native, e->device);
    tn_journal_commit(e, TN_EV_QUERY);
    f->thread->recorded++;
}

void rec_query(tn_hook_frame *f, int r, uint64_t free_bytes, uint64_t total)
{
    if (r == 0) query(f, free_bytes, total, TN_DEV_UNKNOWN);
}

void rt_query(tn_hook_frame *f, int r, uint64_t free_bytes, uint64_t total)
{
    if (r == 0 && f->thread->recorded == f->recorded) query(f, free_bytes, total, TN_DEV_UNKNOWN);
}

void rec_query_total(tn_hook_frame *f, int r, uint64_t total, int device)
{
    if (r == 0) query(f, 0, total, device);
}

/* nvmlMemory_t is {total, free, used}; version 2 is {u32 version, total, reserved, free, used}. NVML counts devices in
 * its own order, so the event names none. */
void rec_nvml_memory(tn_hook_frame *f, int r, const void *memory, int version)
{
    uint64_t v[5] = {0};
    if (r != 0 || !memory) return;
    memcpy(v, memory, version == 2 ? sizeof v : 3 * sizeof v[0]);
    query(f, version == 2 ? v[3] : v[1], version == 2 ? v[1] : v[0], (int)TN_DEVICE_NONE);
}

void rec_attribute(tn_hook_frame *f, int r, uint64_t addr, uint64_t attribute, const void *value)
{
    tn_event *e = r == 0 ? plain_event(f) : NULL;
    if (!e) return;
    e->addr = addr;
    e->bytes = attribute;
    e->aux = value ? *(const unsigned *)value : 0; /* every settable attribute is a 32-bit flag */
    tn_journal_commit(e, TN_EV_ATTRIBUTE);
}

void rec_pool_end_begin(tn_hook_frame *f, uint64_t pool)
{
    rec_begin(f);
    f->freed_known = (uint8_t)tn_reading_pool_ends(pool);
}

void rec_pool(tn_hook_frame *f, int r, int what, uint64_t pool, uint64_t attribute, uint64_t value)
{
    /* One that was not ended after all is asked again from its next allocation on. */
    if ((what == TN_POOL_CREATE && r == 0) || (what == TN_POOL_DESTROY && r != 0 && f->freed_known)) tn_reading_pool_made(pool);
    if (r == 0 && (what == TN_POOL_CREATE || what == TN_POOL_DESTROY)) f->thread->told++;
    if (tn_serving && r == 0 && what == TN_POOL_DEVICE_SET) tn_serve_pool_set(value, pool);
    if (tn_serving && r == 0 && what == TN_POOL_TRIM) tn_serve_pool_trimmed(pool, value);
    if (tn_serving && r == 0 && what == TN_POOL_DESTROY) tn_serve_pool_gone(pool);
    tn_event *e = r == 0 ? plain_event(f) : NULL;
    if (!e) return;
    e->kind = (uint8_t)what;
    e->addr = pool;
    e->bytes = value;
    e->aux = attribute;
    tn_journal_commit(e, TN_EV_POOL);
}

void rec_pool_attribute(tn_hook_frame *f, int r, int what, uint64_t pool, int attribute, const void *value)
{
    uint64_t v = 0;
    if (r != 0 || !value) return;
    if (attribute >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) memcpy(&v, value, sizeof v); /* these and later ones are 64 bits wide */
    else v = *(const unsigned *)value;
    rec_pool(f, r, what, pool, (uint64_t)attribute, v);
}

uint64_t rec_pool_location(int r, const CUmemPoolProps *props)
{
    return r == 0 && props ? (uint64_t)(unsigned)props->location.id : 0;
}

static void simple(tn_hook_frame *f, int r, tn_event_type type, int what, uint64_t addr, uint64_t bytes, uint64_t aux)
{
    tn_event *e = r == 0 ? plain_event(f) : NULL;
    if (!e) return;
    e->kind = (uint8_t)what;
    e->addr = addr;
    e->bytes = bytes;
    e->aux = aux;
    tn_journal_commit(e, type);
}

void rec_export(tn_hook_frame *f, int r, int what, uint64_t addr, uint64_t value)
{
    simple(f, r, TN_EV_EXPORT, what, addr, 0, value);
}

void rec_peer(tn_hook_frame *f, int r, int what, uint64_t peer, uint64_t device)
{
    if (tn_serving && r == 0 && what != TN_PEER_DISABLE) tn_serve_peers();
    simple(f, r, TN_EV_PEER, what, peer, device, 0);
}

void rec_limit(tn_hook_frame *f, int r, uint64_t limit, uint64_t value) { simple(f, r, TN_EV_LIMIT, 0, 0, value, limit); }
