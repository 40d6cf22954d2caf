/* Readings of a device's used bytes, and of what pools and graphs hold of them. */
#include "shim/charge_reading.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim/identity.h"
#include "shim/moving.h"
#include "shim/real.h"
#include "shim/record.h"

#define POOLS 64u
#define WAIT_TURNS 200   /* likewise, and then by sleeps */
#define WAIT_NS 3000000000ll /* a capture is kept no longer: natively its begin waits for nothing */
#define GATE_WAITS 20000 /* turns of sched_yield: a question takes far less than one */

static void *_Atomic live[TN_READING_DEVICES]; /* a context of each device */
static _Atomic int pushing;                    /* readings that have a context of `live` pushed */
static _Atomic uint8_t graph_memory[TN_READING_DEVICES];
static _Atomic int asking, beginning; /* the gate: our questions, captures that begin */
static _Atomic int waiting;           /* and our waits for a context, which take as long as its work does */

typedef struct pool {
    _Atomic uint64_t handle;
    _Atomic uint64_t reserved, used; /* as last journalled */
    _Atomic uint32_t place; /* 1 + its device; 0 before the first allocation from it: it is not asked */
    _Atomic uint8_t is_default;
} pool;
static pool pools[POOLS];
static _Atomic uint32_t pool_count;
static _Atomic uint64_t graph_reserved[TN_READING_DEVICES], graph_used[TN_READING_DEVICES];

uint64_t tn_reading_last(void) { return atomic_load_explicit(&tn_hot_page->last_reading, memory_order_relaxed); }

/* ---- contexts */

void tn_reading_context(uint8_t device, void *handle)
{
    void *none = NULL;
    if (device < TN_READING_DEVICES && handle) atomic_compare_exchange_strong(&live[device], &none, handle);
}

void tn_reading_context_ends(void *handle)
{
    int found = 0;
    for (unsigned i = 0; handle && i < TN_READING_DEVICES; i++) {
        void *expected = handle;
        found |= atomic_compare_exchange_strong(&live[i], &expected, NULL);
    }
    for (int i = 0; found && i < GATE_WAITS && atomic_load(&pushing); i++) sched_yield();
}

void *tn_reading_context_of(uint8_t device) { return device < TN_READING_DEVICES ? atomic_load(&live[device]) : NULL; }

int tn_reading_has_context(uint8_t device) { return device < TN_READING_DEVICES && atomic_load(&live[device]) != NULL; }

/* ---- pools and graphs */

static long long now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* What a wait of ours waits for may itself wait for this very capture, or take for ever: then the capture begins as it would without us. The driver was asked to
 * wait before that; whether it ends the capture for it is its own affair, and the program sees it as such an end (901). */
static void wait_for_waits(void)
{
    long long until = now_ns() + WAIT_NS;
    for (int i = 0; atomic_load(&waiting); i++) {
        if (i < WAIT_TURNS) sched_yield();
        else syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = 50000}, NULL); /* libc's is a cancellation point */
        if (i >= WAIT_TURNS && now_ns() > until) {
            tn_coverage(TN_COV_NOTE, "a capture was begun while a wait for a context's work, made to hand out memory that was freed in use, was under way for 3 s and more: "
                                     "where the capture was lost, that is why; a block more for the waiting site avoids it (a rule of room blocks=N)");
            return;
        }
    }
}

void tn_capture_gate_begin(void)
{
    atomic_fetch_add(&beginning, 1);
    for (int i = 0; i < GATE_WAITS && atomic_load(&asking); i++) sched_yield();
    if (atomic_load(&waiting)) wait_for_waits();
}

int tn_capture_gate_wait(void)
{
    atomic_fetch_add(&waiting, 1);
    if (!atomic_load(&beginning) && !rec_captures()) return 1;
    atomic_fetch_sub(&waiting, 1);
    return 0;
}

void tn_capture_gate_waited(void) { atomic_fetch_sub(&waiting, 1); }

void tn_capture_gate_end(void) { atomic_fetch_sub(&beginning, 1); }

static pool *known_pool(uint64_t handle)
{
    uint32_t count = atomic_load(&pool_count);
    for (uint32_t i = 0; i < count && i < POOLS; i++)
        if (atomic_load_explicit(&pools[i].handle, memory_order_relaxed) == handle) return &pools[i];
    return NULL;
}

/* NULL where all places are taken: then it is not asked. */
static pool *add_pool(uint64_t handle)
{
    uint32_t count = atomic_load(&pool_count);
    for (uint32_t i = 0; i < POOLS; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&pools[i].handle, &none, handle)) continue;
        atomic_store(&pools[i].reserved, 0);
        atomic_store(&pools[i].used, 0);
        while (count <= i && !atomic_compare_exchange_weak(&pool_count, &count, i + 1)) {
        }
        return &pools[i];
    }
    return NULL;
}

void tn_reading_pool(uint8_t device, uint64_t handle, uint64_t addr, int is_default)
{
    if (!handle) {
        CUmemoryPool of = NULL;
        if (!tn_real.cuPointerGetAttribute ||
            tn_real.cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, (CUdeviceptr)addr) != 0 || !of)
            return;
        handle = (uint64_t)of;
    }
    pool *p = known_pool(handle);
    if (!p && is_default) p = add_pool(handle);
    if (!p || atomic_load_explicit(&p->place, memory_order_relaxed)) return;
    atomic_store(&p->is_default, (uint8_t)is_default);
    atomic_store(&p->place, device + 1u);
}

void tn_reading_pool_made(uint64_t handle)
{
    if (handle && !known_pool(handle)) (void)add_pool(handle);
}

int tn_reading_pool_ends(uint64_t handle)
{
    int found = 0;
    for (uint32_t i = 0; handle && i < POOLS; i++) {
        uint64_t expected = handle;
        if (atomic_load_explicit(&pools[i].handle, memory_order_relaxed) != handle) continue;
        atomic_store(&pools[i].place, 0); /* before another one may take it */
        found |= atomic_compare_exchange_strong(&pools[i].handle, &expected, 0);
    }
    for (int k = 0; found && k < GATE_WAITS && atomic_load(&asking); k++) sched_yield();
    return found;
}

void tn_reading_graph_memory(uint8_t device)
{
    if (device < TN_READING_DEVICES && !atomic_load_explicit(&graph_memory[device], memory_order_relaxed)) atomic_store(&graph_memory[device], 1);
}

static void held_event(tn_hook_frame *f, int kind, uint8_t device, uint64_t handle, uint64_t reserved, uint64_t used, int is_default,
                       uint64_t tsc)
{
    tn_event *e = tn_event_new(f, tsc);
    if (!e) return;
    e->kind = (uint8_t)kind;
    e->device = device;
    e->addr = handle;
    e->bytes = reserved;
    e->aux = used;
    e->aux2 = (uint64_t)is_default;
    tn_journal_commit(e, TN_EV_CHARGE);
}

/* A pool that the program may end is asked by its place in the table (`of`): who ends one takes it out first, then waits. A capture that began out of our sight, in a library that
 * no hook reaches, is in no count and passes no gate: relaxed, the question harms none (tests/gpu/golden: relaxed.cuMemPoolGetAttribute). */
static int ask_by_handle(_Atomic uint64_t *of, uint64_t *reserved, uint64_t *used)
{
    int answered = 0;
    atomic_fetch_add(&asking, 1);
    CUmemoryPool p = (CUmemoryPool)atomic_load(of);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (p && !atomic_load(&beginning) && !rec_captures() && tn_real.cuThreadExchangeStreamCaptureMode &&
        tn_real.cuThreadExchangeStreamCaptureMode(&mode) == 0) {
        answered = tn_real.cuMemPoolGetAttribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved) == 0 &&
                   tn_real.cuMemPoolGetAttribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used) == 0;
        (void)tn_real.cuThreadExchangeStreamCaptureMode(&mode);
    }
    atomic_fetch_sub(&asking, 1);
    return answered;
}

static int ask_pool(pool *of, uint64_t *reserved, uint64_t *used) { return ask_by_handle(&of->handle, reserved, used); }

int tn_reading_default_pool(uint64_t handle, uint64_t *reserved, uint64_t *used)
{
    _Atomic uint64_t of = handle;
    return tn_real.cuMemPoolGetAttribute && ask_by_handle(&of, reserved, used);
}

/* What pools and graphs hold, where it differs from what the journal says. */
static void read_held(tn_hook_frame *f, uint8_t device, int used_too, uint64_t tsc)
{
    uint64_t reserved, used;
    uint32_t count = atomic_load_explicit(&pool_count, memory_order_acquire);
    /* Where one has more or less reserved the figures of all are due, since only together they can be held against the blocks. */
    for (uint32_t i = 0; !used_too && i < count && i < POOLS && tn_real.cuMemPoolGetAttribute; i++)
        used_too = atomic_load(&pools[i].place) == device + 1u && ask_pool(&pools[i], &reserved, &used) && reserved != atomic_load(&pools[i].reserved);
    if (!used_too) count = 0;
    for (uint32_t i = 0; i < count && i < POOLS && tn_real.cuMemPoolGetAttribute; i++) {
        pool *p = &pools[i];
        if (atomic_load(&p->place) != device + 1u || !ask_pool(p, &reserved, &used)) continue;
        uint64_t handle = atomic_load(&p->handle);
        if (atomic_load(&p->reserved) == reserved && atomic_load(&p->used) == used) continue;
        atomic_store(&p->reserved, reserved);
        atomic_store(&p->used, used);
        held_event(f, TN_CHARGE_POOL, device, handle, reserved, used, atomic_load(&p->is_default), tsc);
    }
    if (!atomic_load_explicit(&graph_memory[device], memory_order_relaxed) || !tn_real.cuDeviceGetGraphMemAttribute) return;
    if (tn_real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != 0 ||
        tn_real.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used) != 0)
        return;
    if (atomic_load(&graph_reserved[device]) == reserved && (!used_too || atomic_load(&graph_used[device]) == used)) return;
    atomic_store(&graph_reserved[device], reserved);
    atomic_store(&graph_used[device], used);
    held_event(f, TN_CHARGE_GRAPH_MEMORY, device, 0, reserved, used, 0, tsc);
}

void tn_reading_held(tn_hook_frame *f, const tn_reading *of) { read_held(f, of->device, 1, of->tsc); }

/* ---- readings */

static int ask(uint64_t *used)
{
    size_t free_bytes = 0, total = 0;
    if (tn_real.cuMemGetInfo_v2(&free_bytes, &total) != 0) return 0;
    *used = total - free_bytes;
    return 1;
}

/* By another context than the current one. It cannot end meanwhile: who ends one takes it out of the table first, then waits. */
static int ask_elsewhere(uint8_t device, uint64_t *used)
{
    int answered = 0;
    CUcontext back;
    if (!tn_real.cuCtxPushCurrent_v2 || !tn_real.cuCtxPopCurrent_v2) return 0;
    atomic_fetch_add(&pushing, 1);
    void *handle = atomic_load(&live[device]);
    if (handle && tn_real.cuCtxPushCurrent_v2(handle) == 0) {
        answered = ask(used);
        (void)tn_real.cuCtxPopCurrent_v2(&back);
    }
    atomic_fetch_sub(&pushing, 1);
    return answered;
}

int tn_reading_take(tn_hook_frame *f, uint8_t device, tn_reading *out)
{
    uint64_t before, used = 0;
    if (f->nested || device >= TN_READING_DEVICES || !tn_real.cuMemGetInfo_v2) return 0;
    int quiet = tn_moving_others(f->thread->moving, &before);
    tn_context c = tn_context_current(f);
    if (!tn_reading_has_context(device)) return 0;
    int answered = c.number && c.device == device ? ask(&used) : ask_elsewhere(device, &used);
    if (!answered) return 0;
    read_held(f, device, 0, tn_stamp());
    out->tsc = tn_stamp();
    tn_moving_settle();
    quiet &= tn_moving_others(f->thread->moving, &out->others) && before == out->others;
    out->used = used;
    out->device = device;
    out->quiet = (uint8_t)quiet;
    atomic_store_explicit(&tn_hot_page->last_reading, out->tsc, memory_order_relaxed);
    return 1;
}
