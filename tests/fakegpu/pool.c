/*
 * Stream-ordered memory. A pool holds chunks in steps of 32 MiB, each cut into pieces. A freed piece carries the
 * operation of its free: the same stream may have it at once, another one when the operation is done. Idle pieces
 * become trimmable only at a synchronisation, and whole idle chunks then go back down to the threshold.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct piece {
    struct piece *next;
    CUdeviceptr p;
    size_t n;
    bool used, settled; /* settled: free, and a synchronisation has seen its free done */
    struct fk_op *free_op;
};
struct chunk { struct chunk *next; CUdeviceptr p; size_t n; struct piece *pieces; };
struct fk_pool {
    struct fk_pool *next;
    int device;
    bool destroyed, is_default;
    CUmemPoolProps props;
    struct chunk *chunks;
    uint64_t threshold, reserved, used, reserved_high, used_high;
    int reuse[3]; /* follow events, opportunistic, internal dependencies */
    int access[FK_MAX_DEVICES];
    size_t live;
};

static struct fk_pool *pools;

static struct fk_pool *new_pool(int device)
{
    struct fk_pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->device = device;
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    p->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    p->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p->props.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    p->next = pools;
    pools = p;
    fk_handle_add(p, FK_T_POOL);
    return p;
}

struct fk_pool *fk_pool_default(struct fk_dev *d)
{
    if (d->default_pool == NULL && (d->default_pool = new_pool(d->ordinal)) != NULL) {
        d->default_pool->is_default = true;
        if (d->pool == NULL)
            d->pool = d->default_pool;
    }
    return d->default_pool;
}

bool fk_pool_accessible(const struct fk_pool *p, int device) { return p->access[device] != 0; }

/* ---- pieces ---- */

static bool idle(const struct piece *f) { return !f->used && (f->free_op == NULL || f->free_op->done); }

/* Joins idle neighbours, and freed neighbours of one stream (the later free speaks for both). */
static void coalesce(struct chunk *c)
{
    for (struct piece *f = c->pieces; f != NULL && f->next != NULL;) {
        struct piece *g = f->next;
        bool both_idle = idle(f) && idle(g);
        bool same = !f->used && !g->used && f->free_op != NULL && g->free_op != NULL &&
                    f->free_op->stream_id == g->free_op->stream_id;
        if (!both_idle && !same) {
            f = g;
            continue;
        }
        bool g_later = g->free_op != NULL && !g->free_op->done;
        f->settled = f->settled && g->settled;
        if (g_later || f->free_op == NULL) {
            struct fk_op *op = f->free_op;
            f->free_op = g->free_op;
            g->free_op = op;
        }
        fk_op_unref(g->free_op);
        f->n += g->n;
        f->next = g->next;
        free(g);
    }
}

static CUdeviceptr cut(struct piece *f, size_t n)
{
    if (f->n > n) {
        struct piece *rest = calloc(1, sizeof *rest);
        if (rest == NULL)
            return 0;
        *rest = (struct piece){f->next, f->p + n, f->n - n, false, f->settled, f->free_op};
        if (rest->free_op != NULL)
            rest->free_op->refs++;
        f->n = n;
        f->next = rest;
    }
    f->used = true;
    f->settled = false;
    fk_op_unref(f->free_op);
    f->free_op = NULL;
    return f->p;
}

static CUdeviceptr find(struct fk_pool *p, size_t n, struct fk_stream *s, bool borrow)
{
    for (struct chunk *c = p->chunks; c != NULL; c = c->next) {
        if (c->n < n)
            continue;
        coalesce(c);
        for (struct piece *f = c->pieces; f != NULL; f = f->next) {
            if (f->used || f->n < n)
                continue;
            bool mine = f->free_op == NULL || f->free_op->stream_id == s->id || (f->free_op->done && p->reuse[1]);
            if (!mine && !borrow)
                continue;
            if (!mine)
                fk_stream_depend(s, f->free_op); /* the stream waits for the other one's free */
            return cut(f, n);
        }
    }
    return 0;
}

static bool grow(struct fk_pool *p, size_t n)
{
    struct fk_dev *d = &fk_devs[p->device];
    size_t len = fk_up(n, FK_POOL_STEP);
    if (len < n || (p->props.maxSize != 0 && p->reserved + len > p->props.maxSize))
        return false;
    if (!fk_charge(d, len)) {
        len = fk_up(n, FK_PAGE); /* near the end of the card a step may be smaller */
        if (!fk_charge(d, len))
            return false;
    }
    struct chunk *c = calloc(1, sizeof *c);
    struct piece *f = calloc(1, sizeof *f);
    CUdeviceptr at = c != NULL && f != NULL ? fk_extent_take(d, len) : 0;
    if (at == 0) {
        fk_uncharge(d, len);
        free(c);
        free(f);
        return false;
    }
    *f = (struct piece){.p = at, .n = len, .settled = true};
    *c = (struct chunk){p->chunks, at, len, f};
    p->chunks = c;
    p->reserved += len;
    if (p->reserved > p->reserved_high)
        p->reserved_high = p->reserved;
    return true;
}

static void drop_chunk(struct fk_pool *p, struct chunk *c)
{
    struct fk_dev *d = &fk_devs[p->device];
    p->reserved -= c->n;
    fk_drop_pages(c->p, c->n);
    fk_extent_give(d, c->p, c->n);
    fk_uncharge(d, c->n);
    for (struct piece *f = c->pieces, *next; f != NULL; f = next) {
        next = f->next;
        fk_op_unref(f->free_op);
        free(f);
    }
    free(c);
}

/* Gives back whole idle chunks while more than `keep` is reserved. `any`: also those no synchronisation has seen. */
static bool trim(struct fk_pool *p, uint64_t keep, bool any)
{
    bool given = false;
    for (struct chunk **at = &p->chunks; *at != NULL;) {
        struct chunk *c = *at;
        coalesce(c);
        struct piece *f = c->pieces;
        bool whole = f->next == NULL && idle(f) && (any || f->settled);
        if (!whole || p->reserved <= keep || p->reserved - c->n < keep) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        drop_chunk(p, c);
        given = true;
    }
    return given;
}

void fk_pool_settle(void)
{
    for (struct fk_pool **at = &pools; *at != NULL;) {
        struct fk_pool *p = *at;
        for (struct chunk *c = p->chunks; c != NULL; c = c->next)
            for (struct piece *f = c->pieces; f != NULL; f = f->next)
                if (idle(f))
                    f->settled = true;
        trim(p, p->destroyed ? 0 : p->threshold, false);
        if (p->destroyed && p->live == 0 && p->chunks == NULL) {
            *at = p->next;
            free(p);
            continue;
        }
        at = &p->next;
    }
}

bool fk_pool_trim_idle(struct fk_dev *d)
{
    bool given = false;
    for (struct fk_pool *p = pools; p != NULL; p = p->next)
        if (p->device == d->ordinal)
            given |= trim(p, 0, false);
    return given;
}

bool fk_pool_holds(CUdeviceptr a, size_t n)
{
    for (struct fk_pool *p = pools; p != NULL; p = p->next)
        for (struct chunk *c = p->chunks; c != NULL; c = c->next)
            if (a >= c->p && n <= c->n && a - c->p <= c->n - n)
                return true;
    return false;
}

/* ---- allocate and free ---- */

static CUresult allocate(CUdeviceptr *out, size_t bytes, struct fk_pool *p, CUstream h, int pt)
{
    struct fk_stream *s;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    if (p == NULL) {
        struct fk_dev *d = &fk_devs[s->ctx->device];
        if (fk_pool_default(d) == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        p = d->pool;
    } else if (!fk_handle_is(p, FK_T_POOL) || p->destroyed) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = 0;
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (s->cap != NULL) {
        struct fk_work w = {.type = FK_W_ALLOC, .u.mem = {0, bytes, p->device}};
        struct fk_node *node = NULL;
        FK_TRY(fk_capture_add(s, &w, &node));
        *out = node->block->base;
        return CUDA_SUCCESS;
    }
    if (s->legacy)
        FK_TRY(fk_capture_legacy(s->ctx));
    size_t n = fk_up(bytes, FK_GRAIN);
    struct fk_dev *d = &fk_devs[p->device];
    if (fk_take_failure() || n < bytes || n > d->span)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUdeviceptr at = find(p, n, s, false);
    if (at == 0 && grow(p, n))
        at = find(p, n, s, false);
    if (at == 0 && fk_pool_trim_idle(d) && grow(p, n))
        at = find(p, n, s, false);
    if (at == 0 && p->reuse[2])
        at = find(p, n, s, true);
    if (at == 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_block *b = fk_block_add(at, bytes, FK_ASYNC, p->device, s->ctx);
    if (b == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    b->pool = p;
    b->backed = n;
    p->used += n;
    p->live++;
    if (p->used > p->used_high)
        p->used_high = p->used;
    fk_stat_add(&d->st, bytes, n);
    *out = at;
    return CUDA_SUCCESS;
}
FK_API_PT(cuMemAllocAsync, cuMemAllocAsync_ptsz, (CUdeviceptr *out, size_t n, CUstream h), allocate(out, n, NULL, h, PT))
FK_API_PT(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr *out, size_t n, CUmemoryPool p, CUstream h),
          (p == NULL ? CUDA_ERROR_INVALID_VALUE : allocate(out, n, (struct fk_pool *)p, h, PT)))

/* Takes the block out of its pool's books; the piece is reusable as `op` allows (NULL: at once). */
static void retire(struct fk_block *b, struct fk_op *op)
{
    struct fk_pool *p = b->pool;
    for (struct chunk *c = p->chunks; c != NULL; c = c->next) {
        if (b->base < c->p || b->base >= c->p + c->n)
            continue;
        for (struct piece *f = c->pieces; f != NULL; f = f->next)
            if (f->p == b->base) {
                f->used = false;
                f->settled = false;
                f->free_op = op;
                if (op != NULL)
                    op->refs++;
            }
    }
    p->used -= b->backed;
    p->live--;
    fk_stat_sub(&fk_devs[b->device].st, b->size, b->backed);
    fk_block_remove(b);
}

void fk_pool_free_now(struct fk_block *b)
{
    fk_poison(b->base, b->size);
    retire(b, NULL);
}

void fk_free_reached(CUdeviceptr p, size_t bytes)
{
    struct fk_block *b = fk_block_at(p);
    if (b != NULL && b->base == p && b->freeing && (b->kind == FK_DEVICE || b->kind == FK_PITCH)) {
        /* Its live figure fell at the call. */
        struct fk_dev *d = &fk_devs[b->device];
        fk_plain_give(d, b->base, b->size);
        fk_block_remove(b);
    } else if (b == NULL && fk_pool_holds(p, bytes)) {
        fk_poison(p, bytes);
    }
}

static CUresult do_free(CUdeviceptr a, CUstream h, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    if (a == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_block *b = fk_block_at(a);
    if (b == NULL || b->base != a || b->freeing)
        return CUDA_ERROR_INVALID_VALUE;
    if (s->cap != NULL) {
        if (b->kind != FK_GRAPH)
            return CUDA_ERROR_INVALID_VALUE; /* not of this graph: refused, and the capture lives on */
        FK_TRY(fk_graph_free_check(s->cap->graph, a));
        struct fk_work w = {.type = FK_W_FREE, .u.mem = {a, b->size, b->device}};
        return fk_capture_add(s, &w, NULL);
    }
    struct fk_op *op;
    struct fk_work w = {.type = FK_W_FREE, .u.mem = {a, b->size, b->device}};
    switch (b->kind) {
    case FK_ASYNC:
        if (s->legacy)
            FK_TRY(fk_capture_legacy(s->ctx));
        FK_TRY(fk_submit(s, &w, &op));
        retire(b, op);
        fk_op_unref(op);
        return CUDA_SUCCESS;
    case FK_DEVICE:
    case FK_PITCH:
        FK_TRY(fk_submit(s, &w, NULL));
        b->freeing = true;
        fk_stat_sub(&fk_devs[b->device].st, b->size, b->backed);
        return CUDA_SUCCESS;
    case FK_GRAPH:
        b->freeing = true;
        FK_TRY(fk_submit(s, &w, &op));
        fk_wait_op(op);
        fk_op_unref(op);
        b->freeing = false;
        return fk_graph_block_free(b) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case FK_MANAGED: return CUDA_ERROR_NOT_SUPPORTED;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}
FK_API_PT(cuMemFreeAsync, cuMemFreeAsync_ptsz, (CUdeviceptr p, CUstream h), do_free(p, h, PT))

/* ---- pools as objects ---- */

static CUresult device_pool(CUmemoryPool *out, CUdevice dev, bool current)
{
    struct fk_dev *d;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    if (fk_pool_default(d) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUmemoryPool)(current ? d->pool : d->default_pool);
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetDefaultMemPool, (CUmemoryPool *out, CUdevice dev), device_pool(out, dev, false))
FK_API(cuDeviceGetMemPool, (CUmemoryPool *out, CUdevice dev), device_pool(out, dev, true))

static CUresult get(CUmemoryPool h, struct fk_pool **out)
{
    *out = (struct fk_pool *)h;
    return fk_handle_is(h, FK_T_POOL) && !(*out)->destroyed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_set_pool(CUdevice dev, CUmemoryPool h)
{
    struct fk_dev *d;
    struct fk_pool *p;
    FK_TRY(fk_need_device(dev, &d));
    FK_TRY(get(h, &p));
    if (p->device != dev)
        return CUDA_ERROR_INVALID_DEVICE;
    fk_pool_default(d);
    d->pool = p;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool h), do_set_pool(dev, h))

/* The same three by location: only devices have pools here. */
static CUresult located(const CUmemLocation *where, CUmemAllocationType type)
{
    if (where == NULL || type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    return where->type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}
static CUresult located_get(CUmemoryPool *out, const CUmemLocation *where, CUmemAllocationType type, bool current)
{
    FK_TRY(located(where, type));
    return device_pool(out, where->id, current);
}
static CUresult located_set(const CUmemLocation *where, CUmemAllocationType type, CUmemoryPool h)
{
    FK_TRY(located(where, type));
    return do_set_pool(where->id, h);
}
FK_API(cuMemGetDefaultMemPool, (CUmemoryPool *out, CUmemLocation *w, CUmemAllocationType t), located_get(out, w, t, false))
FK_API(cuMemGetMemPool, (CUmemoryPool *out, CUmemLocation *w, CUmemAllocationType t), located_get(out, w, t, true))
FK_API(cuMemSetMemPool, (CUmemLocation *w, CUmemAllocationType t, CUmemoryPool h), located_set(w, t, h))

static CUresult do_create(CUmemoryPool *out, const CUmemPoolProps *props)
{
    struct fk_dev *d;
    if (out == NULL || props == NULL || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    FK_TRY(fk_need_device(props->location.id, &d));
    struct fk_pool *p = new_pool(props->location.id);
    if (p == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->props = *props;
    *out = (CUmemoryPool)p;
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolCreate, (CUmemoryPool *out, const CUmemPoolProps *props), do_create(out, props))

static CUresult do_destroy(CUmemoryPool h)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    if (p->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_dev *d = &fk_devs[p->device];
    if (d->pool == p)
        d->pool = d->default_pool;
    p->destroyed = true; /* what it holds returns when the last block is freed */
    fk_handle_del(p);
    fk_pool_settle();
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolDestroy, (CUmemoryPool h), do_destroy(h))

static CUresult do_trim(CUmemoryPool h, size_t keep)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    FK_TRY(fk_capture_unsafe());
    trim(p, keep, true);
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolTrimTo, (CUmemoryPool h, size_t keep), do_trim(h, keep))

static CUresult do_get(CUmemoryPool h, CUmemPool_attribute a, void *out)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_capture_unsafe());
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: *(int *)out = p->reuse[0]; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: *(int *)out = p->reuse[1]; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: *(int *)out = p->reuse[2]; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)out = p->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)out = p->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)out = p->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)out = p->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)out = p->used_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolGetAttribute, (CUmemoryPool h, CUmemPool_attribute a, void *out), do_get(h, a, out))

static CUresult do_set(CUmemoryPool h, CUmemPool_attribute a, const void *in)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    if (in == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (a) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: p->reuse[0] = *(const int *)in != 0; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: p->reuse[1] = *(const int *)in != 0; break;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: p->reuse[2] = *(const int *)in != 0; break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: p->threshold = *(const cuuint64_t *)in; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(const cuuint64_t *)in != 0) /* high marks can only be reset */
            return CUDA_ERROR_INVALID_VALUE;
        if (a == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            p->used_high = p->used;
        else
            p->reserved_high = p->reserved;
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolSetAttribute, (CUmemoryPool h, CUmemPool_attribute a, void *in), do_set(h, a, in))

static CUresult do_set_access(CUmemoryPool h, const CUmemAccessDesc *map, size_t n)
{
    struct fk_pool *p;
    struct fk_dev *d;
    FK_TRY(get(h, &p));
    if (map == NULL || n == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++) {
        if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
            return CUDA_ERROR_INVALID_VALUE;
        FK_TRY(fk_need_device(map[i].location.id, &d));
        if (map[i].location.id == p->device && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            return CUDA_ERROR_INVALID_VALUE; /* the owner cannot lose access */
    }
    for (size_t i = 0; i < n; i++)
        p->access[map[i].location.id] = (int)map[i].flags;
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolSetAccess, (CUmemoryPool h, const CUmemAccessDesc *map, size_t n), do_set_access(h, map, n))

static CUresult do_get_access(CUmemAccess_flags *out, CUmemoryPool h, CUmemLocation *where)
{
    struct fk_pool *p;
    struct fk_dev *d;
    FK_TRY(get(h, &p));
    if (out == NULL || where == NULL || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(where->id, &d));
    *out = (CUmemAccess_flags)p->access[where->id];
    return CUDA_SUCCESS;
}
FK_API(cuMemPoolGetAccess, (CUmemAccess_flags *out, CUmemoryPool h, CUmemLocation *where), do_get_access(out, h, where))

/* Pools are not shared between processes here: refused as on a card whose pool has no handle type. */
static CUresult not_exportable(CUmemoryPool h)
{
    struct fk_pool *p;
    FK_TRY(get(h, &p));
    return p->props.handleTypes == CU_MEM_HANDLE_TYPE_NONE ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
}
FK_API(cuMemPoolExportToShareableHandle, (void *out, CUmemoryPool h, CUmemAllocationHandleType type, unsigned long long flags),
       ((void)out, (void)type, (void)flags, not_exportable(h)))
FK_API(cuMemPoolImportFromShareableHandle, (CUmemoryPool *out, void *handle, CUmemAllocationHandleType type, unsigned long long flags),
       ((void)out, (void)handle, (void)type, (void)flags, CUDA_ERROR_NOT_SUPPORTED))
FK_API(cuMemPoolExportPointer, (CUmemPoolPtrExportData *out, CUdeviceptr p),
       ((void)out, (void)p, CUDA_ERROR_INVALID_VALUE))
FK_API(cuMemPoolImportPointer, (CUdeviceptr *out, CUmemoryPool h, CUmemPoolPtrExportData *data),
       ((void)out, (void)data, not_exportable(h)))
