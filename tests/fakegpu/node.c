/* Nodes of work on memory and kernels: adding them, reading and changing their parameters. */
#define _GNU_SOURCE
#include "node.h"

#include <stdlib.h>
#include <string.h>

CUresult fk_node_of(CUgraphNode h, CUgraphNodeType type, struct fk_node **out)
{
    *out = (struct fk_node *)h;
    if (!fk_handle_is(h, FK_T_NODE) || (*out)->type != type)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult fk_node_make(CUgraphNode *out, CUgraph hg, const CUgraphNode *deps, size_t n, struct fk_work *w, struct fk_node **made)
{
    struct fk_graph *g = (struct fk_graph *)hg;
    if (out == NULL || !fk_handle_is(g, FK_T_GRAPH) || (n != 0 && deps == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < n; i++)
        if (!fk_handle_is(deps[i], FK_T_NODE) || ((struct fk_node *)deps[i])->graph != g)
            return CUDA_ERROR_INVALID_VALUE;
    struct fk_node *x = fk_node_add(g, fk_node_type_of(w), (struct fk_node *const *)deps, n);
    if (x == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    x->w = *w;
    *out = (CUgraphNode)x;
    if (made != NULL)
        *made = x;
    return CUDA_SUCCESS;
}

CUresult fk_add_empty(NODE_ARGS)
{
    struct fk_work w = {.type = FK_W_EMPTY};
    return fk_node_make(out, g, deps, n, &w, NULL);
}
FK_API(cuGraphAddEmptyNode, (NODE_ARGS), fk_add_empty(out, g, deps, n))

/* ---- kernels ---- */

/* A function is of its own context, whatever the node names; a kernel, which has a member of its own and may not be cast to a function, is meant in the
 * node's context, or else in the current one. */
static CUresult node_function(struct fk_func **out, const CUDA_KERNEL_NODE_PARAMS *p)
{
    void *h = p->func != NULL ? (void *)p->func : (void *)p->kern;
    struct fk_ctx *c = (struct fk_ctx *)p->ctx;
    *out = h;
    if (p->func != NULL || !fk_handle_is(h, FK_T_KERNEL))
        return fk_handle_is(h, FK_T_FUNC) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    if (c == NULL)
        FK_TRY(fk_need_ctx(&c));
    return fk_handle_is(c, FK_T_CTX) && c->active ? fk_function_in(out, h, c) : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult kernel_work(struct fk_work *w, const CUDA_KERNEL_NODE_PARAMS *p)
{
    *w = (struct fk_work){.type = FK_W_KERNEL};
    struct fk_func *f;
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(node_function(&f, p));
    FK_TRY(fk_kernel_prepare(&w->u.kernel, f, p->kernelParams, p->extra));
    unsigned dim[6] = {p->gridDimX, p->gridDimY, p->gridDimZ, p->blockDimX, p->blockDimY, p->blockDimZ};
    memcpy(w->u.kernel.grid, dim, sizeof w->u.kernel.grid);
    memcpy(w->u.kernel.block, dim + 3, sizeof w->u.kernel.block);
    w->u.kernel.shared = p->sharedMemBytes;
    return CUDA_SUCCESS;
}

static CUDA_KERNEL_NODE_PARAMS from_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q = {0};
    memcpy(&q, p, sizeof *p);
    return q;
}

CUresult fk_add_kernel(NODE_ARGS, const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct fk_work w;
    FK_TRY(kernel_work(&w, p));
    return fk_node_make(out, g, deps, n, &w, NULL);
}
FK_API(cuGraphAddKernelNode, (NODE_ARGS, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
       (p == NULL ? CUDA_ERROR_INVALID_VALUE : ({ CUDA_KERNEL_NODE_PARAMS q = from_v1(p); fk_add_kernel(out, g, deps, n, &q); })))
FK_API(cuGraphAddKernelNode_v2, (NODE_ARGS, const CUDA_KERNEL_NODE_PARAMS *p), fk_add_kernel(out, g, deps, n, p))

static CUresult get_kernel(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_KERNEL, &x));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_kernel *k = &x->w.u.kernel;
    memset(p, 0, sizeof *p);
    p->func = (CUfunction)k->f;
    p->gridDimX = k->grid[0];
    p->gridDimY = k->grid[1];
    p->gridDimZ = k->grid[2];
    p->blockDimX = k->block[0];
    p->blockDimY = k->block[1];
    p->blockDimZ = k->block[2];
    p->sharedMemBytes = k->shared;
    p->ctx = x->ctx;
    for (int i = 0; k->known && i < k->f->builtin->nargs; i++)
        k->ptrs[i] = k->args + k->f->builtin->offset[i];
    p->kernelParams = k->known ? k->ptrs : NULL;
    return CUDA_SUCCESS;
}
static CUresult get_kernel_v1(CUgraphNode h, CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUDA_KERNEL_NODE_PARAMS q;
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    FK_TRY(get_kernel(h, &q));
    memcpy(p, &q, sizeof *p);
    return CUDA_SUCCESS;
}
FK_API(cuGraphKernelNodeGetParams, (CUgraphNode h, CUDA_KERNEL_NODE_PARAMS_v1 *p), get_kernel_v1(h, p))
FK_API(cuGraphKernelNodeGetParams_v2, (CUgraphNode h, CUDA_KERNEL_NODE_PARAMS *p), get_kernel(h, p))

CUresult fk_node_set(struct fk_node *x, const struct fk_work *w)
{
    if (x->type == CU_GRAPH_NODE_TYPE_GRAPH)
        fk_graph_release(x->w.u.child);
    fk_work_release(&x->w);
    x->w = *w;
    return CUDA_SUCCESS;
}

CUresult fk_set_kernel(CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct fk_node *x;
    struct fk_work w;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_KERNEL, &x));
    FK_TRY(kernel_work(&w, p));
    return fk_node_set(x, &w);
}
FK_API(cuGraphKernelNodeSetParams, (CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
       (p == NULL ? CUDA_ERROR_INVALID_VALUE : ({ CUDA_KERNEL_NODE_PARAMS q = from_v1(p); fk_set_kernel(h, &q); })))
FK_API(cuGraphKernelNodeSetParams_v2, (CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p), fk_set_kernel(h, p))

CUresult fk_exec_kernel(CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p)
{
    struct fk_work w;
    FK_TRY(kernel_work(&w, p));
    return fk_exec_set(x, h, &w);
}
FK_API(cuGraphExecKernelNodeSetParams, (CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS_v1 *p),
       (p == NULL ? CUDA_ERROR_INVALID_VALUE : ({ CUDA_KERNEL_NODE_PARAMS q = from_v1(p); fk_exec_kernel(x, h, &q); })))
FK_API(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec x, CUgraphNode h, const CUDA_KERNEL_NODE_PARAMS *p), fk_exec_kernel(x, h, p))

/* ---- copies ---- */

static CUresult copy_work(struct fk_work *w, const CUDA_MEMCPY3D *p)
{
    *w = (struct fk_work){.type = FK_W_COPY};
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&w->u.copy, p, sizeof *p);
    CUDA_MEMCPY3D_PEER *c = &w->u.copy;
    if (c->srcMemoryType == CU_MEMORYTYPE_UNIFIED)
        c->srcMemoryType = CU_MEMORYTYPE_DEVICE;
    if (c->dstMemoryType == CU_MEMORYTYPE_UNIFIED)
        c->dstMemoryType = CU_MEMORYTYPE_DEVICE;
    struct fk_block *b = fk_block_at(c->srcDevice);
    if (c->srcMemoryType == CU_MEMORYTYPE_DEVICE && (b == NULL || !fk_is_device_kind(b->kind))) {
        c->srcMemoryType = CU_MEMORYTYPE_HOST;
        c->srcHost = (const void *)(uintptr_t)c->srcDevice;
    }
    b = fk_block_at(c->dstDevice);
    if (c->dstMemoryType == CU_MEMORYTYPE_DEVICE && (b == NULL || !fk_is_device_kind(b->kind))) {
        c->dstMemoryType = CU_MEMORYTYPE_HOST;
        c->dstHost = (void *)(uintptr_t)c->dstDevice;
    }
    if ((c->srcMemoryType == CU_MEMORYTYPE_HOST && c->srcHost == NULL) ||
        (c->dstMemoryType == CU_MEMORYTYPE_HOST && c->dstHost == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

CUresult fk_add_copy(NODE_ARGS, const CUDA_MEMCPY3D *p, CUcontext ctx)
{
    struct fk_work w;
    struct fk_node *x;
    FK_TRY(copy_work(&w, p));
    FK_TRY(fk_node_make(out, g, deps, n, &w, &x));
    x->ctx = ctx;
    return CUDA_SUCCESS;
}
FK_API(cuGraphAddMemcpyNode, (NODE_ARGS, const CUDA_MEMCPY3D *p, CUcontext c), fk_add_copy(out, g, deps, n, p, c))

static CUresult get_copy(CUgraphNode h, CUDA_MEMCPY3D *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_MEMCPY, &x));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(p, &x->w.u.copy, sizeof *p);
    return CUDA_SUCCESS;
}
FK_API(cuGraphMemcpyNodeGetParams, (CUgraphNode h, CUDA_MEMCPY3D *p), get_copy(h, p))

CUresult fk_set_copy(CUgraphExec e, CUgraphNode h, const CUDA_MEMCPY3D *p)
{
    struct fk_node *x;
    struct fk_work w;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_MEMCPY, &x));
    FK_TRY(copy_work(&w, p));
    return e != NULL ? fk_exec_set(e, h, &w) : fk_node_set(x, &w);
}
FK_API(cuGraphMemcpyNodeSetParams, (CUgraphNode h, const CUDA_MEMCPY3D *p), fk_set_copy(NULL, h, p))
FK_API(cuGraphExecMemcpyNodeSetParams, (CUgraphExec e, CUgraphNode h, const CUDA_MEMCPY3D *p, CUcontext c),
       ((void)c, e == NULL ? CUDA_ERROR_INVALID_VALUE : fk_set_copy(e, h, p)))

/* ---- memsets ---- */

static CUresult fill_work(struct fk_work *w, const CUDA_MEMSET_NODE_PARAMS *p)
{
    *w = (struct fk_work){.type = FK_W_FILL};
    if (p == NULL || p->dst == 0 || p->width == 0 || p->height == 0 ||
        (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
        return CUDA_ERROR_INVALID_VALUE;
    w->u.fill = *p;
    if (w->u.fill.pitch == 0)
        w->u.fill.pitch = p->width * p->elementSize;
    return CUDA_SUCCESS;
}

CUresult fk_add_fill(NODE_ARGS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext ctx)
{
    struct fk_work w;
    struct fk_node *x;
    FK_TRY(fill_work(&w, p));
    FK_TRY(fk_node_make(out, g, deps, n, &w, &x));
    x->ctx = ctx;
    return CUDA_SUCCESS;
}
FK_API(cuGraphAddMemsetNode, (NODE_ARGS, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c), fk_add_fill(out, g, deps, n, p, c))

static CUresult get_fill(CUgraphNode h, CUDA_MEMSET_NODE_PARAMS *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_MEMSET, &x));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *p = x->w.u.fill;
    return CUDA_SUCCESS;
}
FK_API(cuGraphMemsetNodeGetParams, (CUgraphNode h, CUDA_MEMSET_NODE_PARAMS *p), get_fill(h, p))

CUresult fk_set_fill(CUgraphExec e, CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p)
{
    struct fk_node *x;
    struct fk_work w;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_MEMSET, &x));
    FK_TRY(fill_work(&w, p));
    return e != NULL ? fk_exec_set(e, h, &w) : fk_node_set(x, &w);
}
FK_API(cuGraphMemsetNodeSetParams, (CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p), fk_set_fill(NULL, h, p))
FK_API(cuGraphExecMemsetNodeSetParams, (CUgraphExec e, CUgraphNode h, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c),
       ((void)c, e == NULL ? CUDA_ERROR_INVALID_VALUE : fk_set_fill(e, h, p)))

/* ---- host functions ---- */

CUresult fk_add_host(NODE_ARGS, const CUDA_HOST_NODE_PARAMS *p)
{
    if (p == NULL || p->fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_work w = {.type = FK_W_HOST, .u.host = *p};
    return fk_node_make(out, g, deps, n, &w, NULL);
}
FK_API(cuGraphAddHostNode, (NODE_ARGS, const CUDA_HOST_NODE_PARAMS *p), fk_add_host(out, g, deps, n, p))

static CUresult get_host(CUgraphNode h, CUDA_HOST_NODE_PARAMS *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_HOST, &x));
    if (p == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *p = x->w.u.host;
    return CUDA_SUCCESS;
}
FK_API(cuGraphHostNodeGetParams, (CUgraphNode h, CUDA_HOST_NODE_PARAMS *p), get_host(h, p))

CUresult fk_set_host(CUgraphExec e, CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p)
{
    struct fk_node *x;
    FK_TRY(fk_node_of(h, CU_GRAPH_NODE_TYPE_HOST, &x));
    if (p == NULL || p->fn == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct fk_work w = {.type = FK_W_HOST, .u.host = *p};
    return e != NULL ? fk_exec_set(e, h, &w) : fk_node_set(x, &w);
}
FK_API(cuGraphHostNodeSetParams, (CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p), fk_set_host(NULL, h, p))
FK_API(cuGraphExecHostNodeSetParams, (CUgraphExec e, CUgraphNode h, const CUDA_HOST_NODE_PARAMS *p),
       (e == NULL ? CUDA_ERROR_INVALID_VALUE : fk_set_host(e, h, p)))
