/*
 * Streams: queues of operations, one worker thread each, started at the first operation and gone again when the
 * queue has been empty for a while. Order inside a stream is the queue's; across streams an operation carries the
 * operations it must wait for (events, and the legacy default stream's rule).
 */
#define _GNU_SOURCE
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define IDLE_MS 200

static uint64_t next_stream_id;

uint64_t fk_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void fk_op_unref(struct fk_op *op)
{
    if (op == NULL || --op->refs > 0)
        return;
    for (int i = 0; i < op->ndeps; i++)
        fk_op_unref(op->deps[i]);
    free(op->deps);
    free(op);
}

static struct fk_op *ref(struct fk_op *op)
{
    op->refs++;
    return op;
}

/* ---- workers ---- */

static void sleep_us(unsigned us)
{
    if (us != 0)
        usleep(us);
}

/* Runs one operation. Lock held on entry and exit, not while the work runs. */
static void run_op(struct fk_stream *s, struct fk_op *op)
{
    struct fk_range r[4];
    for (int i = 0; i < op->ndeps; i++)
        fk_wait_op(op->deps[i]);
    op->running = true;
    CUresult result = CUDA_SUCCESS;
    if (op->ctx->error == CUDA_SUCCESS && op->ctx->active) {
        int n = fk_work_ranges(&op->w, r);
        bool bad = op->fault;
        for (int i = 0; i < n; i++)
            bad |= !fk_range_ok(r[i].p, r[i].n) && !fk_pool_holds(r[i].p, r[i].n);
        pthread_mutex_unlock(&fk_lock);
        sleep_us(fk_cfg.delay_us);
        result = bad ? CUDA_ERROR_ILLEGAL_ADDRESS : fk_work_run(&op->w, op);
        pthread_mutex_lock(&fk_lock);
        if (op->fault)
            result = CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (result != CUDA_SUCCESS)
        fk_ctx_fault(op->ctx, result);
    (void)s;
    fk_work_release(&op->w);
    op->running = false;
    op->done = true;
    op->done_ns = fk_now_ns();
    for (int i = 0; i < op->ndeps; i++)
        fk_op_unref(op->deps[i]);
    op->ndeps = 0;
    pthread_cond_broadcast(&fk_done);
}

static void free_stream(struct fk_stream *s)
{
    fk_op_unref(s->last);
    for (int i = 0; i < s->npending; i++)
        fk_op_unref(s->pending[i]);
    free(s->pending);
    pthread_cond_destroy(&s->wake);
    free(s);
}

static void *worker(void *arg)
{
    struct fk_stream *s = arg;
    pthread_mutex_lock(&fk_lock);
    for (;;) {
        while (s->head != NULL) {
            struct fk_op *op = s->head;
            run_op(s, op);
            s->head = op->next;
            if (s->head == NULL)
                s->tail = NULL;
            fk_op_unref(op);
        }
        if (s->destroyed)
            break;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += IDLE_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&s->wake, &fk_lock, &until) == ETIMEDOUT && s->head == NULL)
            break;
    }
    s->worker = false;
    if (s->destroyed)
        free_stream(s);
    pthread_mutex_unlock(&fk_lock);
    return NULL;
}

static CUresult start_worker(struct fk_stream *s)
{
    pthread_attr_t attr;
    pthread_t t;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    int r = pthread_create(&t, &attr, worker, s);
    pthread_attr_destroy(&attr);
    if (r != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    s->worker = true;
    return CUDA_SUCCESS;
}

/* ---- waiting ---- */

void fk_wait_op(struct fk_op *op)
{
    if (op == NULL)
        return;
    ref(op);
    while (!op->done)
        pthread_cond_wait(&fk_done, &fk_lock);
    fk_op_unref(op);
}

bool fk_stream_busy(struct fk_stream *s)
{
    return s->last != NULL && !s->last->done;
}

void fk_wait_stream(struct fk_stream *s)
{
    fk_wait_op(s->last);
}

/* Waits for the last operations of all streams in the contexts chosen; a snapshot, so later work does not prolong it. */
static void wait_all(struct fk_ctx *only, int device)
{
    size_t n = 0, room = 0;
    struct fk_op **ops = NULL;
    for (struct fk_ctx *c = fk_contexts; c != NULL; c = c->next) {
        if (only != NULL ? c != only : c->device != device)
            continue;
        for (struct fk_stream *s = c->streams; s != NULL; s = s->next) {
            if (!fk_stream_busy(s))
                continue;
            if (n == room) {
                room = room * 2 + 16;
                ops = realloc(ops, room * sizeof *ops);
                if (ops == NULL)
                    abort();
            }
            ops[n++] = ref(s->last);
        }
    }
    for (size_t i = 0; i < n; i++) {
        fk_wait_op(ops[i]);
        fk_op_unref(ops[i]);
    }
    free(ops);
}

void fk_wait_ctx(struct fk_ctx *c) { wait_all(c, 0); }
void fk_wait_device(int ordinal) { wait_all(NULL, ordinal); }
void fk_synchronised(void) { fk_pool_settle(); }

void fk_fault_users(CUdeviceptr p, size_t n)
{
    for (struct fk_ctx *c = fk_contexts; c != NULL; c = c->next)
        for (struct fk_stream *s = c->streams; s != NULL; s = s->next)
            for (struct fk_op *op = s->head; op != NULL; op = op->next) {
                struct fk_range r[4];
                int k = op->done ? 0 : fk_work_ranges(&op->w, r);
                for (int i = 0; i < k; i++)
                    if (r[i].p < p + n && p < r[i].p + r[i].n)
                        op->fault = true;
            }
}

/* ---- submission ---- */

static void add_dep(struct fk_op *op, struct fk_op *on)
{
    if (on == NULL || on->done)
        return;
    struct fk_op **d = realloc(op->deps, ((size_t)op->ndeps + 1) * sizeof *d);
    if (d == NULL)
        abort();
    op->deps = d;
    d[op->ndeps++] = ref(on);
}

void fk_stream_depend(struct fk_stream *s, struct fk_op *op)
{
    if (op == NULL || op->done)
        return;
    struct fk_op **d = realloc(s->pending, ((size_t)s->npending + 1) * sizeof *d);
    if (d == NULL)
        abort();
    s->pending = d;
    d[s->npending++] = ref(op);
}

CUresult fk_enqueue(struct fk_stream *s, struct fk_work *w, struct fk_op **out)
{
    struct fk_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->refs = 1;
    op->ctx = s->ctx;
    op->stream_id = s->id;
    op->w = *w;
    for (int i = 0; i < s->npending; i++) {
        add_dep(op, s->pending[i]);
        fk_op_unref(s->pending[i]);
    }
    s->npending = 0;
    /* Legacy rule: the default stream waits for all blocking streams, and they for it. */
    if (s->legacy) {
        for (struct fk_stream *o = s->ctx->streams; o != NULL; o = o->next)
            if (o != s && !(o->flags & CU_STREAM_NON_BLOCKING))
                add_dep(op, o->last);
    } else if (!(s->flags & CU_STREAM_NON_BLOCKING) && s->ctx->legacy != NULL) {
        add_dep(op, s->ctx->legacy->last);
    }
    if (!s->worker) {
        CUresult r = start_worker(s);
        if (r != CUDA_SUCCESS) {
            fk_op_unref(op);
            return r;
        }
    }
    if (s->tail != NULL)
        s->tail->next = op;
    else
        s->head = op;
    s->tail = op;
    fk_op_unref(s->last);
    s->last = ref(op);
    if (out != NULL)
        *out = ref(op);
    pthread_cond_signal(&s->wake);
    return CUDA_SUCCESS;
}

CUresult fk_submit(struct fk_stream *s, struct fk_work *w, struct fk_op **out)
{
    CUresult r = CUDA_SUCCESS;
    if (out != NULL)
        *out = NULL;
    if (s->cap != NULL)
        r = fk_capture_add(s, w, NULL);
    else if (s->legacy && (r = fk_capture_legacy(s->ctx)) != CUDA_SUCCESS)
        ;
    else
        r = fk_enqueue(s, w, out);
    if (r != CUDA_SUCCESS)
        fk_work_release(w);
    return r;
}

/* ---- handles ---- */

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
        free_stream(s);
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
    FK_TRY(fk_capture_unsafe());
    if (fk_stream_busy(s))
        return CUDA_ERROR_NOT_READY;
    fk_synchronised();
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
    fk_synchronised();
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

#define GETTER(fn, type, value)                                  \
    static CUresult fn(CUstream h, type *out, int pt)            \
    {                                                            \
        struct fk_stream *s;                                     \
        FK_TRY(property(h, pt, &s, out));                        \
        *out = (type)(value);                                    \
        return CUDA_SUCCESS;                                     \
    }
GETTER(get_ctx, CUcontext, s->ctx)
GETTER(get_id, unsigned long long, s->id)
GETTER(get_flags, unsigned, s->flags)
GETTER(get_priority, int, s->priority)
GETTER(get_device, CUdevice, s->ctx->device)
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
