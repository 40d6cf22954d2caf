/* Stream capture: turning calls on a stream into graph nodes. */
#include "cudart_internal.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edge data differ");

static cudaError_t begin(enum cudart_variant v, cudaStream_t stream,
                         enum cudaStreamCaptureMode mode)
{
    CUDART_PASS(StreamBeginCapture[v], stream, (CUstreamCaptureMode)mode);
}

static cudaError_t begin_to_graph(enum cudart_variant v, cudaStream_t stream, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies,
                                  const cudaGraphEdgeData *edges, size_t count,
                                  enum cudaStreamCaptureMode mode)
{
    CUDART_PASS(StreamBeginCaptureToGraph[v], stream, graph, dependencies,
                (const CUgraphEdgeData *)edges, count, (CUstreamCaptureMode)mode);
}

static cudaError_t end(enum cudart_variant v, cudaStream_t stream, cudaGraph_t *graph)
{
    CUDART_PASS(StreamEndCapture[v], stream, graph);
}

static cudaError_t is_capturing(enum cudart_variant v, cudaStream_t stream,
                                enum cudaStreamCaptureStatus *status)
{
    CUDART_PASS(StreamIsCapturing[v], stream, (CUstreamCaptureStatus *)status);
}

static cudaError_t info(enum cudart_variant v, cudaStream_t stream,
                        enum cudaStreamCaptureStatus *status, unsigned long long *id,
                        cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                        const cudaGraphEdgeData **edges, size_t *count)
{
    cuuint64_t id_out = 0;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess)
        e = CUDART_CALL(StreamGetCaptureInfo[v], stream, (CUstreamCaptureStatus *)status,
                        id ? &id_out : NULL, graph, dependencies, (const CUgraphEdgeData **)edges,
                        count);
    if (e == cudaSuccess && id)
        *id = id_out;
    return cudart_done(e);
}

static cudaError_t update(enum cudart_variant v, cudaStream_t stream,
                          cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                          size_t count, unsigned int flags)
{
    CUDART_PASS(StreamUpdateCaptureDependencies[v], stream, dependencies,
                (const CUgraphEdgeData *)edges, count, flags);
}

CUDART_BOTH(cudaStreamBeginCapture, _ptsz, begin,
            (cudaStream_t stream, enum cudaStreamCaptureMode mode), stream, mode)
CUDART_BOTH(cudaStreamBeginCaptureToGraph, _ptsz, begin_to_graph,
            (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
             const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
            stream, graph, dependencies, edges, count, mode)
CUDART_BOTH(cudaStreamEndCapture, _ptsz, end, (cudaStream_t stream, cudaGraph_t *graph), stream,
            graph)
CUDART_BOTH(cudaStreamIsCapturing, _ptsz, is_capturing,
            (cudaStream_t stream, enum cudaStreamCaptureStatus *status), stream, status)
CUDART_BOTH(cudaStreamGetCaptureInfo, _ptsz, info,
            (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
             cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
             const cudaGraphEdgeData **edges, size_t *count),
            stream, status, id, graph, dependencies, edges, count)
CUDART_BOTH(cudaStreamUpdateCaptureDependencies, _ptsz, update,
            (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
             size_t count, unsigned int flags),
            stream, dependencies, edges, count, flags)

/* Per-thread state of the driver. */
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUDART_PASS(ThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *)mode);
}
