/* The arenas of each context: who has which, the backends they come from, and which addresses they cover. */
#include "shim/serve.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/tn_lock.h"
#include "shim/charge_reading.h"
#include "shim/pages.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve_checks.h"
#include "shim/serve_handles.h"
#include "shim/serve_info.h"
#include "shim/serve_marks.h"
#include "shim/serve_barrier.h"
#include "shim/serve_pending.h"
#include "shim/serve_places_inside.h"
#include "shim/serve_reach.h"

#define RANGES 4096u    /* regions at once; more are not told from the driver's own memory, so none is acquired then */
#define RANK_CLAIM 140   /* what is done under it calls nothing but the system for memory */
#define TURNS 200       /* of sched_yield for another thread's acquisition, and then */
#define RESTS 500000    /* of 50 us at least: a GiB of pinned memory takes 0.4 s, and an engine's threads all begin at once */

static tn_context_place places[TN_PLACES]; /* by the number's remainder, each the first of those that have it */
static tn_lock claim_lock = TN_LOCK_INIT(RANK_CLAIM);
static struct { _Atomic uint64_t base, bytes; _Atomic uint32_t ctx; uint8_t kind, device; } ranges[RANGES];
static _Atomic uint32_t range_count;
static __thread tn_hook_frame *frame_now __attribute__((tls_model("initial-exec"))); /* of the hook under which a region comes or goes */

/* ---- addresses */

static int add_range(uint64_t base, uint64_t bytes, uint32_t ctx, uint8_t kind, uint8_t device)
{
    for (uint32_t i = 0; i < RANGES; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&ranges[i].bytes, &none, UINT64_MAX)) continue; /* claimed: covers nothing while base is 0 */
        ranges[i].kind = kind;
        ranges[i].device = device;
        atomic_store(&ranges[i].ctx, ctx);
        atomic_store(&ranges[i].base, base);
        atomic_store(&ranges[i].bytes, bytes);
        uint32_t count = atomic_load(&range_count);
        while (count <= i && !atomic_compare_exchange_weak(&range_count, &count, i + 1)) {
        }
        uint64_t low = atomic_load(&tn_hot_page->arenas), high = atomic_load(&tn_hot_page->arenas_end);
        while ((!low || base < low) && !atomic_compare_exchange_weak(&tn_hot_page->arenas, &low, base)) {
        }
        while (base + bytes > high && !atomic_compare_exchange_weak(&tn_hot_page->arenas_end, &high, base + bytes)) {
        }
        return 1;
    }
    return 0;
}

static void end_range(uint32_t i)
{
    atomic_store(&ranges[i].base, 0);
    atomic_store(&ranges[i].bytes, 0);
}

static void remove_range(uint64_t base)
{
    for (uint32_t i = 0; i < RANGES; i++)
        if (atomic_load(&ranges[i].base) == base) {
            end_range(i);
            return;
        }
}

int tn_serve_has_arenas(void) { return atomic_load_explicit(&range_count, memory_order_relaxed) != 0; }

int tn_serve_owns(uint64_t addr)
{
    if (!tn_serve_may_own(addr)) return 0;
    uint32_t count = atomic_load_explicit(&range_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t base = atomic_load_explicit(&ranges[i].base, memory_order_acquire), bytes = atomic_load_explicit(&ranges[i].bytes, memory_order_acquire);
        if (base && bytes != UINT64_MAX && addr - base < bytes) return 1;
    }
    return 0;
}

uint64_t tn_serve_held(uint8_t device, uint64_t *plain, uint64_t *pooled)
{
    uint32_t count = atomic_load(&range_count);
    uint64_t beside = 0, pools, taken;
    *plain = *pooled = 0;
    tn_serve_handles_held(device, &pools, &taken);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t base = atomic_load(&ranges[i].base), bytes = atomic_load(&ranges[i].bytes);
        if (!base || bytes == UINT64_MAX || ranges[i].device != device) continue;
        if (ranges[i].kind == TN_KIND_DEVICE) *plain += tn_round_up(bytes, bytes > (1u << 20) ? 2u << 20 : 512);
        else if (ranges[i].kind == TN_KIND_ASYNC) *pooled += tn_round_up(bytes, 512);
    }
    for (uint32_t i = 0; i < TN_PLACES; i++)
        for (tn_context_place *p = &places[i]; p; p = atomic_load_explicit(&p->next, memory_order_acquire))
            if (atomic_load_explicit(&p->state, memory_order_acquire) == TN_PLACE_IS_READY && p->device == device) beside += p->beside;
    return *plain + tn_round_up(*pooled, TN_SERVE_POOL_STEP) + pools + beside;
}

/* ---- backends */

static uint32_t tier_of(const tn_watched *w, const char *tag)
{
    tn_place_tier tier = tn_place_tier_of_tag(tag);
    return (uint32_t)(w->kind == TN_KIND_PINNED && tier == TN_PLACE_PACKED ? TN_PLACE_T5B : tier);
}

void tn_serve_no_reading(tn_hook_frame *f)
{
    tn_hook_frame *outer = (tn_hook_frame *)(uintptr_t)f->thread->outer.frame;
    f->window.kind = TN_CHARGE_NONE;
    if (outer) outer->window.kind = TN_CHARGE_NONE;
}

static int lies_in(const tn_entry *e, void *arg)
{
    const tn_region *r = arg;
    int has_address = e->kind != TN_KIND_NONE && e->kind != TN_KIND_ARRAY && e->kind != TN_KIND_MIPMAP && e->kind != TN_KIND_VMM_HANDLE;
    return has_address && e->addr - (uint64_t)(uintptr_t)r->base < r->committed;
}

static void was_freed(const tn_entry *e, void *arg)
{
    (void)arg;
    if (e->kind == TN_KIND_MANAGED) rec_charge_managed(-1);
}

static tn_mem_error acquire(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    tn_watched *w = self;
    tn_mem_error error = tn_backend_acquire(w->inner, bytes, alignment, tag, region);
    if (error != TN_MEM_OK) return error;
    uint64_t base = (uint64_t)(uintptr_t)region->base;
    /* Whatever the ledger has there was freed where nobody saw it; a block that is handed out is put in without a look (shim/serve_short.c). */
    tn_ledger_sweep(lies_in, was_freed, region);
    uint32_t ctx = w->owner->number;
    if (!add_range(base, region->committed, ctx, w->kind, w->owner->device)) {
        (void)(tn_backend_release(w->inner, region) == TN_MEM_OK);
        return TN_MEM_E_HOST_MEMORY;
    }
    if (frame_now) tn_serve_no_reading(frame_now);
    if (frame_now) rec_arena(frame_now, 0, w->kind, base, region->committed, (uint64_t)tier_of(w, tag) << 32 | w->flags, ctx, w->owner->device);
    return TN_MEM_OK;
}

static tn_mem_error release(void *self, tn_region *region)
{
    tn_watched *w = self;
    uint64_t base = (uint64_t)(uintptr_t)region->base, bytes = region->committed;
    const char *tag = region->tag;
    remove_range(base); /* before: the driver may give the addresses to another thread at once */
    uint32_t ctx = w->owner->number;
    if (frame_now) rec_arena(frame_now, 1, w->kind, base, bytes, (uint64_t)tier_of(w, tag) << 32 | w->flags, ctx, w->owner->device);
    if (atomic_load(&w->owner->ctx) == TN_PLACE_LEAVING && w->kind == TN_KIND_ASYNC) tn_serve_pool_arena_ended(w->owner->device, tn_round_up(bytes, 512));
    return tn_backend_release(w->inner, region);
}

static size_t capacity(void *self)
{
    (void)self;
    return SIZE_MAX;
}

static const tn_backend_table watching = {.acquire = acquire, .release = release, .capacity = capacity};

static tn_backend *watch(tn_watched *w, tn_backend *inner, tn_context_place *owner, uint8_t kind, uint8_t flags)
{
    w->inner = inner;
    w->owner = owner;
    w->kind = kind;
    w->flags = flags;
    return inner && tn_backend_init(&w->outer, &watching, w, NULL) == TN_MEM_OK ? &w->outer : NULL;
}

/* The backends' own types in CUDA's layout (test_cuda_calls holds the two against each other). */
static void fill_calls(tn_cuda *c)
{
#define FROM(member, name) c->member = (__typeof__(c->member))(void (*)(void))tn_real.name
    FROM(alloc, cuMemAlloc_v2);
    FROM(free, cuMemFree_v2);
    FROM(info, cuMemGetInfo_v2);
    FROM(default_pool, cuDeviceGetDefaultMemPool);
    FROM(alloc_from_pool, cuMemAllocFromPoolAsync);
    FROM(alloc_async, cuMemAllocAsync);
    FROM(free_async, cuMemFreeAsync);
    FROM(is_capturing, cuStreamIsCapturing);
    FROM(synchronize, cuStreamSynchronize);
    FROM(host_alloc, cuMemHostAlloc);
    FROM(host_free, cuMemFreeHost);
#undef FROM
}

static int has_family(const tn_plan_section *s, tn_family family, uint32_t flags)
{
    for (size_t i = 0; i < s->tier_count; i++)
        if (s->tiers[i].family == family && s->tiers[i].discipline != TN_D_T5A && (family != TN_FAMILY_PINNED || s->tiers[i].detail == flags)) return 1;
    return 0;
}

static tn_mem_error make(tn_context_place *c, const tn_serve_section *section)
{
    const tn_plan_section *s = section->plan;
    tn_mem_error error = TN_MEM_OK;
    fill_calls(&c->cuda);
    tn_place_options o = {.section = s, .work = tn_marks_work_table(tn_serving_marks, c->number),
                          .work_everywhere = tn_marks_work_table(tn_serving_marks, 0), .metadata = &tn_serve_metadata, .pin_regions = tn_serve_pins_regions()};
    if (has_family(s, TN_FAMILY_DEVICE, 0)) {
        error = tn_driver_create(&(tn_driver_options){.cuda = &c->cuda, .metadata = &tn_serve_metadata}, &c->driver);
        if (error == TN_MEM_OK) o.device = watch(&c->device_memory, tn_driver_backend(c->driver), c, TN_KIND_DEVICE, 0);
    }
    if (error == TN_MEM_OK && has_family(s, TN_FAMILY_ASYNC, 0)) {
        /* A stream of its own, so that the wait for the memory is a wait for nothing of the program's. */
        CUstream own = NULL;
        if (frame_now) rec_charge_own_begin(frame_now, TN_CHARGE_STREAM, c->device);
        int made = tn_real.cuStreamCreate && tn_real.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) == 0;
        if (frame_now) rec_charge_own_end(frame_now);
        if (!made) return TN_MEM_E_DRIVER;
        error = tn_async_create(&(tn_async_options){.cuda = &c->cuda, .device = c->device, .stream = own, .wait = true, .metadata = &tn_serve_metadata}, &c->async);
        if (error == TN_MEM_OK) o.async = watch(&c->async_memory, tn_async_backend(c->async), c, TN_KIND_ASYNC, 0);
    }
    for (unsigned flags = 0; flags < TN_PLACE_PINNED_SETS && error == TN_MEM_OK; flags++) {
        if (!has_family(s, TN_FAMILY_PINNED, flags)) continue;
        error = tn_pinned_create(&(tn_pinned_options){.cuda = &c->cuda, .flags = flags, .metadata = &tn_serve_metadata}, &c->pinned[flags]);
        if (error == TN_MEM_OK) o.pinned[flags] = watch(&c->pinned_memory[flags], tn_pinned_backend(c->pinned[flags]), c, TN_KIND_PINNED, (uint8_t)flags);
    }
    if (error == TN_MEM_OK) error = tn_place_create(&o, &c->place, NULL);
    if (error == TN_MEM_OK && frame_now && (error = tn_serve_handles_make(frame_now, section)) != TN_MEM_OK) tn_place_destroy(&c->place, 0);
    return error;
}

/* ---- contexts */

static tn_context_place *find(uint32_t ctx)
{
    tn_context_place *p = &places[ctx % TN_PLACES];
    while (p && atomic_load_explicit(&p->ctx, memory_order_acquire) != ctx) p = atomic_load_explicit(&p->next, memory_order_acquire);
    return p;
}

/* One that is nobody's, or one more. NULL: no memory is left. */
static tn_context_place *claim(uint32_t ctx)
{
    tn_context_place *last = &places[ctx % TN_PLACES], *p, *next = NULL;
    tn_lock_take(&claim_lock);
    p = find(ctx);
    for (; !p; last = next) {
        if (!atomic_load(&last->ctx)) p = last;
        else if (!(next = atomic_load(&last->next))) p = tn_pages(sizeof *p);
        if (!p && !next) break;
        if (!p) continue;
        p->number = ctx;
        atomic_store(&p->ctx, ctx);
        if (p != last) atomic_store(&last->next, p); /* it stays */
        break;
    }
    tn_lock_release(&claim_lock);
    return p;
}

tn_context_place *tn_places_of(uint32_t i) { return &places[i]; }

tn_place *tn_serve_place(tn_hook_frame *f, tn_context c, const tn_serve_section *s, int *misfit)
{
    *misfit = 0;
    tn_context_place *p = find(c.number);
    if (!p && !(p = claim(c.number))) {
        tn_coverage(TN_COV_NOTE, "no memory left to serve one more context: its requests are the driver's");
        return NULL;
    }
    int state = atomic_load_explicit(&p->state, memory_order_acquire);
    if (__builtin_expect(state == TN_PLACE_IS_READY, 1)) return p->place;
    /* What acquires may wait and would end a capture. */
    if (state == TN_PLACE_IS_EMPTY && tn_serve_finds_sanitizer()) return NULL;
    if (state == TN_PLACE_IS_EMPTY && !rec_captures() && atomic_compare_exchange_strong(&p->state, &state, TN_PLACE_IS_MAKING)) {
        tn_hook_frame *was = frame_now;
        p->device = c.device;
        frame_now = f;
        tn_places_take_apart(f);
        uint64_t plain, pooled, held = tn_serve_held(c.device, &plain, &pooled);
        tn_reading before, after;
        int had = tn_reading_take(f, c.device, &before);
        tn_mem_error error = make(p, s);
        frame_now = was;
        if (had && tn_reading_take(f, c.device, &after) && before.quiet && after.quiet && before.others == after.others) {
            uint64_t grew = after.used > before.used ? after.used - before.used : 0, arenas = tn_serve_held(c.device, &plain, &pooled) - held;
            p->beside = grew > arenas ? grew - arenas : 0;
        }
        if (error != TN_MEM_OK) tn_serve_say_misfit(s, error);
        state = error == TN_MEM_OK ? TN_PLACE_IS_READY : TN_PLACE_IS_FAILED;
        atomic_store_explicit(&p->state, state, memory_order_release);
    }
    for (int i = 0; state == TN_PLACE_IS_MAKING && i < TURNS + RESTS; i++) {
        if (i < TURNS) sched_yield();
        else syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL); /* libc's is a cancellation point */
        state = atomic_load_explicit(&p->state, memory_order_acquire);
    }
    *misfit = state == TN_PLACE_IS_FAILED;
    return state == TN_PLACE_IS_READY ? p->place : NULL;
}

tn_place *tn_serve_place_of(uint32_t ctx)
{
    tn_context_place *p = find(ctx);
    int state = p ? atomic_load_explicit(&p->state, memory_order_acquire) : TN_PLACE_IS_EMPTY;
    return state == TN_PLACE_IS_READY || state == TN_PLACE_IS_ENDED ? p->place : NULL;
}

tn_place *tn_serve_place_ready(uint32_t ctx)
{
    tn_context_place *p = find(ctx);
    return p && atomic_load_explicit(&p->state, memory_order_acquire) == TN_PLACE_IS_READY ? p->place : NULL;
}

void tn_serve_frame(tn_hook_frame *f) { frame_now = f; }

/* Plain and pinned arenas are gone with the context; stream-ordered ones live on, and so do the blocks in them, each of which may still be freed once:
 * they stay until these are gone and another context's arenas are made (serve_places_end.c). */
void tn_serve_context_ended(uint32_t ctx)
{
    tn_context_place *p = ctx ? find(ctx) : NULL;
    tn_serve_pools_give_back(); /* its end has waited for all of it */
    tn_serve_pending_context_ended(ctx);
    tn_serve_barrier_context_ended(ctx);
    tn_serve_checks_context_ended(ctx); /* it may have looked at blocks of another one, and have no arenas */
    if (!p) return;
    for (uint32_t i = 0; i < RANGES; i++)
        if (atomic_load(&ranges[i].base) && atomic_load(&ranges[i].ctx) == ctx && ranges[i].kind != TN_KIND_ASYNC) end_range(i);
    int state = atomic_load(&p->state);
    while (state != TN_PLACE_IS_MAKING && !atomic_compare_exchange_weak(&p->state, &state, TN_PLACE_IS_ENDED)) {
    }
}
