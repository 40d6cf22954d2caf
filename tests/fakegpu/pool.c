/*
 * Stream-ordered memory. A pool holds chunks in steps of 32 MiB, each cut into pieces. A freed piece carries the
 * operation of its free: the same stream may have it at once, another one when the operation is done. Idle pieces
 * become trimmable only at a synchronisation, and whole idle chunks then go back down to the threshold.
 */
#define _GNU_SOURCE
#include "pool.h"

#include <stdlib.h>
#include <string.h>

struct fk_pool *fk_pools;

struct fk_pool *fk_pool_new(int device)
{
    struct fk_pool *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->device = device;
    p->reuse[0] = p->reuse[1] = p->reuse[2] = 1;
    p->access[device] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    p->props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p->props.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    p->next = fk_pools;
    fk_pools = p;
    fk_handle_add(p, FK_T_POOL);
    return p;
}

struct fk_pool *fk_pool_default(struct fk_dev *d)
{
    if (d->default_pool == NULL && (d->default_pool = fk_pool_new(d->ordinal)) != NULL) {
        d->default_pool->is_default = true;
        if (d->pool == NULL)
            d->pool = d->default_pool;
    }
    return d->default_pool;
}

bool fk_pool_accessible(const struct fk_pool *p, int device) { return p->access[device] != 0; }

/* ---- chunks ---- */

/* Whether the stream may have a free piece without waiting for another one. */
static bool at_once(const struct fk_pool *p, const struct fk_piece *f, const struct fk_stream *s)
{
    return f->free_op == NULL || f->free_op->stream_id == s->id || (f->free_op->done && p->reuse[1]);
}

static struct fk_piece *find(struct fk_pool *p, size_t n, struct fk_stream *s, bool borrow)
{
    for (struct fk_chunk *c = p->chunks; c != NULL; c = c->next) {
        if (c->longest < n)
            continue;
        fk_chunk_coalesce(c);
        for (struct fk_piece *f = c->longest < n ? NULL : c->free; f != NULL; f = f->free_next) {
            if (f->n < n)
                continue;
            bool mine = at_once(p, f, s);
            if (!mine && !borrow)
                continue;
            if (!mine)
                fk_stream_depend(s, f->free_op); /* the stream waits for the other one's free */
            return fk_piece_use(f, n) ? f : NULL;
        }
    }
    return NULL;
}

static void reserved(struct fk_pool *p, size_t len)
{
    p->reserved += len;
    if (p->reserved > p->reserved_high)
        p->reserved_high = p->reserved;
}

/* Lengthens a chunk whose free end, with what is added, serves the request: then only what is missing is taken. */
static bool extend(struct fk_pool *p, size_t n, struct fk_stream *s)
{
    struct fk_dev *d = &fk_devs[p->device];
    for (struct fk_chunk *c = p->chunks; c != NULL; c = c->next) {
        fk_chunk_coalesce(c);
        if (c->last->used || c->last->n >= n || !at_once(p, c->last, s))
            continue;
        size_t len = fk_up(n - c->last->n, FK_POOL_STEP);
        if ((p->props.maxSize != 0 && p->reserved + len > p->props.maxSize) || !fk_charge(d, len))
            continue;
        if (!fk_extent_take_at(d, c->p + c->n, len)) {
            fk_uncharge(d, len);
            continue;
        }
        if (!fk_chunk_extend(c, len)) {
            fk_extent_give(d, c->p + c->n, len);
            fk_uncharge(d, len);
            return false;
        }
        reserved(p, len);
        return true;
    }
    return false;
}

static bool grow(struct fk_pool *p, size_t n, struct fk_stream *s)
{
    struct fk_dev *d = &fk_devs[p->device];
    if (extend(p, n, s))
        return true;
    size_t len = fk_up(n, FK_POOL_STEP);
    if (len < n || (p->props.maxSize != 0 && p->reserved + len > p->props.maxSize))
        return false;
    if (!fk_charge(d, len)) {
        len = fk_up(n, FK_PAGE); /* near the end of the card a step may be smaller */
        if (!fk_charge(d, len))
            return false;
    }
    CUdeviceptr at = fk_extent_take_apart(d, len);
    struct fk_chunk *c = at != 0 ? fk_chunk_new(at, len) : NULL;
    if (c == NULL) {
        if (at != 0)
            fk_extent_give(d, at, len);
        fk_uncharge(d, len);
        return false;
    }
    c->next = p->chunks;
    p->chunks = c;
    reserved(p, len);
    return true;
}

static void drop_chunk(struct fk_pool *p, struct fk_chunk *c)
{
    struct fk_dev *d = &fk_devs[p->device];
    p->reserved -= c->n;
    fk_drop_pages(c->p, c->n);
    fk_extent_give(d, c->p, c->n);
    fk_uncharge(d, c->n);
    fk_chunk_delete(c);
}

/* Whole idle steps at the end of a chunk that is in use before them. */
static bool drop_end(struct fk_pool *p, struct fk_chunk *c, uint64_t keep, bool any)
{
    struct fk_dev *d = &fk_devs[p->device];
    fk_chunk_coalesce(c);
    const struct fk_piece *f = c->last;
    if (!fk_piece_idle(f) || !(any || f->settled))
        return false;
    size_t left = fk_up((size_t)(f->p - c->p), FK_POOL_STEP), n = left < c->n ? c->n - left : 0;
    if (n == 0 || left == 0 || p->reserved < keep + n)
        return false;
    fk_chunk_shorten(c, n);
    p->reserved -= n;
    fk_drop_pages(c->p + c->n, n);
    fk_extent_give(d, c->p + c->n, n);
    fk_uncharge(d, n);
    return true;
}

bool fk_pool_trim(struct fk_pool *p, uint64_t keep, bool any)
{
    bool given = false;
    for (struct fk_chunk **at = &p->chunks; *at != NULL;) {
        struct fk_chunk *c = *at;
        bool whole = c->free_bytes == c->n;
        if (whole) {
            fk_chunk_coalesce(c);
            whole = c->free->n == c->n && fk_piece_idle(c->free) && (any || c->free->settled);
        }
        if (!whole || p->reserved <= keep || p->reserved - c->n < keep) {
            given |= !whole && p->reserved > keep && c->free_bytes >= FK_POOL_STEP && drop_end(p, c, keep, any);
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
    for (struct fk_pool **at = &fk_pools; *at != NULL;) {
        struct fk_pool *p = *at;
        for (struct fk_chunk *c = p->chunks; c != NULL; c = c->next)
            if (c->unsettled)
                fk_chunk_settle(c);
        fk_pool_trim(p, p->destroyed ? 0 : p->threshold, false);
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
    bool given = fk_passed_settle(d->ordinal);
    for (struct fk_pool *p = fk_pools; p != NULL; p = p->next)
        if (p->device == d->ordinal)
            given |= fk_pool_trim(p, 0, false);
    return given;
}

bool fk_pool_holds(CUdeviceptr a, size_t n)
{
    for (struct fk_pool *p = fk_pools; p != NULL; p = p->next)
        for (struct fk_chunk *c = p->chunks; c != NULL; c = c->next)
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
    if (s->cap == NULL) {
        if (s->legacy)
            FK_TRY(fk_capture_legacy(s->ctx));
        FK_TRY(fk_capture_unsafe());
    }
    if (bytes == 0)
        return CUDA_SUCCESS;
    if (s->cap != NULL) {
        struct fk_work w = {.type = FK_W_ALLOC, .u.mem = {0, bytes, p->device}};
        struct fk_node *node = NULL;
        FK_TRY(fk_capture_add(s, &w, &node));
        *out = node->block->base;
        return CUDA_SUCCESS;
    }
    size_t n = fk_up(bytes, FK_GRAIN);
    struct fk_dev *d = &fk_devs[p->device];
    if (fk_take_failure() || n < bytes || n > d->span)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_piece *f = find(p, n, s, false);
    if (f == NULL && grow(p, n, s))
        f = find(p, n, s, false);
    if (f == NULL && fk_pool_trim_idle(d) && grow(p, n, s))
        f = find(p, n, s, false);
    if (f == NULL && p->reuse[2])
        f = find(p, n, s, true);
    if (f == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_block *b = fk_block_add(f->p, bytes, FK_ASYNC, p->device, s->ctx);
    if (b == NULL) {
        fk_piece_free(f, NULL);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    b->pool = p;
    b->piece = f;
    b->backed = n;
    p->used += bytes;
    p->live++;
    if (p->used > p->used_high)
        p->used_high = p->used;
    fk_stat_add(&d->st, bytes, n);
    *out = b->base;
    return CUDA_SUCCESS;
}
FK_API_PT_CLEARED(cuMemAllocAsync, cuMemAllocAsync_ptsz, (CUdeviceptr *out, size_t n, CUstream h), FK_CLEAR(out),
                  allocate(out, n, NULL, h, PT))
FK_API_PT_CLEARED(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz,
                  (CUdeviceptr *out, size_t n, CUmemoryPool p, CUstream h), FK_CLEAR(out),
          (p == NULL ? CUDA_ERROR_INVALID_VALUE : allocate(out, n, (struct fk_pool *)p, h, PT)))

/* Takes the block out of its pool's books; the piece is reusable as `op` allows (NULL: freed in no stream, at once). */
static void retire(struct fk_block *b, struct fk_op *op)
{
    struct fk_pool *p = b->pool;
    fk_piece_free(b->piece, op);
    if (op != NULL)
        p->used -= b->size; /* a card leaves a block that cudaFree frees in this figure for good */
    p->live--;
    fk_stat_sub(&fk_devs[b->device].st, b->size, b->backed);
    fk_block_remove(b);
}

void fk_pool_free_now(struct fk_block *b)
{
    fk_poison(b->base, b->size);
    retire(b, NULL);
    fk_pool_settle(); /* as a wait does: what the pool need not keep goes back at once */
}

void fk_free_reached(CUdeviceptr p, size_t bytes)
{
    struct fk_block *b = fk_block_at(p);
    if (b != NULL && b->base == p && b->freeing && (b->kind == FK_DEVICE || b->kind == FK_PITCH)) {
        fk_block_pass(b);
    } else if (b == NULL && fk_pool_holds(p, bytes)) {
        fk_poison(p, bytes);
    }
}

static CUresult do_free(CUdeviceptr a, CUstream h, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    if (s->cap == NULL) {
        if (s->legacy)
            FK_TRY(fk_capture_legacy(s->ctx));
        FK_TRY(fk_capture_unsafe());
    }
    if (a == 0)
        return CUDA_SUCCESS; /* and no node in a captured graph */
    if (s->cap != NULL && s->cap->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
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
        FK_TRY(fk_submit(s, &w, &op));
        retire(b, op);
        fk_op_unref(op);
        return CUDA_SUCCESS;
    case FK_DEVICE:
    case FK_PITCH:
        FK_TRY(fk_submit(s, &w, NULL));
        b->freeing = true;
        b->free_stream = s->id;
        b->free_ctx = s->ctx;
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
