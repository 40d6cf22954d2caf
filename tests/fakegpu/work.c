/* Work of one operation: what it touches, how it runs, and the generic strided copy. Graphs run the same work. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void fk_work_release(struct fk_work *w)
{
    if (w->type == FK_W_GRAPH)
        fk_plan_unref(w->u.plan);
    if (w->type == FK_W_RECORD || w->type == FK_W_WAIT)
        fk_event_unref(w->u.event);
    free(w->owned);
    w->owned = NULL;
    w->type = FK_W_EMPTY;
}

/* ---- copies: every form is a CUDA_MEMCPY3D_PEER ---- */

struct side { char *base; size_t pitch, height; };

static struct side source(const CUDA_MEMCPY3D_PEER *c)
{
    struct side s = {NULL, c->srcPitch, c->srcHeight};
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY) {
        const struct fk_array *a = (const struct fk_array *)c->srcArray;
        s = (struct side){(char *)(uintptr_t)a->mem, a->pitch, a->rows};
    } else {
        s.base = c->srcMemoryType == CU_MEMORYTYPE_HOST ? (char *)(uintptr_t)c->srcHost : (char *)(uintptr_t)c->srcDevice;
    }
    s.pitch = s.pitch != 0 ? s.pitch : c->WidthInBytes + c->srcXInBytes;
    s.height = s.height != 0 ? s.height : c->Height + c->srcY;
    s.base += c->srcZ * s.height * s.pitch + c->srcY * s.pitch + c->srcXInBytes;
    return s;
}

static struct side target(const CUDA_MEMCPY3D_PEER *c)
{
    struct side s = {NULL, c->dstPitch, c->dstHeight};
    if (c->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        const struct fk_array *a = (const struct fk_array *)c->dstArray;
        s = (struct side){(char *)(uintptr_t)a->mem, a->pitch, a->rows};
    } else {
        s.base = c->dstMemoryType == CU_MEMORYTYPE_HOST ? c->dstHost : (char *)(uintptr_t)c->dstDevice;
    }
    s.pitch = s.pitch != 0 ? s.pitch : c->WidthInBytes + c->dstXInBytes;
    s.height = s.height != 0 ? s.height : c->Height + c->dstY;
    s.base += c->dstZ * s.height * s.pitch + c->dstY * s.pitch + c->dstXInBytes;
    return s;
}

static size_t extent(const CUDA_MEMCPY3D_PEER *c, struct side s)
{
    return ((c->Depth - 1) * s.height + c->Height - 1) * s.pitch + c->WidthInBytes;
}

static void run_copy(const CUDA_MEMCPY3D_PEER *c)
{
    struct side from = source(c), to = target(c);
    if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0)
        return;
    if (c->Height == 1 && c->Depth == 1) {
        memmove(to.base, from.base, c->WidthInBytes);
        return;
    }
    for (size_t z = 0; z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++)
            memmove(to.base + (z * to.height + y) * to.pitch, from.base + (z * from.height + y) * from.pitch,
                    c->WidthInBytes);
}

static void run_fill(const CUDA_MEMSET_NODE_PARAMS *f)
{
    for (size_t y = 0; y < f->height; y++) {
        char *row = (char *)(uintptr_t)f->dst + y * f->pitch;
        bool bytes_equal = f->elementSize == 1 || (f->value & 0xFF) * 0x01010101u == f->value ||
                           (f->elementSize == 2 && (f->value & 0xFF) == (f->value >> 8 & 0xFF));
        if (bytes_equal) {
            memset(row, (int)(f->value & 0xFF), f->width * f->elementSize);
            continue;
        }
        for (size_t x = 0; x < f->width; x++)
            memcpy(row + x * f->elementSize, &f->value, f->elementSize);
    }
}

static void run_memop(const CUstreamBatchMemOpParams *p)
{
    volatile uint32_t *a32 = (volatile uint32_t *)(uintptr_t)p->waitValue.address;
    volatile uint64_t *a64 = (volatile uint64_t *)(uintptr_t)p->waitValue.address;
    struct timespec pause = {0, 50000};
    bool wide = p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    uint64_t want = wide ? p->waitValue.value64 : p->waitValue.value;
    switch (p->operation) {
    case CU_STREAM_MEM_OP_WRITE_VALUE_32: *a32 = p->writeValue.value; break;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64: *a64 = p->writeValue.value64; break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        for (;; nanosleep(&pause, NULL)) {
            uint64_t v = wide ? *a64 : *a32;
            bool ok;
            switch (p->waitValue.flags & 3u) {
            case CU_STREAM_WAIT_VALUE_GEQ: ok = wide ? (int64_t)(v - want) >= 0 : (int32_t)((uint32_t)v - (uint32_t)want) >= 0; break;
            case CU_STREAM_WAIT_VALUE_EQ: ok = v == want; break;
            case CU_STREAM_WAIT_VALUE_AND: ok = (v & want) != 0; break;
            default: ok = (wide ? ~(v | want) : (uint32_t)~(v | want)) != 0; break;
            }
            if (ok)
                break;
        }
        break;
    default: break;
    }
}

/* ---- dispatch ---- */

static int device_range(struct fk_range *out, int n, CUdeviceptr p, size_t len, bool write)
{
    if (len != 0)
        out[n++] = (struct fk_range){p, len, write};
    return n;
}

int fk_work_ranges(const struct fk_work *w, struct fk_range *out)
{
    int n = 0;
    switch (w->type) {
    case FK_W_COPY: {
        const CUDA_MEMCPY3D_PEER *c = &w->u.copy;
        if (c->WidthInBytes == 0 || c->Height == 0 || c->Depth == 0)
            return 0;
        if (c->srcMemoryType == CU_MEMORYTYPE_DEVICE) {
            struct side s = source(c);
            n = device_range(out, n, (CUdeviceptr)(uintptr_t)s.base, extent(c, s), false);
        }
        if (c->dstMemoryType == CU_MEMORYTYPE_DEVICE) {
            struct side s = target(c);
            n = device_range(out, n, (CUdeviceptr)(uintptr_t)s.base, extent(c, s), true);
        }
        return n;
    }
    case FK_W_FILL: {
        const CUDA_MEMSET_NODE_PARAMS *f = &w->u.fill;
        size_t len = f->height == 0 ? 0 : (f->height - 1) * f->pitch + f->width * f->elementSize;
        return device_range(out, 0, f->dst, len, true);
    }
    case FK_W_KERNEL: return fk_kernel_ranges(&w->u.kernel, out);
    case FK_W_MEMOP:
        for (unsigned i = 0; i < w->u.memop.count && n < 4; i++) {
            const CUstreamBatchMemOpParams *p = &w->u.memop.ops[i];
            if (p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 || p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
                n = device_range(out, n, p->writeValue.address, 4, true);
        }
        return n;
    default: return 0;
    }
}

CUresult fk_work_run(struct fk_work *w, struct fk_op *op)
{
    switch (w->type) {
    case FK_W_COPY: run_copy(&w->u.copy); break;
    case FK_W_FILL: run_fill(&w->u.fill); break;
    case FK_W_KERNEL: return fk_kernel_run(&w->u.kernel, op);
    case FK_W_HOST:
        fk_tls.in_host = true;
        w->u.host.fn(w->u.host.userData);
        fk_tls.in_host = false;
        break;
    case FK_W_CALLBACK:
        fk_tls.in_host = true;
        w->u.callback.fn(w->u.callback.handle, CUDA_SUCCESS, w->u.callback.data);
        fk_tls.in_host = false;
        break;
    case FK_W_MEMOP:
        for (unsigned i = 0; i < w->u.memop.count; i++)
            run_memop(&w->u.memop.ops[i]);
        break;
    case FK_W_GRAPH: return fk_plan_run(w->u.plan, op);
    case FK_W_RECORD: fk_event_reached(w->u.event, op); break;
    case FK_W_WAIT: fk_event_await(w->u.event); break;
    case FK_W_FREE:
        pthread_mutex_lock(&fk_lock);
        fk_free_reached(w->u.mem.p, w->u.mem.bytes);
        pthread_mutex_unlock(&fk_lock);
        break;
    default: break;
    }
    return CUDA_SUCCESS;
}
