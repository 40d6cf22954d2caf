/* One table of all handles of all pools, by number, that is only ever added to: a look takes no lock. Each has one word that says who has it, and
 * how often the program holds it and has it mapped. */
#include "shim/serve_handles_inside.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/tn_lock.h"
#include "shim/pages.h"
#include "shim/phase.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve_marks.h"
#include "tiers/cuda_error.h"

#define RESTS 500000   /* of 50 us at least, for another thread that makes the pools */
#define RANK_TABLE 150 /* what is done under it calls nothing but the system for memory */

enum { EMPTY = 0, MAKING, READY, FAILED };
static struct { _Atomic int state; tn_mem_error error; tn_serve_pool *pools; uint32_t count; } made[TN_SERVE_DEVICES];

static tn_lock table_lock = TN_LOCK_INIT(RANK_TABLE);
static tn_pooled *_Atomic table;
static uint64_t table_mask;
static _Atomic int retaining, unsettled; /* calls under way that may take a handle out; handles that wait for these to end, or for a lock */

tn_pooled *tn_pooled_find(uint64_t handle)
{
    tn_pooled *t = atomic_load_explicit(&table, memory_order_acquire);
    uint64_t at = handle * 0x9e3779b97f4a7c15u >> 20;
    for (uint64_t there; t && handle && (there = atomic_load_explicit(&t[at & table_mask].handle, memory_order_acquire)) != 0; at++)
        if (there == handle) return &t[at & table_mask];
    return NULL;
}

/* With room for every handle of the plan, twice. */
static int make_table(void)
{
    uint64_t handles = 0, room = 64;
    if (atomic_load(&table)) return 1;
    for (unsigned d = 0; d < TN_SERVE_DEVICES; d++) {
        const tn_serve_section *s = tn_serve_section_of((uint8_t)d);
        for (size_t i = 0; s && i < s->plan->tier_count; i++) handles += s->plan->tiers[i].family == TN_FAMILY_HANDLE ? s->plan->tiers[i].slots : 0;
    }
    while (room < handles * 2) room *= 2;
    tn_lock_take(&table_lock);
    if (!atomic_load(&table)) {
        table_mask = room - 1;
        atomic_store(&table, (tn_pooled *)tn_pages(room * sizeof(tn_pooled)));
    }
    tn_lock_release(&table_lock);
    return atomic_load(&table) != NULL;
}

/* Of a number that was there before: the driver has given it again. Else one that is gone gives its place: who looks for that number finds nothing, which
 * says the same. The plan has half as many handles as there are places, so there is always one. */
static void put(uint64_t handle, tn_serve_pool *of)
{
    tn_lock_take(&table_lock);
    tn_pooled *t = atomic_load(&table), *e = tn_pooled_find(handle);
    for (uint64_t at = handle * 0x9e3779b97f4a7c15u >> 20; !e; at++) {
        tn_pooled *there = &t[at & table_mask];
        uint64_t gone = atomic_load(&there->state);
        int is_gone = !atomic_load(&there->handle) ||
                      (TN_HANDLE_PHASE(gone) == TN_HANDLE_GONE && atomic_compare_exchange_strong(&there->state, &gone, TN_HANDLE_CLAIMED));
        if (is_gone) e = there;
    }
    atomic_store(&e->of, of);
    atomic_store(&e->handle, handle);
    atomic_store(&e->state, TN_HANDLE_IN_POOL);
    tn_lock_release(&table_lock);
}

/* ---- pools ---- */

uint32_t tn_handle_detail(const CUmemAllocationProp *p, uint64_t flags)
{
    uint32_t detail;
    int other = !p || flags || p->type != CU_MEM_ALLOCATION_TYPE_PINNED || p->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    if (!p) return TN_VMM_OTHER;
    detail = ((uint32_t)p->requestedHandleTypes & TN_VMM_TYPES) | (uint32_t)p->allocFlags.compressionType << TN_VMM_COMPRESSION_SHIFT |
             (uint32_t)(p->allocFlags.usage & 0xff) << TN_VMM_USAGE_SHIFT;
    if (p->allocFlags.gpuDirectRDMACapable) detail |= TN_VMM_RDMA;
    other |= ((uint32_t)p->requestedHandleTypes & ~(uint32_t)TN_VMM_TYPES) || p->win32HandleMetaData || p->allocFlags.usage > 0xff ||
             p->allocFlags.gpuDirectRDMACapable > 1 || p->allocFlags.usage & CU_MEM_CREATE_USAGE_TILE_POOL;
    for (unsigned i = 0; i < sizeof p->allocFlags.reserved; i++) other |= p->allocFlags.reserved[i];
    return detail | (other ? TN_VMM_OTHER : 0);
}

static CUmemAllocationProp properties(const tn_serve_pool *p)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = (CUmemAllocationHandleType)(p->detail & TN_VMM_TYPES)};
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = p->device;
    prop.allocFlags.compressionType = (unsigned char)(p->detail >> TN_VMM_COMPRESSION_SHIFT);
    prop.allocFlags.gpuDirectRDMACapable = p->detail & TN_VMM_RDMA ? 1 : 0;
    prop.allocFlags.usage = (unsigned short)(p->detail >> TN_VMM_USAGE_SHIFT & 0xff);
    return prop;
}

static void tell(tn_hook_frame *f, int gone, const tn_serve_pool *p, uint64_t handle)
{
    rec_arena(f, gone, TN_KIND_VMM_HANDLE, handle, p->bytes, (uint64_t)TN_ROUTE_T3 << 32 | p->detail, p->ctx, p->device);
}

static tn_mem_error create(void *self, size_t bytes, uint64_t *handle)
{
    tn_serve_pool *p = self;
    CUmemAllocationProp prop = properties(p);
    CUmemGenericAllocationHandle made_one = 0;
    CUresult r = tn_real.cuMemCreate ? tn_real.cuMemCreate(&made_one, bytes, &prop, 0) : CUDA_ERROR_NOT_SUPPORTED;
    if (r != 0) return tn_cuda_error((int)r);
    *handle = made_one;
    put(made_one, p);
    tell(p->frame, 0, p, made_one);
    return TN_MEM_OK;
}

static tn_mem_error destroy(void *self, uint64_t handle)
{
    tn_serve_pool *p = self;
    tn_pooled *e = tn_pooled_find(handle);
    atomic_store(&e->state, TN_HANDLE_GONE); /* before: the driver may give the number to another thread at once */
    CUresult r = tn_real.cuMemRelease(handle);
    if (r == 0) tell(p->frame, 1, p, handle);
    else atomic_store(&e->state, TN_HANDLE_IN_POOL);
    return tn_cuda_error((int)r);
}

static const tn_handle_table calls = {.create = create, .destroy = destroy};

static tn_mem_error make_pools(tn_hook_frame *f, const tn_plan_section *s, uint32_t count)
{
    tn_serve_pool *pools = tn_pages(count * sizeof *pools);
    tn_work work = tn_marks_work_table(tn_serving_marks, 0); /* a handle may be mapped for any context */
    tn_mem_error error = pools && make_table() ? TN_MEM_OK : TN_MEM_E_HOST_MEMORY;
    uint32_t n = 0;
    tn_serve_no_reading(f);
    for (size_t i = 0; i < s->tier_count && error == TN_MEM_OK; i++) {
        const tn_plan_tier *t = &s->tiers[i];
        if (t->family != TN_FAMILY_HANDLE) continue;
        pools[n] = (tn_serve_pool){.frame = f, .bytes = t->block, .detail = t->detail, .ctx = tn_context_current(f).number, .device = (uint8_t)s->device};
        tn_handle_pool_options o = {.table = &calls, .self = &pools[n], .bytes = t->block, .handles = t->slots, .work = &work, .metadata = &tn_serve_metadata};
        error = tn_handle_pool_create(&o, &pools[n].handles);
        n += error == TN_MEM_OK;
    }
    for (uint32_t i = 0; i < n && error != TN_MEM_OK; i++) (void)(tn_handle_pool_drain(pools[i].handles) == TN_MEM_OK);
    made[s->device].pools = pools;
    made[s->device].count = error == TN_MEM_OK ? n : 0;
    return error;
}

tn_mem_error tn_serve_handles_make(tn_hook_frame *f, const tn_serve_section *s)
{
    uint32_t count = 0, device = s->plan->device;
    int state = atomic_load_explicit(&made[device].state, memory_order_acquire);
    if (__builtin_expect(state == READY, 1)) return TN_MEM_OK;
    for (size_t i = 0; i < s->plan->tier_count; i++) count += s->plan->tiers[i].family == TN_FAMILY_HANDLE;
    if (!count) return TN_MEM_OK;
    if (state == EMPTY && atomic_compare_exchange_strong(&made[device].state, &state, MAKING)) {
        made[device].error = make_pools(f, s->plan, count);
        state = made[device].error == TN_MEM_OK ? READY : FAILED;
        atomic_store_explicit(&made[device].state, state, memory_order_release);
    }
    for (int i = 0; state == MAKING && i < RESTS; i++) {
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL); /* libc's is a cancellation point */
        state = atomic_load_explicit(&made[device].state, memory_order_acquire);
    }
    return state == READY ? TN_MEM_OK : state == FAILED ? made[device].error : TN_MEM_E_DRIVER;
}

int tn_serve_handles_ready(uint8_t device) { return device < TN_SERVE_DEVICES && atomic_load_explicit(&made[device].state, memory_order_acquire) == READY; }

void tn_serve_handles_held(uint8_t device, uint64_t *held, uint64_t *taken)
{
    *held = *taken = 0;
    if (!tn_serve_handles_ready(device)) return;
    for (uint32_t i = 0; i < made[device].count; i++) {
        tn_handle_pool_stats stats;
        tn_handle_pool_read_stats(made[device].pools[i].handles, &stats);
        *held += stats.handles * tn_round_up(stats.bytes, tn_native_alignment(TN_FAMILY_HANDLE, stats.bytes));
        *taken += stats.taken * tn_round_up(stats.bytes, tn_native_alignment(TN_FAMILY_HANDLE, stats.bytes));
    }
}

/* ---- handles out and in ---- */

void tn_pooled_put_back(tn_pooled *e)
{
    tn_work_set uncovered = {0};
    uint64_t state = atomic_load(&e->state);
    if (atomic_load(&retaining)) { /* a call may be getting it for the program: only afterwards is it known */
        atomic_store(&unsettled, 1);
        return;
    }
    if (TN_HANDLE_PHASE(state) != TN_HANDLE_RELEASED || TN_HANDLE_MAPS(state)) return;
    if (!atomic_compare_exchange_strong(&e->state, &state, TN_HANDLE_IN_POOL)) return;
    if (state & TN_HANDLE_MAPPED) tn_marks_uncovered(tn_serving_marks, 0, &uncovered);
    (void)(tn_handle_pool_return(e->of->handles, atomic_load(&e->handle), &uncovered) == TN_MEM_OK);
}

static void settle(void)
{
    tn_pooled *t = atomic_load(&table);
    if (!atomic_load(&unsettled) || atomic_load(&retaining)) return;
    atomic_store(&unsettled, 0);
    for (uint64_t i = 0; i <= table_mask; i++) {
        uint64_t state = atomic_load(&t[i].state);
        if (TN_HANDLE_PHASE(state) == TN_HANDLE_RELEASED && !TN_HANDLE_MAPS(state)) tn_pooled_put_back(&t[i]);
    }
}

/* ---- handles that left for good */

/* Whether something takes a place outside the pools that one of its handles had; told once where the pool is short of it while the process serves. */
static void say_missing(const tn_serve_pool *p, uint32_t missing)
{
    static _Atomic int said;
    char text[240];
    if (atomic_exchange(&said, 1)) return;
    snprintf(text, sizeof text, "a pool of handles of %llu bytes is short of %u that left it (exported, or retained by an address) and are gone: they are replaced "
             "when the process does not serve, and until then a request more is the driver's", (unsigned long long)p->bytes, missing);
    tn_coverage(TN_COV_NOTE, text);
}

/* Makes as many as have left their pool and are the program's no longer, so that there are never more of both than were planned. Not while the process
 * serves, when nothing is to be allocated. By one thread at a time; the others go on with what there is. */
static void replace(tn_hook_frame *f, tn_serve_pool *p)
{
    static _Atomic int under_way;
    uint32_t missing = atomic_load(&p->missing);
    if (!missing || tn_phase_now() == TN_PHASE_SERVING || atomic_exchange(&under_way, 1)) return;
    missing = atomic_exchange(&p->missing, 0);
    tn_serve_no_reading(f);
    p->frame = f;
    tn_handle_pool_stats before, after;
    tn_handle_pool_read_stats(p->handles, &before);
    tn_mem_error error = tn_handle_pool_refill_some(p->handles, missing);
    tn_handle_pool_read_stats(p->handles, &after);
    uint64_t made_now = after.created - before.created;
    if (error != TN_MEM_OK && made_now < missing) {
        atomic_fetch_add(&p->missing, missing - (uint32_t)made_now);
        tn_coverage(TN_COV_NOTE, "the driver made no handle in place of one that had left its pool");
    }
    atomic_store(&under_way, 0);
}

void tn_serve_handles_take(tn_hook_frame *f, const tn_serve_section *s, uint32_t detail, uint64_t bytes, tn_serve_handle *out)
{
    tn_serve_pool *p = NULL;
    uint64_t handle = 0;
    *out = (tn_serve_handle){.cause = TN_ROUTE_TOO_LARGE}; /* or too small: there is none of its size */
    for (uint32_t i = 0; i < made[s->plan->device].count && !p; i++) {
        tn_serve_pool *x = &made[s->plan->device].pools[i];
        if (x->detail == detail && x->bytes == bytes) p = x;
    }
    if (!p) return;
    settle();
    if (__builtin_expect(atomic_load(&p->missing) != 0, 0)) replace(f, p);
    tn_mem_error error = tn_handle_pool_take(p->handles, bytes, TN_WORK_NO_QUEUE, &handle);
    /* One wait that cleans every handle, with nothing held; never while a capture is active. */
    if (error == TN_MEM_E_MUST_WAIT && !rec_captures()) {
        tn_work work = tn_marks_work_table(tn_serving_marks, 0);
        if (work.table->wait && work.table->wait(work.self, work.table->all(work.self)) == TN_MEM_OK) {
            out->waited = 1;
            error = tn_handle_pool_take(p->handles, bytes, TN_WORK_NO_QUEUE, &handle);
        }
    }
    out->cause = error == TN_MEM_E_MUST_WAIT ? TN_ROUTE_NOT_CLEAN : TN_ROUTE_TOO_MANY;
    uint32_t missing = atomic_load(&p->missing);
    if (error == TN_MEM_E_EXHAUSTED && missing) say_missing(p, missing);
    if (error != TN_MEM_OK) return;
    atomic_store(&tn_pooled_find(handle)->state, TN_HANDLE_LIVE);
    *out = (tn_serve_handle){.handle = handle, .waited = out->waited};
}

/* The last of what the program held of a handle that had left its pool is gone. */
static void has_gone(tn_hook_frame *f, tn_pooled *e)
{
    uint64_t state = atomic_load(&e->state), handle = atomic_load(&e->handle);
    tn_serve_pool *of = atomic_load(&e->of);
    if (TN_HANDLE_PHASE(state) != TN_HANDLE_LEFT || TN_HANDLE_REFS(state) || TN_HANDLE_MAPS(state)) return;
    if (atomic_compare_exchange_strong(&e->state, &state, TN_HANDLE_GONE)) tn_pooled_tell_gone(f, of, handle);
}

int tn_pooled_pin(tn_pooled *e)
{
    uint64_t state = e ? atomic_load(&e->state) : TN_HANDLE_GONE;
    do {
        if (TN_HANDLE_PHASE(state) == TN_HANDLE_GONE || TN_HANDLE_PHASE(state) == TN_HANDLE_CLAIMED) return 0;
        if (TN_HANDLE_PHASE(state) == TN_HANDLE_IN_POOL || TN_HANDLE_PHASE(state) == TN_HANDLE_RELEASED) return -1;
    } while (!atomic_compare_exchange_weak(&e->state, &state, state + TN_HANDLE_MAP));
    return 1;
}

void tn_pooled_unpin(tn_hook_frame *f, tn_pooled *e)
{
    uint64_t state = atomic_fetch_sub(&e->state, TN_HANDLE_MAP) - TN_HANDLE_MAP;
    if (TN_HANDLE_MAPS(state)) return;
    if (TN_HANDLE_PHASE(state) == TN_HANDLE_RELEASED && f->nested) atomic_store(&unsettled, 1);
    else if (TN_HANDLE_PHASE(state) == TN_HANDLE_RELEASED) tn_pooled_put_back(e);
    else if (TN_HANDLE_PHASE(state) == TN_HANDLE_LEFT) has_gone(f, e);
}

void tn_pooled_leave(const tn_hook_frame *f, tn_pooled *e, uint32_t more)
{
    uint64_t state = e ? atomic_load(&e->state) : TN_HANDLE_GONE, left;
    unsigned phase;
    do {
        phase = TN_HANDLE_PHASE(state);
        if (phase != TN_HANDLE_LIVE && phase != TN_HANDLE_RELEASED && phase != TN_HANDLE_LEFT) return;
        uint32_t refs = phase == TN_HANDLE_LIVE ? 1 : phase == TN_HANDLE_LEFT ? TN_HANDLE_REFS(state) : 0;
        left = TN_HANDLE_STATE(TN_HANDLE_LEFT, refs + more, state);
    } while (!atomic_compare_exchange_weak(&e->state, &state, left));
    if (phase == TN_HANDLE_LEFT) return;
    /* The pool's lock may be held below a signal handler; to the pool it then stays taken. */
    if (!f->nested) (void)(tn_handle_pool_leave(e->of->handles, atomic_load(&e->handle)) == TN_MEM_OK);
    if (phase == TN_HANDLE_RELEASED && tn_real.cuMemRelease) (void)tn_real.cuMemRelease(atomic_load(&e->handle));
}

void tn_pooled_unsettled(void) { atomic_store(&unsettled, 1); }

void tn_pooled_tell_gone(tn_hook_frame *f, tn_serve_pool *of, uint64_t handle)
{
    if (!f->nested) tell(f, 1, of, handle);
    atomic_fetch_add(&of->missing, 1);
    if (!f->nested) replace(f, of);
}

void tn_pooled_retain_begins(void) { atomic_fetch_add(&retaining, 1); }

void tn_pooled_retain_ends(tn_hook_frame *f)
{
    atomic_fetch_sub(&retaining, 1);
    if (!f->nested) settle();
}
