/*
 * The pieces of a pool's chunk. All of them are linked by address, and the free ones once more, so that neither a free
 * nor a search walks past blocks in use: twenty thousand live blocks cost a call no more than a few.
 */
#include "pool.h"

#include <stdlib.h>

#define RUN_LOOK 16 /* neighbours looked at to measure a run after a free; beyond that it counts as the whole chunk */

struct fk_chunk *fk_chunk_new(CUdeviceptr at, size_t n)
{
    struct fk_chunk *c = calloc(1, sizeof *c);
    struct fk_piece *f = calloc(1, sizeof *f);
    if (c == NULL || f == NULL) {
        free(c);
        free(f);
        return NULL;
    }
    *f = (struct fk_piece){.chunk = c, .p = at, .n = n, .settled = true};
    *c = (struct fk_chunk){.p = at, .n = n, .free_bytes = n, .longest = n, .free = f, .last = f};
    return c;
}

void fk_chunk_delete(struct fk_chunk *c)
{
    fk_op_unref(c->free->free_op);
    free(c->free);
    free(c);
}

bool fk_piece_idle(const struct fk_piece *f) { return !f->used && (f->free_op == NULL || f->free_op->done); }

static void unlink_free(struct fk_piece *f)
{
    *(f->free_prev != NULL ? &f->free_prev->free_next : &f->chunk->free) = f->free_next;
    if (f->free_next != NULL)
        f->free_next->free_prev = f->free_prev;
    f->free_prev = f->free_next = NULL;
}

/* The last free piece before f, or NULL: looked for from both ends at once. */
static struct fk_piece *free_before(const struct fk_piece *f)
{
    struct fk_piece *back = f->prev, *on = f->chunk->free;
    if (on == NULL || on->p > f->p)
        return NULL;
    for (;;) {
        if (!back->used) /* there is one, since `on` lies before f */
            return back;
        if (on->free_next == NULL || on->free_next->p > f->p)
            return on;
        back = back->prev;
        on = on->free_next;
    }
}

static void link_free(struct fk_piece *f)
{
    struct fk_piece *before = free_before(f);
    f->free_prev = before;
    f->free_next = before != NULL ? before->free_next : f->chunk->free;
    *(before != NULL ? &before->free_next : &f->chunk->free) = f;
    if (f->free_next != NULL)
        f->free_next->free_prev = f;
}

/* Whether f and the piece after it may be one: both idle, or freed by one stream. */
static bool joinable(const struct fk_piece *f)
{
    const struct fk_piece *g = f->next;
    if (g == NULL || f->used || g->used)
        return false;
    return (fk_piece_idle(f) && fk_piece_idle(g)) ||
           (f->free_op != NULL && g->free_op != NULL && f->free_op->stream_id == g->free_op->stream_id);
}

/* Makes f and the piece after it one; the later free speaks for both. */
static void join(struct fk_piece *f)
{
    struct fk_piece *g = f->next;
    if (g->free_op != NULL && (f->free_op == NULL || g->free_op->seq > f->free_op->seq)) {
        struct fk_op *op = f->free_op;
        f->free_op = g->free_op;
        g->free_op = op;
    }
    fk_op_unref(g->free_op);
    unlink_free(g);
    f->settled = f->settled && g->settled;
    f->n += g->n;
    f->next = g->next;
    if (f->next != NULL)
        f->next->prev = f;
    else
        f->chunk->last = f;
    free(g);
}

bool fk_chunk_extend(struct fk_chunk *c, size_t n)
{
    struct fk_piece *f = c->last, *more = calloc(1, sizeof *more);
    if (more == NULL)
        return false;
    *more = (struct fk_piece){.chunk = c, .prev = f, .free_prev = f, .p = c->p + c->n, .n = n, .settled = f->settled,
                              .free_op = f->free_op};
    if (more->free_op != NULL)
        more->free_op->refs++;
    f->next = f->free_next = c->last = more; /* nothing free lies behind the last piece */
    c->n += n;
    c->free_bytes += n;
    join(f);
    c->longest = f->n > c->longest ? f->n : c->longest;
    return true;
}

void fk_chunk_shorten(struct fk_chunk *c, size_t n)
{
    struct fk_piece *f = c->last;
    c->n -= n;
    c->free_bytes -= n;
    f->n -= n;
    if (f->n != 0)
        return;
    unlink_free(f);
    c->last = f->prev;
    c->last->next = NULL;
    fk_op_unref(f->free_op);
    free(f);
}

bool fk_piece_use(struct fk_piece *f, size_t n)
{
    if (f->n > n) {
        struct fk_piece *rest = calloc(1, sizeof *rest);
        if (rest == NULL)
            return false;
        *rest = (struct fk_piece){.chunk = f->chunk, .prev = f, .next = f->next, .p = f->p + n, .n = f->n - n,
                                  .settled = f->settled, .free_op = f->free_op};
        if (rest->free_op != NULL)
            rest->free_op->refs++;
        if (rest->next != NULL)
            rest->next->prev = rest;
        else
            f->chunk->last = rest;
        f->n = n;
        f->next = rest;
        rest->free_prev = f;
        rest->free_next = f->free_next;
        if (rest->free_next != NULL)
            rest->free_next->free_prev = rest;
        f->free_next = rest;
    }
    unlink_free(f);
    f->chunk->free_bytes -= n;
    f->used = true;
    f->settled = false;
    fk_op_unref(f->free_op);
    f->free_op = NULL;
    return true;
}

void fk_piece_free(struct fk_piece *f, struct fk_op *op)
{
    struct fk_chunk *c = f->chunk;
    f->used = false;
    f->settled = false;
    f->free_op = op;
    if (op != NULL)
        op->refs++;
    c->free_bytes += f->n;
    c->unsettled = true;
    link_free(f);
    if (joinable(f))
        join(f);
    if (f->prev != NULL && joinable(f->prev)) {
        f = f->prev;
        join(f);
    }
    size_t run = f->n;
    int looked = 0;
    for (const struct fk_piece *g = f->next; g != NULL && !g->used && looked < RUN_LOOK; g = g->next, looked++)
        run += g->n;
    for (const struct fk_piece *g = f->prev; g != NULL && !g->used && looked < RUN_LOOK; g = g->prev, looked++)
        run += g->n;
    run = looked == RUN_LOOK ? c->n : run;
    c->longest = run > c->longest ? run : c->longest;
}

void fk_chunk_coalesce(struct fk_chunk *c)
{
    size_t run = 0;
    c->longest = 0;
    for (struct fk_piece *f = c->free; f != NULL; f = f->free_next) {
        while (joinable(f))
            join(f);
        run = f->prev != NULL && !f->prev->used ? run + f->n : f->n;
        c->longest = run > c->longest ? run : c->longest;
    }
}

void fk_chunk_settle(struct fk_chunk *c)
{
    c->unsettled = false;
    for (struct fk_piece *f = c->free; f != NULL; f = f->free_next) {
        f->settled = f->settled || fk_piece_idle(f);
        c->unsettled |= !f->settled;
    }
}
