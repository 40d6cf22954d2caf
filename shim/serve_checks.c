/* Canaries, fill and poison. A canary stands in what a block's slot has beyond the block, or in the gap that the plan leaves. Where it is looked at
 * depends on who orders the block: plain and pinned frees wait for the device, as the driver's own do; at the free of a stream-ordered block a copy
 * of its canary goes into the stream, and whoever comes by when that is done looks at it. */
#include "shim/serve_checks.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/tn_hot_data.h"
#include "shim/charge_reading.h"
#include "shim/pages.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve.h"
#include "shim/serve_calls.h"
#include "shim/serve_marks.h"

#define CONTEXTS 64u    /* as many as are served */
#define LATE 256u       /* canaries of a context on their way to the host at once */
#define AT_EXIT 65536u  /* live blocks that are looked at when the process ends */
#define EXIT_NS 2000000000ll /* and for how long */

TN_HOT_DATA int tn_serve_checks;
static int canary, poison, fills;
static unsigned char fill_byte;

enum { EMPTY = 0, MAKING, READY, FAILED, ENDED };
enum { FREE = 0, CLAIMED, UNDER_WAY, LOOKED_AT };

/* A stream-ordered block that was freed, whose canary is being copied. */
typedef struct late {
    _Atomic int state;
    uint32_t site, free_site, gap;
    uint64_t address, bytes, flags;
    uint8_t kind, device;
    CUevent event; /* behind the copy; kept for the next */
} late;

typedef struct context_checks {
    _Atomic uint32_t ctx;
    _Atomic int state;
    _Atomic uint32_t under_way;
    CUcontext handle;
    CUstream own;          /* waits for nothing of the program's, and nothing for it */
    unsigned char *copies; /* LATE times TN_CANARY_MAX bytes, pinned */
    late *late;
} context_checks;

static context_checks contexts[CONTEXTS];

/* ---- start */

static int is_one(const char *name)
{
    const char *text = secure_getenv(name);
    return text && strcmp(text, "1") == 0;
}

static int read_fill(const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 0);
    if (strcmp(text, "zero") == 0) value = 0;
    else if (*text < '0' || *text > '9' || *end || value > 255) return 0;
    fill_byte = (unsigned char)value;
    return 1;
}

void tn_serve_checks_start(void)
{
    const char *fill = secure_getenv("TENURE_FILL");
    canary = is_one("TENURE_CANARY");
    poison = is_one("TENURE_POISON");
    if (fill && *fill && !(fills = read_fill(fill))) tn_serve_say("TENURE_FILL is neither zero nor a byte from 0 to 255: new blocks are not filled");
    tn_serve_checks = canary || poison || fills;
}

/* ---- what is told */

static void tell(tn_hook_frame *f, unsigned what, const tn_entry *block, uint32_t free_site, uint64_t flags, uint64_t first, uint64_t count)
{
    static _Atomic int said;
    tn_event *e = tn_event_new(f, tn_stamp());
    if (e) {
        e->kind = (uint8_t)what;
        e->device = block->device;
        e->ctx = block->ctx;
        e->site = free_site;
        e->addr = block->addr;
        e->bytes = block->bytes;
        e->aux = count << 32 | first;
        e->aux2 = flags << 32 | block->site;
        tn_journal_commit(e, TN_EV_CHECK);
    }
    if (what == TN_CHECK_OVERWRITTEN && !atomic_exchange(&said, 1))
        tn_serve_say("a served block was written past its end: tenure report says which, where it was allocated, and where it was freed");
}

/* What a canary looks like now: TN_CHECK_*, with the first byte that is another and how many are. */
static unsigned look(const unsigned char *at, uint32_t gap, uint64_t *first, uint64_t *count)
{
    *first = *count = 0;
    for (uint32_t i = 0; i < gap; i++) {
        if (at[i] == TN_CANARY_BYTE) continue;
        if (!(*count)++) *first = i;
    }
    return *count ? TN_CHECK_OVERWRITTEN : TN_CHECK_INTACT;
}

static void look_and_tell(tn_hook_frame *f, const unsigned char *at, uint32_t gap, const tn_entry *block, uint32_t free_site, uint64_t flags)
{
    uint64_t first, count;
    unsigned what = look(at, gap, &first, &count);
    tell(f, what, block, free_site, flags, first, count);
}

/* ---- contexts */

/* Made by the first block of a context that is current; NULL where it could not be. */
static context_checks *of_context(tn_hook_frame *f, tn_context c, int make)
{
    context_checks *k = NULL;
    for (uint32_t i = 0; i < CONTEXTS && !k; i++) {
        uint32_t there = atomic_load(&contexts[i].ctx);
        if (!there && !make) return NULL;
        if (there == c.number || (!there && (atomic_compare_exchange_strong(&contexts[i].ctx, &there, c.number) || there == c.number))) k = &contexts[i];
    }
    int state = k ? atomic_load(&k->state) : FAILED;
    if (state == EMPTY && make && tn_capture_gate_wait()) {
        if (atomic_compare_exchange_strong(&k->state, &state, MAKING)) {
            rec_charge_own_begin(f, TN_CHARGE_STREAM, c.device);
            int made = tn_real.cuCtxGetCurrent && tn_real.cuCtxGetCurrent(&k->handle) == 0 && tn_real.cuStreamCreate && tn_real.cuStreamQuery &&
                       tn_real.cuStreamCreate(&k->own, CU_STREAM_NON_BLOCKING) == 0 && tn_real.cuMemHostAlloc &&
                       tn_real.cuMemHostAlloc((void **)&k->copies, LATE * TN_CANARY_MAX, 0) == 0;
            rec_charge_own_end(f);
            k->late = made ? tn_pages(LATE * sizeof *k->late) : NULL;
            state = k->late && tn_real.cuMemsetD8Async && tn_real.cuMemcpyDtoHAsync_v2 && tn_real.cuStreamSynchronize ? READY : FAILED;
            atomic_store(&k->state, state);
        }
        tn_capture_gate_waited();
    }
    return state == READY ? k : NULL;
}

void tn_serve_checks_context_ended(uint32_t ctx)
{
    for (uint32_t i = 0; ctx && i < CONTEXTS; i++)
        if (atomic_load(&contexts[i].ctx) == ctx) atomic_store(&contexts[i].state, ENDED);
}

/* Makes the context current where another one is; 0 where that cannot be. *pushed: by this call. */
static int enter(const context_checks *k, int *pushed)
{
    CUcontext current = NULL;
    *pushed = 0;
    if (!tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&current) != 0) return 0;
    if (current == k->handle) return 1;
    if (!tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2) return 0;
    return *pushed = tn_real.cuCtxPushCurrent_v2(k->handle) == 0;
}

static void leave(int pushed)
{
    CUcontext gone;
    if (pushed) (void)tn_real.cuCtxPopCurrent_v2(&gone);
}

/* ---- canaries under way */

/* Looks at those of this call's context that have arrived. The caller is inside a call of that context, so it is there. */
static void look_at_late(tn_hook_frame *f, context_checks *k)
{
    if (!k || !atomic_load(&k->under_way) || !tn_capture_gate_wait()) return;
    for (uint32_t i = 0; i < LATE; i++) {
        late *l = &k->late[i];
        int state = UNDER_WAY;
        if (atomic_load(&l->state) != UNDER_WAY || !atomic_compare_exchange_strong(&l->state, &state, LOOKED_AT)) continue;
        if (tn_real.cuEventQuery(l->event) != 0) {
            atomic_store(&l->state, UNDER_WAY);
            continue;
        }
        tn_entry block = {.addr = l->address, .bytes = l->bytes, .site = l->site, .ctx = atomic_load(&k->ctx), .device = l->device};
        look_and_tell(f, k->copies + i * TN_CANARY_MAX, l->gap, &block, l->free_site, l->flags);
        atomic_fetch_sub(&k->under_way, 1);
        atomic_store(&l->state, FREE);
    }
    tn_capture_gate_waited();
}

static late *claim_late(context_checks *k)
{
    for (uint32_t i = 0; i < LATE; i++) {
        int state = FREE;
        if (atomic_load(&k->late[i].state) == FREE && atomic_compare_exchange_strong(&k->late[i].state, &state, CLAIMED)) return &k->late[i];
    }
    return NULL;
}

/* In the order of the stream: the copy of the canary, and the event by which its arrival is known. */
static int send(tn_hook_frame *f, context_checks *k, const tn_entry *block, uint32_t gap, uint64_t flags, CUstream stream)
{
    late *l = tn_real.cuEventCreate && tn_real.cuEventRecord && tn_real.cuEventQuery ? claim_late(k) : NULL;
    if (!l) return 0;
    if (!l->event && tn_real.cuEventCreate(&l->event, CU_EVENT_DISABLE_TIMING) != 0) l->event = NULL;
    CUdeviceptr from = (CUdeviceptr)(block->addr + block->bytes);
    int sent = l->event && tn_real.cuMemcpyDtoHAsync_v2(k->copies + (size_t)(l - k->late) * TN_CANARY_MAX, from, gap, stream) == 0 &&
               tn_real.cuEventRecord(l->event, stream) == 0;
    if (sent) {
        l->site = block->site;
        l->free_site = tn_frame_site(f);
        l->gap = gap;
        l->address = block->addr;
        l->bytes = block->bytes;
        l->flags = flags;
        l->device = block->device;
        atomic_fetch_add(&k->under_way, 1);
    }
    atomic_store(&l->state, sent ? UNDER_WAY : FREE);
    return sent;
}

/* ---- allocations */

/* What is behind a block of `bytes` and is its own: of its slot, or of the gap that was asked for with it. */
static uint32_t gap_of(const tn_plan_row *row, uint64_t asked, uint64_t bytes)
{
    uint64_t room = tn_round_up(asked, 512);
    if (row->discipline == TN_D_T3) room = tn_round_up(row->largest, tn_native_alignment(row->family, row->largest));
    for (size_t i = 0; i < row->class_count; i++)
        if (row->classes[i].bytes >= asked) {
            room = row->classes[i].bytes;
            break;
        }
    return room <= bytes ? 0 : (uint32_t)(room - bytes < TN_CANARY_MAX ? room - bytes : TN_CANARY_MAX);
}

static CUstream named(const tn_hook_frame *f, void *stream) { return !stream && f->ptds ? CU_STREAM_PER_THREAD : stream; }

/* A stream's work that is ours counts as the program's: a block that is freed with it under way is not clean. */
static void told_work(tn_hook_frame *f, void *stream) { tn_serve_work(f, tn_stream_number(f, stream), stream, tn_serve_tick()); }

static void not_done(void)
{
    tn_coverage(TN_COV_NOTE, "served blocks were neither filled nor given a canary: a capture was active, or the driver refused");
}

static void watch_the_end(void);

static void set_route(tn_hook_frame *f, int guarded)
{
    if (canary) f->route = (uint16_t)((f->route & ~TN_ROUTE_NO_CANARY) | (guarded ? TN_ROUTE_CANARY : TN_ROUTE_NO_CANARY));
}

void tn_serve_check_taken(tn_hook_frame *f, tn_context c, const tn_plan_row *row, uint64_t asked, void *address, size_t bytes, void *stream)
{
    uint32_t gap = canary ? gap_of(row, asked, bytes) : 0;
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
    if (gap) watch_the_end();
    if (row->family == TN_FAMILY_PINNED) {
        memset((char *)address + bytes, (int)TN_CANARY_BYTE, gap);
        set_route(f, gap != 0);
        return;
    }
    set_route(f, 0);
    if (!gap && !fills) return;
    context_checks *k = of_context(f, c, 1);
    if (!k || !tn_capture_gate_wait()) {
        not_done();
        return;
    }
    CUstream s = stream == TN_STREAM_NONE ? k->own : named(f, stream);
    int done = !fills || tn_real.cuMemsetD8Async(at, fill_byte, bytes, s) == 0;
    int guarded = gap && tn_real.cuMemsetD8Async(at + bytes, TN_CANARY_BYTE, gap, s) == 0;
    if (stream == TN_STREAM_NONE) done = tn_real.cuStreamSynchronize(s) == 0 && done;
    tn_capture_gate_waited();
    if (stream != TN_STREAM_NONE) told_work(f, stream);
    if (!done || (gap && !guarded)) not_done();
    set_route(f, gap && done && guarded);
    look_at_late(f, k);
}

/* ---- frees */

static int wait_for(uint32_t ctx)
{
    tn_work all = tn_marks_work_table(tn_serving_marks, ctx);
    return all.table->wait(all.self, all.table->all(all.self)) == TN_MEM_OK;
}

/* The device is done with the block: reads its canary into `out` and poisons it, and is done with that too. */
static int read_now(const context_checks *k, const tn_entry *block, uint32_t gap, unsigned char *out, uint64_t *flags)
{
    int pushed, done = 0;
    CUdeviceptr at = (CUdeviceptr)block->addr;
    if (!tn_capture_gate_wait()) return 0;
    if (enter(k, &pushed)) {
        done = !gap || tn_real.cuMemcpyDtoHAsync_v2(out, at + block->bytes, gap, k->own) == 0;
        if (poison && tn_real.cuMemsetD8Async(at, TN_POISON_BYTE, block->bytes, k->own) == 0) *flags |= TN_CHECK_POISONED;
        done = tn_real.cuStreamSynchronize(k->own) == 0 && done;
        leave(pushed);
    }
    tn_capture_gate_waited();
    return done;
}

static void given_pinned(tn_hook_frame *f, const tn_entry *block, uint32_t gap)
{
    unsigned char *at = (unsigned char *)(uintptr_t)block->addr;
    if (!wait_for(0)) {
        tell(f, TN_CHECK_NOT_DONE, block, tn_frame_site(f), 0, 0, 0);
        return;
    }
    uint64_t first = 0, count = 0, flags = TN_CHECK_WAITED | (poison ? TN_CHECK_POISONED : 0);
    unsigned what = gap ? look(at + block->bytes, gap, &first, &count) : TN_CHECK_NO_CANARY;
    if (poison) memset(at, (int)TN_POISON_BYTE, block->bytes);
    tell(f, what, block, tn_frame_site(f), flags, first, count);
}

/* The free names no stream. That of a stream-ordered block does not wait (seen on an H200), and neither do we. */
static void given_plainly(tn_hook_frame *f, context_checks *k, const tn_entry *block, uint32_t gap)
{
    unsigned char copy[TN_CANARY_MAX];
    tn_work_set uncovered = {0};
    uint64_t flags = 0, first = 0, count = 0;
    int done;
    if (block->kind == TN_KIND_ASYNC) {
        tn_marks_uncovered(tn_serving_marks, tn_serve_has_peers() ? 0 : block->ctx, &uncovered);
        done = uncovered.count == 0;
    } else {
        done = wait_for(block->ctx);
        flags = done ? TN_CHECK_WAITED : 0;
    }
    done = done && k && read_now(k, block, gap, copy, &flags);
    unsigned what = !done ? TN_CHECK_NOT_DONE : gap ? look(copy, gap, &first, &count) : TN_CHECK_NO_CANARY;
    tell(f, what, block, tn_frame_site(f), flags, first, count);
}

static void given_in_order(tn_hook_frame *f, context_checks *k, const tn_entry *block, uint32_t gap, void *stream)
{
    uint64_t flags = 0;
    int sent = 0;
    if (k && tn_capture_gate_wait()) {
        sent = gap && send(f, k, block, gap, poison ? TN_CHECK_POISONED : 0, named(f, stream));
        if (poison && tn_real.cuMemsetD8Async((CUdeviceptr)block->addr, TN_POISON_BYTE, block->bytes, named(f, stream)) == 0) flags = TN_CHECK_POISONED;
        tn_capture_gate_waited();
        told_work(f, stream);
    }
    if (!sent) tell(f, gap || !flags ? TN_CHECK_NOT_DONE : TN_CHECK_NO_CANARY, block, tn_frame_site(f), flags, 0, 0);
}

void tn_serve_check_given(tn_hook_frame *f, const tn_plan_row *row, uint64_t asked, void *stream)
{
    const tn_entry *block = &f->freed;
    uint32_t gap = tn_route_of(block->extra) & TN_ROUTE_CANARY ? gap_of(row, asked, block->bytes) : 0;
    if (!gap && !poison) return;
    if (block->kind == TN_KIND_PINNED) {
        given_pinned(f, block, gap);
        return;
    }
    context_checks *k = of_context(f, (tn_context){block->ctx, block->device}, tn_context_current(f).number == block->ctx);
    if (stream == TN_STREAM_NONE) given_plainly(f, k, block, gap);
    else given_in_order(f, k, block, gap, stream);
    look_at_late(f, k);
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
        lives[live_count++] = (struct live){*e, gap_of(&s->plan->rows[row], tn_serve_asked(s, e->bytes), e->bytes)};
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

static void look_at_live(tn_hook_frame *f, const context_checks *k, long long until)
{
    uint32_t ctx = atomic_load(&k->ctx);
    for (uint32_t from = 0, i; from < live_count; from = i) {
        uint32_t sent = 0, of[LATE];
        for (i = from; i < live_count && sent < LATE; i++) {
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
    if (!tn_real.cuCtxGetCurrent || tn_real.cuCtxGetCurrent(&current) != 0 || !tn_own_enter(&f)) return;
    lives = tn_pages(AT_EXIT * sizeof *lives);
    if (lives) tn_ledger_sweep(collect, NULL, NULL);
    for (uint32_t i = 0; i < live_count; i++) {
        const tn_entry *e = &lives[i].block;
        if (e->kind == TN_KIND_PINNED) look_and_tell(&f, (unsigned char *)(uintptr_t)(e->addr + e->bytes), lives[i].gap, e, TN_SITE_NONE, TN_CHECK_AT_EXIT);
    }
    for (uint32_t i = 0; i < CONTEXTS; i++) {
        context_checks *k = &contexts[i];
        int pushed;
        if (atomic_load(&k->state) != READY || !enter(k, &pushed)) continue;
        while (atomic_load(&k->under_way) && now_ns() < until) {
            look_at_late(&f, k);
            if (atomic_load(&k->under_way)) syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 100000}, NULL);
        }
        /* Where some have not arrived the copies' places are not free, and the live ones are given up. */
        if (lives && !atomic_load(&k->under_way) && tn_capture_gate_wait()) {
            look_at_live(&f, k, until);
            tn_capture_gate_waited();
        }
        leave(pushed);
    }
    tn_own_leave(&f);
}

/* Registered once CUDA is at work, so that it runs before CUDA's own. */
static void watch_the_end(void)
{
    static _Atomic int registered;
    if (!atomic_exchange(&registered, 1)) (void)atexit(at_the_end);
}
