/* Graph nodes by kind: adding them, reading and changing their parameters, and
 * changing them in an instantiated graph. Kernels are named by symbol here and
 * by function in the driver; copies are described in cudart_copy3d.c. */
#include "cudart_internal.h"

_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS),
               "memset parameters differ");
_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS),
               "host parameters differ");
_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS),
               "allocation parameters differ");

static cudaError_t with_current(CUcontext *context)
{
    cudaError_t e = cudart_context();

    return e != cudaSuccess ? e : CUDART_CALL(CtxGetCurrent, context);
}

static cudaError_t kernel_params(const struct cudaKernelNodeParams *p,
                                 CUDA_KERNEL_NODE_PARAMS_v2 *out)
{
    cudaError_t e = cudart_context();

    *out = (CUDA_KERNEL_NODE_PARAMS_v2){0};
    if (e == cudaSuccess && !p)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = cudart_function(p->func, &out->func);
    if (e != cudaSuccess)
        return e;
    out->gridDimX = p->gridDim.x;
    out->gridDimY = p->gridDim.y;
    out->gridDimZ = p->gridDim.z;
    out->blockDimX = p->blockDim.x;
    out->blockDimY = p->blockDim.y;
    out->blockDimZ = p->blockDim.z;
    out->sharedMemBytes = p->sharedMemBytes;
    out->kernelParams = p->kernelParams;
    out->extra = p->extra;
    return cudaSuccess;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaError_t e = kernel_params(params, &p);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphAddKernelNode, node, graph, after, count, &p);
    return cudart_done(e);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p = {0};
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !params)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(GraphKernelNodeGetParams, node, &p);
    if (e == cudaSuccess)
        *params = (struct cudaKernelNodeParams){
            .func = (void *)(size_t)(p.func ? cudart_symbol_of(p.func) : (const void *)p.kern),
            .gridDim = {p.gridDimX, p.gridDimY, p.gridDimZ},
            .blockDim = {p.blockDimX, p.blockDimY, p.blockDimZ},
            .sharedMemBytes = p.sharedMemBytes,
            .kernelParams = p.kernelParams,
            .extra = p.extra,
        };
    return cudart_done(e);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaError_t e = kernel_params(params, &p);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(GraphKernelNodeSetParams, node, &p));
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 p;
    cudaError_t e = kernel_params(params, &p);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecKernelNodeSetParams, exec, node, &p);
    return cudart_done(e);
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t dst, cudaGraphNode_t src)
{
    CUDART_PASS(GraphKernelNodeCopyAttributes, dst, src);
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue *value)
{
    CUDART_PASS(GraphKernelNodeGetAttribute, node, (CUlaunchAttributeID)attribute,
                (CUlaunchAttributeValue *)(void *)value);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue *value)
{
    CUDART_PASS(GraphKernelNodeSetAttribute, node, (CUlaunchAttributeID)attribute,
                (const CUlaunchAttributeValue *)(const void *)value);
}

static cudaError_t add_copy(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                            size_t count, const CUDA_MEMCPY3D *copy)
{
    CUcontext context = NULL;
    cudaError_t e = with_current(&context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphAddMemcpyNode, node, graph, after, count, copy, context);
    return e;
}

static cudaError_t exec_set_copy(cudaGraphExec_t exec, cudaGraphNode_t node,
                                 const CUDA_MEMCPY3D *copy)
{
    CUcontext context = NULL;
    cudaError_t e = with_current(&context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecMemcpyNodeSetParams, exec, node, copy, context);
    return e;
}

static cudaError_t describe(const struct cudaMemcpy3DParms *params, CUDA_MEMCPY3D *copy)
{
    cudaError_t e = cudart_context();

    return e != cudaSuccess ? e : cudart_copy3d(params, copy);
}

/* A one-dimensional copy of known direction. */
static cudaError_t describe_1d(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                               CUDA_MEMCPY3D *copy)
{
    CUmemorytype d, s;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !cudart_kind(kind, &d, &s))
        e = cudaErrorInvalidMemcpyDirection;
    if (e == cudaSuccess)
        cudart_copy1d(dst, src, bytes, kind, copy);
    return e;
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = describe(params, &c);

    return cudart_done(e != cudaSuccess ? e : add_copy(node, graph, after, count, &c));
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *after, size_t count, void *dst,
                                     const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = describe_1d(dst, src, bytes, kind, &c);

    return cudart_done(e != cudaSuccess ? e : add_copy(node, graph, after, count, &c));
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !params)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(GraphMemcpyNodeGetParams, node, &c);
    return cudart_done(e != cudaSuccess ? e : cudart_copy3d_back(&c, params));
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = describe(params, &c);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(GraphMemcpyNodeSetParams, node, &c));
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                                           size_t bytes, enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = describe_1d(dst, src, bytes, kind, &c);

    return cudart_done(e != cudaSuccess ? e : CUDART_CALL(GraphMemcpyNodeSetParams, node, &c));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *params)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = describe(params, &c);

    return cudart_done(e != cudaSuccess ? e : exec_set_copy(exec, node, &c));
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void *dst, const void *src, size_t bytes,
                                               enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c;
    cudaError_t e = describe_1d(dst, src, bytes, kind, &c);

    return cudart_done(e != cudaSuccess ? e : exec_set_copy(exec, node, &c));
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *after, size_t count,
                                   const struct cudaMemsetParams *params)
{
    CUcontext context = NULL;
    cudaError_t e = with_current(&context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphAddMemsetNode, node, graph, after, count,
                        (const CUDA_MEMSET_NODE_PARAMS *)(const void *)params, context);
    return cudart_done(e);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
    CUDART_PASS(GraphMemsetNodeGetParams, node, (CUDA_MEMSET_NODE_PARAMS *)(void *)params);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *params)
{
    CUDART_PASS(GraphMemsetNodeSetParams, node,
                (const CUDA_MEMSET_NODE_PARAMS *)(const void *)params);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *params)
{
    CUcontext context = NULL;
    cudaError_t e = with_current(&context);

    if (e == cudaSuccess)
        e = CUDART_CALL(GraphExecMemsetNodeSetParams, exec, node,
                        (const CUDA_MEMSET_NODE_PARAMS *)(const void *)params, context);
    return cudart_done(e);
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *after, size_t count,
                                 const struct cudaHostNodeParams *params)
{
    CUDART_PASS(GraphAddHostNode, node, graph, after, count,
                (const CUDA_HOST_NODE_PARAMS *)(const void *)params);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
    CUDART_PASS(GraphHostNodeGetParams, node, (CUDA_HOST_NODE_PARAMS *)(void *)params);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *params)
{
    CUDART_PASS(GraphHostNodeSetParams, node, (const CUDA_HOST_NODE_PARAMS *)(const void *)params);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *params)
{
    CUDART_PASS(GraphExecHostNodeSetParams, exec, node,
                (const CUDA_HOST_NODE_PARAMS *)(const void *)params);
}

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *after, size_t count,
                                     struct cudaMemAllocNodeParams *params)
{
    CUDART_PASS(GraphAddMemAllocNode, node, graph, after, count,
                (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)params);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams *params)
{
    CUDART_PASS(GraphMemAllocNodeGetParams, node, (CUDA_MEM_ALLOC_NODE_PARAMS *)(void *)params);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *after, size_t count, void *ptr)
{
    CUDART_PASS(GraphAddMemFreeNode, node, graph, after, count, cudart_dptr(ptr));
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *ptr_out)
{
    CUDART_PASS(GraphMemFreeNodeGetParams, node, (CUdeviceptr *)ptr_out);
}
