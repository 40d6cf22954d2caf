/* The program's calls with handles of physical memory, answered as if the pools were not there. */
#include "shim/serve_calls.h"

#include <stdatomic.h>

#include "ledger/tn_lock.h"
#include "shim/identity.h"
#include "shim/pages.h"
#include "shim/phase.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve_handles_inside.h"

#define RANK_MAPPINGS 160 /* what is done under it calls nothing but the system for memory */

/* ---- mappings ---- */

typedef struct mapping { struct mapping *next; uint64_t address, bytes; tn_pooled *of; } mapping;
#define BUCKETS 4096u
#define BATCH 1024u /* mappings that are made room for at once */
static tn_lock mappings_lock = TN_LOCK_INIT(RANK_MAPPINGS);
static mapping *buckets[BUCKETS], *spare;
static uint64_t mapping_count;

static mapping **bucket_of(uint64_t address) { return &buckets[(address >> 21) % BUCKETS]; }

static void put_mapping(mapping *m)
{
    m->next = *bucket_of(m->address);
    *bucket_of(m->address) = m;
    mapping_count++;
}

/* 0: no memory is left, and the mapping is not known. */
static int add_mapping(uint64_t address, uint64_t bytes, tn_pooled *of)
{
    tn_lock_take(&mappings_lock);
    if (!spare) {
        mapping *more = tn_pages(BATCH * sizeof *more);
        for (unsigned i = 0; more && i < BATCH; i++) {
            more[i].next = spare;
            spare = &more[i];
        }
    }
    mapping *m = spare;
    if (m) {
        spare = m->next;
        *m = (mapping){.address = address, .bytes = bytes, .of = of};
        put_mapping(m);
    }
    tn_lock_release(&mappings_lock);
    return m != NULL;
}

/* Takes those out that begin in the range; they are the caller's to put back or to spare. */
static mapping *take_mappings(uint64_t address, uint64_t bytes)
{
    mapping *taken = NULL;
    uint64_t at = address, left = bytes;
    tn_lock_take(&mappings_lock);
    while (left && mapping_count) { /* mostly one, or one behind the other */
        mapping **link = bucket_of(at), *m;
        while ((m = *link) && m->address != at) link = &m->next;
        if (!m) break;
        *link = m->next;
        m->next = taken;
        taken = m;
        mapping_count--;
        at += m->bytes;
        left = m->bytes < left ? left - m->bytes : 0;
    }
    for (unsigned i = 0; i < BUCKETS && left && mapping_count; i++)
        for (mapping **link = &buckets[i], *m; (m = *link);) {
            if (m->address - at >= left) {
                link = &m->next;
                continue;
            }
            *link = m->next;
            m->next = taken;
            taken = m;
            mapping_count--;
        }
    tn_lock_release(&mappings_lock);
    return taken;
}

static void spare_mapping(mapping *m)
{
    tn_lock_take(&mappings_lock);
    m->next = spare;
    spare = m;
    tn_lock_release(&mappings_lock);
}

void tn_serve_handles_exposed(const tn_hook_frame *f, uint64_t address, uint64_t bytes)
{
    enum { MOST = 64 };
    tn_pooled *found[MOST];
    for (unsigned count = MOST; count == MOST;) { /* a handle that has left is not found again */
        count = 0;
        tn_lock_take(&mappings_lock);
        for (unsigned i = 0; i < BUCKETS && mapping_count; i++)
            for (mapping *m = buckets[i]; m && count < MOST; m = m->next) {
                int inside = m->address < address + bytes && address < m->address + m->bytes;
                if (inside && TN_HANDLE_PHASE(atomic_load(&m->of->state)) != TN_HANDLE_LEFT) found[count++] = m->of;
            }
        tn_lock_release(&mappings_lock);
        for (unsigned i = 0; i < count; i++) tn_pooled_leave(f, found[i], 0);
    }
}

/* ---- the calls ---- */

static void begin(tn_hook_frame *f)
{
    if (!f->nested) f->thread->busy = 1;
}

static void end(tn_hook_frame *f)
{
    if (f->nested) return;
    *f->thread->error = f->errno_in; /* what is ours leaves no trace in errno */
    f->thread->busy = 0;
}

/* After the driver has gone, at the process's end, every call has its answer and no other. */
static int driver_is_there(void)
{
    CUcontext c;
    return tn_real.cuCtxGetCurrent && tn_real.cuCtxGetCurrent(&c) == 0;
}

/* A handle that the program has given back, or never had, is no handle: the driver's own, which is in a pool, must not be reached by it. */
static int is_no_handle(tn_hook_frame *f, uint64_t handle)
{
    tn_pooled *e = tn_pooled_find(handle);
    unsigned phase = e ? TN_HANDLE_PHASE(atomic_load(&e->state)) : TN_HANDLE_GONE;
    if (phase != TN_HANDLE_IN_POOL && phase != TN_HANDLE_RELEASED) return 0;
    begin(f);
    int there = driver_is_there();
    end(f);
    return there;
}

static int not_here(tn_hook_frame *f, uint32_t route)
{
    f->route = (uint16_t)route;
    return 0;
}

/* -1: refused. */
static int spilled(tn_hook_frame *f, uint32_t cause)
{
    f->route = (uint16_t)(cause << TN_ROUTE_CAUSE_SHIFT);
    return tn_serve_is_strict() && cause != TN_ROUTE_CAPTURE ? -1 : 0;
}

/* 1 with a handle, 0: the driver is to say, -1: refused. */
static int ask_plan(tn_hook_frame *f, const CUmemAllocationProp *prop, uint64_t bytes, uint32_t detail, uint64_t *handle)
{
    tn_context c = tn_context_current(f);
    uint8_t device = (uint8_t)prop->location.id;
    const tn_serve_section *s = c.number && prop->location.id >= 0 && prop->location.id < TN_SERVE_DEVICES ? tn_serve_section_of(device) : NULL;
    if (!s || tn_serve_is_stopped()) return 0;
    uint32_t index = tn_serve_row(s, tn_frame_site(f));
    if (index == TN_SERVE_NO_ROW) return not_here(f, TN_ROUTE_UNPLANNED);
    const tn_plan_row *row = &s->plan->rows[index];
    if (row->discipline == TN_D_NATIVE) return not_here(f, TN_ROUTE_PLANNED_NATIVE);
    if (row->family != TN_FAMILY_HANDLE || row->detail != detail) return not_here(f, TN_ROUTE_UNPLANNED);
    int misfit = 0, there = tn_serve_handles_ready(device);
    if (!there && c.device == device) /* with the section's arenas, at once */
        there = tn_serve_place(f, c, s, &misfit) != NULL;
    else if (!there && !tn_serve_finds_sanitizer())
        there = !(misfit = tn_serve_handles_make(f, s) != TN_MEM_OK);
    if (!there && tn_serve_is_stopped()) return 0;
    if (!there) return misfit && !tn_serve_misfit_is_native() ? -1 : spilled(f, rec_captures() ? TN_ROUTE_CAPTURE : TN_ROUTE_NO_ROOM);
    tn_serve_handle got;
    tn_serve_handles_take(f, s, detail, bytes, &got);
    if (!got.handle) return spilled(f, got.cause);
    f->route = (uint16_t)(TN_ROUTE_T3 | (got.waited ? TN_ROUTE_WAITED : 0));
    *handle = got.handle;
    return 1;
}

CUresult tn_serve_cuMemCreate(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long),
                              CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
    uint32_t detail = tn_handle_detail(prop, flags);
    uint64_t handle = 0;
    if (f->nested || !out || !bytes || detail & TN_VMM_OTHER) return call(out, bytes, prop, flags);
    begin(f);
    int became = tn_serve_lost() == 0 ? ask_plan(f, prop, bytes, detail, &handle) : 0; /* else the driver's refusal is the answer */
    if (became == 0 && tn_guard_refuses(f, bytes)) became = -1;
    end(f);
    if (became == 0) return call(out, bytes, prop, flags);
    if (became < 0) return CUDA_ERROR_OUT_OF_MEMORY; /* the output as it was, as the driver leaves it */
    *out = handle;
    return CUDA_SUCCESS;
}

/* Of one that has left its pool: the count goes down first, since the driver may give the number again at once. */
static CUresult release_left(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle), tn_pooled *e, uint64_t state, uint64_t handle, int *done)
{
    *done = !TN_HANDLE_REFS(state) || atomic_compare_exchange_strong(&e->state, &state, state - TN_HANDLE_REF);
    if (!*done) return CUDA_SUCCESS;
    int last = TN_HANDLE_REFS(state) == 1 && !TN_HANDLE_MAPS(state);
    uint64_t held = state - TN_HANDLE_REF;
    tn_serve_pool *of = atomic_load(&e->of);
    if (last) last = atomic_compare_exchange_strong(&e->state, &held, TN_HANDLE_GONE);
    CUresult r = call(handle);
    if (!TN_HANDLE_REFS(state)) return r;
    if (r == 0 && last) {
        begin(f);
        tn_pooled_tell_gone(f, of, handle);
        end(f);
    }
    if (r != 0 && last) atomic_store(&e->state, state);
    else if (r != 0) atomic_fetch_add(&e->state, TN_HANDLE_REF);
    return r;
}

/* After a fault, where the driver refuses everything: it is asked, and if it takes the handle all the same, that is gone. */
static CUresult release_lost(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle), tn_pooled *e, uint64_t handle)
{
    tn_serve_pool *of = atomic_load(&e->of);
    CUresult r = call(handle);
    begin(f);
    if (r == 0) {
        tn_pooled_leave(f, e, 0);
        atomic_store(&e->state, TN_HANDLE_GONE);
        tn_pooled_tell_gone(f, of, handle);
    }
    end(f);
    return r;
}

CUresult tn_serve_cuMemRelease(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle), CUmemGenericAllocationHandle handle)
{
    tn_pooled *e = tn_pooled_find(handle);
    if (is_no_handle(f, handle)) return CUDA_ERROR_INVALID_VALUE;
    for (;;) {
        uint64_t state = e ? atomic_load(&e->state) : TN_HANDLE_GONE;
        int done = 0;
        switch (TN_HANDLE_PHASE(state)) {
        case TN_HANDLE_LIVE:
            begin(f);
            done = driver_is_there();
            if (done && tn_serve_lost() != 0) {
                end(f);
                return release_lost(f, call, e, handle);
            }
            if (done && !atomic_compare_exchange_strong(&e->state, &state, TN_HANDLE_STATE(TN_HANDLE_RELEASED, 0, state))) {
                end(f);
                continue;
            }
            if (done && !TN_HANDLE_MAPS(state) && f->nested) tn_pooled_unsettled(); /* the pool's lock may be held below us */
            else if (done && !TN_HANDLE_MAPS(state)) tn_pooled_put_back(e);
            end(f);
            return done ? CUDA_SUCCESS : call(handle);
        case TN_HANDLE_LEFT: {
            CUresult r = release_left(f, call, e, state, handle, &done);
            if (done) return r;
            continue;
        }
        case TN_HANDLE_IN_POOL:
        case TN_HANDLE_RELEASED: /* another thread has released it meanwhile; or the driver has gone */
            return driver_is_there() ? CUDA_ERROR_INVALID_VALUE : call(handle);
        default:
            return call(handle);
        }
    }
}

CUresult tn_serve_cuMemMap(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long),
                           CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    tn_pooled *e = tn_pooled_find(handle);
    int pinned = tn_pooled_pin(e);
    if (pinned < 0) return is_no_handle(f, handle) ? CUDA_ERROR_INVALID_VALUE : call(address, bytes, offset, handle, flags);
    CUresult r = call(address, bytes, offset, handle, flags);
    if (!pinned) return r;
    begin(f);
    if (r != 0) tn_pooled_unpin(f, e);
    else atomic_fetch_or(&e->state, TN_HANDLE_MAPPED);
    /* A mapping that is not known keeps its handle from the pool for good. */
    if (r == 0 && !f->nested && !add_mapping(address, bytes, e))
        tn_coverage(TN_COV_NOTE, "no memory left to know a mapping of a served handle: it is lost to its pool");
    end(f);
    return r;
}

CUresult tn_serve_cuMemUnmap(tn_hook_frame *f, CUresult (*call)(CUdeviceptr, size_t), CUdeviceptr address, size_t bytes)
{
    mapping *taken = NULL;
    if (f->nested || !bytes) return call(address, bytes);
    begin(f);
    if (__atomic_load_n(&mapping_count, __ATOMIC_RELAXED)) taken = take_mappings(address, bytes);
    end(f);
    CUresult r = call(address, bytes);
    begin(f);
    for (mapping *m = taken, *next; m; m = next) {
        next = m->next;
        if (r != 0) { /* they are there still */
            tn_lock_take(&mappings_lock);
            put_mapping(m);
            tn_lock_release(&mappings_lock);
            continue;
        }
        tn_pooled *e = m->of;
        spare_mapping(m);
        tn_pooled_unpin(f, e);
    }
    end(f);
    return r;
}

CUresult tn_serve_cuMemRetainAllocationHandle(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle *, void *), CUmemGenericAllocationHandle *out,
                                              void *address)
{
    tn_pooled_retain_begins();
    CUresult r = call(out, address);
    begin(f);
    if (r == 0 && out) tn_pooled_leave(f, tn_pooled_find(*out), 1);
    tn_pooled_retain_ends(f);
    end(f);
    return r;
}

CUresult tn_serve_cuMemExportToShareableHandle(tn_hook_frame *f,
                                               CUresult (*call)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long),
                                               void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type, unsigned long long flags)
{
    tn_pooled *e = tn_pooled_find(handle);
    int pinned = tn_pooled_pin(e);
    if (pinned < 0) return is_no_handle(f, handle) ? CUDA_ERROR_INVALID_VALUE : call(out, handle, type, flags);
    CUresult r = call(out, handle, type, flags);
    if (!pinned) return r;
    begin(f);
    if (r == 0) tn_pooled_leave(f, e, 0);
    tn_pooled_unpin(f, e);
    end(f);
    return r;
}

CUresult tn_serve_cuMemGetAllocationPropertiesFromHandle(tn_hook_frame *f, CUresult (*call)(CUmemAllocationProp *, CUmemGenericAllocationHandle),
                                                         CUmemAllocationProp *out, CUmemGenericAllocationHandle handle)
{
    return is_no_handle(f, handle) ? CUDA_ERROR_INVALID_VALUE : call(out, handle);
}

CUresult tn_serve_cuMulticastBindMem(tn_hook_frame *f,
                                     CUresult (*call)(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t, unsigned long long),
                                     CUmemGenericAllocationHandle group, size_t at, CUmemGenericAllocationHandle handle, size_t offset, size_t bytes,
                                     unsigned long long flags)
{
    if (is_no_handle(f, handle)) return CUDA_ERROR_INVALID_VALUE;
    begin(f);
    tn_pooled_leave(f, tn_pooled_find(handle), 0);
    end(f);
    return call(group, at, handle, offset, bytes, flags);
}

CUresult tn_serve_cuMulticastBindAddr(tn_hook_frame *f, CUresult (*call)(CUmemGenericAllocationHandle, size_t, CUdeviceptr, size_t, unsigned long long),
                                      CUmemGenericAllocationHandle group, size_t at, CUdeviceptr address, size_t bytes, unsigned long long flags)
{
    begin(f);
    if (!f->nested) tn_serve_handles_exposed(f, address, bytes);
    end(f);
    return call(group, at, address, bytes, flags);
}
