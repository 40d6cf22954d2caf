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
#define BRIEF_BYTES ((size_t)64 << 10)

static uint64_t next_seq;

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

void fk_stream_free(struct fk_stream *s)
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
        fk_stream_free(s);
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
void fk_synchronised(struct fk_ctx *c, uint64_t stream)
{
    fk_pool_settle();
    fk_passed_waited(c, stream);
}

static bool touches(const struct fk_op *op, CUdeviceptr p, size_t n)
{
    struct fk_range r[4];
    int k = op->done ? 0 : fk_work_ranges(&op->w, r);
    for (int i = 0; i < k; i++)
        if (r[i].p < p + n && p < r[i].p + r[i].n)
            return true;
    return false;
}

static bool deps_done(const struct fk_op *op)
{
    for (int i = 0; i < op->ndeps; i++)
        if (!op->deps[i]->done)
            return false;
    return true;
}

/*
 * A copy or fill of [p, p+n) with nothing slow ahead of it. A card would be done with it before the host's next call; the
 * thread that plays the card here may not even have begun.
 */
static struct fk_op *brief_user(CUdeviceptr p, size_t n)
{
    if (fk_cfg.delay_us != 0)
        return NULL;
    for (struct fk_ctx *c = fk_contexts; c != NULL; c = c->next)
        for (struct fk_stream *s = c->streams; s != NULL; s = s->next)
            for (struct fk_op *op = s->head; op != NULL && deps_done(op); op = op->next) {
                if (op->w.type != FK_W_COPY && op->w.type != FK_W_FILL && op->w.type != FK_W_EMPTY && op->w.type != FK_W_RECORD)
                    break;
                if (touches(op, p, n))
                    return op;
            }
    return NULL;
}

void fk_fault_users(CUdeviceptr p, size_t n)
{
    for (struct fk_op *op; (op = brief_user(p, n)) != NULL;)
        fk_wait_op(op);
    for (struct fk_ctx *c = fk_contexts; c != NULL; c = c->next)
        for (struct fk_stream *s = c->streams; s != NULL; s = s->next)
            for (struct fk_op *op = s->head; op != NULL; op = op->next)
                op->fault |= touches(op, p, n);
}

bool fk_anything_busy(void)
{
    for (struct fk_ctx *c = fk_contexts; c != NULL; c = c->next)
        for (struct fk_stream *s = c->streams; s != NULL; s = s->next)
            if (fk_stream_busy(s))
                return true;
    return false;
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

/*
 * Small copies and fills with nothing ahead of them: done before the call returns, as a card would be done before the host's
 * next call, so the thread that plays the card need not be woken. Lock held throughout. With FAKEGPU_DELAY_US, and behind
 * anything that takes time, all goes by the queue.
 */
static bool done_at_once(struct fk_stream *s, struct fk_op *op)
{
    struct fk_range r[4];
    if (fk_cfg.delay_us != 0 || s->head != NULL || op->ctx->error != CUDA_SUCCESS || !op->ctx->active || !deps_done(op))
        return false;
    if (op->w.type != FK_W_COPY && op->w.type != FK_W_FILL)
        return false;
    int n = fk_work_ranges(&op->w, r);
    for (int i = 0; i < n; i++)
        if (r[i].n > BRIEF_BYTES || (!fk_range_ok(r[i].p, r[i].n) && !fk_pool_holds(r[i].p, r[i].n)))
            return false;
    (void)fk_work_run(&op->w, op);
    fk_work_release(&op->w);
    for (int i = 0; i < op->ndeps; i++)
        fk_op_unref(op->deps[i]);
    op->ndeps = 0;
    op->done = true;
    op->done_ns = fk_now_ns();
    return true;
}

CUresult fk_enqueue(struct fk_stream *s, struct fk_work *w, struct fk_op **out)
{
    struct fk_op *op = calloc(1, sizeof *op);
    if (op == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->refs = 1;
    op->ctx = s->ctx;
    op->stream_id = s->id;
    op->seq = ++next_seq;
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
    if (done_at_once(s, op)) {
        fk_op_unref(s->last);
        s->last = op;
        if (out != NULL)
            *out = ref(op);
        return CUDA_SUCCESS;
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
