/* The figures of the pool that served stream-ordered blocks would have come from, a device's default one: as many bytes used and reserved as if they had. What
 * the driver counts there are our arenas, and the program's blocks that no tier serves; those of its other pools are counted there alone, and theirs are the
 * driver's answers. */
#include <stdatomic.h>

#include "ledger/tn_hot_data.h"
#include "shim/charge_reading.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_info.h"

/* Bytes of served blocks, and of those that plain frees have ended: together what the pool calls used. A line for each device: its highest figures have
 * to be those of all threads. */
static struct {
    _Alignas(64) _Atomic uint64_t backed, ended_plainly, used_high, reserved_high; /* the high ones: of all the pool's blocks */
    _Atomic uint64_t native;    /* bytes of the others, as the driver last said */
    _Atomic uint64_t kept;      /* what the pool would have reserved for served blocks: the most backed since the last wait, at which it gives back */
    _Atomic uint64_t kept_all;  /* and for all of them */
    _Atomic uint32_t has_served; /* up to here a request reads the line, and no other */
    _Alignas(64) _Atomic uint64_t threshold; /* what it would give back down to */
    _Atomic uint64_t arenas_ended; /* bytes of arenas that the driver's used figure has, though they are gone */
} pooled[TN_SERVE_DEVICES];
TN_HOT_DATA _Atomic int tn_serve_pools_kept;
static TN_HOT_DATA _Atomic uint64_t own_pool[TN_SERVE_DEVICES]; /* the device's current pool, 0: the default one */

static uint64_t up(uint64_t n, uint64_t multiple) { return (n + multiple - 1) / multiple * multiple; }
static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

static void raise(_Atomic uint64_t *high, uint64_t to)
{
    uint64_t was = atomic_load_explicit(high, memory_order_relaxed);
    while (to > was && !atomic_compare_exchange_weak(high, &was, to)) {
    }
}

static void raise_all(uint8_t device, uint64_t backed)
{
    uint64_t all = backed + atomic_load_explicit(&pooled[device].native, memory_order_relaxed);
    raise(&pooled[device].used_high, all + atomic_load_explicit(&pooled[device].ended_plainly, memory_order_relaxed));
    raise(&pooled[device].reserved_high, all);
    raise(&pooled[device].kept_all, all);
}

void tn_serve_pooled(uint8_t device, uint64_t bytes, int what)
{
    if (device >= TN_SERVE_DEVICES) return;
    if (what == TN_POOLED_TAKEN) {
        uint64_t backed = bytes + atomic_fetch_add_explicit(&pooled[device].backed, bytes, memory_order_relaxed);
        raise_all(device, backed);
        raise(&pooled[device].kept, backed);
        if (!atomic_load_explicit(&pooled[device].has_served, memory_order_relaxed)) atomic_store(&pooled[device].has_served, 1);
        return;
    }
    if (what == TN_POOLED_FREED_PLAINLY) atomic_fetch_add_explicit(&pooled[device].ended_plainly, bytes, memory_order_relaxed);
    atomic_fetch_sub(&pooled[device].backed, bytes);
    /* After it: a wait that takes the flag down sees what was freed. */
    if (!atomic_load(&tn_serve_pools_kept)) atomic_store(&tn_serve_pools_kept, 1);
}

static void lower(_Atomic uint64_t *kept, uint64_t down_to)
{
    uint64_t was = atomic_load(kept);
    while (was > down_to && !atomic_compare_exchange_weak(kept, &was, down_to)) {
    }
}

static void give_back(uint8_t device, uint64_t down_to)
{
    lower(&pooled[device].kept, greater(down_to, atomic_load(&pooled[device].backed)));
    lower(&pooled[device].kept_all, greater(down_to, atomic_load(&pooled[device].backed) + atomic_load(&pooled[device].native)));
    raise(&pooled[device].kept, atomic_load(&pooled[device].backed)); /* what was taken meanwhile found enough there, maybe */
    raise(&pooled[device].kept_all, atomic_load(&pooled[device].backed) + atomic_load(&pooled[device].native));
}

void tn_serve_pools_give_back(void)
{
    atomic_store(&tn_serve_pools_kept, 0);
    for (unsigned d = 0; d < TN_SERVE_DEVICES; d++)
        if (atomic_load_explicit(&pooled[d].kept_all, memory_order_relaxed)) give_back((uint8_t)d, atomic_load(&pooled[d].threshold));
}

void tn_serve_pool_arena_ended(uint8_t device, uint64_t bytes)
{
    if (device < TN_SERVE_DEVICES) atomic_fetch_add(&pooled[device].arenas_ended, bytes);
}

uint64_t tn_serve_pool_reserved(uint8_t device) { return up(atomic_load(&pooled[device].kept), TN_SERVE_POOL_STEP); }

/* ---- which pool */

static CUmemoryPool default_pool(int device)
{
    CUmemoryPool of = NULL;
    return tn_real.cuDeviceGetDefaultMemPool && tn_real.cuDeviceGetDefaultMemPool(&of, device) == 0 ? of : NULL;
}

static int is_default_pool(CUmemoryPool pool, uint8_t *device)
{
    for (int d = 0; d < TN_SERVE_DEVICES; d++)
        if (tn_serve_section_of((uint8_t)d) && pool && default_pool(d) == pool) {
            *device = (uint8_t)d;
            return 1;
        }
    return 0;
}

/* Whether blocks of the pool may be served: else the driver's figures are right as they are. */
static int may_serve(uint8_t device)
{
    static _Atomic uint8_t known[TN_SERVE_DEVICES]; /* 0: not looked up, 1: no, 2: yes */
    uint8_t is = atomic_load_explicit(&known[device], memory_order_relaxed);
    const tn_serve_section *s = is ? NULL : tn_serve_section_of(device);
    for (size_t i = 0; s && i < s->plan->tier_count; i++)
        if (s->plan->tiers[i].family == TN_FAMILY_ASYNC) is = 2;
    if (!is) is = 1;
    atomic_store_explicit(&known[device], is, memory_order_relaxed);
    return is == 2;
}

/* Asked for, since a block does not say in which pool it is. Not while a capture is active, which the question might end: then the next one tells. */
void tn_serve_pool_native(tn_hook_frame *f, uint8_t device)
{
    uint64_t used = 0, reserved, plain, arenas;
    if (f->nested || device >= TN_SERVE_DEVICES || !may_serve(device) || rec_captures()) return;
    CUmemoryPool pool = default_pool(device);
    if (!pool || !tn_reading_default_pool((uint64_t)(uintptr_t)pool, &reserved, &used)) return;
    tn_serve_held(device, &plain, &arenas);
    arenas += atomic_load(&pooled[device].arenas_ended);
    atomic_store(&pooled[device].native, used > arenas ? used - arenas : 0);
    raise_all(device, atomic_load(&pooled[device].backed));
    if (!atomic_load(&tn_serve_pools_kept)) atomic_store(&tn_serve_pools_kept, 1);
}

void tn_serve_pool_set(uint64_t device, uint64_t pool)
{
    uint8_t of;
    if (device < TN_SERVE_DEVICES) atomic_store(&own_pool[device], is_default_pool((CUmemoryPool)(uintptr_t)pool, &of) ? 0 : pool);
}

void tn_serve_pool_trimmed(uint64_t pool, uint64_t keep)
{
    uint8_t device;
    if (is_default_pool((CUmemoryPool)(uintptr_t)pool, &device)) give_back(device, keep);
}

void tn_serve_pool_gone(uint64_t pool)
{
    for (int d = 0; d < TN_SERVE_DEVICES; d++) {
        uint64_t gone = pool;
        (void)atomic_compare_exchange_strong(&own_pool[d], &gone, 0);
    }
}

int tn_serve_pool_is_own(uint8_t device) { return device < TN_SERVE_DEVICES && atomic_load_explicit(&own_pool[device], memory_order_relaxed) != 0; }

/* ---- what the program asks */

/* Served blocks and the others would be in the same steps, as far as the figures go. What plain frees have ended stays in the driver's used bytes, and not in what it
 * has reserved for the others, `own`. */
static uint64_t reserved_of_all(uint8_t device, uint64_t own)
{
    uint64_t all = up(greater(own, atomic_load(&pooled[device].kept_all)), TN_SERVE_POOL_STEP);
    uint64_t apart = up(own, TN_SERVE_POOL_STEP) + tn_serve_pool_reserved(device);
    return all < apart ? all : apart;
}

/* The figure of all blocks, where `own` is the driver's of the others alone: which is never more, and whose highest may have come before there were arenas, or
 * while nobody looked. */
static uint64_t of_all(uint8_t device, CUmemPool_attribute attribute, uint64_t own)
{
    if (!atomic_load(&pooled[device].has_served)) return own;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return own + atomic_load(&pooled[device].backed) + atomic_load(&pooled[device].ended_plainly);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return greater(own, atomic_load(&pooled[device].used_high));
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return reserved_of_all(device, own);
    default: return up(greater(own, atomic_load(&pooled[device].reserved_high)), TN_SERVE_POOL_STEP);
    }
}

/* Of what the driver has reserved, `reserved`, at least this is the others': their blocks may be in the same step as the end of an arena. */
static uint64_t beside_arenas(uint8_t device, CUresult (*call)(CUmemoryPool, CUmemPool_attribute, void *), CUmemoryPool pool, uint64_t reserved, uint64_t arenas)
{
    uint64_t used = 0;
    if (call(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != 0) return 0;
    used = less(used, arenas + atomic_load(&pooled[device].arenas_ended));
    return used < less(reserved, arenas) ? used : less(reserved, arenas); /* what plain frees have ended is used for ever, and not reserved */
}

CUresult tn_serve_cuMemPoolGetAttribute(tn_hook_frame *f, CUresult (*call)(CUmemoryPool, CUmemPool_attribute, void *), CUmemoryPool pool,
                                        CUmemPool_attribute attribute, void *value)
{
    uint8_t device;
    CUresult r = call(pool, attribute, value);
    if (r != 0 || f->nested || !value || !is_default_pool(pool, &device)) return r;
    f->thread->busy = 1;
    uint64_t *out = value, plain, arenas;
    tn_serve_held(device, &plain, &arenas);
    int is_used = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
    uint64_t ours = is_used ? arenas + atomic_load(&pooled[device].arenas_ended) : up(arenas, TN_SERVE_POOL_STEP), own = less(*out, ours);
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) own = greater(own, beside_arenas(device, call, pool, *out, arenas));
    if (is_used || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) *out = of_all(device, attribute, own);
    *f->thread->error = f->errno_in;
    f->thread->busy = 0;
    return r;
}

CUresult tn_serve_cuMemPoolSetAttribute(tn_hook_frame *f, CUresult (*call)(CUmemoryPool, CUmemPool_attribute, void *), CUmemoryPool pool,
                                        CUmemPool_attribute attribute, void *value)
{
    uint8_t device;
    CUresult r = call(pool, attribute, value);
    (void)f;
    if (r != 0 || !is_default_pool(pool, &device)) return r;
    uint64_t all = atomic_load(&pooled[device].backed) + atomic_load(&pooled[device].native);
    if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) atomic_store(&pooled[device].used_high, all + atomic_load(&pooled[device].ended_plainly));
    if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) atomic_store(&pooled[device].reserved_high, atomic_load(&pooled[device].kept_all));
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) atomic_store(&pooled[device].threshold, *(const uint64_t *)value);
    return r;
}
