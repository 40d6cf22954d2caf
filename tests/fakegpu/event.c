/*
 * Events. An event points at the operation of its last record; it is done when that operation is. Interprocess
 * events also keep two counters in a small shared file, so that another process can see records complete.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct fk_shared_event { _Atomic uint64_t recorded, done; };

static struct fk_event *events;

void fk_event_unref(struct fk_event *e)
{
    if (e == NULL || --e->refs > 0)
        return;
    fk_op_unref(e->op);
    free(e->cap_deps);
    if (e->shared != NULL)
        munmap(e->shared, 4096);
    if (e->shared_fd > 0)
        close(e->shared_fd);
    free(e);
}

static struct fk_event *new_event(struct fk_ctx *c, unsigned flags)
{
    struct fk_event *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->ctx = c;
    e->flags = flags;
    e->refs = 1;
    e->shared_fd = -1;
    e->next = events;
    events = e;
    fk_handle_add(e, FK_T_EVENT);
    return e;
}

static CUresult do_create(CUevent *out, unsigned flags)
{
    struct fk_ctx *c;
    if (out == NULL || flags & ~7u)
        return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    struct fk_event *e = new_event(c, flags);
    if (e == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (flags & CU_EVENT_INTERPROCESS) {
        e->shared_fd = memfd_create("fakegpu-event", MFD_CLOEXEC);
        if (e->shared_fd >= 0 && ftruncate(e->shared_fd, 4096) == 0) {
            void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, e->shared_fd, 0);
            e->shared = p != MAP_FAILED ? p : NULL;
        }
    }
    *out = (CUevent)e;
    return CUDA_SUCCESS;
}
FK_API(cuEventCreate, (CUevent *out, unsigned flags), do_create(out, flags))

static CUresult get(CUevent h, struct fk_event **out)
{
    if (!fk_handle_is(h, FK_T_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    *out = (struct fk_event *)h;
    return fk_ctx_error();
}

static void forget(struct fk_event *e)
{
    struct fk_event **at = &events;
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    fk_handle_del(e);
    e->destroyed = true;
    fk_event_unref(e);
}

static CUresult do_destroy(CUevent h)
{
    struct fk_event *e;
    if (!fk_handle_is(h, FK_T_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    e = (struct fk_event *)h;
    forget(e);
    return CUDA_SUCCESS;
}
FK_API(cuEventDestroy_v2, (CUevent h), do_destroy(h))

void fk_events_destroy(struct fk_ctx *c)
{
    for (struct fk_event *e = events, *next; e != NULL; e = next) {
        next = e->next;
        if (e->ctx == c)
            forget(e);
    }
}

static CUresult do_record(CUevent h, CUstream sh, unsigned flags, int pt)
{
    struct fk_event *e;
    struct fk_stream *s;
    bool handled = false;
    FK_TRY(get(h, &e));
    FK_STREAM_PT(sh, pt, &s);
    if (flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    if (e->imported || s->ctx != e->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    FK_TRY(fk_capture_record(s, e, flags, &handled));
    if (handled)
        return CUDA_SUCCESS;
    struct fk_work w = {.type = FK_W_RECORD, .u.event = e};
    struct fk_op *op;
    e->refs++;
    if (e->shared != NULL)
        atomic_fetch_add(&((struct fk_shared_event *)e->shared)->recorded, 1);
    FK_TRY(fk_submit(s, &w, &op));
    fk_op_unref(e->op);
    e->op = op;
    e->cap = NULL;
    return CUDA_SUCCESS;
}
FK_API_PT(cuEventRecord, cuEventRecord_ptsz, (CUevent h, CUstream s), do_record(h, s, 0, PT))
FK_API_PT(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz, (CUevent h, CUstream s, unsigned flags),
          do_record(h, s, flags, PT))

void fk_event_reached(struct fk_event *e, struct fk_op *op)
{
    (void)op;
    if (e->shared != NULL)
        atomic_fetch_add(&((struct fk_shared_event *)e->shared)->done, 1);
}

static bool done(const struct fk_event *e)
{
    if (e->imported) {
        struct fk_shared_event *s = e->shared;
        return atomic_load(&s->done) >= atomic_load(&s->recorded);
    }
    return e->op == NULL || e->op->done;
}

void fk_event_await(struct fk_event *e)
{
    struct timespec pause = {0, 200000};
    pthread_mutex_lock(&fk_lock);
    if (!e->imported)
        fk_wait_op(e->op);
    pthread_mutex_unlock(&fk_lock);
    while (e->imported && !done(e))
        nanosleep(&pause, NULL);
}

static CUresult do_query(CUevent h)
{
    struct fk_event *e;
    FK_TRY(get(h, &e));
    FK_TRY(fk_capture_unsafe());
    if (e->cap != NULL)
        return CUDA_ERROR_CAPTURED_EVENT;
    if (!done(e))
        return CUDA_ERROR_NOT_READY;
    fk_synchronised(e->ctx, e->op != NULL ? e->op->stream_id : UINT64_MAX);
    return e->ctx->error;
}
FK_API(cuEventQuery, (CUevent h), do_query(h))

static CUresult do_synchronize(CUevent h)
{
    struct fk_event *e;
    FK_TRY(get(h, &e));
    FK_TRY(fk_capture_unsafe());
    if (e->cap != NULL)
        return CUDA_ERROR_CAPTURED_EVENT;
    struct fk_ctx *c = e->ctx;
    e->refs++;
    if (e->imported) {
        pthread_mutex_unlock(&fk_lock);
        fk_event_await(e);
        pthread_mutex_lock(&fk_lock);
    } else {
        fk_wait_op(e->op);
    }
    uint64_t stream = e->op != NULL ? e->op->stream_id : UINT64_MAX;
    fk_event_unref(e);
    fk_synchronised(c, stream);
    return c->error;
}
FK_API(cuEventSynchronize, (CUevent h), do_synchronize(h))

static CUresult do_wait(CUstream sh, CUevent h, unsigned flags, int pt)
{
    struct fk_event *e;
    struct fk_stream *s;
    bool handled = false;
    FK_TRY(get(h, &e));
    FK_STREAM_PT(sh, pt, &s);
    if (flags & ~1u)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_capture_wait(s, e, flags, &handled));
    if (handled || done(e))
        return CUDA_SUCCESS;
    if (s->legacy)
        FK_TRY(fk_capture_legacy(s->ctx));
    if (!e->imported) {
        fk_stream_depend(s, e->op);
        /* The wait itself is work: what other streams and synchronise calls see must include it. */
        struct fk_work w = {.type = FK_W_EMPTY};
        return fk_submit(s, &w, NULL);
    }
    struct fk_work w = {.type = FK_W_WAIT, .u.event = e};
    e->refs++;
    return fk_submit(s, &w, NULL);
}
FK_API_PT(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, (CUstream s, CUevent h, unsigned flags), do_wait(s, h, flags, PT))

static CUresult do_elapsed(float *ms, CUevent a, CUevent b)
{
    struct fk_event *x, *y;
    if (ms == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(get(a, &x));
    FK_TRY(get(b, &y));
    if ((x->flags | y->flags) & CU_EVENT_DISABLE_TIMING || x->op == NULL || y->op == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!x->op->done || !y->op->done)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)(((double)y->op->done_ns - (double)x->op->done_ns) / 1e6);
    return CUDA_SUCCESS;
}
FK_API(cuEventElapsedTime, (float *ms, CUevent a, CUevent b), do_elapsed(ms, a, b))
FK_API(cuEventElapsedTime_v2, (float *ms, CUevent a, CUevent b), do_elapsed(ms, a, b))

/* ---- interprocess handles: the shared file, named by process and descriptor ---- */

struct event_handle { char magic[8]; pid_t pid; int fd; };

static CUresult do_export(CUipcEventHandle *out, CUevent h)
{
    struct fk_event *e;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(get(h, &e));
    if (!(e->flags & CU_EVENT_INTERPROCESS) || e->imported || e->shared == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    struct event_handle v = {"fakeevt", getpid(), e->shared_fd};
    memset(out, 0, sizeof *out);
    memcpy(out, &v, sizeof v);
    return CUDA_SUCCESS;
}
FK_API(cuIpcGetEventHandle, (CUipcEventHandle *out, CUevent h), do_export(out, h))

static CUresult do_import(CUevent *out, CUipcEventHandle h)
{
    struct event_handle v;
    struct fk_ctx *c;
    memcpy(&v, &h, sizeof v);
    if (out == NULL || memcmp(v.magic, "fakeevt", 8) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_need_ctx(&c));
    if (v.pid == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    char *p = fk_ipc_map(v.pid, v.fd, 0, 4096);
    if (p == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    struct fk_event *e = new_event(c, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
    if (e == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    e->imported = true;
    e->shared = p;
    *out = (CUevent)e;
    return CUDA_SUCCESS;
}
FK_API(cuIpcOpenEventHandle, (CUevent *out, CUipcEventHandle h), do_import(out, h))
