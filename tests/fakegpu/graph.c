/* Graphs as data: nodes, edges, clones, and the memory that allocation nodes own. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fk_graph *fk_graph_new(void)
{
    struct fk_graph *g = calloc(1, sizeof *g);
    if (g == NULL)
        abort();
    g->refs = 1;
    fk_handle_add(g, FK_T_GRAPH);
    return g;
}

/* A graph block goes when no node names it and no launch left it allocated. */
static void drop_block(struct fk_block *b)
{
    if (b->flags != 0 || b->live)
        return;
    fk_drop_pages(b->base, fk_up(b->size, FK_PAGE));
    fk_extent_give(&fk_devs[b->device], b->base, b->size);
    fk_block_remove(b);
}

static void free_node(struct fk_node *n)
{
    fk_handle_del(n);
    if (n->block != NULL) {
        n->block->flags--;
        drop_block(n->block);
    }
    if (n->type == CU_GRAPH_NODE_TYPE_GRAPH && n->w.u.child != NULL)
        fk_graph_release(n->w.u.child);
    fk_work_release(&n->w);
    free(n->attrs);
    free(n->deps);
    free(n);
}

void fk_graph_release(struct fk_graph *g)
{
    if (--g->refs > 0)
        return;
    fk_handle_del(g);
    for (struct fk_node *n = g->nodes, *next; n != NULL; n = next) {
        next = n->next;
        free_node(n);
    }
    for (size_t i = 0; i < g->nheld; i++)
        if (g->held[i].count > 0)
            fk_userobj_release(g->held[i].object, (unsigned)g->held[i].count);
    free(g->held);
    free(g);
}

CUgraphNodeType fk_node_type_of(const struct fk_work *w)
{
    switch (w->type) {
    case FK_W_COPY: return CU_GRAPH_NODE_TYPE_MEMCPY;
    case FK_W_FILL: return CU_GRAPH_NODE_TYPE_MEMSET;
    case FK_W_KERNEL: return CU_GRAPH_NODE_TYPE_KERNEL;
    case FK_W_HOST: return CU_GRAPH_NODE_TYPE_HOST;
    case FK_W_RECORD: return CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    case FK_W_WAIT: return CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    case FK_W_ALLOC: return CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    case FK_W_FREE: return CU_GRAPH_NODE_TYPE_MEM_FREE;
    case FK_W_MEMOP: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    case FK_W_CHILD: return CU_GRAPH_NODE_TYPE_GRAPH;
    default: return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

struct fk_node *fk_node_add(struct fk_graph *g, CUgraphNodeType type, struct fk_node *const *deps, size_t ndeps)
{
    struct fk_node *n = calloc(1, sizeof *n);
    if (n == NULL || (n->deps = malloc((ndeps + 1) * sizeof *n->deps)) == NULL) {
        free(n);
        return NULL;
    }
    if (ndeps != 0)
        memcpy(n->deps, deps, ndeps * sizeof *deps);
    n->ndeps = ndeps;
    n->graph = g;
    n->type = type;
    if (g->last != NULL)
        g->last->next = n;
    else
        g->nodes = n;
    g->last = n;
    g->count++;
    fk_handle_add(n, FK_T_NODE);
    return n;
}

CUresult fk_graph_alloc(struct fk_node *n, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    struct fk_dev *d;
    if (p->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED || p->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (fk_need_device(p->poolProps.location.id, &d) != CUDA_SUCCESS)
        return CUDA_ERROR_INVALID_VALUE; /* not 101, as elsewhere */
    CUdeviceptr at = p->bytesize != 0 ? fk_extent_take(d, p->bytesize) : 0;
    if (at == 0)
        return p->bytesize == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    n->block = fk_block_add(at, p->bytesize, FK_GRAPH, d->ordinal, NULL);
    if (n->block == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    n->block->backed = fk_up(p->bytesize, FK_GRAIN);
    n->block->live = false; /* only a launch allocates */
    n->block->flags = 1;    /* nodes that name it */
    p->dptr = at;
    n->alloc = *p;
    n->alloc.accessDescs = NULL;
    n->alloc.accessDescCount = 0;
    n->w.u.mem.p = at;
    n->w.u.mem.bytes = p->bytesize;
    n->w.u.mem.device = d->ordinal;
    n->graph->has_memory = true;
    return CUDA_SUCCESS;
}

CUresult fk_graph_free_check(struct fk_graph *g, CUdeviceptr p)
{
    for (struct fk_node *n = g->nodes; n != NULL; n = n->next)
        if (n->type == CU_GRAPH_NODE_TYPE_MEM_FREE && n->w.u.mem.p == p)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

bool fk_graph_block_free(struct fk_block *b)
{
    if (!b->live)
        return false;
    fk_poison(b->base, b->size);
    fk_graph_block_state(b, false);
    drop_block(b);
    return true;
}

void fk_graph_block_state(struct fk_block *b, bool live)
{
    b->live = live;
}

/* Work of a copied node: references counted, arrays copied. */
static bool copy_work(struct fk_work *to, const struct fk_work *from)
{
    *to = *from;
    to->owned = NULL;
    if (from->type == FK_W_RECORD || from->type == FK_W_WAIT)
        to->u.event->refs++;
    if (from->type == FK_W_MEMOP) {
        size_t n = from->u.memop.count * sizeof *from->u.memop.ops;
        to->owned = malloc(n + 1);
        if (to->owned == NULL)
            return false;
        memcpy(to->owned, from->u.memop.ops, n);
        to->u.memop.ops = to->owned;
    }
    return true;
}

bool fk_node_copy_work(struct fk_node *to, const struct fk_node *from)
{
    struct fk_work w;
    if (!copy_work(&w, &from->w))
        return false;
    fk_work_release(&to->w);
    to->w = w;
    return true;
}

struct fk_graph *fk_graph_clone(struct fk_graph *g, bool child)
{
    struct fk_graph *c = fk_graph_new();
    c->source = g;
    c->child = child;
    c->has_memory = g->has_memory;
    size_t i = 0, n = g->count;
    struct fk_node **map = malloc((n + 1) * sizeof *map), **was = malloc((n + 1) * sizeof *was);
    if (map == NULL || was == NULL)
        abort();
    for (struct fk_node *o = g->nodes; o != NULL; o = o->next, i++) {
        struct fk_node *k = fk_node_add(c, o->type, NULL, 0);
        if (k == NULL || !copy_work(&k->w, &o->w))
            abort();
        k->origin = o;
        k->disabled = o->disabled;
        k->alloc = o->alloc;
        k->ctx = o->ctx;
        k->block = o->block;
        if (k->block != NULL)
            k->block->flags++;
        if (k->type == CU_GRAPH_NODE_TYPE_GRAPH)
            k->w.u.child = fk_graph_clone(o->w.u.child, true);
        map[i] = k;
        was[i] = o;
        o->index = i;
    }
    i = 0;
    for (struct fk_node *o = g->nodes; o != NULL; o = o->next, i++) {
        free(map[i]->deps);
        map[i]->deps = malloc((o->ndeps + 1) * sizeof *map[i]->deps);
        if (map[i]->deps == NULL)
            abort();
        map[i]->ndeps = o->ndeps;
        for (size_t j = 0; j < o->ndeps; j++)
            map[i]->deps[j] = map[o->deps[j]->index];
    }
    free(map);
    free(was);
    return c;
}

/* ---- interface ---- */

static CUresult graph_of(CUgraph h, struct fk_graph **out)
{
    *out = (struct fk_graph *)h;
    return fk_handle_is(h, FK_T_GRAPH) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_create(CUgraph *out, unsigned flags)
{
    if (out == NULL || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)fk_graph_new();
    return CUDA_SUCCESS;
}
FK_API(cuGraphCreate, (CUgraph *out, unsigned flags), do_create(out, flags))

static CUresult do_destroy(CUgraph h)
{
    struct fk_graph *g;
    FK_TRY(graph_of(h, &g));
    if (g->child)
        return CUDA_ERROR_INVALID_VALUE; /* belongs to its parent */
    fk_graph_release(g);
    return CUDA_SUCCESS;
}
FK_API(cuGraphDestroy, (CUgraph h), do_destroy(h))

static CUresult do_clone(CUgraph *out, CUgraph h)
{
    struct fk_graph *g;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(graph_of(h, &g));
    if (g->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED; /* memory nodes are owned by one graph */
    *out = (CUgraph)fk_graph_clone(g, false);
    return CUDA_SUCCESS;
}
FK_API(cuGraphClone, (CUgraph *out, CUgraph h), do_clone(out, h))

static CUresult list(struct fk_node **from, size_t have, CUgraphNode *out, size_t *n)
{
    if (n == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (out != NULL) {
        for (size_t i = 0; i < *n; i++)
            out[i] = i < have ? (CUgraphNode)from[i] : NULL;
        *n = have < *n ? have : *n;
    } else {
        *n = have;
    }
    return CUDA_SUCCESS;
}

static CUresult do_nodes(CUgraph h, CUgraphNode *out, size_t *n, bool roots)
{
    struct fk_graph *g;
    FK_TRY(graph_of(h, &g));
    struct fk_node **all = malloc((g->count + 1) * sizeof *all);
    size_t k = 0;
    if (all == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct fk_node *x = g->nodes; x != NULL; x = x->next)
        if (!roots || x->ndeps == 0)
            all[k++] = x;
    CUresult r = list(all, k, out, n);
    free(all);
    return r;
}
FK_API(cuGraphGetNodes, (CUgraph h, CUgraphNode *out, size_t *n), do_nodes(h, out, n, false))
FK_API(cuGraphGetRootNodes, (CUgraph h, CUgraphNode *out, size_t *n), do_nodes(h, out, n, true))

static CUresult do_edges(CUgraph h, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n)
{
    struct fk_graph *g;
    FK_TRY(graph_of(h, &g));
    if (n == NULL || (from == NULL) != (to == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    size_t k = 0;
    for (struct fk_node *x = g->nodes; x != NULL; x = x->next)
        for (size_t i = 0; i < x->ndeps; i++, k++)
            if (from != NULL && k < *n) {
                from[k] = (CUgraphNode)x->deps[i];
                to[k] = (CUgraphNode)x;
                if (data != NULL)
                    memset(&data[k], 0, sizeof data[k]);
            }
    *n = from != NULL && k > *n ? *n : k;
    return CUDA_SUCCESS;
}
FK_API(cuGraphGetEdges, (CUgraph h, CUgraphNode *from, CUgraphNode *to, size_t *n), do_edges(h, from, to, NULL, n))
FK_API(cuGraphGetEdges_v2, (CUgraph h, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n),
       do_edges(h, from, to, data, n))

static CUresult node_of(CUgraphNode h, struct fk_node **out)
{
    *out = (struct fk_node *)h;
    return fk_handle_is(h, FK_T_NODE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult do_neighbours(CUgraphNode h, CUgraphNode *out, size_t *n, bool after)
{
    struct fk_node *x;
    FK_TRY(node_of(h, &x));
    if (!after)
        return list(x->deps, x->ndeps, out, n);
    struct fk_node **all = malloc((x->graph->count + 1) * sizeof *all);
    size_t k = 0;
    if (all == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (struct fk_node *y = x->graph->nodes; y != NULL; y = y->next)
        for (size_t i = 0; i < y->ndeps; i++)
            if (y->deps[i] == x)
                all[k++] = y;
    CUresult r = list(all, k, out, n);
    free(all);
    return r;
}
FK_API(cuGraphNodeGetDependencies, (CUgraphNode h, CUgraphNode *out, size_t *n), do_neighbours(h, out, n, false))
FK_API(cuGraphNodeGetDependencies_v2, (CUgraphNode h, CUgraphNode *out, CUgraphEdgeData *e, size_t *n),
       ((void)e, do_neighbours(h, out, n, false)))
FK_API(cuGraphNodeGetDependentNodes, (CUgraphNode h, CUgraphNode *out, size_t *n), do_neighbours(h, out, n, true))
FK_API(cuGraphNodeGetDependentNodes_v2, (CUgraphNode h, CUgraphNode *out, CUgraphEdgeData *e, size_t *n),
       ((void)e, do_neighbours(h, out, n, true)))

static CUresult do_link(CUgraph h, const CUgraphNode *from, const CUgraphNode *to, size_t n, bool add)
{
    struct fk_graph *g;
    struct fk_node *a, *b;
    FK_TRY(graph_of(h, &g));
    for (size_t i = 0; i < n; i++) {
        FK_TRY(node_of(from[i], &a));
        FK_TRY(node_of(to[i], &b));
        size_t j = 0;
        while (j < b->ndeps && b->deps[j] != a)
            j++;
        if ((j < b->ndeps) == add || a->graph != g || b->graph != g || a == b)
            return CUDA_ERROR_INVALID_VALUE;
        if (!add) {
            b->deps[j] = b->deps[--b->ndeps];
            continue;
        }
        struct fk_node **d = realloc(b->deps, (b->ndeps + 2) * sizeof *d);
        if (d == NULL)
            return CUDA_ERROR_OUT_OF_MEMORY;
        b->deps = d;
        d[b->ndeps++] = a;
    }
    return CUDA_SUCCESS;
}
FK_API(cuGraphAddDependencies, (CUgraph h, const CUgraphNode *a, const CUgraphNode *b, size_t n), do_link(h, a, b, n, true))
FK_API(cuGraphAddDependencies_v2, (CUgraph h, const CUgraphNode *a, const CUgraphNode *b, const CUgraphEdgeData *e, size_t n),
       ((void)e, do_link(h, a, b, n, true)))
FK_API(cuGraphRemoveDependencies, (CUgraph h, const CUgraphNode *a, const CUgraphNode *b, size_t n), do_link(h, a, b, n, false))
FK_API(cuGraphRemoveDependencies_v2, (CUgraph h, const CUgraphNode *a, const CUgraphNode *b, const CUgraphEdgeData *e, size_t n),
       ((void)e, do_link(h, a, b, n, false)))

static CUresult do_destroy_node(CUgraphNode h)
{
    struct fk_node *x;
    FK_TRY(node_of(h, &x));
    struct fk_graph *g = x->graph;
    if (g->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED; /* a graph with memory nodes keeps its nodes */
    struct fk_node **at = &g->nodes, *before = NULL;
    while (*at != x) {
        before = *at;
        at = &(*at)->next;
    }
    *at = x->next;
    if (g->last == x)
        g->last = before;
    g->count--;
    for (struct fk_node *y = g->nodes; y != NULL; y = y->next)
        for (size_t i = 0; i < y->ndeps; i++)
            if (y->deps[i] == x)
                y->deps[i--] = y->deps[--y->ndeps];
    free_node(x);
    return CUDA_SUCCESS;
}
FK_API(cuGraphDestroyNode, (CUgraphNode h), do_destroy_node(h))

static CUresult do_find_in_clone(CUgraphNode *out, CUgraphNode original, CUgraph clone)
{
    struct fk_graph *g;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(graph_of(clone, &g));
    for (struct fk_node *x = g->nodes; x != NULL; x = x->next)
        if (x->origin == (struct fk_node *)original) {
            *out = (CUgraphNode)x;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}
FK_API(cuGraphNodeFindInClone, (CUgraphNode *out, CUgraphNode original, CUgraph clone), do_find_in_clone(out, original, clone))

static CUresult dot_print(CUgraph h, const char *path)
{
    struct fk_graph *g;
    FK_TRY(graph_of(h, &g));
    FILE *f = path != NULL ? fopen(path, "we") : NULL;
    if (f == NULL)
        return path == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OPERATING_SYSTEM;
    fprintf(f, "digraph fakegpu {\n");
    size_t i = 0;
    for (struct fk_node *n = g->nodes; n != NULL; n = n->next)
        n->index = i++;
    for (struct fk_node *n = g->nodes; n != NULL; n = n->next) {
        fprintf(f, "  n%zu [label=\"%zu type %d\"];\n", n->index, n->index, (int)n->type);
        for (size_t k = 0; k < n->ndeps; k++)
            fprintf(f, "  n%zu -> n%zu;\n", n->deps[k]->index, n->index);
    }
    fprintf(f, "}\n");
    return fclose(f) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
FK_API(cuGraphDebugDotPrint, (CUgraph h, const char *path, unsigned flags), ((void)flags, dot_print(h, path)))
