/* Allocations and frees: the ledger's entries and the journal's ALLOC, FREE and VMM events. */
#include <stdatomic.h>

#include "ledger/tn_hot_data.h"
#include "shim/charge_reading.h"
#include "shim/identity.h"
#include "shim/phase.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/serve_calls.h"
#include "shim/serve_handles.h"
#include "shim/serve_info.h"
#include "shim/serve_marks.h"
#include "shim/record_memory.h"

#define MIB (1024u * 1024u)

static uint64_t round_up(uint64_t n, uint64_t to) { return n > UINT64_MAX - to ? n : (n + to - 1) / to * to; }

/* What a block costs by the driver's rounding as seen: device blocks up to 1 MiB share 2 MiB slabs in steps of 512
 * bytes, larger ones are rounded to 2 MiB; stream-ordered ones to 512 bytes within their pool; pinned
 * memory to host pages. The slack of slabs and pools is a charge of its own and no block's. */
static uint64_t backed_bytes(int kind, uint64_t bytes)
{
    switch (kind) {
    case TN_KIND_ASYNC:
    case TN_KIND_POOL:
    case TN_KIND_GRAPH:
        return round_up(bytes, 512);
    case TN_KIND_PINNED:
    case TN_KIND_REGISTERED:
        return round_up(bytes, 4096);
    case TN_KIND_IMPORTED:
        return 0;
    default:
        return round_up(bytes, bytes > MIB ? 2 * MIB : 512);
    }
}

static tn_space space_of(int kind)
{
    if (kind == TN_KIND_ARRAY || kind == TN_KIND_MIPMAP) return TN_SPACE_ARRAY;
    return kind == TN_KIND_VMM_HANDLE ? TN_SPACE_VMM_HANDLE : TN_SPACE_ADDRESS;
}

/* A stream-ordered block's device is its pool's, which need not be the current one: the pointer says it. */
static uint8_t device_of_pointer(uint64_t addr, uint8_t otherwise)
{
    int ordinal;
    if (tn_real.cuPointerGetAttribute &&
        tn_real.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)addr) == 0 && ordinal >= 0)
        return (uint8_t)ordinal;
    return otherwise;
}

/* The devices of the streams that this thread last allocated on. A stream's number is never given to another, and an allocation that
 * names no pool comes from the stream's own device, so asking the driver once a stream is enough. */
#define KNOWN_STREAMS 8u
static __thread struct { uint32_t stream; uint8_t device; } known_devices[KNOWN_STREAMS] __attribute__((tls_model("initial-exec")));

static uint8_t device_of_stream(uint32_t stream, uint64_t addr, uint8_t otherwise)
{
    unsigned way = stream % KNOWN_STREAMS;
    if (stream && known_devices[way].stream == stream) return known_devices[way].device;
    uint8_t device = device_of_pointer(addr, TN_DEVICE_NONE);
    if (device == TN_DEVICE_NONE) return otherwise;
    tn_reading_pool(device, 0, addr, 1);
    known_devices[way].stream = stream;
    known_devices[way].device = device;
    return device;
}

/* Set for good when a driver row below a runtime row has recorded. Until then the runtime's own driver calls may be out of
 * our sight (libtenure_wrap.a without the libraries), and the runtime rows have to record what they would have. */
static TN_HOT_DATA _Atomic int driver_rows_below;

static void note_level(const tn_hook_frame *f)
{
    if (__builtin_expect(!atomic_load_explicit(&driver_rows_below, memory_order_relaxed), 0) &&
        f->thread->outer.level == TN_LEVEL_RUNTIME && tn_api_rows[f->api].level == TN_LEVEL_DRIVER)
        atomic_store_explicit(&driver_rows_below, 1, memory_order_relaxed);
}

int tn_record_level(void) { return atomic_load_explicit(&driver_rows_below, memory_order_relaxed); }

/* Only a stream that the program made, or a thread's own, can be captured. */
int tn_record_is_captured(const tn_hook_frame *f, void *stream)
{
    if (stream == TN_STREAM_NONE || stream == CU_STREAM_LEGACY || (!stream && !f->ptds)) return 0;
    return rec_is_capturing(stream ? stream : CU_STREAM_PER_THREAD);
}

void rec_site(tn_hook_frame *f) { (void)tn_frame_site(f); }

void rec_site_first(tn_hook_frame *f)
{
    if (!f->thread->context) (void)tn_frame_site(f);
}

/* The one place where an allocation enters ledger and journal. */
void tn_record_alloc(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra, tn_context c, void *stream)
{
    uint64_t now = tn_stamp();
    uint32_t number = 0;
    note_level(f);
    if (r == 0 && !addr) return; /* size 0: success without a block */
    if (stream != TN_STREAM_NONE) number = tn_stream_number(f, stream);
    if (stream != TN_STREAM_NONE && r == 0) {
        if (rec_captures() && tn_record_is_captured(f, stream)) kind = TN_KIND_GRAPH;
        if (kind == TN_KIND_ASYNC) c.device = device_of_stream(number, addr, c.device);
        else if (kind != TN_KIND_GRAPH) c.device = device_of_pointer(addr, c.device);
        if (kind == TN_KIND_POOL) tn_reading_pool(c.device, extra, addr, 0);
    }
    tn_entry entry = {.addr = addr, .bytes = bytes, .backed = backed_bytes(kind, bytes), .site = tn_frame_site(f), .ctx = c.number,
                      .stream = number, .kind = (uint8_t)kind, .device = c.device, .extra = extra, .tsc = now};
    if (__builtin_expect(f->route, 0)) {
        entry.extra |= (uint64_t)f->route << 32;
        if (tn_route_tier(f->route) && r == 0) entry.backed = 0; /* the tier's memory is told of by itself */
    }
    if (r == 0 && kind == TN_KIND_GRAPH) tn_reading_graph_memory(c.device);
    if (r == 0 && kind == TN_KIND_MANAGED) rec_charge_managed(1);
    if (r == 0 && !f->nested) tn_ledger_insert(space_of(kind), &entry, NULL);
    if (r == 0 && tn_serving && (kind == TN_KIND_ASYNC || kind == TN_KIND_POOL) && !tn_is_served(&entry)) tn_serve_pool_native(f, c.device);
    f->thread->recorded++;
    tn_event *e = tn_event_new(f, now);
    if (!e) return;
    e->kind = entry.kind;
    e->device = c.device;
    e->site = entry.site;
    e->result = r;
    e->ctx = c.number;
    e->stream = entry.stream;
    e->addr = addr;
    e->bytes = bytes;
    e->aux = entry.backed;
    e->aux2 = entry.extra;
    tn_guard_event(f, e, TN_EV_ALLOC);
    tn_journal_commit(e, TN_EV_ALLOC);
}

void rec_alloc(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra)
{
    tn_record_alloc(f, r, kind, addr, bytes, extra, tn_context_current(f), TN_STREAM_NONE);
}

void rec_alloc_on(tn_hook_frame *f, int r, int kind, uint64_t addr, uint64_t bytes, uint64_t extra, void *stream)
{
    tn_context c = tn_context_of_stream(f, stream);
    tn_record_alloc(f, r, kind, addr, bytes, extra, c.number ? c : tn_context_current(f), stream);
}

void rec_arena(tn_hook_frame *f, int gone, int kind, uint64_t addr, uint64_t bytes, uint64_t route, uint32_t ctx, uint8_t device)
{
    if (kind == TN_KIND_ASYNC && !gone) tn_reading_pool(device, 0, addr, 1);
    tn_event *e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = (uint8_t)kind;
    e->device = device;
    e->result = gone;
    e->ctx = ctx;
    e->addr = addr;
    e->bytes = bytes;
    e->aux = backed_bytes(kind, bytes);
    e->aux2 = route;
    tn_guard_event(f, e, TN_EV_ARENA);
    tn_journal_commit(e, TN_EV_ARENA);
}

void rec_alloc_vmm(tn_hook_frame *f, int r, uint64_t handle, uint64_t bytes, const CUmemAllocationProp *prop, uint64_t flags)
{
    tn_context c = tn_context_current(f);
    c.device = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? (uint8_t)prop->location.id : (uint8_t)TN_DEVICE_NONE;
    tn_record_alloc(f, r, TN_KIND_VMM_HANDLE, handle, bytes, tn_handle_detail(prop, flags), c, TN_STREAM_NONE);
}

void rec_import(tn_hook_frame *f, int r, uint64_t addr, uint64_t bytes)
{
    CUdeviceptr base;
    size_t size;
    if (r == 0 && addr && !bytes && tn_real.cuMemGetAddressRange_v2 && tn_real.cuMemGetAddressRange_v2(&base, &size, addr) == 0)
        bytes = size;
    tn_record_alloc(f, r, TN_KIND_IMPORTED, addr, bytes, 0, tn_context_current(f), TN_STREAM_NONE);
}

void rec_import_handle(tn_hook_frame *f, int r, uint64_t handle)
{
    /* Imported physical memory is its exporter's: listed with size unknown, and in the handles' space. */
    tn_context c = tn_context_current(f);
    uint64_t now = tn_stamp();
    tn_entry entry = {.addr = handle, .site = tn_frame_site(f), .ctx = c.number, .kind = TN_KIND_IMPORTED, .device = c.device, .tsc = now};
    if (r != 0 || !handle) return;
    if (!f->nested) tn_ledger_insert(TN_SPACE_VMM_HANDLE, &entry, NULL);
    tn_event *e = tn_event_new(f, now);
    if (!e) return;
    e->kind = TN_KIND_IMPORTED;
    e->device = c.device;
    e->site = entry.site;
    e->ctx = c.number;
    e->addr = handle;
    e->aux2 = 1; /* a handle, not an address */
    tn_journal_commit(e, TN_EV_ALLOC);
}

void rec_free_begin(tn_hook_frame *f, tn_space space, uint64_t addr)
{
    note_level(f);
    f->begun = tn_serve_begin(); /* it may wait */
    f->freed_addr = addr;
    f->freed_space = (uint8_t)space;
    f->freed_known = !f->nested && addr && tn_ledger_remove(space, addr, &f->freed);
    if (f->freed_known && f->freed.kind == TN_KIND_MANAGED) rec_free_managed_begin(f);
}

/* Whether a free through a call that is not stream-ordered waited for the device, as plain, pinned, managed and array
 * frees do and frees of stream-ordered blocks do not. */
static int waits_natively(int kind)
{
    switch (kind) {
    case TN_KIND_DEVICE:
    case TN_KIND_PITCH:
    case TN_KIND_MANAGED:
    case TN_KIND_PINNED:
    case TN_KIND_REGISTERED:
    case TN_KIND_ARRAY:
    case TN_KIND_MIPMAP:
        return 1;
    default:
        return 0;
    }
}

void tn_record_free(tn_hook_frame *f, int r, void *stream)
{
    if (!f->freed_addr) return; /* freeing NULL is a success that frees nothing */
    uint32_t number = tn_stream_number(f, stream);
    tn_context c = f->freed_known ? (tn_context){f->freed.ctx, f->freed.device} : tn_context_current(f);
    if (r == 0 && tn_serving && f->freed_known && (f->freed.kind == TN_KIND_ASYNC || f->freed.kind == TN_KIND_POOL) && !tn_is_served(&f->freed))
        tn_serve_pool_native(f, c.device);
    f->thread->recorded++;
    tn_event *e = tn_event_new(f, f->begun);
    if (e) {
        e->device = c.device;
        e->ctx = c.number;
        e->site = tn_frame_site(f);
        e->result = r;
        e->stream = number;
        e->addr = f->freed_addr;
        if (f->freed_known) {
            e->kind = f->freed.kind;
            e->bytes = f->freed.bytes;
            e->aux = f->freed.backed;
            e->aux2 = f->freed.site;
        } else if (f->freed_space == TN_SPACE_VMM_HANDLE) {
            e->kind = TN_KIND_VMM_HANDLE;
        } else if (f->freed_space == TN_SPACE_ARRAY) {
            e->kind = TN_KIND_ARRAY;
        }
        tn_journal_commit(e, TN_EV_FREE);
    }
    if (r != 0 || stream != TN_STREAM_NONE || !f->freed_known || !waits_natively(f->freed.kind) || tn_is_served(&f->freed)) return; /* a tier takes a block back without a wait */
    tn_serve_wait(f, TN_WAIT_FREE, c.number, 0, 0);
    e = tn_event_new(f, tn_stamp());
    if (!e) return;
    e->kind = TN_WAIT_FREE;
    e->device = c.device;
    e->ctx = c.number;
    e->addr = f->freed_addr;
    e->aux = f->begun;
    tn_journal_commit(e, TN_EV_WAIT);
}

void rec_free_end(tn_hook_frame *f, int r, void *stream)
{
    if (r != 0 && f->freed_known) tn_ledger_insert((tn_space)f->freed_space, &f->freed, NULL);
    if (r == 0 && f->freed_known && f->freed.kind == TN_KIND_MANAGED) rec_charge_managed(-1);
    tn_record_free(f, r, stream);
}

/* ---- virtual memory */

void rec_vmm(tn_hook_frame *f, int r, tn_event_type type, uint64_t addr, uint64_t bytes, uint64_t aux, uint64_t aux2)
{
    if (r != 0) return;
    uint64_t now = rec_stamp(f);
    if (!f->nested && type == TN_EV_VMM_MAP) {
        /* First writers are looked up by address: a mapping is a range of its handle's site. */
        tn_entry handle = {0};
        tn_ledger_find(TN_SPACE_VMM_HANDLE, aux, &handle);
        tn_entry m = {.addr = addr, .bytes = bytes, .site = handle.site, .ctx = handle.ctx, .kind = TN_KIND_VMM_HANDLE,
                      .device = handle.device, .extra = aux, .tsc = now, .stream = TN_STREAM_OF_MAPPING};
        tn_ledger_insert(TN_SPACE_MAPPING, &m, NULL);
    } else if (!f->nested && type == TN_EV_VMM_UNMAP) {
        tn_entry gone;
        uint64_t at = addr;
        while (at < addr + bytes && tn_ledger_remove(TN_SPACE_MAPPING, at, &gone) && gone.bytes) {
            if (gone.tsc > now) { /* another thread's, mapped there since */
                tn_ledger_insert(TN_SPACE_MAPPING, &gone, NULL);
                break;
            }
            at += gone.bytes;
        }
    }
    tn_context c = tn_context_current(f);
    tn_event *e = tn_event_new(f, now);
    if (!e) return;
    e->device = c.device;
    e->ctx = c.number;
    e->site = tn_frame_site(f);
    e->addr = addr;
    e->bytes = bytes;
    e->aux = aux;
    e->aux2 = aux2;
    tn_journal_commit(e, type);
}

/* ---- arrays */

static unsigned format_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    default:
        return 4; /* 32-bit formats; block-compressed ones cost less than this says */
    }
}

static uint64_t volume(uint64_t w, uint64_t h, uint64_t d) { return w * (h ? h : 1) * (d ? d : 1); }

uint64_t rec_array_bytes(int r, const CUDA_ARRAY_DESCRIPTOR *d)
{
    return r == 0 && d ? volume(d->Width, d->Height, 0) * d->NumChannels * format_bytes(d->Format) : 0;
}

static uint64_t levels_bytes(uint64_t texel, uint64_t w, uint64_t h, uint64_t depth, unsigned levels)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < levels && i < 32; i++) {
        bytes += texel * volume(w, h, depth);
        w = w > 1 ? w / 2 : w;
        h = h > 1 ? h / 2 : h;
        depth = depth > 1 ? depth / 2 : depth;
    }
    return bytes;
}

uint64_t rec_array3d_bytes(int r, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
    if (r != 0 || !d) return 0;
    return levels_bytes((uint64_t)d->NumChannels * format_bytes(d->Format), d->Width, d->Height, d->Depth, levels);
}

uint64_t rec_rt_mipmap_bytes(int r, const struct cudaChannelFormatDesc *d, size_t w, size_t h, size_t depth, unsigned levels)
{
    return r == 0 && d ? levels_bytes((uint64_t)(d->x + d->y + d->z + d->w) / 8, w, h, depth, levels) : 0;
}

uint64_t rec_rt_array_bytes(int r, const struct cudaChannelFormatDesc *d, size_t w, size_t h, size_t depth)
{
    return rec_rt_mipmap_bytes(r, d, w, h, depth, 1);
}
