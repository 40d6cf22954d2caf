/* Blocks by address: a treap, so that interior addresses are found and a million live blocks stay cheap. */
#include "fake.h"

#include <stdlib.h>

static struct fk_block *root;
static uint64_t next_buffer_id;
static uint32_t seed = 2463534242u;

static uint32_t next_prio(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
    return seed;
}

/* Splits t into bases < p and bases >= p. */
static void split(struct fk_block *t, CUdeviceptr p, struct fk_block **l, struct fk_block **r)
{
    if (t == NULL) {
        *l = *r = NULL;
    } else if (t->base < p) {
        *l = t;
        split(t->right, p, &t->right, r);
    } else {
        *r = t;
        split(t->left, p, l, &t->left);
    }
}

static struct fk_block *merge(struct fk_block *l, struct fk_block *r)
{
    if (l == NULL || r == NULL)
        return l != NULL ? l : r;
    if (l->prio > r->prio) {
        l->right = merge(l->right, r);
        return l;
    }
    r->left = merge(l, r->left);
    return r;
}

struct fk_block *fk_block_add(CUdeviceptr base, size_t size, enum fk_kind kind, int device, struct fk_ctx *ctx)
{
    struct fk_block *b = calloc(1, sizeof *b), *l, *r;
    if (b == NULL)
        return NULL;
    b->base = base;
    b->size = size;
    b->kind = kind;
    b->device = device;
    b->ctx = ctx;
    b->live = true;
    b->buffer_id = ++next_buffer_id;
    b->prio = next_prio();
    split(root, base, &l, &r);
    root = merge(merge(l, b), r);
    return b;
}

static struct fk_block *passed;

void fk_block_pass(struct fk_block *b)
{
    b->passed = true;
    b->next_passed = passed;
    passed = b;
}

void fk_passed_waited(struct fk_ctx *c, uint64_t stream)
{
    for (struct fk_block *b = passed, *next; b != NULL; b = next) {
        next = b->next_passed;
        if (b->free_ctx == c && (stream == 0 || b->free_stream == stream))
            fk_block_destroy(b);
    }
}

bool fk_passed_settle(int device)
{
    bool any = false;
    for (struct fk_block *b = passed, *next; b != NULL; b = next) {
        next = b->next_passed;
        if (b->device != device)
            continue;
        any = true;
        fk_block_destroy(b);
    }
    return any;
}

void fk_block_remove(struct fk_block *b)
{
    for (struct fk_block **p = &passed; b->passed && *p != NULL; p = &(*p)->next_passed)
        if (*p == b) {
            *p = b->next_passed;
            break;
        }
    struct fk_block **at = &root;
    while (*at != NULL && *at != b)
        at = b->base < (*at)->base ? &(*at)->left : &(*at)->right;
    if (*at == b)
        *at = merge(b->left, b->right);
    free(b);
}

/* The last block that starts at or below p. */
static struct fk_block *at_or_below(CUdeviceptr p)
{
    struct fk_block *best = NULL;
    for (struct fk_block *t = root; t != NULL;) {
        if (t->base <= p) {
            best = t;
            t = t->right;
        } else {
            t = t->left;
        }
    }
    return best;
}

/* Whether p lies in what a device block was rounded up to, behind its end: device address space, and nobody's. */
bool fk_in_slack(CUdeviceptr p)
{
    const struct fk_block *b = at_or_below(p);
    return b != NULL && fk_is_device_kind(b->kind) && p >= b->base + b->size && p < b->base + (b->size + 511) / 512 * 512 + 512;
}

struct fk_block *fk_block_at(CUdeviceptr p)
{
    struct fk_block *b = at_or_below(p);
    return b != NULL && p - b->base < b->size ? b : NULL;
}

struct fk_block *fk_block_next(CUdeviceptr p)
{
    struct fk_block *best = NULL;
    for (struct fk_block *t = root; t != NULL;) {
        if (t->base >= p) {
            best = t;
            t = t->left;
        } else {
            t = t->right;
        }
    }
    return best;
}

bool fk_range_ok(CUdeviceptr p, size_t n)
{
    struct fk_block *b = fk_block_at(p);
    while (b != NULL) {
        size_t room = b->base + b->size - p;
        if (n <= room)
            return true;
        if (b->kind != FK_VMM)
            return false;
        p += room;
        n -= room;
        b = fk_block_at(p);
        if (b != NULL && b->kind != FK_VMM)
            return false;
    }
    return false;
}

bool fk_is_device_kind(enum fk_kind k)
{
    return k != FK_HOST && k != FK_REGISTERED;
}
