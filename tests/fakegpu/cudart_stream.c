/* Streams, events, host callbacks. */
#include "cudart_internal.h"

#include <stdlib.h>

cudaError_t cudaStreamCreate(cudaStream_t *stream) { CUDART_PASS(StreamCreate, stream, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    CUDART_PASS(StreamCreate, stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    CUDART_PASS(StreamCreateWithPriority, stream, flags, priority);
}

/* The default streams are no one's to destroy. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaError_t e = cudart_context();

    if (e == cudaSuccess
        && (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread))
        e = cudaErrorInvalidResourceHandle;
    if (e == cudaSuccess)
        e = CUDART_CALL(StreamDestroy, stream);
    return cudart_done(e);
}

static cudaError_t get_priority(enum cudart_variant v, cudaStream_t stream, int *priority)
{
    CUDART_PASS(StreamGetPriority[v], stream, priority);
}

static cudaError_t get_flags(enum cudart_variant v, cudaStream_t stream, unsigned int *flags)
{
    CUDART_PASS(StreamGetFlags[v], stream, flags);
}

static cudaError_t get_id(enum cudart_variant v, cudaStream_t stream, unsigned long long *id)
{
    CUDART_PASS(StreamGetId[v], stream, id);
}

static cudaError_t get_device(enum cudart_variant v, cudaStream_t stream, int *device)
{
    CUDART_PASS(StreamGetDevice[v], stream, device);
}

static cudaError_t wait_event(enum cudart_variant v, cudaStream_t stream, cudaEvent_t event,
                              unsigned int flags)
{
    CUDART_PASS(StreamWaitEvent[v], stream, event, flags);
}

static cudaError_t synchronize(enum cudart_variant v, cudaStream_t stream)
{
    CUDART_PASS(StreamSynchronize[v], stream);
}

static cudaError_t query(enum cudart_variant v, cudaStream_t stream)
{
    CUDART_PASS(StreamQuery[v], stream);
}

static cudaError_t attach(enum cudart_variant v, cudaStream_t stream, void *ptr, size_t length,
                          unsigned int flags)
{
    CUDART_PASS(StreamAttachMemAsync[v], stream, cudart_dptr(ptr), length, flags);
}

static cudaError_t copy_attributes(enum cudart_variant v, cudaStream_t dst, cudaStream_t src)
{
    CUDART_PASS(StreamCopyAttributes[v], dst, src);
}

static cudaError_t get_attribute(enum cudart_variant v, cudaStream_t stream,
                                 cudaLaunchAttributeID attribute, cudaLaunchAttributeValue *value)
{
    CUDART_PASS(StreamGetAttribute[v], stream, (CUstreamAttrID)attribute,
                (CUstreamAttrValue *)(void *)value);
}

static cudaError_t set_attribute(enum cudart_variant v, cudaStream_t stream,
                                 cudaLaunchAttributeID attribute,
                                 const cudaLaunchAttributeValue *value)
{
    CUDART_PASS(StreamSetAttribute[v], stream, (CUstreamAttrID)attribute,
                (const CUstreamAttrValue *)(const void *)value);
}

/* The driver's callback type differs only in the type of the error; a small
 * record carries the program's own function across. */
struct callback {
    cudaStreamCallback_t function;
    void *data;
};

static void CUDA_CB call_back(CUstream stream, CUresult status, void *data)
{
    struct callback call = *(struct callback *)data;

    free(data);
    call.function(stream, cudart_map(status), call.data);
}

static cudaError_t add_callback(enum cudart_variant v, cudaStream_t stream,
                                cudaStreamCallback_t function, void *data, unsigned int flags)
{
    struct callback *call;
    cudaError_t e = cudart_context();

    if (e == cudaSuccess && !function)
        e = cudaErrorInvalidValue;
    if (e != cudaSuccess)
        return cudart_done(e);
    call = malloc(sizeof *call);
    if (!call)
        return cudart_done(cudaErrorMemoryAllocation);
    *call = (struct callback){function, data};
    e = CUDART_CALL(StreamAddCallback[v], stream, call_back, call, flags);
    if (e != cudaSuccess)
        free(call);
    return cudart_done(e);
}

static cudaError_t host_function(enum cudart_variant v, cudaStream_t stream, cudaHostFn_t function,
                                 void *data)
{
    CUDART_PASS(LaunchHostFunc[v], stream, function, data);
}

CUDART_BOTH(cudaStreamGetPriority, _ptsz, get_priority, (cudaStream_t stream, int *priority),
            stream, priority)
CUDART_BOTH(cudaStreamGetFlags, _ptsz, get_flags, (cudaStream_t stream, unsigned int *flags),
            stream, flags)
CUDART_BOTH(cudaStreamGetId, _ptsz, get_id, (cudaStream_t stream, unsigned long long *id), stream,
            id)
CUDART_BOTH(cudaStreamGetDevice, _ptsz, get_device, (cudaStream_t stream, int *device), stream,
            device)
CUDART_BOTH(cudaStreamWaitEvent, _ptsz, wait_event,
            (cudaStream_t stream, cudaEvent_t event, unsigned int flags), stream, event, flags)
CUDART_BOTH(cudaStreamSynchronize, _ptsz, synchronize, (cudaStream_t stream), stream)
CUDART_BOTH(cudaStreamQuery, _ptsz, query, (cudaStream_t stream), stream)
CUDART_BOTH(cudaStreamAttachMemAsync, _ptsz, attach,
            (cudaStream_t stream, void *ptr, size_t length, unsigned int flags), stream, ptr,
            length, flags)
CUDART_BOTH(cudaStreamCopyAttributes, _ptsz, copy_attributes, (cudaStream_t dst, cudaStream_t src),
            dst, src)
CUDART_BOTH(cudaStreamGetAttribute, _ptsz, get_attribute,
            (cudaStream_t stream, cudaLaunchAttributeID attribute,
             cudaLaunchAttributeValue *value),
            stream, attribute, value)
CUDART_BOTH(cudaStreamSetAttribute, _ptsz, set_attribute,
            (cudaStream_t stream, cudaLaunchAttributeID attribute,
             const cudaLaunchAttributeValue *value),
            stream, attribute, value)
CUDART_BOTH(cudaStreamAddCallback, _ptsz, add_callback,
            (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned int flags),
            stream, function, data, flags)
CUDART_BOTH(cudaLaunchHostFunc, _ptsz, host_function,
            (cudaStream_t stream, cudaHostFn_t function, void *data), stream, function, data)

cudaError_t cudaEventCreate(cudaEvent_t *event) { CUDART_PASS(EventCreate, event, 0); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    CUDART_PASS(EventCreate, event, flags);
}

static cudaError_t record(enum cudart_variant v, cudaEvent_t event, cudaStream_t stream)
{
    CUDART_PASS(EventRecord[v], event, stream);
}

static cudaError_t record_with_flags(enum cudart_variant v, cudaEvent_t event, cudaStream_t stream,
                                     unsigned int flags)
{
    CUDART_PASS(EventRecordWithFlags[v], event, stream, flags);
}

CUDART_BOTH(cudaEventRecord, _ptsz, record, (cudaEvent_t event, cudaStream_t stream), event,
            stream)
CUDART_BOTH(cudaEventRecordWithFlags, _ptsz, record_with_flags,
            (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event, stream, flags)

cudaError_t cudaEventQuery(cudaEvent_t event) { CUDART_PASS(EventQuery, event); }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { CUDART_PASS(EventSynchronize, event); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { CUDART_PASS(EventDestroy, event); }

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    CUDART_PASS(EventElapsedTime, ms, start, end);
}
