/*
 * Executable graphs: a private copy of the nodes in launch order. A launch is one operation of its stream; its
 * worker runs the nodes one after another.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <stdlib.h>
#include <string.h>

/* What a launch runs. Queued launches share it; a change while any is queued makes a new one for later launches. */
struct fk_plan {
    struct fk_graph *graph;
    struct fk_node **order;
    size_t count;
    int refs;
};
struct fk_exec {
    struct fk_plan *plan;
    unsigned long long flags;
    struct fk_reserve *reserve; /* NULL without memory nodes */
};

/* ---- instantiate ---- */

static CUresult sort_nodes(struct fk_plan *x)
{
    struct fk_graph *g = x->graph;
    x->order = malloc((g->count + 1) * sizeof *x->order);
    if (x->order == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct fk_node *n = g->nodes; n != NULL; n = n->next)
        n->mark = false;
    for (bool moved = true; moved && x->count < g->count;) {
        moved = false;
        for (struct fk_node *n = g->nodes; n != NULL; n = n->next) {
            bool ready = !n->mark;
            for (size_t i = 0; ready && i < n->ndeps; i++)
                ready = n->deps[i]->mark;
            if (!ready)
                continue;
            n->mark = moved = true;
            x->order[x->count++] = n;
        }
    }
    return x->count == g->count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; /* a cycle */
}

void fk_plan_unref(struct fk_plan *p)
{
    if (--p->refs > 0)
        return;
    fk_graph_release(p->graph);
    free(p->order);
    free(p);
}

static CUresult new_plan(struct fk_graph *g, struct fk_plan **out)
{
    struct fk_plan *p = calloc(1, sizeof *p);
    if (p == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    p->graph = fk_graph_clone(g, true);
    p->refs = 1;
    CUresult r = sort_nodes(p);
    if (r != CUDA_SUCCESS)
        fk_plan_unref(p);
    else
        *out = p;
    return r;
}

/* The plan of an exec, safe to change: a copy if launches are still queued on it. */
static CUresult own_plan(struct fk_exec *x)
{
    struct fk_plan *p;
    if (x->plan->refs == 1)
        return CUDA_SUCCESS;
    FK_TRY(new_plan(x->plan->graph, &p));
    for (struct fk_node *n = p->graph->nodes; n != NULL; n = n->next)
        n->origin = n->origin->origin; /* names of nodes stay those of the user's graph */
    fk_plan_unref(x->plan);
    x->plan = p;
    return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *out, CUgraph h, unsigned long long flags)
{
    struct fk_graph *g = (struct fk_graph *)h;
    if (out == NULL || !fk_handle_is(g, FK_T_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_exec *x = calloc(1, sizeof *x);
    if (x == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    x->flags = flags;
    CUresult r = new_plan(g, &x->plan);
    if (r != CUDA_SUCCESS) {
        free(x);
        return r;
    }
    x->reserve = fk_reserve_new(x->plan->order, x->plan->count);
    fk_handle_add(x, FK_T_EXEC);
    *out = (CUgraphExec)x;
    return CUDA_SUCCESS;
}
FK_API(cuGraphInstantiate, (CUgraphExec *out, CUgraph g, CUgraphNode *bad, char *log, size_t n),
       ((void)bad, (void)log, (void)n, instantiate(out, g, 0)))
FK_API(cuGraphInstantiate_v2, (CUgraphExec *out, CUgraph g, CUgraphNode *bad, char *log, size_t n),
       ((void)bad, (void)log, (void)n, instantiate(out, g, 0)))
FK_API(cuGraphInstantiateWithFlags, (CUgraphExec *out, CUgraph g, unsigned long long flags), instantiate(out, g, flags))

static CUresult exec_of(CUgraphExec h, struct fk_exec **out)
{
    *out = (struct fk_exec *)h;
    return fk_handle_is(h, FK_T_EXEC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult upload(CUgraphExec h, CUstream sh, int pt)
{
    struct fk_exec *x;
    struct fk_stream *s;
    FK_TRY(exec_of(h, &x));
    FK_STREAM_PT(sh, pt, &s);
    FK_TRY(fk_reserve_charge(x->reserve));
    struct fk_work w = {.type = FK_W_EMPTY};
    return fk_submit(s, &w, NULL);
}
FK_API_PT(cuGraphUpload, cuGraphUpload_ptsz, (CUgraphExec h, CUstream s), upload(h, s, PT))

static CUresult with_params(CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p, int pt)
{
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = instantiate(out, g, p->flags);
    p->hErrNode_out = NULL;
    p->result_out = r == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    if (r == CUDA_SUCCESS && p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
        r = upload(*out, p->hUploadStream, pt);
    return r;
}
FK_API_PT(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz,
          (CUgraphExec *out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), with_params(out, g, p, PT))

/* ---- launch ---- */

static bool freed_inside(const struct fk_plan *x, CUdeviceptr p)
{
    for (size_t i = 0; i < x->count; i++)
        if (x->order[i]->type == CU_GRAPH_NODE_TYPE_MEM_FREE && x->order[i]->w.u.mem.p == p)
            return true;
    return false;
}

static CUresult launch(CUgraphExec h, CUstream sh, int pt)
{
    struct fk_exec *x;
    struct fk_stream *s;
    FK_TRY(exec_of(h, &x));
    FK_STREAM_PT(sh, pt, &s);
    struct fk_plan *p = x->plan;
    if (s->cap != NULL) { /* a launch inside a capture becomes a child graph */
        struct fk_work w = {.type = FK_W_CHILD, .u.child = fk_graph_clone(p->graph, true)};
        return fk_capture_add(s, &w, NULL);
    }
    if (s->legacy)
        FK_TRY(fk_capture_legacy(s->ctx));
    FK_TRY(fk_reserve_charge(x->reserve));
    for (size_t i = 0; i < p->count; i++) {
        struct fk_node *n = p->order[i];
        if (n->type == CU_GRAPH_NODE_TYPE_KERNEL)
            FK_TRY(fk_kernel_charge(n->w.u.kernel.f, s->ctx));
        /* Memory that a launch leaves allocated must be freed before the next one, unless it frees itself. */
        if (n->block != NULL && n->block->live && !freed_inside(p, n->block->base) &&
            !(x->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
            return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < p->count; i++)
        if (p->order[i]->block != NULL && !freed_inside(p, p->order[i]->block->base))
            fk_graph_block_state(p->order[i]->block, true);
    struct fk_work w = {.type = FK_W_GRAPH, .u.plan = p};
    p->refs++;
    return fk_submit(s, &w, NULL);
}
FK_API_PT(cuGraphLaunch, cuGraphLaunch_ptsz, (CUgraphExec h, CUstream s), launch(h, s, PT))

static CUresult run_nodes(struct fk_node **order, size_t count, struct fk_op *op);

static CUresult run_child(struct fk_graph *g, struct fk_op *op)
{
    struct fk_plan x = {.graph = g};
    pthread_mutex_lock(&fk_lock);
    CUresult r = sort_nodes(&x);
    pthread_mutex_unlock(&fk_lock);
    if (r == CUDA_SUCCESS)
        r = run_nodes(x.order, x.count, op);
    free(x.order);
    return r;
}

static CUresult run_nodes(struct fk_node **order, size_t count, struct fk_op *op)
{
    for (size_t i = 0; i < count; i++) {
        struct fk_node *n = order[i];
        struct fk_range r[4];
        struct fk_block *b;
        bool bad = op->fault;
        if (n->disabled)
            continue;
        pthread_mutex_lock(&fk_lock);
        int k = fk_work_ranges(&n->w, r);
        for (int j = 0; j < k; j++) {
            b = fk_block_at(r[j].p);
            bad |= (!fk_range_ok(r[j].p, r[j].n) && !fk_pool_holds(r[j].p, r[j].n)) ||
                   (b != NULL && b->kind == FK_GRAPH && !b->live);
        }
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
            fk_graph_block_state(n->block, true);
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE && (b = fk_block_at(n->w.u.mem.p)) != NULL && b->kind == FK_GRAPH)
            fk_graph_block_free(b);
        pthread_mutex_unlock(&fk_lock);
        if (bad)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || n->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
            continue;
        CUresult res = n->type == CU_GRAPH_NODE_TYPE_GRAPH ? run_child(n->w.u.child, op) : fk_work_run(&n->w, op);
        if (res != CUDA_SUCCESS)
            return res;
    }
    return CUDA_SUCCESS;
}

CUresult fk_plan_run(struct fk_plan *x, struct fk_op *op)
{
    return run_nodes(x->order, x->count, op);
}

/* ---- change and destroy ---- */

CUresult fk_exec_set(CUgraphExec h, CUgraphNode node, const struct fk_work *w)
{
    struct fk_exec *x;
    FK_TRY(exec_of(h, &x));
    FK_TRY(own_plan(x));
    struct fk_plan *p = x->plan;
    for (size_t i = 0; i < p->count; i++)
        if (p->order[i]->origin == (struct fk_node *)node)
            return p->order[i]->type == fk_node_type_of(w) ? fk_node_set(p->order[i], w) : CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult enabled(CUgraphExec h, CUgraphNode node, unsigned *out, unsigned value)
{
    struct fk_exec *x;
    FK_TRY(exec_of(h, &x));
    FK_TRY(own_plan(x));
    for (size_t i = 0; i < x->plan->count; i++) {
        struct fk_node *n = x->plan->order[i];
        if (n->origin != (struct fk_node *)node)
            continue;
        if (n->type != CU_GRAPH_NODE_TYPE_KERNEL && n->type != CU_GRAPH_NODE_TYPE_MEMCPY && n->type != CU_GRAPH_NODE_TYPE_MEMSET)
            return CUDA_ERROR_INVALID_VALUE;
        if (out != NULL)
            *out = !n->disabled;
        else
            n->disabled = value == 0;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
FK_API(cuGraphNodeGetEnabled, (CUgraphExec h, CUgraphNode n, unsigned *out),
       (out == NULL ? CUDA_ERROR_INVALID_VALUE : enabled(h, n, out, 0)))
FK_API(cuGraphNodeSetEnabled, (CUgraphExec h, CUgraphNode n, unsigned v), enabled(h, n, NULL, v))

static CUresult update(CUgraphExec h, CUgraph hg, CUgraphExecUpdateResult *result, CUgraphNode *bad)
{
    struct fk_exec *x;
    struct fk_graph *g = (struct fk_graph *)hg;
    FK_TRY(exec_of(h, &x));
    if (!fk_handle_is(g, FK_T_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    *result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    *bad = NULL;
    FK_TRY(own_plan(x));
    if (g->count != x->plan->graph->count || g->has_memory) {
        *result = g->has_memory ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    struct fk_node *to = x->plan->graph->nodes;
    for (struct fk_node *n = g->nodes; n != NULL; n = n->next, to = to->next)
        if (n->type != to->type || n->ndeps != to->ndeps) {
            *result = n->type != to->type ? CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED
                                          : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
            *bad = (CUgraphNode)n;
            return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
        }
    to = x->plan->graph->nodes;
    for (struct fk_node *n = g->nodes; n != NULL; n = n->next, to = to->next) {
        if (n->type == CU_GRAPH_NODE_TYPE_GRAPH) {
            fk_graph_release(to->w.u.child);
            to->w.u.child = fk_graph_clone(n->w.u.child, true);
        } else if (!fk_node_copy_work(to, n)) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        to->origin = n;
    }
    return CUDA_SUCCESS;
}
static CUresult update_v2(CUgraphExec h, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
    if (info == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    info->errorFromNode = NULL;
    return update(h, g, &info->result, &info->errorNode);
}
FK_API(cuGraphExecUpdate, (CUgraphExec h, CUgraph g, CUgraphNode *bad, CUgraphExecUpdateResult *result),
       (bad == NULL || result == NULL ? CUDA_ERROR_INVALID_VALUE : update(h, g, result, bad)))
FK_API(cuGraphExecUpdate_v2, (CUgraphExec h, CUgraph g, CUgraphExecUpdateResultInfo *info), update_v2(h, g, info))

static CUresult do_destroy(CUgraphExec h)
{
    struct fk_exec *x;
    FK_TRY(exec_of(h, &x));
    fk_handle_del(x);
    fk_reserve_orphan(x->reserve); /* the memory stays reserved until a trim */
    fk_plan_unref(x->plan);
    free(x);
    return CUDA_SUCCESS;
}
FK_API(cuGraphExecDestroy, (CUgraphExec h), do_destroy(h))

static CUresult get_flags(CUgraphExec h, cuuint64_t *out)
{
    struct fk_exec *x;
    FK_TRY(exec_of(h, &x));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = x->flags;
    return CUDA_SUCCESS;
}
FK_API(cuGraphExecGetFlags, (CUgraphExec h, cuuint64_t *out), get_flags(h, out))
