#include "shim/identity.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/charge_reading.h"
#include "shim/map.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve_marks.h"

#define DEVICES 64

static tn_map contexts = TN_MAP_INIT; /* (handle, 0) -> number << 8 | device */
static tn_map made = TN_MAP_INIT;     /* (handle, 0) -> 1: of a context that the program made; a primary one is in the other map alone */
static tn_map streams = TN_MAP_INIT;  /* (handle, 0), (legacy, 1 + context) or (thread, 1 + context) -> number */
static tn_map devices = TN_MAP_INIT;  /* (ordinal, 0) -> 1 */
static _Atomic uint32_t context_count, stream_count;
static _Atomic int contexts_alive; /* as far as their ends were seen */
static void *_Atomic primaries[DEVICES];

static void describe_device(int ordinal)
{
    uint64_t one = 1;
    if (ordinal < 0 || tn_map_add(&devices, (uint64_t)ordinal, 0, &one) != 1) return;
    tn_rec_device d = {.ordinal = (uint32_t)ordinal};
    char name[256] = "";
    size_t total = 0;
    if (tn_real.cuDeviceGetUuid_v2) {
        CUuuid u;
        if (tn_real.cuDeviceGetUuid_v2(&u, ordinal) == 0) memcpy(d.uuid, u.bytes, sizeof d.uuid);
    }
    if (tn_real.cuDeviceGetName && tn_real.cuDeviceGetName(name, sizeof name, ordinal) != 0) name[0] = 0;
    if (tn_real.cuDeviceTotalMem_v2 && tn_real.cuDeviceTotalMem_v2(&total, ordinal) == 0) d.total_bytes = total;
    (void)tn_journal_record(tn_recording(), TN_REC_DEVICE, &d, sizeof d, name, strlen(name) + 1);
    int version = 0;
    if (tn_real.cuDriverGetVersion && tn_real.cuDriverGetVersion(&version) == 0)
        tn_journal_set_versions(tn_recording(), (uint32_t)version, 0);
}

tn_context tn_context_of(tn_hook_frame *f, void *handle, int device)
{
    uint64_t value, generation = atomic_load_explicit(&tn_hot_page->generation, memory_order_acquire);
    tn_thread *t = f->thread;
    if (!handle || f->nested) return (tn_context){0, TN_DEVICE_NONE};
    /* Nearly every event asks for the same context as the one before; threads must not meet in the map's lock for it. */
    if (t->known.handle == handle && t->known.generation == generation) return (tn_context){t->known.number, t->known.device};
    if (!tn_map_get(&contexts, (uint64_t)handle, 0, &value)) {
        CUdevice d = device;
        if (device < 0 && (!tn_real.cuCtxGetDevice || tn_real.cuCtxGetDevice(&d) != 0)) d = (int)TN_DEVICE_NONE;
        if (d >= 0 && d < DEVICES) describe_device(d);
        value = (uint64_t)(1 + atomic_fetch_add(&context_count, 1)) << 8 | (uint8_t)d;
        /* A runtime makes a primary context current before it is made; asked for its memory then, it might be made by us. */
        unsigned flags;
        int active = 0;
        if (d >= 0 && d < DEVICES && tn_real.cuDevicePrimaryCtxGetState && tn_real.cuDevicePrimaryCtxGetState(d, &flags, &active) == 0 && active)
            tn_reading_context((uint8_t)d, handle);
        uint32_t own = (uint32_t)(value >> 8);
        tn_serve_marks_context_known(own, handle); /* first: its work may be told by another thread as soon as that finds it */
        if (tn_map_add(&contexts, (uint64_t)handle, 0, &value) != 1) {
            tn_serve_marks_context_ended(own); /* another thread was before, and that is its number */
        } else {
            if (atomic_fetch_add(&contexts_alive, 1) == 1) atomic_fetch_add(&tn_hot_page->generation, 1); /* from now on threads ask whose default stream it is */
            tn_event *e = tn_event_new(f, tn_stamp());
            if (e) {
                e->kind = TN_CTX_SEEN;
                e->ctx = (uint32_t)(value >> 8);
                e->device = (uint8_t)value;
                e->addr = (uint64_t)handle;
                tn_journal_commit(e, TN_EV_CONTEXT);
            }
        }
    }
    t->known.handle = handle;
    t->known.generation = generation;
    t->known.number = (uint32_t)(value >> 8);
    t->known.device = (uint8_t)value;
    return (tn_context){(uint32_t)(value >> 8), (uint8_t)value};
}

tn_context tn_context_current(tn_hook_frame *f)
{
    void *c = NULL;
    int (*get_current)(void **) = tn_hot_page->get_current; /* as tn_real's, on a line that is there already */
    if (!get_current || get_current(&c) != 0) c = NULL;
    return tn_context_of(f, c, -1);
}

tn_context tn_context_of_stream(tn_hook_frame *f, void *stream)
{
    static __thread struct { uint32_t stream; tn_context context; } known[4] __attribute__((tls_model("initial-exec")));
    CUcontext of = NULL;
    uint64_t value;
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD || stream == TN_STREAM_NONE) return tn_context_current(f);
    uint32_t number = tn_stream_number(f, stream);
    if (number && known[number % 4].stream == number) return known[number % 4].context; /* a number is never another stream's */
    tn_context now = tn_context_current(f); /* which is known from here on */
    if (!number || !tn_real.cuStreamGetCtx || tn_real.cuStreamGetCtx(stream, &of) != 0 || !tn_map_get(&contexts, (uint64_t)of, 0, &value))
        return (tn_context){0, now.device};
    known[number % 4].stream = number;
    known[number % 4].context = (tn_context){(uint32_t)(value >> 8), (uint8_t)value};
    return known[number % 4].context;
}

void tn_context_made(void *handle)
{
    uint64_t one = 1;
    tn_map_add(&made, (uint64_t)handle, 0, &one);
}

int tn_context_is_alone(void) { return atomic_load(&contexts_alive) == 1; }

int tn_context_is_made(void *handle) { return tn_map_get(&made, (uint64_t)handle, 0, NULL); }

uint32_t tn_context_number(void *handle)
{
    uint64_t value = 0;
    return handle && tn_map_get(&contexts, (uint64_t)handle, 0, &value) ? (uint32_t)(value >> 8) : 0;
}

tn_context tn_context_leaves(void *handle, int *was_made)
{
    uint64_t value = 0;
    if (tn_map_remove(&contexts, (uint64_t)handle, 0, &value)) atomic_fetch_sub(&contexts_alive, 1);
    *was_made = tn_map_remove(&made, (uint64_t)handle, 0, NULL) == 1;
    atomic_fetch_add(&tn_hot_page->generation, 1);
    return (tn_context){(uint32_t)(value >> 8), (uint8_t)value};
}

void tn_context_back(void *handle, tn_context context, int was_made)
{
    uint64_t value = (uint64_t)context.number << 8 | context.device;
    if (context.number && tn_map_add(&contexts, (uint64_t)handle, 0, &value) == 1) atomic_fetch_add(&contexts_alive, 1);
    if (was_made) tn_context_made(handle);
    atomic_fetch_add(&tn_hot_page->generation, 1);
}

void tn_context_gone(void *handle)
{
    int was_made;
    tn_context c = tn_context_leaves(handle, &was_made);
    if (c.number) tn_serve_marks_context_ended(c.number);
}

void *tn_context_primary(int device)
{
    return device >= 0 && device < DEVICES ? atomic_load(&primaries[device]) : NULL;
}

void tn_context_set_primary(int device, void *handle)
{
    if (device >= 0 && device < DEVICES) atomic_store(&primaries[device], handle);
}

/* The driver's own id of a stream, 0 where it gives none. Asking for it kills the capture of a stream that is being captured
 * (seen on an H200, driver 580: 900 in every mode, see tests/gpu/safe_calls.c), so a stream first met while captures are
 * active stays without one; a stream whose creation was seen has had its id since then. The stream itself is asked as
 * well: a capture that began out of our sight is in no count. */
static uint64_t driver_id(void *handle)
{
    unsigned long long id = 0;
    if (rec_captures() || rec_is_capturing(handle)) return 0;
    if (!tn_real.cuStreamGetId || tn_real.cuStreamGetId(handle, &id) != 0) id = 0;
    return id;
}

static uint32_t describe_stream(tn_hook_frame *f, int kind, uint32_t number, uint32_t ctx, void *handle, uint64_t flags, int priority)
{
    uint64_t id = kind == TN_STREAM_CREATE || kind == TN_STREAM_SEEN ? driver_id(handle) : 0;
    tn_event *e = tn_event_new(f, tn_stamp());
    if (e) {
        e->kind = (uint8_t)kind;
        e->stream = number;
        e->ctx = ctx;
        e->addr = (uint64_t)handle;
        e->bytes = flags;
        e->aux = id;
        e->aux2 = (uint64_t)(int64_t)priority;
        tn_journal_commit(e, TN_EV_STREAM);
    }
    return number;
}

static uint64_t own_streams_of(uint32_t serial) { return (uint64_t)serial << 8 | TN_STREAM_PER_THREAD; }

static unsigned way_of(uint64_t a, uint64_t b) { return (unsigned)(a >> 4 ^ a >> 12 ^ b) % 4; }

uint32_t tn_stream_known(const tn_thread *t, const void *stream, uint32_t ctx)
{
    uint64_t a = (uint64_t)stream, b = 0;
    if (stream == CU_STREAM_PER_THREAD || stream == CU_STREAM_LEGACY) {
        a = stream == CU_STREAM_LEGACY ? TN_STREAM_LEGACY : own_streams_of(t->serial);
        b = 1 + (uint64_t)ctx;
    }
    unsigned way = way_of(a, b);
    return t->stream[way].handle == (void *)a && t->stream[way].context == (void *)b &&
                   t->stream[way].generation == atomic_load_explicit(&tn_hot_page->generation, memory_order_acquire)
               ? t->stream[way].number : 0;
}

uint32_t tn_stream_number(tn_hook_frame *f, void *handle)
{
    if (handle == TN_STREAM_NONE || f->nested) return 0;
    int kind = TN_STREAM_SEEN;
    if (handle == CU_STREAM_PER_THREAD || (!handle && f->ptds)) kind = TN_STREAM_PER_THREAD;
    else if (!handle || handle == CU_STREAM_LEGACY) kind = TN_STREAM_LEGACY;

    tn_thread *t = f->thread;
    uint32_t ctx = 0;
    uint64_t a = (uint64_t)handle, b = 0;
    if (kind != TN_STREAM_SEEN) {
        ctx = tn_context_current(f).number;
        a = kind == TN_STREAM_PER_THREAD ? own_streams_of(t->serial) : (uint64_t)kind;
        b = 1 + (uint64_t)ctx; /* a handle's is 0 */
    }
    uint64_t generation = atomic_load_explicit(&tn_hot_page->generation, memory_order_acquire);
    unsigned way = way_of(a, b);
    if (t->stream[way].number && t->stream[way].handle == (void *)a && t->stream[way].context == (void *)b &&
        t->stream[way].generation == generation)
        return t->stream[way].number;

    uint64_t value;
    if (!tn_map_get(&streams, a, b, &value)) {
        value = 1 + atomic_fetch_add(&stream_count, 1);
        if (kind == TN_STREAM_SEEN) ctx = tn_context_current(f).number;
        if (kind == TN_STREAM_PER_THREAD) t->own_streams = 1;
        if (tn_map_add(&streams, a, b, &value) == 1) describe_stream(f, kind, (uint32_t)value, ctx, handle, 0, 0);
    }
    t->stream[way].handle = (void *)a;
    t->stream[way].context = (void *)b;
    t->stream[way].generation = generation;
    t->stream[way].number = (uint32_t)value;
    return (uint32_t)value;
}

void tn_stream_created(tn_hook_frame *f, void *handle, uint64_t flags, int priority)
{
    if (!handle || f->nested) return;
    tn_serve_stream_ended(tn_stream_gone(handle)); /* the handle may have died unseen, with its context */
    uint64_t value = 1 + atomic_fetch_add(&stream_count, 1);
    tn_serve_stream_made((uint32_t)value, flags);
    tn_map_add(&streams, (uint64_t)handle, 0, &value);
    describe_stream(f, TN_STREAM_CREATE, (uint32_t)value, tn_context_current(f).number, handle, flags, priority);
}

uint32_t tn_stream_gone(void *handle)
{
    uint64_t value = 0;
    if ((uint64_t)handle <= 2 || !tn_map_remove(&streams, (uint64_t)handle, 0, &value)) return 0;
    atomic_fetch_add(&tn_hot_page->generation, 1);
    return (uint32_t)value;
}

void tn_stream_back(void *handle, uint32_t number)
{
    uint64_t value = number;
    if (number) tn_map_add(&streams, (uint64_t)handle, 0, &value);
}

void tn_thread_streams_gone(uint32_t serial)
{
    uint64_t value;
    while (tn_map_remove_any(&streams, own_streams_of(serial), &value)) tn_serve_stream_ended((uint32_t)value);
}
