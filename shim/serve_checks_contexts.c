/* What the checks have in each context: a stream of their own, and the canaries of freed stream-ordered blocks on their way to the host. And the end of
 * the process, where what is live is looked at. */
#include "shim/serve_checks_inside.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/charge_reading.h"
#include "shim/pages.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"

#define CONTEXTS 64u    /* with checks at once */
#define AT_EXIT 65536u  /* live blocks that are looked at when the process ends */
#define EXIT_NS 2000000000ll /* and for how long */
#define WAITS 200000    /* turns of sched_yield for another thread's making: some tenths of a second */

enum { EMPTY = 0, MAKING, READY, FAILED };
enum { FREE = 0, CLAIMED, UNDER_WAY, LOOKED_AT };

static tn_checks_context contexts[CONTEXTS];

static void look_and_tell(tn_hook_frame *f, const unsigned char *at, uint32_t gap, const tn_entry *block, uint32_t free_site, uint64_t flags)
{
    uint64_t first, count;
    unsigned what = tn_checks_look(at, gap, &first, &count);
    tn_checks_tell(f, what, block, free_site, flags, first, count);
}

/* ---- contexts */

tn_checks_context *tn_checks_of(tn_hook_frame *f, tn_context c, int make)
{
    tn_checks_context *k = NULL;
    for (uint32_t i = 0; i < CONTEXTS && !k; i++)
        if (atomic_load(&contexts[i].ctx) == c.number) k = &contexts[i];
    for (uint32_t i = 0; make && i < CONTEXTS && !k; i++) {
        uint32_t nobody = 0;
        if (atomic_compare_exchange_strong(&contexts[i].ctx, &nobody, c.number) || nobody == c.number) k = &contexts[i];
    }
    int state = k ? atomic_load(&k->state) : FAILED;
    if (state == EMPTY && make && tn_capture_gate_wait()) {
        if (atomic_compare_exchange_strong(&k->state, &state, MAKING)) {
            rec_charge_own_begin(f, TN_CHARGE_STREAM, c.device);
            int made = tn_real.cuCtxGetCurrent && tn_real.cuCtxGetCurrent(&k->handle) == 0 && tn_real.cuStreamCreate && tn_real.cuStreamQuery &&
                       tn_real.cuStreamCreate(&k->own, CU_STREAM_NON_BLOCKING) == 0 && tn_real.cuMemHostAlloc &&
                       tn_real.cuMemHostAlloc((void **)&k->copies, TN_CHECKS_LATE * TN_CANARY_MAX, 0) == 0;
            rec_charge_own_end(f);
            if (!k->late) k->late = tn_pages(TN_CHECKS_LATE * sizeof *k->late);
            else memset(k->late, 0, TN_CHECKS_LATE * sizeof *k->late); /* of a context that has ended: the events went with it */
            atomic_store(&k->under_way, 0);
            state = made && k->late && tn_real.cuMemsetD8Async && tn_real.cuMemcpyDtoHAsync_v2 && tn_real.cuStreamSynchronize ? READY : FAILED;
            atomic_store(&k->state, state);
        }
        tn_capture_gate_waited();
    }
    for (int i = 0; state == MAKING && i < WAITS; i++) {
        sched_yield();
        state = atomic_load(&k->state);
    }
    return state == READY ? k : NULL;
}

void tn_serve_checks_context_ended(uint32_t ctx)
{
    for (uint32_t i = 0; ctx && i < CONTEXTS; i++) {
        if (atomic_load(&contexts[i].ctx) != ctx) continue;
        atomic_store(&contexts[i].state, EMPTY);
        atomic_store(&contexts[i].ctx, 0);
    }
}

int tn_checks_enter(const tn_checks_context *k, int *pushed)
{
    CUcontext current = NULL;
    *pushed = 0;
    if (!tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&current) != 0) return 0;
    if (current == k->handle) return 1;
    if (!tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2) return 0;
    return *pushed = tn_real.cuCtxPushCurrent_v2(k->handle) == 0;
}

void tn_checks_leave(int pushed)
{
    CUcontext gone;
    if (pushed) (void)tn_real.cuCtxPopCurrent_v2(&gone);
}

int tn_checks_enter_of_stream(tn_hook_frame *f, tn_context c, void *stream, int *pushed)
{
    CUcontext of = NULL;
    *pushed = 0;
    if (!c.number) return 0;
    if (c.number == tn_context_current(f).number) return 1;
    if (stream == TN_STREAM_NONE || !tn_real.cuStreamGetCtx || !tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2) return 0;
    return *pushed = tn_real.cuStreamGetCtx(stream, &of) == 0 && tn_real.cuCtxPushCurrent_v2(of) == 0;
}

/* ---- canaries under way */

void tn_checks_look_at_late(tn_hook_frame *f, tn_checks_context *k)
{
    if (!k || !atomic_load(&k->under_way) || !tn_capture_gate_wait()) return;
    for (uint32_t i = 0; i < TN_CHECKS_LATE; i++) {
        tn_checks_late *l = &k->late[i];
        int state = UNDER_WAY;
        if (atomic_load(&l->state) != UNDER_WAY || !atomic_compare_exchange_strong(&l->state, &state, LOOKED_AT)) continue;
        if (tn_real.cuEventQuery(l->event) != 0) {
            atomic_store(&l->state, UNDER_WAY);
            continue;
        }
        tn_entry block = {.addr = l->address, .bytes = l->bytes, .site = l->site, .ctx = l->ctx, .device = l->device};
        look_and_tell(f, k->copies + i * TN_CANARY_MAX, l->gap, &block, l->free_site, l->flags);
        atomic_fetch_sub(&k->under_way, 1);
        atomic_store(&l->state, FREE);
    }
    tn_capture_gate_waited();
}

static tn_checks_late *claim_late(tn_checks_context *k)
{
    for (uint32_t i = 0; i < TN_CHECKS_LATE; i++) {
        int state = FREE;
        if (atomic_load(&k->late[i].state) == FREE && atomic_compare_exchange_strong(&k->late[i].state, &state, CLAIMED)) return &k->late[i];
    }
    return NULL;
}

int tn_checks_send(tn_hook_frame *f, tn_checks_context *k, const tn_entry *block, uint32_t gap, uint64_t flags, CUstream stream)
{
    tn_checks_late *l = tn_real.cuEventCreate && tn_real.cuEventRecord && tn_real.cuEventQuery ? claim_late(k) : NULL;
    if (!l) return 0;
    if (!l->event && tn_real.cuEventCreate(&l->event, CU_EVENT_DISABLE_TIMING) != 0) l->event = NULL;
    CUdeviceptr from = (CUdeviceptr)(block->addr + block->bytes);
    int copied = l->event && tn_real.cuMemcpyDtoHAsync_v2(k->copies + (size_t)(l - k->late) * TN_CANARY_MAX, from, gap, stream) == 0;
    int sent = copied && tn_real.cuEventRecord(l->event, stream) == 0;
    if (sent) {
        l->site = block->site;
        l->free_site = tn_frame_site(f);
        l->gap = gap;
        l->address = block->addr;
        l->bytes = block->bytes;
        l->flags = flags;
        l->device = block->device;
        l->ctx = block->ctx;
        atomic_fetch_add(&k->under_way, 1);
    }
    if (sent || !copied) atomic_store(&l->state, sent ? UNDER_WAY : FREE); /* else the copy may come at any time: the place is lost */
    return sent;
}

/* ---- the end of the process: what is live, as it is then */

static struct live { tn_entry block; uint32_t gap; } *lives;
static uint32_t live_count;

static int collect(const tn_entry *e, void *arg)
{
    (void)arg;
    const tn_serve_section *s = tn_is_served(e) && tn_route_of(e->extra) & TN_ROUTE_CANARY ? tn_serve_section_of(e->device) : NULL;
    uint32_t row = s ? tn_serve_row(s, e->site) : TN_SERVE_NO_ROW;
    if (row != TN_SERVE_NO_ROW && live_count < AT_EXIT)
        lives[live_count++] = (struct live){*e, tn_checks_gap(&s->plan->rows[row], tn_serve_asked(s, e->bytes), e->bytes)};
    return 0;
}

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Whether all that was put into the stream is done, before the time is over: a kernel that never ends must not keep the process. */
static int is_done(CUstream stream, long long until)
{
    CUresult r;
    while ((r = tn_real.cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY && now_ns() < until)
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 100000}, NULL);
    return r == 0;
}

static void look_at_live(tn_hook_frame *f, const tn_checks_context *k, long long until)
{
    uint32_t ctx = atomic_load(&k->ctx);
    for (uint32_t from = 0, i; from < live_count; from = i) {
        uint32_t sent = 0, of[TN_CHECKS_LATE];
        for (i = from; i < live_count && sent < TN_CHECKS_LATE; i++) {
            const tn_entry *e = &lives[i].block;
            if (e->ctx != ctx || e->kind == TN_KIND_PINNED) continue;
            if (tn_real.cuMemcpyDtoHAsync_v2(k->copies + sent * TN_CANARY_MAX, (CUdeviceptr)(e->addr + e->bytes), lives[i].gap, k->own) != 0) return;
            of[sent++] = i;
        }
        if (!is_done(k->own, until)) return;
        for (uint32_t n = 0; n < sent; n++)
            look_and_tell(f, k->copies + n * TN_CANARY_MAX, lives[of[n]].gap, &lives[of[n]].block, TN_SITE_NONE, TN_CHECK_AT_EXIT);
    }
}

static void at_the_end(void)
{
    tn_hook_frame f;
    CUcontext current;
    long long until = now_ns() + EXIT_NS;
    if (!tn_real.cuCtxGetCurrent || !tn_own_enter(&f)) return; /* a forked child has this from its parent, and no driver to ask */
    if (tn_real.cuCtxGetCurrent(&current) != 0) {
        tn_own_leave(&f);
        return;
    }
    lives = tn_pages(AT_EXIT * sizeof *lives);
    if (lives) tn_ledger_sweep(collect, NULL, NULL);
    for (uint32_t i = 0; i < live_count; i++) {
        const tn_entry *e = &lives[i].block;
        if (e->kind == TN_KIND_PINNED) look_and_tell(&f, (unsigned char *)(uintptr_t)(e->addr + e->bytes), lives[i].gap, e, TN_SITE_NONE, TN_CHECK_AT_EXIT);
    }
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        tn_checks_context *k = &contexts[i];
        int pushed;
        if (atomic_load(&k->state) != READY || !tn_checks_enter(k, &pushed)) continue;
        while (atomic_load(&k->under_way) && now_ns() < until) {
            tn_checks_look_at_late(&f, k);
            if (atomic_load(&k->under_way)) syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 100000}, NULL);
        }
        /* Where some have not arrived the copies' places are not free, and the live ones are given up. */
        if (lives && !atomic_load(&k->under_way) && tn_capture_gate_wait()) {
            look_at_live(&f, k, until);
            tn_capture_gate_waited();
        }
        tn_checks_leave(pushed);
    }
    tn_own_leave(&f);
}

void tn_checks_watch_the_end(void)
{
    static _Atomic int registered;
    if (!atomic_exchange(&registered, 1)) (void)atexit(at_the_end);
}
