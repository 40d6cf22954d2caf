/* Nodes of child graphs, events, memory and batched operations, launch attributes, and the entry for all kinds. */
#define _GNU_SOURCE
#include "node.h"

#include <stdlib.h>
#include <string.h>

/* ---- child graphs ---- */

static CUresult add_child(NODE_ARGS, CUgraph child)
{
    struct fk_graph *c = (struct fk_graph *)child;
    if (!fk_handle_is(c, FK_T_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    if (c->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct fk_work w = {.type = FK_W_CHILD, .u.child = fk_graph_clone(c, true)};
    CUresult r = fk_node_make(out, g, deps, n, &w, NULL);
    if (r != CUDA_SUCCESS)
        fk_graph_release(w.u.child);
    return r;
}
FK_API(cuGraphAddChildGraphNode, (NODE_ARGS, CUgraph child), add_child(out, g, deps, n, child))

static CUresult get_child(CUgraphNode h, CUgraph *out)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_GRAPH, &x));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUgraph)x->w.u.child;
    return CUDA_SUCCESS;
}
FK_API(cuGraphChildGraphNodeGetGraph, (CUgraphNode h, CUgraph *out), get_child(h, out))

static CUresult exec_child(CUgraphExec x, CUgraphNode h, CUgraph child)
{
    struct fk_node *node;
    struct fk_graph *c = (struct fk_graph *)child;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_GRAPH, &node));
    if (!fk_handle_is(c, FK_T_GRAPH) || c->count != node->w.u.child->count)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_work w = {.type = FK_W_CHILD, .u.child = fk_graph_clone(c, true)};
    CUresult r = fk_exec_set(x, h, &w);
    if (r != CUDA_SUCCESS)
        fk_graph_release(w.u.child);
    return r;
}
FK_API(cuGraphExecChildGraphNodeSetParams, (CUgraphExec x, CUgraphNode h, CUgraph child), exec_child(x, h, child))

/* ---- launch attributes: kept, without effect ---- */

static CUresult kernel_attr(CUgraphNode h, CUkernelNodeAttrID a, CUkernelNodeAttrValue *out, const CUkernelNodeAttrValue *in)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_KERNEL, &x));
    if ((unsigned)a >= CU_LAUNCH_ATTRIBUTE_MAX || (in == NULL && out == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    if (x->attrs == NULL && (x->attrs = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *x->attrs)) == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (in != NULL)
        x->attrs[a] = *in;
    else
        *out = x->attrs[a];
    return CUDA_SUCCESS;
}
FK_API(cuGraphKernelNodeGetAttribute, (CUgraphNode h, CUkernelNodeAttrID a, CUkernelNodeAttrValue *out),
       kernel_attr(h, a, out, NULL))
FK_API(cuGraphKernelNodeSetAttribute, (CUgraphNode h, CUkernelNodeAttrID a, const CUkernelNodeAttrValue *in),
       kernel_attr(h, a, NULL, in))

static CUresult copy_attrs(CUgraphNode to, CUgraphNode from)
{
    CUkernelNodeAttrValue v;
    for (unsigned i = 0; i < CU_LAUNCH_ATTRIBUTE_MAX; i++) {
        FK_TRY(kernel_attr(from, (CUkernelNodeAttrID)i, &v, NULL));
        FK_TRY(kernel_attr(to, (CUkernelNodeAttrID)i, NULL, &v));
    }
    return CUDA_SUCCESS;
}
FK_API(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from), copy_attrs(to, from))

/* ---- events ---- */

static CUresult event_work(struct fk_work *w, enum fk_work_type type, CUevent e)
{
    if (!fk_handle_is(e, FK_T_EVENT))
        return CUDA_ERROR_INVALID_HANDLE;
    *w = (struct fk_work){.type = type, .u.event = (struct fk_event *)e};
    w->u.event->refs++;
    return CUDA_SUCCESS;
}

static CUresult add_event(NODE_ARGS, enum fk_work_type type, CUevent e)
{
    struct fk_work w;
    FK_TRY(event_work(&w, type, e));
    CUresult r = fk_node_make(out, g, deps, n, &w, NULL);
    if (r != CUDA_SUCCESS)
        fk_work_release(&w);
    return r;
}
FK_API(cuGraphAddEventRecordNode, (NODE_ARGS, CUevent e), add_event(out, g, deps, n, FK_W_RECORD, e))
FK_API(cuGraphAddEventWaitNode, (NODE_ARGS, CUevent e), add_event(out, g, deps, n, FK_W_WAIT, e))

static CUresult get_event(CUgraphNode h, CUgraphNodeType type, CUevent *out)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, type, &x));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (CUevent)x->w.u.event;
    return CUDA_SUCCESS;
}
FK_API(cuGraphEventRecordNodeGetEvent, (CUgraphNode h, CUevent *out), get_event(h, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out))
FK_API(cuGraphEventWaitNodeGetEvent, (CUgraphNode h, CUevent *out), get_event(h, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out))

static CUresult set_event(CUgraphExec x, CUgraphNode h, enum fk_work_type type, CUevent e)
{
    struct fk_node *node;
    struct fk_work w = {.type = type};
    FK_TRY(fk_node_of(h, fk_node_type_of(&w), &node));
    FK_TRY(event_work(&w, type, e));
    return x != NULL ? fk_exec_set(x, h, &w) : fk_node_set(node, &w);
}
FK_API(cuGraphEventRecordNodeSetEvent, (CUgraphNode h, CUevent e), set_event(NULL, h, FK_W_RECORD, e))
FK_API(cuGraphEventWaitNodeSetEvent, (CUgraphNode h, CUevent e), set_event(NULL, h, FK_W_WAIT, e))
FK_API(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec x, CUgraphNode h, CUevent e),
       (x == NULL ? CUDA_ERROR_INVALID_VALUE : set_event(x, h, FK_W_RECORD, e)))
FK_API(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec x, CUgraphNode h, CUevent e),
       (x == NULL ? CUDA_ERROR_INVALID_VALUE : set_event(x, h, FK_W_WAIT, e)))

/* ---- memory ---- */

static CUresult add_alloc(NODE_ARGS, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    struct fk_node *x;
    struct fk_work w = {.type = FK_W_ALLOC};
    if (p == NULL || p->bytesize == 0)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_node_make(out, g, deps, n, &w, &x));
    return fk_graph_alloc(x, p);
}
FK_API(cuGraphAddMemAllocNode, (NODE_ARGS, CUDA_MEM_ALLOC_NODE_PARAMS *p), add_alloc(out, g, deps, n, p))

static CUresult get_alloc(CUgraphNode h, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &x));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *p = x->alloc;
    return CUDA_SUCCESS;
}
FK_API(cuGraphMemAllocNodeGetParams, (CUgraphNode h, CUDA_MEM_ALLOC_NODE_PARAMS *p), get_alloc(h, p))

static CUresult add_free(NODE_ARGS, CUdeviceptr p)
{
    struct fk_block *b = fk_block_at(p);
    if (b == NULL || b->kind != FK_GRAPH || b->base != p || !fk_handle_is(g, FK_T_GRAPH))
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(fk_graph_free_check((struct fk_graph *)g, p));
    struct fk_work w = {.type = FK_W_FREE, .u.mem = {p, b->size, b->device}};
    FK_TRY(fk_node_make(out, g, deps, n, &w, NULL));
    ((struct fk_graph *)g)->has_memory = true;
    return CUDA_SUCCESS;
}
FK_API(cuGraphAddMemFreeNode, (NODE_ARGS, CUdeviceptr p), add_free(out, g, deps, n, p))

static CUresult get_free(CUgraphNode h, CUdeviceptr *out)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_MEM_FREE, &x));
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *out = x->w.u.mem.p;
    return CUDA_SUCCESS;
}
FK_API(cuGraphMemFreeNodeGetParams, (CUgraphNode h, CUdeviceptr *out), get_free(h, out))

/* ---- batched memory operations ---- */

static CUresult memop_work(struct fk_work *w, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    if (p == NULL || p->count == 0 || p->paramArray == NULL || p->count > 256)
        return CUDA_ERROR_INVALID_VALUE;
    size_t n = p->count * sizeof *p->paramArray;
    void *copy = malloc(n);
    if (copy == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(copy, p->paramArray, n);
    *w = (struct fk_work){.type = FK_W_MEMOP, .u.memop = {copy, p->count, p->flags}, .owned = copy};
    return CUDA_SUCCESS;
}

static CUresult add_memop(NODE_ARGS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    struct fk_work w;
    struct fk_node *x;
    FK_TRY(memop_work(&w, p));
    CUresult r = fk_node_make(out, g, deps, n, &w, &x);
    if (r != CUDA_SUCCESS)
        fk_work_release(&w);
    else
        x->ctx = p->ctx;
    return r;
}
FK_API(cuGraphAddBatchMemOpNode, (NODE_ARGS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), add_memop(out, g, deps, n, p))

static CUresult get_memop(CUgraphNode h, CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &x));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *p = (CUDA_BATCH_MEM_OP_NODE_PARAMS){x->ctx, x->w.u.memop.count, x->w.u.memop.ops, x->w.u.memop.flags};
    return CUDA_SUCCESS;
}
FK_API(cuGraphBatchMemOpNodeGetParams, (CUgraphNode h, CUDA_BATCH_MEM_OP_NODE_PARAMS *p), get_memop(h, p))

static CUresult set_memop(CUgraphExec e, CUgraphNode h, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p)
{
    struct fk_node *x;
    struct fk_work w;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &x));
    FK_TRY(memop_work(&w, p));
    return e != NULL ? fk_exec_set(e, h, &w) : fk_node_set(x, &w);
}
FK_API(cuGraphBatchMemOpNodeSetParams, (CUgraphNode h, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), set_memop(NULL, h, p))
FK_API(cuGraphExecBatchMemOpNodeSetParams, (CUgraphExec e, CUgraphNode h, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p),
       (e == NULL ? CUDA_ERROR_INVALID_VALUE : set_memop(e, h, p)))

/* ---- one entry for all kinds ---- */

static CUresult add_any(NODE_ARGS, CUgraphNodeParams *p)
{
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: return fk_add_empty(out, g, deps, n);
    case CU_GRAPH_NODE_TYPE_KERNEL: return fk_add_kernel(out, g, deps, n, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return fk_add_copy(out, g, deps, n, &p->memcpy.copyParams, p->memcpy.copyCtx);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fk_add_fill(out, g, deps, n, (const CUDA_MEMSET_NODE_PARAMS *)&p->memset, p->memset.ctx);
    case CU_GRAPH_NODE_TYPE_HOST: return fk_add_host(out, g, deps, n, (const CUDA_HOST_NODE_PARAMS *)&p->host);
    case CU_GRAPH_NODE_TYPE_GRAPH: return add_child(out, g, deps, n, p->graph.graph);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return add_event(out, g, deps, n, FK_W_WAIT, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return add_event(out, g, deps, n, FK_W_RECORD, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUDA_MEM_ALLOC_NODE_PARAMS a = {.poolProps = p->alloc.poolProps, .bytesize = p->alloc.bytesize};
        FK_TRY(add_alloc(out, g, deps, n, &a));
        p->alloc.dptr = a.dptr;
        return CUDA_SUCCESS;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return add_free(out, g, deps, n, p->free.dptr);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return add_memop(out, g, deps, n, (const CUDA_BATCH_MEM_OP_NODE_PARAMS *)&p->memOp);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}
FK_API(cuGraphAddNode, (NODE_ARGS, CUgraphNodeParams *p), add_any(out, g, deps, n, p))
FK_API(cuGraphAddNode_v2, (CUgraphNode *out, CUgraph g, const CUgraphNode *deps, const CUgraphEdgeData *e, size_t n, CUgraphNodeParams *p),
       ((void)e, add_any(out, g, deps, n, p)))

static CUresult set_any(CUgraphExec e, CUgraphNode h, CUgraphNodeParams *p)
{
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return e != NULL ? fk_exec_kernel(e, h, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel)
                         : fk_set_kernel(h, (const CUDA_KERNEL_NODE_PARAMS *)&p->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return fk_set_copy(e, h, &p->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: return fk_set_fill(e, h, (const CUDA_MEMSET_NODE_PARAMS *)&p->memset);
    case CU_GRAPH_NODE_TYPE_HOST: return fk_set_host(e, h, (const CUDA_HOST_NODE_PARAMS *)&p->host);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return set_event(e, h, FK_W_WAIT, p->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return set_event(e, h, FK_W_RECORD, p->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return set_memop(e, h, (const CUDA_BATCH_MEM_OP_NODE_PARAMS *)&p->memOp);
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
}
FK_API(cuGraphNodeSetParams, (CUgraphNode h, CUgraphNodeParams *p), set_any(NULL, h, p))
FK_API(cuGraphExecNodeSetParams, (CUgraphExec e, CUgraphNode h, CUgraphNodeParams *p),
       (e == NULL ? CUDA_ERROR_INVALID_VALUE : set_any(e, h, p)))

static CUresult get_type(CUgraphNode h, CUgraphNodeType *out)
{
    if (out == NULL || !fk_handle_is(h, FK_T_NODE))
        return CUDA_ERROR_INVALID_VALUE;
    *out = ((struct fk_node *)h)->type;
    return CUDA_SUCCESS;
}
FK_API(cuGraphNodeGetType, (CUgraphNode h, CUgraphNodeType *out), get_type(h, out))
