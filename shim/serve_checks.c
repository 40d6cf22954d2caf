/* Canaries, fill and poison. A canary stands in what a block's slot has beyond the block, or in the gap that the plan leaves. Where it is looked at
 * depends on who orders the block: plain and pinned frees wait for the device, as the driver's own do; at the free of a stream-ordered block a copy
 * of its canary goes into the stream, and whoever comes by when that is done looks at it. */
#include "shim/serve_checks_inside.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/tn_hot_data.h"
#include "shim/charge_reading.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/serve.h"
#include "shim/serve_marks.h"

TN_HOT_DATA int tn_serve_checks;
static int canary, poison, fills;
static unsigned char fill_byte;

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

void tn_checks_tell(tn_hook_frame *f, unsigned what, const tn_entry *block, uint32_t free_site, uint64_t flags, uint64_t first, uint64_t count)
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

unsigned tn_checks_look(const unsigned char *at, uint32_t gap, uint64_t *first, uint64_t *count)
{
    *first = *count = 0;
    for (uint32_t i = 0; i < gap; i++) {
        if (at[i] == TN_CANARY_BYTE) continue;
        if (!(*count)++) *first = i;
    }
    return *count ? TN_CHECK_OVERWRITTEN : TN_CHECK_INTACT;
}

/* ---- allocations */

uint32_t tn_checks_gap(const tn_plan_row *row, uint64_t asked, uint64_t bytes)
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

static void set_route(tn_hook_frame *f, int guarded)
{
    if (canary) f->route = (uint16_t)((f->route & ~TN_ROUTE_NO_CANARY) | (guarded ? TN_ROUTE_CANARY : TN_ROUTE_NO_CANARY));
}

void tn_serve_check_taken(tn_hook_frame *f, tn_context c, const tn_plan_row *row, uint64_t asked, void *address, size_t bytes, void *stream)
{
    uint32_t gap = canary ? tn_checks_gap(row, asked, bytes) : 0;
    CUdeviceptr at = (CUdeviceptr)(uintptr_t)address;
    if (gap) tn_checks_watch_the_end();
    if (row->family == TN_FAMILY_PINNED) {
        memset((char *)address + bytes, (int)TN_CANARY_BYTE, gap);
        set_route(f, gap != 0);
        return;
    }
    set_route(f, 0);
    if (!gap && !fills) return;
    int pushed, within = tn_checks_enter_of_stream(f, c, stream, &pushed);
    tn_checks_context *k = within ? tn_checks_of(f, c, 1) : NULL;
    if (!k || !tn_capture_gate_wait()) {
        tn_checks_leave(pushed);
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
    tn_checks_look_at_late(f, k);
    tn_checks_leave(pushed);
}

/* ---- frees */

static int wait_for(uint32_t ctx)
{
    tn_work all = tn_marks_work_table(tn_serving_marks, ctx);
    return all.table->wait(all.self, all.table->all(all.self)) == TN_MEM_OK;
}

/* The device is done with the block: reads its canary into `out` and poisons it, and is done with that too. */
static int read_now(const tn_checks_context *k, const tn_entry *block, uint32_t gap, unsigned char *out, uint64_t *flags)
{
    int pushed, done = 0;
    CUdeviceptr at = (CUdeviceptr)block->addr;
    if (!tn_capture_gate_wait()) return 0;
    if (tn_checks_enter(k, &pushed)) {
        done = !gap || tn_real.cuMemcpyDtoHAsync_v2(out, at + block->bytes, gap, k->own) == 0;
        if (poison && tn_real.cuMemsetD8Async(at, TN_POISON_BYTE, block->bytes, k->own) == 0) *flags |= TN_CHECK_POISONED;
        done = tn_real.cuStreamSynchronize(k->own) == 0 && done;
        tn_checks_leave(pushed);
    }
    tn_capture_gate_waited();
    return done;
}

static void given_pinned(tn_hook_frame *f, const tn_entry *block, uint32_t gap)
{
    unsigned char *at = (unsigned char *)(uintptr_t)block->addr;
    if (!wait_for(0)) {
        tn_checks_tell(f, TN_CHECK_NOT_DONE, block, tn_frame_site(f), gap ? TN_CHECK_GUARDED : 0, 0, 0);
        return;
    }
    uint64_t first = 0, count = 0, flags = TN_CHECK_WAITED | (poison ? TN_CHECK_POISONED : 0);
    unsigned what = gap ? tn_checks_look(at + block->bytes, gap, &first, &count) : TN_CHECK_NO_CANARY;
    if (poison) memset(at, (int)TN_POISON_BYTE, block->bytes);
    tn_checks_tell(f, what, block, tn_frame_site(f), flags, first, count);
}

/* The free names no stream. That of a stream-ordered block does not wait (seen on an H200), and neither do we. */
static void given_plainly(tn_hook_frame *f, tn_checks_context *k, const tn_entry *block, uint32_t gap)
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
    unsigned what = !done ? TN_CHECK_NOT_DONE : gap ? tn_checks_look(copy, gap, &first, &count) : TN_CHECK_NO_CANARY;
    if (!done && gap) flags |= TN_CHECK_GUARDED;
    tn_checks_tell(f, what, block, tn_frame_site(f), flags, first, count);
}

static void given_in_order(tn_hook_frame *f, tn_checks_context *k, const tn_entry *block, uint32_t gap, void *stream)
{
    uint64_t flags = 0;
    int sent = 0;
    if (k && tn_capture_gate_wait()) {
        sent = gap && tn_checks_send(f, k, block, gap, poison ? TN_CHECK_POISONED : 0, named(f, stream));
        if (poison && tn_real.cuMemsetD8Async((CUdeviceptr)block->addr, TN_POISON_BYTE, block->bytes, named(f, stream)) == 0) flags = TN_CHECK_POISONED;
        tn_capture_gate_waited();
        told_work(f, stream);
    }
    if (!sent) tn_checks_tell(f, gap || !flags ? TN_CHECK_NOT_DONE : TN_CHECK_NO_CANARY, block, tn_frame_site(f), flags | (gap ? TN_CHECK_GUARDED : 0), 0, 0);
}

void tn_serve_check_given(tn_hook_frame *f, const tn_plan_row *row, uint64_t asked, void *stream)
{
    const tn_entry *block = &f->freed;
    uint32_t gap = tn_route_of(block->extra) & TN_ROUTE_CANARY ? tn_checks_gap(row, asked, block->bytes) : 0;
    if (!gap && !poison) return;
    if (block->kind == TN_KIND_PINNED) {
        given_pinned(f, block, gap);
        return;
    }
    if (stream == TN_STREAM_NONE) {
        tn_checks_context *k = tn_checks_of(f, (tn_context){block->ctx, block->device}, tn_context_current(f).number == block->ctx);
        given_plainly(f, k, block, gap);
        return;
    }
    /* The work is the stream's, so what it is done with is of the stream's context. */
    tn_context c = tn_context_of_stream(f, stream);
    int pushed, within = tn_checks_enter_of_stream(f, c, stream, &pushed);
    tn_checks_context *k = within ? tn_checks_of(f, c, 1) : NULL;
    given_in_order(f, k, block, gap, stream);
    tn_checks_look_at_late(f, k);
    tn_checks_leave(pushed);
}
