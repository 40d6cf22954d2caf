/*
 * Stream capture. A capture has an origin stream and may spread to others through events; each captured stream
 * keeps the nodes its next work depends on. Calls that could not be captured end it, by the mode it was begun in.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fk_capture *fk_captures;
static uint64_t next_capture_id;

/* ---- calls that a capture forbids ---- */

CUresult fk_capture_unsafe(void)
{
    bool hit = false;
    pid_t me = gettid();
    if (fk_captures == NULL || fk_tls.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (struct fk_capture *c = fk_captures; c != NULL; c = c->next) {
        if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
            continue;
        bool own = c->thread == me;
        bool global = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && fk_tls.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (own || global)
            hit = c->invalid = true;
    }
    return hit ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult fk_capture_forbid(struct fk_ctx *ctx)
{
    bool hit = false;
    for (struct fk_capture *c = fk_captures; c != NULL; c = c->next)
        if (ctx == NULL || c->origin == NULL || c->origin->ctx == ctx)
            hit = c->invalid = true;
    return hit ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult fk_capture_legacy(struct fk_ctx *ctx)
{
    bool hit = false;
    if (fk_captures == NULL)
        return CUDA_SUCCESS;
    for (struct fk_stream *s = ctx->streams; s != NULL; s = s->next)
        if (s->cap != NULL && !(s->flags & CU_STREAM_NON_BLOCKING))
            hit = s->cap->invalid = true;
    return hit ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

CUresult fk_capture_untouched(struct fk_stream *s)
{
    if (s->cap == NULL)
        return CUDA_SUCCESS;
    s->cap->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult fk_stream_sync_check(struct fk_stream *s)
{
    FK_TRY(fk_capture_untouched(s));
    if (s->legacy)
        FK_TRY(fk_capture_legacy(s->ctx));
    return fk_capture_unsafe();
}

/* ---- nodes ---- */

static CUresult set_deps(struct fk_node ***list, size_t *n, struct fk_node *const *from, size_t count)
{
    struct fk_node **d = malloc((count + 1) * sizeof *d);
    if (d == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (count != 0)
        memcpy(d, from, count * sizeof *d);
    free(*list);
    *list = d;
    *n = count;
    return CUDA_SUCCESS;
}

/* Union of two dependency lists, for a join. */
static CUresult add_deps(struct fk_stream *s, struct fk_node *const *from, size_t count)
{
    struct fk_node **d = malloc((s->ncap_deps + count + 1) * sizeof *d);
    size_t n = s->ncap_deps;
    if (d == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (n != 0)
        memcpy(d, s->cap_deps, n * sizeof *d);
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < n && d[j] != from[i])
            j++;
        if (j == n)
            d[n++] = from[i];
    }
    free(s->cap_deps);
    s->cap_deps = d;
    s->ncap_deps = n;
    return CUDA_SUCCESS;
}

CUresult fk_capture_add(struct fk_stream *s, struct fk_work *w, struct fk_node **out)
{
    struct fk_capture *c = s->cap;
    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    struct fk_node *n = fk_node_add(c->graph, fk_node_type_of(w), s->cap_deps, s->ncap_deps);
    if (n == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    n->w = *w;
    n->ctx = (CUcontext)s->ctx;
    if (w->type == FK_W_ALLOC) {
        CUDA_MEM_ALLOC_NODE_PARAMS p = {.bytesize = w->u.mem.bytes};
        p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        p.poolProps.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = w->u.mem.device};
        FK_TRY(fk_graph_alloc(n, &p));
    }
    if (out != NULL)
        *out = n;
    return set_deps(&s->cap_deps, &s->ncap_deps, &n, 1);
}

CUresult fk_capture_record(struct fk_stream *s, struct fk_event *e, unsigned flags, bool *handled)
{
    if (s->cap == NULL)
        return CUDA_SUCCESS;
    if (s->cap->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *handled = true;
    if (flags & CU_EVENT_RECORD_EXTERNAL) {
        struct fk_work w = {.type = FK_W_RECORD, .u.event = e};
        e->refs++;
        return fk_capture_add(s, &w, NULL);
    }
    e->cap = s->cap;
    e->cap_id = s->cap->id;
    return set_deps(&e->cap_deps, &e->ncap_deps, s->cap_deps, s->ncap_deps);
}

static bool alive(const struct fk_capture *c, uint64_t id)
{
    for (struct fk_capture *k = fk_captures; k != NULL; k = k->next)
        if (k == c && k->id == id)
            return true;
    return false;
}

CUresult fk_capture_wait(struct fk_stream *s, struct fk_event *e, unsigned flags, bool *handled)
{
    if (e->cap == NULL) {
        if (s->cap == NULL)
            return CUDA_SUCCESS;
        *handled = true;
        if (flags & CU_EVENT_WAIT_EXTERNAL) {
            struct fk_work w = {.type = FK_W_WAIT, .u.event = e};
            e->refs++;
            return fk_capture_add(s, &w, NULL);
        }
        if (e->op == NULL)
            return CUDA_SUCCESS; /* never recorded: nothing to wait for */
        s->cap->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    *handled = true;
    if (!alive(e->cap, e->cap_id))
        return CUDA_ERROR_CAPTURED_EVENT;
    if (e->cap->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (s->legacy) {
        e->cap->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (s->cap != NULL && s->cap != e->cap) {
        s->cap->invalid = e->cap->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    s->cap = e->cap; /* the stream joins the capture */
    for (size_t i = 0; s->cap_origin && i < e->ncap_deps; i++)
        e->cap_deps[i]->joined = true; /* and stays it, whatever becomes of the stream's own dependencies */
    return add_deps(s, e->cap_deps, e->ncap_deps);
}

static void leave(struct fk_stream *s)
{
    free(s->cap_deps);
    s->cap_deps = NULL;
    s->ncap_deps = 0;
    s->cap = NULL;
    s->cap_origin = false;
}

static void end(struct fk_capture *c)
{
    for (struct fk_ctx *x = fk_contexts; x != NULL; x = x->next)
        for (struct fk_stream *s = x->streams; s != NULL; s = s->next)
            if (s->cap == c)
                leave(s);
    for (struct fk_capture **at = &fk_captures; *at != NULL; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    free(c);
}

/* Marks the nodes that have a successor or are the origin's last. */
static void mark_reached(struct fk_capture *c)
{
    for (struct fk_node *n = c->graph->nodes; n != NULL; n = n->next)
        n->mark = false;
    for (size_t i = 0; i < c->origin->ncap_deps; i++)
        c->origin->cap_deps[i]->mark = true;
    for (struct fk_node *n = c->graph->nodes; n != NULL; n = n->next)
        for (size_t i = 0; i < n->ndeps; i++)
            n->deps[i]->mark = true;
}

/* After mark_reached: whether all that the forked stream ends in was joined back. */
static bool stream_joined(const struct fk_stream *s)
{
    for (size_t i = 0; i < s->ncap_deps; i++)
        if (!s->cap_deps[i]->mark && !s->cap_deps[i]->joined)
            return false;
    return true;
}

void fk_capture_drop_stream(struct fk_stream *s)
{
    struct fk_capture *c = s->cap;
    if (c == NULL)
        return;
    bool origin = c->origin == s;
    mark_reached(c);
    if (origin || !stream_joined(s))
        c->invalid = true; /* a stream that was joined back may go */
    leave(s);
    if (origin) {
        if (!c->to_graph)
            fk_graph_release(c->graph);
        end(c);
    }
}

/* ---- begin and end ---- */

static CUresult do_begin(CUstream h, CUgraph hg, const CUgraphNode *deps, size_t n, CUstreamCaptureMode mode, int pt)
{
    struct fk_stream *s;
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    if (s->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->cap != NULL) {
        s->cap->invalid = true;
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (hg != NULL && !fk_handle_is(hg, FK_T_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_capture *c = calloc(1, sizeof *c);
    if (c == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    c->graph = hg != NULL ? (struct fk_graph *)hg : fk_graph_new();
    c->to_graph = hg != NULL;
    c->id = ++next_capture_id;
    c->mode = mode;
    c->thread = gettid();
    c->origin = s;
    c->next = fk_captures;
    fk_captures = c;
    s->cap = c;
    s->cap_origin = true;
    return add_deps(s, (struct fk_node *const *)deps, n);
}
FK_API_PT(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, (CUstream h),
          do_begin(h, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL, PT))
FK_API_PT(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz, (CUstream h, CUstreamCaptureMode mode),
          do_begin(h, NULL, NULL, 0, mode, PT))
FK_API_PT(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz,
          (CUstream h, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *e, size_t n, CUstreamCaptureMode mode),
          ((void)e, g == NULL ? CUDA_ERROR_INVALID_VALUE : do_begin(h, g, deps, n, mode, PT)))

/* A forked stream must have been joined back, but only those that still exist are asked. */
static bool joined(struct fk_capture *c)
{
    mark_reached(c);
    for (struct fk_ctx *x = fk_contexts; x != NULL; x = x->next)
        for (struct fk_stream *s = x->streams; s != NULL; s = s->next)
            if (s->cap == c && s != c->origin && !stream_joined(s))
                return false;
    return true;
}

static CUresult do_end(CUstream h, CUgraph *out, int pt)
{
    struct fk_stream *s;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    struct fk_capture *c = s->cap;
    if (c == NULL) {
        *out = NULL;
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (c->origin != s) {
        c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    if (c->thread != gettid() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    CUresult r = CUDA_SUCCESS;
    if (c->invalid)
        r = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    else if (!joined(c))
        r = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    struct fk_graph *g = c->graph;
    bool keep = c->to_graph;
    end(c);
    if (r != CUDA_SUCCESS && !keep)
        fk_graph_release(g);
    *out = r == CUDA_SUCCESS ? (CUgraph)g : NULL;
    return r;
}
FK_API_PT(cuStreamEndCapture, cuStreamEndCapture_ptsz, (CUstream h, CUgraph *out), do_end(h, out, PT))

/* ---- questions ---- */

static CUstreamCaptureStatus status(const struct fk_stream *s)
{
    return s->cap == NULL      ? CU_STREAM_CAPTURE_STATUS_NONE
           : s->cap->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                             : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult do_info(CUstream h, CUstreamCaptureStatus *st, cuuint64_t *id, CUgraph *g, const CUgraphNode **deps,
                        const CUgraphEdgeData **edges, size_t *n, int pt)
{
    struct fk_stream *s;
    if (st == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_STREAM_PT(h, pt, &s);
    if (s->legacy)
        FK_TRY(fk_capture_legacy(s->ctx));
    *st = status(s);
    if (*st != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return CUDA_SUCCESS; /* the rest says nothing then */
    if (id != NULL)
        *id = s->cap->id;
    if (g != NULL)
        *g = (CUgraph)s->cap->graph;
    if (deps != NULL)
        *deps = (const CUgraphNode *)s->cap_deps;
    if (edges != NULL)
        *edges = NULL;
    if (n != NULL)
        *n = s->ncap_deps;
    return CUDA_SUCCESS;
}
FK_API_PT(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, (CUstream h, CUstreamCaptureStatus *st),
          do_info(h, st, NULL, NULL, NULL, NULL, NULL, PT))
FK_API_PT(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, (CUstream h, CUstreamCaptureStatus *st, cuuint64_t *id),
          do_info(h, st, id, NULL, NULL, NULL, NULL, PT))
FK_API_PT(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
          (CUstream h, CUstreamCaptureStatus *st, cuuint64_t *id, CUgraph *g, const CUgraphNode **deps, size_t *n),
          do_info(h, st, id, g, deps, NULL, n, PT))
FK_API_PT(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz,
          (CUstream h, CUstreamCaptureStatus *st, cuuint64_t *id, CUgraph *g, const CUgraphNode **deps,
           const CUgraphEdgeData **edges, size_t *n),
          do_info(h, st, id, g, deps, edges, n, PT))

static CUresult do_update(CUstream h, CUgraphNode *deps, size_t n, unsigned flags, int pt)
{
    struct fk_stream *s;
    FK_STREAM_PT(h, pt, &s);
    if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (n != 0 && deps == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->cap == NULL)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (s->cap->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
        s->ncap_deps = 0;
    return add_deps(s, (struct fk_node *const *)deps, n);
}
FK_API_PT(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz,
          (CUstream h, CUgraphNode *deps, size_t n, unsigned flags), do_update(h, deps, n, flags, PT))
FK_API_PT(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz,
          (CUstream h, CUgraphNode *deps, const CUgraphEdgeData *e, size_t n, unsigned flags),
          ((void)e, do_update(h, deps, n, flags, PT)))

static CUresult do_exchange(CUstreamCaptureMode *mode)
{
    if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode old = fk_tls.mode;
    fk_tls.mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}
FK_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode), do_exchange(mode))
