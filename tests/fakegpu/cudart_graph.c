/* Graphs as a whole: structure, instantiation, launch, memory attributes. */
#include "cudart_internal.h"

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    CUDART_PASS(GraphCreate, graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { CUDART_PASS(GraphDestroy, graph); }
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { CUDART_PASS(GraphDestroyNode, node); }

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    CUDART_PASS(GraphClone, clone, graph);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original,
                                     cudaGraph_t clone)
{
    CUDART_PASS(GraphNodeFindInClone, node, original, clone);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    CUgraphNodeType t = CU_GRAPH_NODE_TYPE_EMPTY;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !type)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(GraphNodeGetType, node, &t);
    if (e == cudaSuccess)
        *type = (enum cudaGraphNodeType)t;
    return cudart_done(e);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    CUDART_PASS(GraphGetNodes, graph, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    CUDART_PASS(GraphGetRootNodes, graph, nodes, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count)
{
    CUDART_PASS(GraphGetEdges, graph, from, to, (CUgraphEdgeData *)edges, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                         cudaGraphEdgeData *edges, size_t *count)
{
    CUDART_PASS(GraphNodeGetDependencies, node, nodes, (CUgraphEdgeData *)edges, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
                                           cudaGraphEdgeData *edges, size_t *count)
{
    CUDART_PASS(GraphNodeGetDependentNodes, node, nodes, (CUgraphEdgeData *)edges, count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count)
{
    CUDART_PASS(GraphAddDependencies, graph, from, to, (const CUgraphEdgeData *)edges, count);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count)
{
    CUDART_PASS(GraphRemoveDependencies, graph, from, to, (const CUgraphEdgeData *)edges, count);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    CUDART_PASS(GraphDebugDotPrint, graph, path, flags);
}

/* Both names are one call: the older one took more arguments before CUDA 12. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags)
{
    CUDART_PASS(GraphInstantiateWithFlags, exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    CUDART_PASS(GraphInstantiateWithFlags, exec, graph, flags);
}

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS),
               "instantiate parameters differ");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
               "update results differ");

static cudaError_t instantiate_with_params(enum cudart_variant v, cudaGraphExec_t *exec,
                                           cudaGraph_t graph, cudaGraphInstantiateParams *params)
{
    CUDART_PASS(GraphInstantiateWithParams[v], exec, graph,
                (CUDA_GRAPH_INSTANTIATE_PARAMS *)(void *)params);
}

static cudaError_t upload(enum cudart_variant v, cudaGraphExec_t exec, cudaStream_t stream)
{
    CUDART_PASS(GraphUpload[v], exec, stream);
}

static cudaError_t launch(enum cudart_variant v, cudaGraphExec_t exec, cudaStream_t stream)
{
    CUDART_PASS(GraphLaunch[v], exec, stream);
}

CUDART_BOTH(cudaGraphInstantiateWithParams, _ptsz, instantiate_with_params,
            (cudaGraphExec_t *exec, cudaGraph_t graph, cudaGraphInstantiateParams *params), exec,
            graph, params)
CUDART_BOTH(cudaGraphUpload, _ptsz, upload, (cudaGraphExec_t exec, cudaStream_t stream), exec,
            stream)
CUDART_BOTH(cudaGraphLaunch, _ptsz, launch, (cudaGraphExec_t exec, cudaStream_t stream), exec,
            stream)

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { CUDART_PASS(GraphExecDestroy, exec); }

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    cuuint64_t out = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !flags)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecGetFlags, exec, &out);
    if (e == cudaSuccess)
        *flags = out;
    return cudart_done(e);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info)
{
    CUDART_PASS(GraphExecUpdate, exec, graph, (CUgraphExecUpdateResultInfo *)(void *)info);
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int enabled)
{
    CUDART_PASS(GraphNodeSetEnabled, exec, node, enabled);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int *enabled)
{
    CUDART_PASS(GraphNodeGetEnabled, exec, node, enabled);
}

cudaError_t cudaDeviceGraphMemTrim(int device) { CUDART_PASS(DeviceGraphMemTrim, device); }

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value)
{
    CUDART_PASS(DeviceGetGraphMemAttribute, device, (CUgraphMem_attribute)attr, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value)
{
    CUDART_PASS(DeviceSetGraphMemAttribute, device, (CUgraphMem_attribute)attr, value);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t destroy,
                                 unsigned int references, unsigned int flags)
{
    CUDART_PASS(UserObjectCreate, (CUuserObject *)object, ptr, destroy, references, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    CUDART_PASS(UserObjectRetain, (CUuserObject)object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    CUDART_PASS(UserObjectRelease, (CUuserObject)object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags)
{
    CUDART_PASS(GraphRetainUserObject, graph, (CUuserObject)object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count)
{
    CUDART_PASS(GraphReleaseUserObject, graph, (CUuserObject)object, count);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int value, unsigned int flags)
{
    CUcontext context = NULL;
    CUgraphConditionalHandle out = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !handle)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(CtxGetCurrent, &context);
    if (e == cudaSuccess)
        e = CUDART_CALL(GraphConditionalHandleCreate, &out, graph, context, value, flags);
    if (e == cudaSuccess)
        *handle = out;
    return cudart_done(e);
}
