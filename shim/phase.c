/* Moves of the phase, and the events that say so. */
#include "shim/phase.h"
#include "shim/callsite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/control.h"
#include "phaseguard/call_name.h"
#include "shim/map.h"
#include "shim/modules.h"
#include "shim/record_charge.h"

tn_guard tn_process_guard;
static uint32_t no_block;
uint32_t *tn_attention = &no_block;
static tn_control *block;
static _Atomic int taking;

/* ---- the events */

static void phase_event(tn_hook_frame *f, uint32_t phase, tn_phase_moved m, int cause, uint64_t tsc)
{
    tn_event *e = tn_event_new(f, tsc);
    if (!e) return;
    e->api = e->outer_api = 0;
    e->kind = (uint8_t)phase;
    e->aux = m.from;
    e->bytes = m.swap;
    e->aux2 = (uint64_t)cause;
    tn_journal_commit(e, TN_EV_PHASE);
}

/* 1 moved, 0 it was there already, -1 refused. */
static int move(tn_hook_frame *f, uint32_t to, int cause, uint64_t tsc)
{
    tn_phase_moved m = tn_phase_set(&tn_process_guard.phase, to);
    if (m.move == TN_MOVE_NONE) return 0;
    if (m.move >= TN_MOVE_BACKWARD) return -1;
    if (block) {
        __atomic_store_n(&block->phase, to, __ATOMIC_RELEASE);
        __atomic_store_n(&block->swaps, tn_phase_swaps(&tn_process_guard.phase), __ATOMIC_RELEASE);
    }
    phase_event(f, to, m, cause, tsc);
    return 1;
}

#define STRINGS_MAX 65536u /* of 32 bytes, and a record each: ranges may be numbered, and a server's never end */
static _Atomic int strings_full;

/* A text has one STRING record however often it is marked. Where no memory is left for the table, it gets another one. */
static uint32_t string_id(const char *text)
{
    static tn_map known = TN_MAP_INIT;
    static _Atomic uint32_t count;
    uint64_t h = 0xcbf29ce484222325u, g = 0, id;
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
        g = (g + (unsigned char)text[i]) * 0x9e3779b97f4a7c15u;
    }
    if (tn_map_get(&known, h, g ^ length, &id)) return (uint32_t)id;
    uint32_t number = atomic_load(&count) < STRINGS_MAX ? 1 + atomic_fetch_add(&count, 1) : STRINGS_MAX + 1;
    if (number > STRINGS_MAX) {
        if (!atomic_exchange(&strings_full, 1))
            tn_coverage(TN_COV_NOTE, "more different texts of marks and ranges than are kept: later ones have no name");
        return 0;
    }
    /* Before the table, so that whoever finds the number there finds the record in the journal. */
    (void)tn_journal_record(tn_recording(), TN_REC_STRING, &number, sizeof number, text, length + 1);
    id = number;
    tn_map_add(&known, h, g ^ length, &id);
    return (uint32_t)id;
}

static void mark_event(tn_hook_frame *f, int kind, const char *text, uint64_t range, int cause, uint64_t tsc)
{
    uint32_t id = text ? string_id(text) : 0;
    tn_event *e = tn_event_new(f, tsc);
    if (!e) return;
    e->api = e->outer_api = 0;
    e->kind = (uint8_t)kind;
    e->addr = id;
    e->aux = range;
    e->aux2 = (uint64_t)cause;
    tn_journal_commit(e, TN_EV_MARK);
}

/* ---- commands from outside */

/* Whether one of them asks for a reading of the device, and for what. */
static int take_all(tn_hook_frame *f)
{
    tn_control_slot s;
    int reading = 0;
    while (tn_control_next(block, &s)) {
        if (s.kind == TN_COMMAND_MARK) {
            mark_event(f, TN_MARK_POINT, s.text, 0, (int)s.cause, s.tsc);
            reading = reading ? reading : TN_READ_MARK;
        } else if (s.kind == TN_COMMAND_PHASE) {
            int moved = move(f, s.value, (int)s.cause, s.tsc);
            if (moved > 0) reading = TN_READ_PHASE;
            if (moved < 0) __atomic_fetch_add(&block->refused, 1, __ATOMIC_RELAXED);
        }
    }
    return reading;
}

/* One thread takes; the others go on. Who takes looks again afterwards, so that a command that came meanwhile is not left. */
static int take(tn_hook_frame *f)
{
    int reading = 0;
    while (__atomic_load_n(tn_attention, __ATOMIC_RELAXED) & TN_ATTENTION_COMMAND) {
        if (atomic_exchange(&taking, 1)) break;
        __atomic_fetch_and(tn_attention, ~(uint32_t)TN_ATTENTION_COMMAND, __ATOMIC_ACQ_REL);
        int more = block ? take_all(f) : 0;
        if (more) reading = more;
        atomic_store(&taking, 0);
    }
    return reading;
}

/* ---- the n-th call of a function */

#define TRIGGERS 2 /* Planning, Serving */
static uint8_t watched[TN_API_COUNT]; /* bit i: trigger i counts this row */
static _Atomic uint64_t calls[TRIGGERS];
static uint64_t fires_at[TRIGGERS]; /* 0: no such trigger */
static _Atomic int armed;

/* "NAME:N"; what cannot be read arms nothing (`tenure record` refuses it). */
static void arm(int trigger, const char *text)
{
    const char *colon = text ? strrchr(text, ':') : NULL;
    uint64_t n = 0;
    if (!colon) return;
    for (const char *c = colon + 1; *c; c++) {
        if (*c < '0' || *c > '9' || n > UINT64_MAX / 20) return;
        n = n * 10 + (uint64_t)(*c - '0');
    }
    int found = 0;
    for (int api = 1; n && api < TN_API_COUNT; api++)
        if (tn_call_is_named(tn_api_rows[api].name, text, (size_t)(colon - text))) {
            watched[api] |= (uint8_t)(1 << trigger);
            found = 1;
        }
    if (!found) return;
    fires_at[trigger] = n;
    atomic_fetch_add(&armed, 1);
}

static int count_call(tn_hook_frame *f)
{
    int reading = 0;
    for (int i = 0; i < TRIGGERS; i++) {
        if (!(watched[f->api] & 1 << i) || 1 + atomic_fetch_add(&calls[i], 1) != fires_at[i]) continue;
        if (move(f, i ? TN_PHASE_SERVING : TN_PHASE_PLANNING, TN_CAUSE_CALL, tn_stamp()) > 0) reading = TN_READ_PHASE;
        if (atomic_fetch_sub(&armed, 1) != 1) continue;
        __atomic_fetch_and(tn_attention, ~(uint32_t)TN_ATTENTION_CALLS, __ATOMIC_ACQ_REL);
        tn_known_open();
    }
    return reading;
}

void tn_phase_attend(tn_hook_frame *f)
{
    uint32_t attention = __atomic_load_n(tn_attention, __ATOMIC_RELAXED);
    int reading = 0;
    if (f->nested || !f->on) return;
    if (attention & TN_ATTENTION_READING && __atomic_fetch_and(tn_attention, ~(uint32_t)TN_ATTENTION_READING, __ATOMIC_ACQ_REL) & TN_ATTENTION_READING)
        reading = TN_READ_MARK;
    if (attention & TN_ATTENTION_COMMAND) {
        int taken = take(f);
        if (taken) reading = taken;
    }
    if (attention & TN_ATTENTION_CALLS) {
        int counted = count_call(f);
        if (counted) reading = counted;
    }
    if (reading) rec_reconcile_in(f, reading);
}

/* ---- before recording, and its ends */

#define EARLY 64
static struct { char text[TN_CONTROL_TEXT]; uint64_t range; int kind, cause; } early[EARLY];
static _Atomic int early_count, early_cause;

void tn_phase_start(tn_journal *journal)
{
    const char *guard = secure_getenv("TENURE_GUARD");
    tn_process_guard.mode = !guard                         ? TN_GUARD_COUNT
                            : strcmp(guard, "warn") == 0   ? TN_GUARD_WARN
                            : strcmp(guard, "refuse") == 0 ? TN_GUARD_REFUSE
                            : strcmp(guard, "abort") == 0  ? TN_GUARD_ABORT
                                                           : TN_GUARD_COUNT;
    arm(0, secure_getenv("TENURE_PLANNING_CALL"));
    arm(1, secure_getenv("TENURE_SERVING_CALL"));
    block = tn_control_make(journal);
    if (block) {
        __atomic_store_n(&block->phase, tn_phase_now(), __ATOMIC_RELEASE);
        tn_attention = &block->attention;
    }
    if (atomic_load(&armed)) __atomic_fetch_or(tn_attention, TN_ATTENTION_CALLS, __ATOMIC_RELEASE);
}

void tn_phase_started(void)
{
    tn_hook_frame f;
    if (!block) tn_coverage(TN_COV_NOTE, "no control block could be made beside the journal; tenure ctl and its triggers do not reach this process");
    if (!tn_own_enter(&f)) return;
    uint32_t phase = tn_phase_now();
    if (phase != TN_PHASE_LOADING) phase_event(&f, phase, (tn_phase_moved){.move = TN_MOVE_FORWARD}, atomic_load(&early_cause), tn_stamp());
    int known = atomic_load(&early_count);
    for (int i = 0; i < known && i < EARLY; i++) {
        const char *text = early[i].kind == TN_MARK_RANGE_END ? NULL : early[i].text;
        mark_event(&f, early[i].kind, text, early[i].range, early[i].cause, tn_stamp());
    }
    tn_own_leave(&f);
}

void tn_phase_ends(void)
{
    tn_hook_frame f;
    if (!block || !tn_phase_wants_attention() || !tn_own_enter(&f)) return;
    (void)take(&f);
    tn_own_leave(&f);
}

/* ---- the guard */

static void write_line(const char *line, int n, size_t size)
{
    if (n > 0) (void)!syscall(SYS_write, 2, line, (size_t)n < size ? (size_t)n : size - 1);
}

static void warn(const tn_hook_frame *f, const tn_event *e)
{
    tn_module_info m;
    const void *caller = f->thread->outer.caller;
    char line[512], where[300] = "code in no file";
    if (caller && tn_module_of(caller, &m)) snprintf(where, sizeof where, "%.200s+0x%llx", tn_basename(m.path), (unsigned long long)((uint64_t)caller - m.base));
    int api = f->thread->outer.api ? f->thread->outer.api : f->api;
    int n = snprintf(line, sizeof line, "tenure: pid %ld: %s of %llu bytes while serving, by %s%s\n", syscall(SYS_getpid), tn_api_rows[api].name,
                     (unsigned long long)e->bytes, where, e->result ? " (refused)" : "");
    write_line(line, n, sizeof line);
}

/* By module and offset: names are for whoever has the symbols. */
static void write_backtrace(const tn_hook_frame *f)
{
    uint64_t frames[TN_FRAMES_MAX + 24];
    int count = f->thread->outer.caller ? tn_unwind(f->thread->outer.caller, frames, TN_FRAMES_MAX) : 0;
    for (int i = 0; i < count; i++) {
        tn_module_info m;
        char line[400];
        int known = tn_module_of((const void *)(uintptr_t)frames[i], &m);
        int n = snprintf(line, sizeof line, "tenure:   #%d %.300s+0x%llx\n", i, known ? m.path : "code in no file",
                         (unsigned long long)(known ? frames[i] - m.base : frames[i]));
        write_line(line, n, sizeof line);
    }
}

int tn_guard_refuses(tn_hook_frame *f, uint64_t bytes)
{
    if (tn_process_guard.mode < TN_GUARD_REFUSE || tn_phase_now() != TN_PHASE_SERVING) return 0;
    if (tn_process_guard.mode == TN_GUARD_REFUSE) return 1;
    tn_event e = {.bytes = bytes, .result = 1};
    warn(f, &e);
    write_backtrace(f);
    abort();
}

void tn_guard_event(tn_hook_frame *f, tn_event *e, tn_event_type type)
{
    /* Nearly every allocation is granted before Serving, at the site of the one before: of that the guard keeps that it was not refused. */
    int is_plain = type == TN_EV_ALLOC && e->result == 0 && !f->nested && tn_serving_counts_kind(e->kind);
    if (is_plain && tn_route_tier(f->route)) {
        tn_guard_served(f->thread, e);
        return;
    }
    if (is_plain && e->site >= TN_SITE_FIRST && e->site == f->thread->guarded && tn_phase_now() != TN_PHASE_SERVING) {
        f->thread->serving.refused = 0;
        return;
    }
    tn_serving_thread unknown = {0};
    tn_event told = *e;
    told.type = (uint8_t)type;
    tn_guard_noted n = tn_guard_note(&tn_process_guard, f->nested ? &unknown : &f->thread->serving, &told, tn_serving_tier(&told));
    if (is_plain) f->thread->guarded = e->site;
    if (n.what == TN_SERVING_ALLOCATION && block && tn_phase_now() == TN_PHASE_SERVING) {
        __atomic_fetch_add(&block->serving_allocations, 1, __ATOMIC_RELAXED);
        if (n.repeated) __atomic_fetch_add(&block->serving_repeated, 1, __ATOMIC_RELAXED);
    }
    if (n.warn && !f->nested) warn(f, e);
}

void tn_guard_served(tn_thread *t, const tn_event *e)
{
    t->serving.refused = 0;
    if (__builtin_expect(e->site == t->guarded, 1)) return;
    uint32_t *seen = &t->seen[e->site % TN_SEEN]; /* programs ask from several sites in turn */
    if (*seen != e->site || e->site < TN_SITE_FIRST) tn_guard_seen(&tn_process_guard, e->site);
    *seen = e->site;
    t->guarded = e->site >= TN_SITE_FIRST ? e->site : t->guarded;
}

/* ---- tenure.h and NVTX */

int tn_mark(int kind, const char *text, uint64_t range, int cause)
{
    tn_hook_frame f;
    uint64_t now = tn_stamp();
    if (!tn_recording()) {
        /* A program that ranges for ever and never starts CUDA must not count up to an overflow. */
        int i = tn_may_start() && atomic_load(&early_count) < EARLY ? atomic_fetch_add(&early_count, 1) : EARLY;
        if (i >= EARLY) return 1;
        early[i].kind = kind;
        early[i].range = range;
        early[i].cause = cause;
        if (text) strncpy(early[i].text, text, sizeof early[i].text - 1);
        return 0;
    }
    if (!tn_own_enter(&f)) return 1;
    mark_event(&f, kind, text, range, cause, now);
    /* Ranges come by the thousand. NVTX's marks may stand in a host function of a stream, where nothing may be asked of the driver: there the next
     * CUDA call asks, before which nothing changes. */
    if (kind == TN_MARK_POINT && cause == TN_CAUSE_NVTX) __atomic_fetch_or(tn_attention, TN_ATTENTION_READING, __ATOMIC_RELEASE);
    else if (kind == TN_MARK_POINT) rec_reconcile_in(&f, TN_READ_MARK);
    tn_own_leave(&f);
    return 0;
}

/* What tenure.h finds by dlsym. 0; 1: this process records nothing (then a phase or mark before its first CUDA call waits for that);
 * -1: phases go forward only, and there is none of that number. */
#define EXPORT __attribute__((visibility("default")))
EXPORT int tenure_v1_phase(int phase);
EXPORT int tenure_v1_mark(const char *text);
EXPORT int tenure_v1_range(int begin, const char *text, unsigned long long range);

int tenure_v1_phase(int phase)
{
    tn_hook_frame f;
    uint64_t now = tn_stamp();
    if (!tn_recording()) {
        if (!tn_may_start()) return 1;
        if (phase < 0 || phase > TN_PHASE_SERVING) return -1;
        atomic_store(&early_cause, TN_CAUSE_API);
        return tn_phase_set(&tn_process_guard.phase, (uint32_t)phase).move >= TN_MOVE_BACKWARD ? -1 : 0;
    }
    if (phase < 0 || phase > TN_PHASE_SERVING) return -1;
    if (!tn_own_enter(&f)) return 1;
    int moved = move(&f, (uint32_t)phase, TN_CAUSE_API, now);
    if (moved > 0) rec_reconcile_in(&f, TN_READ_PHASE);
    tn_own_leave(&f);
    return moved < 0 ? -1 : 0;
}

int tenure_v1_mark(const char *text) { return text ? tn_mark(TN_MARK_POINT, text, 0, TN_CAUSE_API) : -1; }

int tenure_v1_range(int begin, const char *text, unsigned long long range)
{
    return tn_mark(begin == 2 ? TN_MARK_POINT : begin ? TN_MARK_RANGE_BEGIN : TN_MARK_RANGE_END, text, range, TN_CAUSE_NVTX);
}
