/* Stream handles: resolving, creating, destroying, querying, properties, and host functions. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t next_stream_id;

static struct fk_stream *new_stream(struct fk_ctx *c, unsigned flags, int priority)
{
    struct fk_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->ctx = c;
    s->flags = flags;
    s->priority = priority;
    s->id = ++next_stream_id;
    pthread_cond_init(&s->wake, NULL);
    s->next = c->streams;
    c->streams = s;
    fk_handle_add(s, FK_T_STREAM);
    return s;
}

struct fk_stream *fk_legacy_stream(struct fk_ctx *c)
{
    if (c->legacy == NULL && (c->legacy = new_stream(c, 0, 0)) != NULL)
        c->legacy->legacy = true;
    return c->legacy;
}

CUresult fk_stream_get(CUstream h, int pt, struct fk_stream **out)
{
    struct fk_ctx *c;
    if (h != NULL && h != CU_STREAM_LEGACY && h != CU_STREAM_PER_THREAD) {
        struct fk_stream *s = (struct fk_stream *)h;
        if (!fk_handle_is(s, FK_T_STREAM))
            return fk_current() == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_HANDLE;
        *out = s;
        return s->ctx->error;
    }
    FK_TRY(fk_need_ctx(&c));
    if (h == CU_STREAM_PER_THREAD || (h == NULL && pt)) {
        pid_t me = gettid();
        for (struct fk_stream *s = c->streams; s != NULL; s = s->next)
            if (s->per_thread && s->owner == me) {
                *out = s;
                return CUDA_SUCCESS;
            }
        struct fk_stream *s = new_stream(c, 0, 0);
        if (s == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->per_thread = true;
        s->owner = me;
        *out = s;
        return CUDA_SUCCESS;
    }
    *out = fk_legacy_stream(c);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Four streams share a page of the card, kept until the context goes. */
static CUresult charge_stream(struct fk_ctx *c)
{
    c->stream_count++;
    size_t want = fk_up(c->stream_count, 4) / 4 * FK_PAGE;
    if (want <= c->stream_charge)
        return CUDA_SUCCESS;
    if (!fk_charge(&fk_devs[c->device], want - c->stream_charge)) {
        c->stream_count--;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    c->stream_charge = want;
    return CUDA_SUCCESS;
}

static CUresult do_create(CUstream *out, unsigned flags, int priority)
{
    struct fk_ctx *c;
    if (out == NULL || flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    FK_TRY(charge_stream(c));
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    struct fk_stream *s = new_stream(c, flags, priority);
    if (s == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (CUstream)s;
    return CUDA_SUCCESS;
}
FK_API(cuStreamCreate, (CUstream *out, unsigned flags), do_create(out, flags, 0))
FK_API(cuStreamCreateWithPriority, (CUstream *out, unsigned flags, int priority), do_create(out, flags, priority))

/* Unlinks a stream; its queue runs to the end, the last one out frees it. */
static void retire(struct fk_stream *s)
{
    struct fk_stream **at = &s->ctx->streams;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    fk_handle_del(s);
    fk_capture_drop_stream(s);
    s->destroyed = true;
    if (s->worker)
        pthread_cond_signal(&s->wake);
    else
        fk_stream_free(s);
}

static CUresult do_destroy(CUstream h)
{
    struct fk_stream *s = (struct fk_stream *)h;
    if (h == NULL || h == CU_STREAM_LEGACY || h == CU_STREAM_PER_THREAD || !fk_handle_is(s, FK_T_STREAM))
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->legacy || s->per_thread)
        return CUDA_ERROR_INVALID_HANDLE;
    s->ctx->stream_count--;
    /* Work still queued counts for device-wide waits: keep it reachable through the legacy stream's next operation. */
    if (fk_stream_busy(s)) {
        struct fk_stream *legacy = fk_legacy_stream(s->ctx);
        struct fk_work w = {.type = FK_W_EMPTY};
        if (legacy != NULL && legacy->cap == NULL) {
            fk_stream_depend(legacy, s->last);
            fk_enqueue(legacy, &w, NULL);
        }
    }
    retire(s);
    return CUDA_SUCCESS;
}
FK_API(cuStreamDestroy_v2, (CUstream h), do_destroy(h))

void fk_streams_destroy(struct fk_ctx *c)
{
    while (c->streams != NULL)
        retire(c->streams);
    c->legacy = NULL;
}

static CUresult do_query(CUstream h, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    FK_TRY(fk_stream_sync_check(s));
    if (fk_stream_busy(s))
        return CUDA_ERROR_NOT_READY;
    fk_synchronised(s->ctx, s->id);
    return s->ctx->error;
}
FK_API_PT(cuStreamQuery, cuStreamQuery_ptsz, (CUstream h), do_query(h, PT))

static CUresult do_synchronize(CUstream h, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    FK_TRY(fk_stream_sync_check(s));
    struct fk_ctx *c = s->ctx;
    if (s->legacy) {
        for (struct fk_stream *o = c->streams; o != NULL; o = o->next)
            if (!(o->flags & CU_STREAM_NON_BLOCKING) && fk_stream_busy(o)) {
                /* The default stream is done when the blocking streams' earlier work is. */
                struct fk_work w = {.type = FK_W_EMPTY};
                FK_TRY(fk_enqueue(s, &w, NULL));
                break;
            }
    }
    fk_wait_stream(s);
    fk_synchronised(s->ctx, s->id);
    return c->error;
}
FK_API_PT(cuStreamSynchronize, cuStreamSynchronize_ptsz, (CUstream h), do_synchronize(h, PT))

/* ---- properties ---- */

static CUresult property(CUstream h, int pt, struct fk_stream **s, const void *out)
{
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return fk_stream_get(h, pt, s);
}

/* Of a captured stream only the context and the priority may be asked: the other questions end its capture. */
#define GETTER(fn, type, value, allowed)                         \
    static CUresult fn(CUstream h, type *out, int pt)            \
    {                                                            \
        struct fk_stream *s;                                     \
        FK_TRY(property(h, pt, &s, out));                        \
        if (!(allowed))                                          \
            FK_TRY(fk_capture_untouched(s));                     \
        *out = (type)(value);                                    \
        return CUDA_SUCCESS;                                     \
    }
GETTER(get_ctx, CUcontext, s->ctx, true)
GETTER(get_id, unsigned long long, s->id, false)
GETTER(get_flags, unsigned, s->flags, false)
GETTER(get_priority, int, s->priority, true)
GETTER(get_device, CUdevice, s->ctx->device, false)
FK_API_PT(cuStreamGetCtx, cuStreamGetCtx_ptsz, (CUstream h, CUcontext *out), get_ctx(h, out, PT))
FK_API_PT(cuStreamGetCtx_v2, cuStreamGetCtx_v2_ptsz, (CUstream h, CUcontext *out, CUgreenCtx *green),
          (green != NULL ? (void)(*green = NULL) : (void)0, get_ctx(h, out, PT)))
FK_API_PT(cuStreamGetId, cuStreamGetId_ptsz, (CUstream h, unsigned long long *out), get_id(h, out, PT))
FK_API_PT(cuStreamGetFlags, cuStreamGetFlags_ptsz, (CUstream h, unsigned *out), get_flags(h, out, PT))
FK_API_PT(cuStreamGetPriority, cuStreamGetPriority_ptsz, (CUstream h, int *out), get_priority(h, out, PT))
FK_API_PT(cuStreamGetDevice, cuStreamGetDevice_ptsz, (CUstream h, CUdevice *out), get_device(h, out, PT))

static CUresult do_attribute(CUstream h, CUstreamAttrID a, CUstreamAttrValue *out, const CUstreamAttrValue *in, int pt)
{
    struct fk_stream *s;
    FK_TRY(property(h, pt, &s, in != NULL ? (const void *)in : (const void *)out));
    if ((unsigned)a >= sizeof s->attrs / sizeof s->attrs[0])
        return CUDA_ERROR_INVALID_VALUE;
    if (in != NULL)
        s->attrs[a] = *in;
    else
        *out = s->attrs[a];
    return CUDA_SUCCESS;
}
FK_API_PT(cuStreamGetAttribute, cuStreamGetAttribute_ptsz, (CUstream h, CUstreamAttrID a, CUstreamAttrValue *out),
          do_attribute(h, a, out, NULL, PT))
FK_API_PT(cuStreamSetAttribute, cuStreamSetAttribute_ptsz, (CUstream h, CUstreamAttrID a, const CUstreamAttrValue *in),
          (in == NULL ? CUDA_ERROR_INVALID_VALUE : do_attribute(h, a, NULL, in, PT)))

static CUresult do_copy_attributes(CUstream to, CUstream from, int pt)
{
    struct fk_stream *a, *b;
    FK_STREAM_PT(to, pt, &a);
    FK_STREAM_PT(from, pt, &b);
    memcpy(a->attrs, b->attrs, sizeof a->attrs);
    return CUDA_SUCCESS;
}
FK_API_PT(cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz, (CUstream to, CUstream from), do_copy_attributes(to, from, PT))

/* ---- host functions ---- */

static CUresult do_host(CUstream h, CUhostFn fn, void *data, int pt)
{
    struct fk_stream *s;
    if (fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    struct fk_work w = {.type = FK_W_HOST, .u.host = {fn, data}};
    return fk_submit(s, &w, NULL);
}
FK_API_PT(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, (CUstream h, CUhostFn fn, void *data), do_host(h, fn, data, PT))

static CUresult do_callback(CUstream h, CUstreamCallback fn, void *data, unsigned flags, int pt)
{
    struct fk_stream *s;
    if (fn == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    if (s->cap != NULL) {
        s->cap->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    struct fk_work w = {.type = FK_W_CALLBACK, .u.callback = {fn, data, h}};
    return fk_submit(s, &w, NULL);
}
FK_API_PT(cuStreamAddCallback, cuStreamAddCallback_ptsz, (CUstream h, CUstreamCallback fn, void *data, unsigned flags),
          do_callback(h, fn, data, flags, PT))

static CUresult do_attach(CUstream h, CUdeviceptr p, size_t n, unsigned flags, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    struct fk_block *b = fk_block_at(p);
    if (b == NULL || b->kind != FK_MANAGED || (n != 0 && (b->base != p || b->size != n)))
        return CUDA_ERROR_INVALID_VALUE;
    b->flags = flags;
    return CUDA_SUCCESS;
}
FK_API_PT(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz, (CUstream h, CUdeviceptr p, size_t n, unsigned flags),
          do_attach(h, p, n, flags, PT))
