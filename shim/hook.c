/* The life of this process's recording: its start, its threads, its end; and what an event and a site of a hooked call are made of. */
#include "shim/hook.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ledger/control_format.h"
#include "ledger/tn_hot_data.h"
#include "phaseguard/call_name.h"
#include "shim/bypass.h"
#include "shim/callsite.h"
#include "shim/identity.h"
#include "shim/launch.h"
#include "shim/modules.h"
#include "shim/pages.h"
#include "shim/phase.h"
#include "shim/python.h"
#include "shim/quiet.h"
#include "shim/real.h"
#include "shim/signals.h"
#include "shim/record_charge.h"
#include "shim/serve.h"
#include "shim/version.h"

#define EARLY_LINES 16
#define LOOKS_MAX 256     /* a program that opens and closes plug-ins all day pays for the first ones */
#define START_WAITS 20000 /* of 50 us: one second */

enum { UNSTARTED = 0, STARTING, RECORDING, FORWARDING };

static _Atomic int state;
static _Atomic int starter; /* pid of the process whose thread is starting */
static TN_HOT_DATA tn_journal *journal;
static pthread_key_t thread_end;
static _Atomic uint32_t thread_serial;
tn_hot tn_hot_pages; /* zeroed, or it would not be in memory of the kind that can be wiped at a fork */
#ifdef TENURE_BENCH_ASIDE
__attribute__((visibility("default"))) volatile int tenure_bench_aside;
#endif
static _Atomic uint64_t resolved_early[TN_API_COUNT];
static struct { uint32_t what; char text[480]; } coverage_early[EARLY_LINES];
static _Atomic int coverage_early_count;
static _Atomic uint64_t missed_early;

__thread tn_thread tn_self __attribute__((tls_model("initial-exec")));

static int is_own_process(void) { return atomic_load_explicit(&tn_hot_page->own, memory_order_relaxed); }

tn_journal *tn_recording(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    return (now == RECORDING || (now == STARTING && tn_self.busy)) && journal && is_own_process() ? journal : NULL;
}

/* A thread's first event and its last: journal thread numbers are handed on, serials are not. */
static void thread_event(tn_journal *j, const tn_thread *t, int kind)
{
    tn_event *e = t->journal ? tn_journal_slot(j, t->journal, 0) : NULL;
    if (!e) return;
    e->tsc = tn_stamp();
    e->kind = (uint8_t)kind;
    e->device = (uint8_t)TN_DEVICE_NONE;
    e->aux = (uint64_t)syscall(SYS_gettid);
    e->aux2 = t->serial;
    tn_journal_commit(e, TN_EV_THREAD);
}

static void thread_ends(void *t)
{
    tn_thread *thread = t;
    tn_journal *j = tn_recording();
    int was = thread->busy;
    thread->busy = 1;
    if (j) {
        tn_launches_end(thread, tn_stamp());
        thread_event(j, thread, 2);
    }
    if (j && thread->journal) tn_journal_detach(j, thread->journal);
    thread->journal = NULL;
    thread->counters = NULL;
    thread->hot = NULL;
    tn_moving_release(thread->moving);
    thread->moving = NULL;
    tn_quiet_leave(&thread->busy);
    if (j) tn_ledger_thread_ends();
    if (j && thread->own_streams) tn_thread_streams_gone(thread->serial);
    thread->own_streams = 0;
    thread->busy = was;
}

static void attach(tn_thread *t)
{
    int was = t->busy;
    t->busy = 1;
    if (!t->error) t->error = &errno;
    t->journal = tn_journal_attach(journal, (uint32_t)syscall(SYS_gettid));
    t->counters = t->journal ? tn_journal_counters(t->journal) : NULL;
    t->hot = t->counters ? tn_hot_page : NULL;
    if (t->journal && !t->moving) t->moving = tn_moving_claim();
    t->serial = 1 + atomic_fetch_add(&thread_serial, 1);
    if (!t->journal || pthread_setspecific(thread_end, t) != 0) tn_quiet_unknown();
    else tn_quiet_join(&t->busy);
    thread_event(journal, t, 1);
    t->busy = was;
}

static void write_tables(void)
{
    for (int api = 1; api < TN_API_COUNT; api++) {
        const tn_api_row *row = &tn_api_rows[api];
        tn_rec_api rec = {.id = (uint16_t)api, .level = row->level, .klass = row->klass};
        (void)tn_journal_record(journal, TN_REC_API, &rec, sizeof rec, row->name, strlen(row->name) + 1);
    }
}

/* The folder of this library, or of the program that carries it. */
static void own_folder(char *out, size_t size, char *path, size_t path_size)
{
    tn_module_info m;
    out[0] = path[0] = 0;
    if (!tn_module_of((const void *)own_folder, &m)) return;
    size_t n = strlen(m.path), folder = (size_t)(tn_basename(m.path) - m.path);
    if (n < path_size) memcpy(path, m.path, n + 1);
    if (folder && folder < size) {
        memcpy(out, m.path, folder);
        out[folder - 1] = 0;
    }
}

#ifdef TENURE_WRAP
static int is_preload(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    return info->dlpi_name && strcmp(tn_basename(info->dlpi_name), "libtenure.so") == 0;
}

/* A program that carries the archive may also be run by `tenure record`: then the preload records it, and the archive
 * only forwards, or every call would count twice. */
static int is_recorded_by_preload(void) { return dl_iterate_phdr(is_preload, NULL); }
#else
static int is_recorded_by_preload(void) { return 0; }
#endif

/* The run folder as the environment named it when the process began: a program may clear its environment before its first
 * CUDA call. */
static char run_folder[4096];

int tn_wanted(void)
{
    static _Atomic int answer; /* 1 no, 2 yes */
    int a = atomic_load_explicit(&answer, memory_order_acquire);
    if (!a) {
        const char *run = secure_getenv("TENURE_RUN");
        a = run && *run && strlen(run) < sizeof run_folder && !is_recorded_by_preload() ? 2 : 1;
        if (a == 2) memcpy(run_folder, run, strlen(run) + 1); /* by two threads at once: the same bytes */
        atomic_store_explicit(&answer, a, memory_order_release);
    }
    return a == 2;
}

int tn_may_start(void) { return tn_wanted() && atomic_load_explicit(&state, memory_order_acquire) == UNSTARTED; }

__attribute__((constructor)) static void process_begins(void)
{
    (void)tn_wanted();
    tn_cudart_look_in_front();
}

/* Bytes; 0, the default, where the variable is no whole number of MiB (`tenure record` refuses such a one). */
static uint64_t journal_limit(void)
{
    const char *text = secure_getenv("TENURE_JOURNAL_MAX_MIB");
    uint64_t mib = 0;
    for (const char *c = text; c && *c; c++) {
        if (*c < '0' || *c > '9' || mib > 1u << 30) return 0;
        mib = mib * 10 + (uint64_t)(*c - '0');
    }
    return mib << 20;
}

/* Work that no call waits for: when it began is of no use to anybody, and a stamp is a fifth of what a launch's hook costs. */
static int never_waits(int api)
{
    switch (api) {
    case TN_API_cuLaunchKernel:
    case TN_API_cuLaunchKernel_ptsz:
    case TN_API_cuLaunchKernelEx:
    case TN_API_cuLaunchKernelEx_ptsz:
    case TN_API_cuLaunchCooperativeKernel:
    case TN_API_cuLaunchCooperativeKernel_ptsz:
    case TN_API_cuGraphLaunch:
    case TN_API_cuGraphLaunch_ptsz:
        return 1;
    default:
        return 0;
    }
}

static void prepare_rows(tn_hot *hot)
{
    for (int api = 1; api < TN_API_COUNT; api++) {
        const tn_api_row *row = &tn_api_rows[api];
        unsigned bits = row->level;
        if (row->klass == TN_CLASS_WAIT || (row->klass == TN_CLASS_WORK && !never_waits(api))) bits |= TN_ROW_STAMPED;
        atomic_store_explicit(&hot->row[api], (uint8_t)(bits | tn_charge_bits(api)), memory_order_relaxed);
    }
}

/* Rows that a test switches off, to show that what they would have recorded turns up as unattributed. */
static void hide_rows(void)
{
    const char *text = secure_getenv("TENURE_TEST_HIDE"); /* names without variant suffixes, separated by commas */
    int launches = 0;
    for (const char *name = text; name && *name;) {
        size_t length = strcspn(name, ",");
        for (int api = 1; length && api < TN_API_COUNT; api++) {
            if (!tn_call_is_named(tn_api_rows[api].name, name, length)) continue;
            atomic_fetch_or(&tn_hot_page->row[api], TN_ROW_HIDDEN);
            launches |= never_waits(api);
        }
        name += length + (name[length] == ',');
    }
    if (launches) tn_known_close();
    if (text && *text) tn_coverage(TN_COV_TURNED_OFF, "hooks named by TENURE_TEST_HIDE, by a test");
}

static void say_full(void)
{
    tn_coverage(TN_COV_NOTE, "more call sites than are kept: later call chains are named by their innermost caller alone");
}

/* Once a process, by the thread that makes the first CUDA call: the journal, the ledger, libunwind. Not under an
 * allocation of the program's: the first call is an initialisation or fails for want of one. */
static int start(void)
{
    static char folder[1024], path[1024]; /* only one thread comes here, and its stack may be small */
    if (!tn_wanted()) return FORWARDING;
    tn_hot *hot = tn_hot_page;
    if (madvise(hot, sizeof *hot, MADV_WIPEONFORK) != 0) return FORWARDING; /* Linux before 4.14 */
    prepare_rows(hot);
    tn_cudart_range_to(hot);
    own_folder(folder, sizeof folder, path, sizeof path);
    tn_journal_options o = {.run_dir = run_folder,
                            .max_bytes = journal_limit(),
                            .shim_version = TN_SHIM_VERSION,
                            .api_count = TN_API_COUNT,
                            .libtenure_path = path};
#ifdef TENURE_WRAP
    o.header_flags = TN_HF_WRAP;
#endif
    if (tn_moving_init() != 0) return FORWARDING;
    if (tn_ledger_init() != TN_OK || pthread_key_create(&thread_end, thread_ends) != 0) return FORWARDING;
    if (tn_journal_open(&o, &journal) != TN_OK) return FORWARDING; /* `tenure record` has looked at the folder before */
    tn_phase_start(journal);
    hot->attention = tn_attention;
    hot->journal = journal;
    if (__atomic_load_n(tn_attention, __ATOMIC_RELAXED) & TN_ATTENTION_CALLS) tn_known_close();
    atomic_store(&hot->own, 1);
    hide_rows();
    write_tables();
    attach(&tn_self);
    for (int api = 1; tn_self.counters && api < TN_API_COUNT; api++)
        tn_self.counters[TN_API_MAX + api] += atomic_exchange(&resolved_early[api], 0);
    tn_callsite_full = say_full;
    if (tn_callsite_start(journal, folder) != 0) {
        tn_journal_set_flags(journal, TN_HF_UNWIND_OWN);
        tn_coverage(TN_COV_NO_LIBUNWIND, "no libunwind.so.8 beside libtenure.so that loads here; frames were walked by frame pointer");
    }
    tn_python_start();
    tn_serve_start(journal);
    return RECORDING;
}

/* Waits for another thread's start, but not for ever: that thread may need the loader's lock for libunwind while this one
 * holds it in a library's constructor. A call that gave up goes to the driver unrecorded, and is counted. */
static int wait_for_start(void)
{
    int now = STARTING;
    for (int i = 0; now == STARTING && i < START_WAITS; i++) {
        if (atomic_load(&starter) != (int)syscall(SYS_getpid)) return FORWARDING; /* forked in the middle */
        syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL); /* libc's is a cancellation point */
        now = atomic_load_explicit(&state, memory_order_acquire);
    }
    if (now == STARTING) atomic_fetch_add(&missed_early, 1);
    return now;
}

static int started(void)
{
    int expected = UNSTARTED;
    /* Before the state, so that a child forked between the two knows that the start is not its own. */
    if (atomic_load(&state) == UNSTARTED) atomic_store(&starter, (int)syscall(SYS_getpid));
    if (!atomic_compare_exchange_strong(&state, &expected, STARTING)) return expected == STARTING ? wait_for_start() : expected;
    uint64_t blocked = tn_signals_block(); /* it opens libunwind: see tn_driver_bind() */
    tn_self.busy = 1;
    int now = start();
    tn_self.busy = 0;
    atomic_store_explicit(&state, now, memory_order_release);
    tn_signals_restore(blocked);
    if (now == FORWARDING && !is_recorded_by_preload()) tn_serve_not_started();
    if (now == RECORDING) {
        tn_phase_started();
        int early = atomic_load(&coverage_early_count);
        for (int i = 0; i < early && i < EARLY_LINES; i++) tn_coverage(coverage_early[i].what, coverage_early[i].text);
        uint64_t missed = atomic_load(&missed_early);
        if (missed) tn_journal_drop(journal, missed);
    }
    return now;
}

int tn_hook_prepare(tn_hook_frame *f, int api)
{
    tn_thread *t = f->thread;
    const tn_api_row *row = &tn_api_rows[api];
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (now == UNSTARTED || (now == STARTING && !t->busy)) {
        if (row->klass == TN_CLASS_RESOLVE || row->level == TN_LEVEL_NVML) return 0; /* no CUDA start */
        now = started();
    }
    if (now != RECORDING || !is_own_process()) return 0;
    f->nested = t->busy != 0; /* a signal handler inside one of our own sections */
    if (!t->journal && !f->nested) attach(t);
    if (!t->counters) tn_journal_drop(journal, 1);
    return 1;
}

int tn_own_enter(tn_hook_frame *f)
{
    int errno_in = errno;
    tn_thread *t = &tn_self;
    if (!t->error) t->error = &errno;
    if (atomic_load_explicit(&state, memory_order_acquire) != RECORDING || !is_own_process() || t->busy) return 0;
    memset(f, 0, sizeof *f);
    f->errno_in = errno_in;
    f->thread = t;
    if (!t->journal) attach(t);
    f->on = f->busy_held = 1;
    f->recorded = t->recorded;
    f->around = t->outer;
    f->outer = TN_OUTER_BACK;
    t->outer = (tn_outer){.frame = f};
    t->busy = 1;
    return 1;
}

void tn_own_leave(tn_hook_frame *f) { tn_leave(f); }

tn_event *tn_event_new(tn_hook_frame *f, uint64_t tsc)
{
    tn_thread *t = f->thread;
    if (!f->on) return NULL;
    tn_launches_end(t, f->begun ? f->begun : tsc);
    t->stamp = tsc;
    tn_event *e = tn_journal_slot(journal, t->journal, f->nested);
    if (!e) return NULL;
    e->tsc = tsc;
    e->device = (uint8_t)TN_DEVICE_NONE;
    e->phase = tn_phase_now();
    e->api = f->api;
    e->outer_api = t->outer.api == f->api || f->nested ? 0 : t->outer.api;
    return e;
}

uint32_t tn_frame_find_site(tn_hook_frame *f)
{
    tn_thread *t = f->thread;
    if (!f->on) return TN_SITE_NONE;
    if (f->nested) return TN_SITE_NO_STACK;
    if (t->outer.site == TN_SITE_NONE) {
        t->outer.native = tn_callsite(t->outer.caller, t->outer.stack, t->outer.api);
        t->outer.site = tn_python_site(journal, t->outer.native);
    }
    return t->outer.site;
}

void tn_count_resolved(int api)
{
    int recording = tn_recording() != NULL;
    /* A thread may look up before its first hooked call, and what is counted "early" is fetched once, at the start. */
    if (recording && !tn_self.counters && !tn_self.busy) attach(&tn_self);
    if (recording && tn_self.counters) tn_self.counters[TN_API_MAX + api]++;
    else atomic_fetch_add_explicit(&resolved_early[api], 1, memory_order_relaxed);
}

/* Whether this line is in the journal; some are found at every look-up in a library. */
static int was_said(uint32_t what, const char *text)
{
    static _Atomic uint64_t said[64];
    uint64_t h = what + 1;
    for (const char *p = text; *p; p++) h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        uint64_t there = 0;
        if (atomic_compare_exchange_strong(&said[i], &there, h)) return 0;
        if (there == h) return 1;
    }
    return 0;
}

void tn_coverage(uint32_t what, const char *text)
{
    tn_rec_coverage c = {.what = what};
    tn_journal *j = tn_recording();
    if (j) {
        int was = tn_self.busy;
        tn_self.busy = 1; /* also in look-ups: a signal handler must not meet the lock of records */
        if (!was_said(what, text)) (void)tn_journal_record(j, TN_REC_COVERAGE, &c, sizeof c, text, strlen(text) + 1);
        tn_self.busy = was;
        return;
    }
    int known = atomic_load(&coverage_early_count);
    for (int k = 0; k < known && k < EARLY_LINES; k++)
        if (strncmp(coverage_early[k].text, text, sizeof coverage_early[k].text - 1) == 0) return;
    int i = atomic_fetch_add(&coverage_early_count, 1);
    if (i >= EARLY_LINES) return;
    coverage_early[i].what = what;
    strncpy(coverage_early[i].text, text, sizeof coverage_early[i].text - 1);
}

static void say_bypass(const char *text) { tn_coverage(TN_COV_BYPASS, text); }

void tn_look_for_bypass(void)
{
    static _Atomic int looks;
    if (!tn_wanted() || atomic_fetch_add(&looks, 1) >= LOOKS_MAX) return;
    int found = tn_bypass_find(say_bypass), early = atomic_load(&coverage_early_count);
    for (int i = 0; i < early && i < EARLY_LINES; i++) found += coverage_early[i].what == TN_COV_BYPASS;
    /* A process whose every CUDA call went past the hooks has a journal all the same: one that says so. */
    if (found && atomic_load_explicit(&state, memory_order_acquire) == UNSTARTED) (void)started();
}

/* No CUDA call and no output: the journal is on disk already, this marks its orderly end. */
__attribute__((destructor)) static void process_ends(void)
{
    tn_look_for_bypass();
    tn_journal *j = tn_recording();
    if (j) tn_phase_ends();
    if (j && tn_callsite_not_kept()) {
        char text[120];
        snprintf(text, sizeof text, "call chains that came when there were as many call sites as are kept: %llu", (unsigned long long)tn_callsite_not_kept());
        tn_coverage(TN_COV_NOTE, text);
    }
    if (j) tn_journal_end(j);
}
