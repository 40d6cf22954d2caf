/* Readings around calls that take device memory without being an allocation, and now and then: the journal's CHARGE events. */
#include "shim/record_charge.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/moving.h"
#include "shim/record.h"
#include "shim/short.h"

#define FIRST_CALLS 4u           /* of a row around which a reading is taken, where it is not always */
#define OFTEN_FIRST_CALLS 24u
#define OFTEN_TICKS 30000000u    /* then one a row in so many: 10 ms at 3 GHz */
#define CALM_MOST 4u             /* and doubled so often at most while they find nothing: a pair takes 50 us where the device works, 0.4 % of a decode loop each 12 ms */
#define TOUCH_TICKS 3000000u     /* 1 ms */
#define TRIES 40                 /* to find a quiet moment for a mark; 50 us apart */

static const uint8_t charge_how[TN_API_COUNT] = {
#define TN_CHARGE_ROW(name, kind, how) [TN_API_##name] = TN_HOW_##how,
#include "shim/charge_rows.def"
#undef TN_CHARGE_ROW
};

static const uint8_t charge_kind[TN_API_COUNT] = {
#define TN_CHARGE_ROW(name, kind, how) [TN_API_##name] = TN_CHARGE_##kind,
#include "shim/charge_rows.def"
#undef TN_CHARGE_ROW
};

static _Atomic uint32_t calls_of[TN_API_COUNT];  /* windows begun because the row was young */
static _Atomic uint64_t window_of[TN_API_COUNT]; /* stamp of the row's last one */
static _Atomic uint8_t calm_of[TN_API_COUNT];    /* windows in a row that found nothing, behind its first ones */
enum { PUT_OFF_FIRST = 1, PUT_OFF_TOUCH };
static _Atomic int put_off;                      /* something ran whose memory a later wait may show */

void rec_charge_managed(int sign)
{
    int before = atomic_fetch_add(&tn_hot_page->managed, sign);
    if (sign > 0 && before == 0) tn_known_close();
    if (sign < 0 && before == 1) tn_known_open();
}

unsigned tn_charge_bits(int api)
{
    switch (charge_how[api]) {
    case TN_HOW_NONE:
        return 0;
    case TN_HOW_MARKED:
        return TN_ROW_MARKED;
    case TN_HOW_WAITS:
        return TN_ROW_WINDOW;
    default:
        return TN_ROW_MARKED | TN_ROW_WINDOW;
    }
}

/* ---- events */

static uint32_t flags_of(const tn_reading *r, uint32_t quiet) { return r->quiet ? quiet : 0; }

static void reading_event(tn_hook_frame *f, const tn_reading *r, int cause)
{
    tn_event *e = tn_event_new(f, r->tsc);
    if (!e) return;
    e->kind = TN_CHARGE_READING;
    e->device = r->device;
    e->addr = (uint64_t)cause;
    e->bytes = e->aux = r->used;
    e->aux2 = flags_of(r, TN_CHARGE_QUIET_BEFORE | TN_CHARGE_QUIET_AFTER);
    tn_journal_commit(e, TN_EV_CHARGE);
}

/* ---- windows: a reading, the call, another reading */

static uint64_t often_ticks(int api) { return (uint64_t)OFTEN_TICKS << atomic_load_explicit(&calm_of[api], memory_order_relaxed); }

/* A window has found that memory moved, or that it did not. */
static void be_calm(int api)
{
    uint8_t calm = atomic_load_explicit(&calm_of[api], memory_order_relaxed);
    if (calm < CALM_MOST && !tn_charge_is_young(api)) atomic_store_explicit(&calm_of[api], (uint8_t)(calm + 1), memory_order_relaxed);
}

static void be_alert(void)
{
    for (int api = 0; api < TN_API_COUNT; api++) atomic_store_explicit(&calm_of[api], 0, memory_order_relaxed);
    rec_waits_due();
}

static void window_begin(tn_hook_frame *f, uint8_t kind, uint8_t device)
{
    tn_reading r;
    uint64_t unrecorded = atomic_load(&tn_unrecorded_ended);
    if (f->window.kind || !tn_reading_take(f, device, &r)) return;
    f->charged = 1;
    f->window.kind = kind;
    f->window.device = device;
    f->window.quiet = r.quiet;
    f->before.used = r.used;
    f->before.others = r.others;
    f->before.tsc = r.tsc;
    f->before.unrecorded = unrecorded;
}

void tn_charge_window_end(tn_hook_frame *f)
{
    tn_reading r;
    uint8_t kind = f->window.kind;
    f->window.kind = 0;
    if (!tn_reading_take(f, f->window.device, &r)) return;
    int should_move = f->thread->recorded != f->recorded && kind != TN_CHARGE_PINNED && kind != TN_CHARGE_ARRAY;
    if (r.used == f->before.used) be_calm(f->api);
    else be_alert();
    if (r.used == f->before.used && !should_move) return;
    tn_reading_held(f, &r);
    uint32_t site = tn_frame_site(f);
    tn_context c = tn_context_current(f);
    tn_event *e = tn_event_new(f, r.tsc);
    if (!e) return;
    e->kind = kind;
    e->device = f->window.device;
    e->ctx = c.number;
    e->site = site;
    e->addr = f->before.tsc;
    e->bytes = f->before.used;
    e->aux = r.used;
    e->aux2 = flags_of(&r, TN_CHARGE_QUIET_AFTER) | (f->window.quiet ? TN_CHARGE_QUIET_BEFORE : 0u) |
              (f->window.quiet && r.quiet && f->before.others == r.others ? TN_CHARGE_ALONE : 0u) |
              (atomic_load(&tn_unrecorded_begun) != f->before.unrecorded ? TN_CHARGE_BLIND : 0u);
    tn_journal_commit(e, TN_EV_CHARGE);
}

void rec_charge_own_begin(tn_hook_frame *f, uint8_t kind, uint8_t device)
{
    f->window.kind = TN_CHARGE_NONE; /* the hook's own would take this for its call's */
    window_begin(f, kind, device);
}

void rec_charge_own_end(tn_hook_frame *f)
{
    if (f->window.kind) tn_charge_window_end(f);
}

/* Whether this call of a row gets a window. */
static int is_due(int api, unsigned first, int again)
{
    int is_young = atomic_load_explicit(&calls_of[api], memory_order_relaxed) < first;
    if (!is_young && !again) return 0; /* before the counter is read, which costs as much as the rest */
    uint64_t now = tn_stamp();
    if (is_young) atomic_fetch_add(&calls_of[api], 1);
    else if (now - atomic_load_explicit(&window_of[api], memory_order_relaxed) < often_ticks(api)) return 0;
    atomic_store_explicit(&window_of[api], now, memory_order_relaxed);
    return 1;
}

int tn_charge_is_young(int api)
{
    uint32_t calls = atomic_load_explicit(&calls_of[api], memory_order_relaxed);
    switch (charge_how[api]) {
    case TN_HOW_NONE:
    case TN_HOW_MARKED:
        return 0;
    case TN_HOW_OFTEN:
    case TN_HOW_WAITS:
        return calls < OFTEN_FIRST_CALLS;
    default:
        return calls < FIRST_CALLS;
    }
}

static void put_off_to_waits(int what)
{
    atomic_store_explicit(&put_off, what, memory_order_relaxed);
    rec_waits_due();
}

static int wants_window(const tn_hook_frame *f)
{
    int due;
    switch (charge_how[f->api]) {
    case TN_HOW_ALWAYS:
        return 1;
    case TN_HOW_SELDOM:
        if (is_due(f->api, FIRST_CALLS, 0)) return 1;
        /* Its last one is behind it: later calls do not ask any more. */
        atomic_fetch_and_explicit(&tn_hot_page->row[f->api], (uint8_t)~TN_ROW_WINDOW, memory_order_relaxed);
        return 0;
    case TN_HOW_OFTEN:
        return is_due(f->api, OFTEN_FIRST_CALLS, 1);
    case TN_HOW_WAITS:
        switch (atomic_load_explicit(&put_off, memory_order_relaxed)) {
        case PUT_OFF_FIRST:
            if (atomic_exchange(&put_off, 0)) return 1;
            break;
        case PUT_OFF_TOUCH: /* every launch may touch managed memory, and a program may wait after each */
            if (tn_stamp() - tn_reading_last() > TOUCH_TICKS && atomic_exchange(&put_off, 0)) return 1;
            break;
        }
        due = is_due(f->api, OFTEN_FIRST_CALLS, 1);
        rec_wait_due(f->api, tn_charge_is_young(f->api) ? 0 : atomic_load_explicit(&window_of[f->api], memory_order_relaxed) + often_ticks(f->api));
        if (atomic_load_explicit(&put_off, memory_order_relaxed)) rec_wait_due(f->api, 0); /* set meanwhile */
        return due;
    case TN_HOW_TOUCHES:
        return is_due(f->api, FIRST_CALLS, atomic_load_explicit(&tn_hot_page->managed, memory_order_relaxed) > 0);
    default:
        return 0;
    }
}

void tn_charge_enter(tn_hook_frame *f)
{
    f->charged = 1;
    if (f->nested || !wants_window(f)) return;
    tn_context c = tn_context_current(f);
    if (c.number) window_begin(f, charge_kind[f->api], c.device);
}

void tn_charge_tick(tn_hook_frame *f) { rec_reconcile_in(f, TN_READ_TIME); }

void rec_free_managed_begin(tn_hook_frame *f)
{
    tn_context c = tn_context_current(f);
    if (!f->nested && c.number) window_begin(f, TN_CHARGE_MANAGED, c.device);
}

/* ---- first launches */

/* Handles seen, read without a lock at every launch. Empty places may stand between full ones, so a look-up reads all of its eight. */
#define SEEN 16384u
#define PLACES 8u
static _Atomic uint64_t functions[SEEN], execs[SEEN];

static int is_new(_Atomic uint64_t *seen, uint64_t handle)
{
    unsigned at = (unsigned)((handle >> 4) * 0x9e3779b97f4a7c15u >> 40), empty = PLACES;
    for (unsigned i = 0; i < PLACES; i++) {
        uint64_t there = atomic_load_explicit(&seen[(at + i) % SEEN], memory_order_relaxed);
        if (there == handle) return 0;
        if (!there && empty == PLACES) empty = i;
    }
    uint64_t none = 0;
    /* Where all eight are taken by others the oldest answer is given up: a reading more, once in a while. */
    if (empty == PLACES) atomic_store(&seen[at % SEEN], handle);
    else atomic_compare_exchange_strong(&seen[(at + empty) % SEEN], &none, handle);
    return 1;
}

static void work_begin(tn_hook_frame *f, uint8_t kind)
{
    tn_charge_mark(f);
    tn_context c = tn_context_current(f);
    if (c.number) window_begin(f, kind, c.device);
    put_off_to_waits(PUT_OFF_FIRST);
}

/* Whether a function (or tn_known_kernel()) was met before. From now on it is, and may go the short way where that is open. */
static int was_met(uint64_t function)
{
    _Atomic uint64_t *place = &tn_hot_page->known[tn_known_place(function)];
    if (atomic_load_explicit(place, memory_order_relaxed) == function) return 1;
    int met = !is_new(functions, function);
    if (!atomic_load(&tn_hot_page->long_way)) atomic_store(place, function);
    if (atomic_load(&tn_hot_page->long_way)) atomic_store(place, 0); /* closed meanwhile */
    return met;
}

static void forget(uint64_t function)
{
    unsigned at = (unsigned)((function >> 4) * 0x9e3779b97f4a7c15u >> 40);
    for (unsigned i = 0; i <= PLACES; i++) {
        _Atomic uint64_t *place = i < PLACES ? &functions[(at + i) % SEEN] : &tn_hot_page->known[tn_known_place(function)];
        uint64_t expected = function;
        atomic_compare_exchange_strong(place, &expected, 0);
    }
}

void rec_launch_begin(tn_hook_frame *f, const void *function)
{
    if (f->nested || !function) return;
    f->window.warm = was_met((uint64_t)function);
    if (!f->window.warm) work_begin(f, TN_CHARGE_LAUNCH);
    else if (atomic_load_explicit(&tn_hot_page->managed, memory_order_relaxed) > 0) atomic_store_explicit(&put_off, PUT_OFF_TOUCH, memory_order_relaxed);
}

void rec_launch_refused(tn_hook_frame *f, const void *function)
{
    if (!f->nested && function && !f->window.warm) forget((uint64_t)function);
}

void rec_kernel_begin(tn_hook_frame *f, const void *kernel)
{
    void *context;
    if (f->nested || !kernel || !tn_hot_page->get_current || tn_hot_page->get_current(&context) != 0 || !context) return;
    f->handle = (void *)tn_known_kernel(kernel, context);
    f->window.warm = was_met((uint64_t)f->handle);
    if (f->window.warm) return;
    tn_charge_mark(f);
    tn_context c = tn_context_current(f);
    if (c.number) window_begin(f, TN_CHARGE_MODULE, c.device);
}

void rec_kernel(tn_hook_frame *f, int r)
{
    if (r != 0 && f->handle && !f->window.warm) forget((uint64_t)f->handle);
}

void rec_graph_launch_begin(tn_hook_frame *f, const void *exec)
{
    if (!f->nested && exec && is_new(execs, (uint64_t)exec)) work_begin(f, TN_CHARGE_GRAPH);
}

void rec_functions_gone(void)
{
    for (unsigned i = 0; i < TN_KNOWN; i++) atomic_store_explicit(&tn_hot_page->known[i], 0, memory_order_relaxed);
    for (unsigned i = 0; i < SEEN; i++)
        if (atomic_load_explicit(&functions[i], memory_order_relaxed)) atomic_store_explicit(&functions[i], 0, memory_order_relaxed);
}

void rec_graph_exec_gone(const void *exec)
{
    unsigned at = (unsigned)(((uint64_t)exec >> 4) * 0x9e3779b97f4a7c15u >> 40);
    for (unsigned i = 0; exec && i < PLACES; i++) {
        uint64_t expected = (uint64_t)exec;
        atomic_compare_exchange_strong(&execs[(at + i) % SEEN], &expected, 0);
    }
}

/* ---- readings of every device */

static void reconcile(tn_hook_frame *f, int cause, int tries)
{
    tn_reading r;
    for (unsigned d = 0; d < TN_READING_DEVICES; d++) {
        if (!tn_reading_has_context((uint8_t)d)) continue;
        int had = tn_reading_take(f, (uint8_t)d, &r);
        for (int i = 0; had && !r.quiet && i < tries; i++) {
            syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL);
            had = tn_reading_take(f, (uint8_t)d, &r);
        }
        if (!had) continue;
        if (cause == TN_READ_MARK || cause == TN_READ_PHASE) rec_charge_neighbours(f, (uint8_t)d);
        tn_reading_held(f, &r);
        reading_event(f, &r, cause);
    }
}

void rec_reconcile_in(tn_hook_frame *f, int cause)
{
    if (!f->nested) reconcile(f, cause, cause == TN_READ_TIME || cause == TN_READ_EVENTS ? 0 : TRIES);
}

void rec_reconcile(int cause)
{
    tn_hook_frame f;
    if (!tn_own_enter(&f)) return;
    rec_reconcile_in(&f, cause);
    tn_own_leave(&f);
}
