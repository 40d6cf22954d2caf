/*
 * Physical memory of graphs with memory nodes: reserved in steps of 32 MiB at upload or first launch, kept by the
 * device after the exec is gone, given back by a trim.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>

struct fk_reserve {
    struct fk_reserve *next;
    int device;
    size_t bytes;
    bool charged;
    bool owned; /* its exec still exists */
    CUdeviceptr *blocks;
    size_t nblocks;
};

static struct fk_reserve *reserves;

struct fk_reserve *fk_reserve_new(struct fk_node *const *order, size_t count)
{
    size_t bytes = 0, n = 0;
    for (size_t i = 0; i < count; i++)
        if (order[i]->block != NULL) {
            bytes += fk_up(order[i]->block->size, FK_PAGE);
            n++;
        }
    if (n == 0)
        return NULL;
    struct fk_reserve *r = calloc(1, sizeof *r);
    if (r == NULL || (r->blocks = malloc(n * sizeof *r->blocks)) == NULL)
        abort();
    r->bytes = fk_up(bytes, FK_POOL_STEP);
    for (size_t i = 0; i < count; i++)
        if (order[i]->block != NULL) {
            r->device = order[i]->block->device;
            r->blocks[r->nblocks++] = order[i]->block->base;
        }
    r->owned = true;
    r->next = reserves;
    reserves = r;
    return r;
}

void fk_reserve_orphan(struct fk_reserve *r)
{
    if (r != NULL)
        r->owned = false;
}

static bool in_use(const struct fk_reserve *r)
{
    for (size_t i = 0; i < r->nblocks; i++) {
        struct fk_block *b = fk_block_at(r->blocks[i]);
        if (b != NULL && b->kind == FK_GRAPH && b->live)
            return true;
    }
    return false;
}

CUresult fk_reserve_charge(struct fk_reserve *r)
{
    if (r == NULL || r->charged)
        return CUDA_SUCCESS;
    struct fk_dev *d = &fk_devs[r->device];
    /* Idle reservations of destroyed execs serve first. */
    for (struct fk_reserve *o = reserves; o != NULL; o = o->next)
        if (!o->owned && o->charged && o->device == r->device && o->bytes == r->bytes && !in_use(o)) {
            o->charged = false;
            r->charged = true;
            return CUDA_SUCCESS;
        }
    if (!fk_charge(d, r->bytes) && !(fk_pool_trim_idle(d) && fk_charge(d, r->bytes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->charged = true;
    d->graph_reserved += r->bytes;
    if (d->graph_reserved > d->graph_reserved_high)
        d->graph_reserved_high = d->graph_reserved;
    if (d->graph_reserved > d->graph_used_high)
        d->graph_used_high = d->graph_reserved;
    return CUDA_SUCCESS;
}

/* ---- graph memory of a device: safe in captures, answered by figures ---- */

static CUresult do_trim(CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    for (struct fk_reserve **at = &reserves; *at != NULL;) {
        struct fk_reserve *r = *at;
        if (r->device == dev && r->charged && !in_use(r)) {
            fk_uncharge(d, r->bytes);
            d->graph_reserved -= r->bytes;
            r->charged = false;
        }
        if (!r->owned && !r->charged) {
            *at = r->next;
            free(r->blocks);
            free(r);
        } else {
            at = &r->next;
        }
    }
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGraphMemTrim, (CUdevice dev), do_trim(dev))

static CUresult get_mem(CUdevice dev, CUgraphMem_attribute a, void *out)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (a) {
    /* "Used" is what graphs hold, not what their blocks fill: it falls only at a trim, with the reserved figure. */
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)out = d->graph_reserved; break;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH: *(cuuint64_t *)out = d->graph_used_high; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)out = d->graph_reserved; break;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)out = d->graph_reserved_high; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
FK_API(cuDeviceGetGraphMemAttribute, (CUdevice dev, CUgraphMem_attribute a, void *out), get_mem(dev, a, out))

static CUresult set_mem(CUdevice dev, CUgraphMem_attribute a, const void *in)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (in == NULL || *(const cuuint64_t *)in != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (a == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        d->graph_used_high = d->graph_reserved;
    else if (a == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        d->graph_reserved_high = d->graph_reserved;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}
FK_API(cuDeviceSetGraphMemAttribute, (CUdevice dev, CUgraphMem_attribute a, void *in), set_mem(dev, a, in))
