/* The rest of the graph nodes: children, empty ones, events, copies of device
 * variables, and the generic calls that take a node of any kind. */
#include "cudart_internal.h"

#include <string.h>

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *after, size_t count,
                                       cudaGraph_t child)
{
    CUDART_PASS(GraphAddChildGraphNode, node, graph, after, count, child);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    CUDART_PASS(GraphChildGraphNodeGetGraph, node, graph);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child)
{
    CUDART_PASS(GraphExecChildGraphNodeSetParams, exec, node, child);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *after, size_t count)
{
    CUDART_PASS(GraphAddEmptyNode, node, graph, after, count);
}

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *after, size_t count,
                                        cudaEvent_t event)
{
    CUDART_PASS(GraphAddEventRecordNode, node, graph, after, count, event);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    CUDART_PASS(GraphEventRecordNodeGetEvent, node, event);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    CUDART_PASS(GraphEventRecordNodeSetEvent, node, event);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event)
{
    CUDART_PASS(GraphExecEventRecordNodeSetEvent, exec, node, event);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *after, size_t count,
                                      cudaEvent_t event)
{
    CUDART_PASS(GraphAddEventWaitNode, node, graph, after, count, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    CUDART_PASS(GraphEventWaitNodeGetEvent, node, event);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    CUDART_PASS(GraphEventWaitNodeSetEvent, node, event);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event)
{
    CUDART_PASS(GraphExecEventWaitNodeSetEvent, exec, node, event);
}

/* A copy whose one side is a registered device variable. */
static cudaError_t symbol_copy(const void *symbol, size_t offset, void *dst, const void *src,
                               size_t bytes, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *copy,
                               CUcontext *context)
{
    CUmemorytype d, s;
    CUdeviceptr base = 0;
    size_t size = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !cudart_kind(kind, &d, &s))
        e = cudaErrorInvalidMemcpyDirection;
    if (e == cudaSuccess)
        e = cudart_variable(symbol, &base, &size);
    if (e == cudaSuccess && (offset > size || bytes > size - offset))
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return e;
    cudart_copy1d(dst ? dst : cudart_hptr(base + offset), src ? src : cudart_hptr(base + offset),
                  bytes, kind, copy);
    return CUDART_CALL(CtxGetCurrent, context);
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *after, size_t count,
                                           const void *symbol, const void *src, size_t bytes,
                                           size_t offset, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    CUcontext context = NULL;
    cudaError_t e = symbol_copy(symbol, offset, NULL, src, bytes, kind, &c, &context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphAddMemcpyNode, node, graph, after, count, &c, context);
    return cudart_done(e);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *after, size_t count, void *dst,
                                             const void *symbol, size_t bytes, size_t offset,
                                             enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    CUcontext context = NULL;
    cudaError_t e = symbol_copy(symbol, offset, dst, NULL, bytes, kind, &c, &context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphAddMemcpyNode, node, graph, after, count, &c, context);
    return cudart_done(e);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                 const void *src, size_t bytes, size_t offset,
                                                 enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    CUcontext context = NULL;
    cudaError_t e = symbol_copy(symbol, offset, NULL, src, bytes, kind, &c, &context);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(GraphMemcpyNodeSetParams, node, &c));
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                                   const void *symbol, size_t bytes, size_t offset,
                                                   enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    CUcontext context = NULL;
    cudaError_t e = symbol_copy(symbol, offset, dst, NULL, bytes, kind, &c, &context);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(GraphMemcpyNodeSetParams, node, &c));
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void *symbol, const void *src,
                                                     size_t bytes, size_t offset,
                                                     enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    CUcontext context = NULL;
    cudaError_t e = symbol_copy(symbol, offset, NULL, src, bytes, kind, &c, &context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecMemcpyNodeSetParams, exec, node, &c, context);
    return cudart_done(e);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void *dst, const void *symbol, size_t bytes,
                                                       size_t offset, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    CUcontext context = NULL;
    cudaError_t e = symbol_copy(symbol, offset, dst, NULL, bytes, kind, &c, &context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecMemcpyNodeSetParams, exec, node, &c, context);
    return cudart_done(e);
}

_Static_assert(sizeof(struct cudaGraphNodeParams) == sizeof(CUgraphNodeParams),
               "node parameters differ");

static cudaError_t generic_kernel(const struct cudaKernelNodeParamsV2 *in,
                                  CUDA_KERNEL_NODE_PARAMS_v3 *out)
{
    out->gridDimX = in->gridDim.x;
    out->gridDimY = in->gridDim.y;
    out->gridDimZ = in->gridDim.z;
    out->blockDimX = in->blockDim.x;
    out->blockDimY = in->blockDim.y;
    out->blockDimZ = in->blockDim.z;
    out->sharedMemBytes = in->sharedMemBytes;
    out->kernelParams = in->kernelParams;
    out->extra = in->extra;
    return cudart_function(in->func, &out->func);
}

/* Kernels, copies and memsets are written differently at the two levels; every
 * other kind is the same bytes. */
static cudaError_t convert(const struct cudaGraphNodeParams *in, CUgraphNodeParams *out)
{
    CUcontext context = NULL;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !in)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(CtxGetCurrent, &context);
    if (e != cudaSuccess)
        return e;
    memset(out, 0, sizeof *out);
    switch (in->type) {
    case cudaGraphNodeTypeKernel:
        out->type = CU_GRAPH_NODE_TYPE_KERNEL;
        return generic_kernel(&in->kernel, &out->kernel);
    case cudaGraphNodeTypeMemcpy:
        out->type = CU_GRAPH_NODE_TYPE_MEMCPY;
        out->memcpy.copyCtx = context;
        return cudart_copy3d(&in->memcpy.copyParams, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        out->type = CU_GRAPH_NODE_TYPE_MEMSET;
        out->memset.dst = cudart_dptr(in->memset.dst);
        out->memset.pitch = in->memset.pitch;
        out->memset.value = in->memset.value;
        out->memset.elementSize = in->memset.elementSize;
        out->memset.width = in->memset.width;
        out->memset.height = in->memset.height;
        out->memset.ctx = context;
        return cudaSuccess;
    default:
        memcpy(out, in, sizeof *out);
        return cudaSuccess;
    }
}

/* An allocation node answers with its address in the caller's parameters. */
static void answer(const CUgraphNodeParams *from, struct cudaGraphNodeParams *to)
{
    if (to->type == cudaGraphNodeTypeMemAlloc)
        to->alloc.dptr = cudart_hptr(from->alloc.dptr);
    else if (to->type == cudaGraphNodeTypeConditional)
        memcpy(to, from, sizeof *to);
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                             const cudaGraphEdgeData *edges, size_t count,
                             struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams p;
    cudaError_t e = convert(params, &p);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphAddNode, node, graph, after, (const CUgraphEdgeData *)edges, count,
                        &p);
    if (e == cudaSuccess)
        answer(&p, params);
    return cudart_done(e);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams p;
    cudaError_t e = convert(params, &p);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(GraphNodeSetParams, node, &p));
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams p;
    cudaError_t e = convert(params, &p);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecNodeSetParams, exec, node, &p);
    return cudart_done(e);
}
