/* Contexts: primary and created ones, the per-thread stack, limits, peers, and what a reset destroys. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <string.h>

struct fk_ctx *fk_contexts;
static uint64_t next_ctx_id;

#define DEFAULT_STACK 1024
#define DEFAULT_HEAP (8 * FK_MIB)
#define DEFAULT_FIFO 7077888

struct fk_ctx *fk_current(void)
{
    return fk_tls.depth > 0 ? fk_tls.stack[fk_tls.depth - 1] : NULL;
}

CUresult fk_need_ctx(struct fk_ctx **out)
{
    struct fk_ctx *c = fk_current();
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->active)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *out = c;
    return c->error;
}

CUresult fk_ctx_error(void)
{
    struct fk_ctx *c = fk_current();
    return c != NULL && c->active ? c->error : CUDA_SUCCESS;
}

void fk_ctx_fault(struct fk_ctx *c, CUresult error)
{
    if (c->error == CUDA_SUCCESS)
        c->error = fk_cfg.fault != 0 ? (CUresult)fk_cfg.fault : error;
    fk_devs[c->device].faulted = true;
}

/* Charges and activates a new or reused context. A card that saw a sticky error gives no new one to this process. */
static CUresult activate(struct fk_ctx *c)
{
    struct fk_dev *d = &fk_devs[c->device];
    if (d->faulted)
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    FK_TRY(fk_phys_start(d));
    size_t extra = fk_cfg.context > d->reset_charge ? fk_cfg.context - d->reset_charge : 0;
    if (!fk_charge(d, extra))
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->charge = fk_cfg.context;
    d->reset_charge = 0;
    c->active = true;
    c->error = CUDA_SUCCESS;
    c->id = ++next_ctx_id;
    c->peers = 1u << c->device;
    c->limits[CU_LIMIT_STACK_SIZE] = DEFAULT_STACK;
    c->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = DEFAULT_FIFO;
    c->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = DEFAULT_HEAP;
    c->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    c->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    c->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
    c->limits_dirty = false;
    return CUDA_SUCCESS;
}

/* FAKEGPU_REUSE: one that has ended, as new. */
static struct fk_ctx *again(void)
{
    struct fk_ctx *c = fk_cfg.reuse ? fk_contexts : NULL;
    while (c != NULL && (c->active || c->primary))
        c = c->next;
    if (c == NULL)
        return NULL;
    struct fk_ctx *next = c->next;
    memset(c, 0, sizeof *c);
    c->next = next;
    c->version = 3020;
    return c;
}

static struct fk_ctx *new_ctx(int device, bool primary)
{
    struct fk_ctx *c = primary ? NULL : again();
    if (c != NULL) {
        c->device = device;
        return c;
    }
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->device = device;
    c->primary = primary;
    c->version = 3020;
    c->next = fk_contexts;
    fk_contexts = c;
    fk_handle_add(c, FK_T_CTX);
    return c;
}

void fk_ctx_teardown(struct fk_ctx *c)
{
    struct fk_dev *d = &fk_devs[c->device];
    fk_wait_ctx(c);
    fk_streams_destroy(c);
    fk_events_destroy(c);
    fk_modules_destroy(c);
    fk_arrays_destroy(c);
    for (struct fk_block *b = fk_block_next(0), *next; b != NULL; b = next) {
        next = fk_block_next(b->base + 1);
        if (b->ctx == c && b->kind != FK_ASYNC)
            fk_block_destroy(b);
    }
    fk_uncharge(d, c->stream_charge + c->limit_charge + c->stack_charge);
    size_t left = c->primary && fk_cfg.reset_left < c->charge ? fk_cfg.reset_left : 0;
    fk_uncharge(d, c->charge - left);
    d->reset_charge = left;
    c->charge = c->stream_charge = c->limit_charge = c->stack_charge = 0;
    c->stream_count = 0;
    c->active = false;
    c->refs = 0;
}

/* ---- primary contexts ---- */

static CUresult do_retain(CUcontext *out, CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->primary == NULL && (d->primary = new_ctx(dev, true)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct fk_ctx *c = d->primary;
    if (!c->active)
        FK_TRY(activate(c));
    c->refs++;
    *out = (CUcontext)c;
    return CUDA_SUCCESS;
}
FK_API(cuDevicePrimaryCtxRetain, (CUcontext *out, CUdevice dev), do_retain(out, dev))

static CUresult do_release(CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (d->primary == NULL || !d->primary->active || d->primary->refs == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--d->primary->refs == 0)
        fk_ctx_teardown(d->primary);
    return CUDA_SUCCESS;
}
FK_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), do_release(dev))
FK_API(cuDevicePrimaryCtxRelease, (CUdevice dev), do_release(dev))

static CUresult do_reset(CUdevice dev)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (d->primary != NULL && d->primary->active) {
        FK_TRY(fk_capture_forbid(d->primary));
        fk_ctx_teardown(d->primary);
    }
    return CUDA_SUCCESS;
}
FK_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), do_reset(dev))
FK_API(cuDevicePrimaryCtxReset, (CUdevice dev), do_reset(dev))

static CUresult do_state(CUdevice dev, unsigned *flags, int *active)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (flags != NULL)
        *flags = d->primary != NULL ? d->primary->flags : 0;
    if (active != NULL)
        *active = d->primary != NULL && d->primary->active;
    return CUDA_SUCCESS;
}
FK_API(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned *flags, int *active), do_state(dev, flags, active))

static CUresult do_primary_flags(CUdevice dev, unsigned flags)
{
    struct fk_dev *d;
    FK_TRY(fk_need_device(dev, &d));
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    if (d->primary == NULL && (d->primary = new_ctx(dev, true)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    d->primary->flags = flags;
    return CUDA_SUCCESS;
}
FK_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned flags), do_primary_flags(dev, flags))
FK_API(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned flags), do_primary_flags(dev, flags))

/* ---- created contexts ---- */

/* What a card makes of one is not known: no program of ours may find out. */
static void stale_push(void)
{
    if (!fk_cfg.direct)
        return;
    fputs("fakegpu: a context was pushed after its end\n", stderr);
    abort();
}

static CUresult push(struct fk_ctx *c)
{
    if (fk_tls.depth == (int)(sizeof fk_tls.stack / sizeof fk_tls.stack[0]))
        return CUDA_ERROR_INVALID_VALUE;
    fk_tls.stack[fk_tls.depth++] = c;
    return CUDA_SUCCESS;
}

static CUresult do_create(CUcontext *out, unsigned flags, CUdevice dev)
{
    struct fk_dev *d;
    if (out == NULL || flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_device(dev, &d));
    struct fk_ctx *c = new_ctx(dev, false);
    if (c == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->flags = flags;
    CUresult r = activate(c);
    if (r == CUDA_SUCCESS)
        r = push(c);
    if (r != CUDA_SUCCESS)
        return r;
    c->refs = 1;
    *out = (CUcontext)c;
    return CUDA_SUCCESS;
}
FK_API(cuCtxCreate_v2, (CUcontext *out, unsigned flags, CUdevice dev), do_create(out, flags, dev))
FK_API(cuCtxCreate_v3, (CUcontext *out, CUexecAffinityParam *params, int n, unsigned flags, CUdevice dev),
       ((void)params, n != 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : do_create(out, flags, dev)))
FK_API(cuCtxCreate_v4, (CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice dev),
       (params != NULL && params->numExecAffinityParams != 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
                                                             : do_create(out, flags, dev)))

static CUresult do_destroy(CUcontext h)
{
    struct fk_ctx *c = (struct fk_ctx *)h;
    if (!fk_handle_is(c, FK_T_CTX) || c->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->active)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (fk_current() == c)
        fk_tls.depth--;
    fk_ctx_teardown(c);
    if (fk_cfg.reuse) { /* it is others' before the caller knows */
        pthread_mutex_unlock(&fk_lock);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        pthread_mutex_lock(&fk_lock);
    }
    return CUDA_SUCCESS;
}
FK_API(cuCtxDestroy_v2, (CUcontext h), do_destroy(h))

static CUresult do_push(CUcontext h)
{
    struct fk_ctx *c = (struct fk_ctx *)h;
    if (c == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!fk_handle_is(c, FK_T_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->active)
        stale_push();
    return push(c);
}
FK_API(cuCtxPushCurrent_v2, (CUcontext h), do_push(h))

static CUresult do_pop(CUcontext *out)
{
    struct fk_ctx *c = fk_current();
    if (c == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    fk_tls.depth--;
    if (out != NULL)
        *out = (CUcontext)c;
    return CUDA_SUCCESS;
}
FK_API(cuCtxPopCurrent_v2, (CUcontext *out), do_pop(out))

static CUresult do_set(CUcontext h)
{
    struct fk_ctx *c = (struct fk_ctx *)h;
    if (c == NULL) {
        if (fk_tls.depth > 0)
            fk_tls.depth--;
        return CUDA_SUCCESS;
    }
    if (!fk_handle_is(c, FK_T_CTX))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (fk_tls.depth == 0)
        return push(c);
    fk_tls.stack[fk_tls.depth - 1] = c;
    return CUDA_SUCCESS;
}
FK_API(cuCtxSetCurrent, (CUcontext h), do_set(h))

static CUresult do_get(CUcontext *out)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUcontext)fk_current();
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetCurrent, (CUcontext *out), do_get(out))

/* The context named, or the current one for NULL. */
static CUresult named(CUcontext h, struct fk_ctx **out)
{
    if (h == NULL) {
        *out = fk_current();
        return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    *out = (struct fk_ctx *)h;
    return fk_handle_is(h, FK_T_CTX) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult do_device(CUdevice *out, CUcontext h)
{
    struct fk_ctx *c;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(named(h, &c));
    *out = c->device;
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetDevice, (CUdevice *out), do_device(out, NULL))
FK_API(cuCtxGetDevice_v2, (CUdevice *out, CUcontext h), do_device(out, h))

static CUresult do_id(CUcontext h, unsigned long long *id)
{
    struct fk_ctx *c;
    if (id == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(named(h, &c));
    if (!c->active)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *id = c->id;
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetId, (CUcontext h, unsigned long long *id), do_id(h, id))

static CUresult do_version(CUcontext h, unsigned *v)
{
    struct fk_ctx *c;
    if (v == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(named(h, &c));
    *v = c->version;
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetApiVersion, (CUcontext h, unsigned *v), do_version(h, v))

static CUresult do_flags(unsigned *flags)
{
    struct fk_ctx *c;
    if (flags == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    *flags = c->flags;
    return CUDA_SUCCESS;
}
FK_API(cuCtxGetFlags, (unsigned *flags), do_flags(flags))

static CUresult do_set_flags(unsigned flags)
{
    struct fk_ctx *c;
    FK_TRY(fk_need_ctx(&c));
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    c->flags = flags;
    return CUDA_SUCCESS;
}
FK_API(cuCtxSetFlags, (unsigned flags), do_set_flags(flags))

static CUresult do_synchronize(CUcontext h)
{
    struct fk_ctx *c;
    FK_TRY(named(h, &c));
    if (!c->active)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    if (c->error != CUDA_SUCCESS)
        return c->error;
    FK_TRY(fk_capture_forbid(c));
    fk_wait_ctx(c);
    fk_synchronised(c, 0);
    return c->error;
}
FK_API(cuCtxSynchronize, (void), do_synchronize(NULL))
FK_API(cuCtxSynchronize_v2, (CUcontext h), do_synchronize(h))
