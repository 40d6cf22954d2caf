/* Primary contexts and the device of a thread.
 *
 * The runtime retains the primary context of a device once, at the first call
 * that needs it, and binds it to threads that have no context. A context that
 * the program made current itself is left alone. */
#include "cudart_internal.h"

#include <pthread.h>

struct primary {
    CUcontext context; /* last known handle; kept after a reset to recognise stale bindings */
    int retained;
};

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static struct primary primaries[CUDART_MAX_DEVICES];
static _Thread_local int chosen_device;
static _Thread_local cudaError_t last_error;

cudaError_t *cudart_last_error(void) { return &last_error; }

cudaError_t cudart_done(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady) /* "not yet" is an answer, no error */
        last_error = error;
    return error;
}

cudaError_t cudart_map(CUresult result)
{
    return (cudaError_t)result;
}

void cudart_choose_device(int device) { chosen_device = device; }

cudaError_t cudart_primary(int device, CUcontext *context)
{
    cudaError_t e = cudaSuccess;

    if (device < 0 || device >= CUDART_MAX_DEVICES)
        return cudaErrorInvalidDevice;
    pthread_mutex_lock(&primary_lock);
    if (!primaries[device].retained) {
        CUdevice dev;

        e = CUDART_CALL(DeviceGet, &dev, device);
        if (e == cudaSuccess)
            e = CUDART_CALL(DevicePrimaryCtxRetain, &primaries[device].context, dev);
        primaries[device].retained = e == cudaSuccess;
    }
    if (e == cudaSuccess)
        *context = primaries[device].context;
    pthread_mutex_unlock(&primary_lock);
    return e;
}

void cudart_forget_primary(int device)
{
    pthread_mutex_lock(&primary_lock);
    primaries[device].retained = 0;
    pthread_mutex_unlock(&primary_lock);
}

/* The device whose primary context this handle is or was, with `stale` set if
 * it has been reset since; -1 for a context of the program's own. */
static int primary_device(CUcontext context, int *stale)
{
    int device = -1;

    pthread_mutex_lock(&primary_lock);
    for (int i = 0; i < CUDART_MAX_DEVICES && device < 0; i++)
        if (primaries[i].context == context) {
            device = i;
            *stale = !primaries[i].retained;
        }
    pthread_mutex_unlock(&primary_lock);
    return device;
}

static cudaError_t bind(int device)
{
    CUcontext context;
    cudaError_t e = cudart_primary(device, &context);

    return e != cudaSuccess ? e : CUDART_CALL(CtxSetCurrent, context);
}

cudaError_t cudart_context(void)
{
    CUcontext current = NULL;
    int stale = 0, device;
    cudaError_t e = cudart_driver();

    if (e != cudaSuccess)
        return e;
    e = CUDART_CALL(CtxGetCurrent, &current);
    if (e != cudaSuccess)
        return e;
    if (!current)
        return bind(chosen_device);
    /* A thread may still hold the handle of a primary context that another
     * call has reset: it comes back by retaining it again. */
    device = primary_device(current, &stale);
    return device >= 0 && stale ? bind(device) : cudaSuccess;
}

cudaError_t cudart_current_device(int *device)
{
    CUcontext current = NULL;
    int stale = 0;
    cudaError_t e = CUDART_CALL(CtxGetCurrent, &current);

    if (e != cudaSuccess)
        return e;
    *device = chosen_device;
    if (current) {
        int known = primary_device(current, &stale);

        if (known >= 0) {
            *device = known;
        } else {
            CUdevice dev;

            e = CUDART_CALL(CtxGetDevice, &dev);
            if (e == cudaSuccess)
                *device = dev;
        }
    }
    return e;
}

cudaError_t cudaGetDevice(int *device)
{
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && !device)
        e = cudaErrorInvalidValue;
    return cudart_done(e != cudaSuccess ? e : cudart_current_device(device));
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t e = cudart_driver();
    int count = 0;

    if (e == cudaSuccess)
        e = CUDART_CALL(DeviceGetCount, &count);
    if (e == cudaSuccess && (device < 0 || device >= count))
        e = cudaErrorInvalidDevice;
    if (e == cudaSuccess)
        e = bind(device);
    if (e == cudaSuccess)
        chosen_device = device;
    return cudart_done(e);
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    CUcontext context;
    CUdevice dev;
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess && flags > cudaInitDeviceFlagsAreValid)
        e = cudaErrorInvalidValue;
    if (e == cudaSuccess)
        e = CUDART_CALL(DeviceGet, &dev, device);
    if (e == cudaSuccess && (flags & cudaInitDeviceFlagsAreValid))
        e = CUDART_CALL(DevicePrimaryCtxSetFlags, dev, device_flags & ~(unsigned)cudaDeviceMapHost);
    return cudart_done(e != cudaSuccess ? e : cudart_primary(device, &context));
}

/* From a thread that never touched CUDA there is nothing to reset, though other
 * threads may have contexts: that is what the real one was seen to do. */
cudaError_t cudaDeviceReset(void)
{
    CUcontext current = NULL;
    CUdevice dev;
    int device = 0;
    cudaError_t e = cudart_driver();

    if (e == cudaSuccess)
        e = CUDART_CALL(CtxGetCurrent, &current);
    if (e != cudaSuccess || !current)
        return cudart_done(e);
    e = cudart_current_device(&device);
    if (e == cudaSuccess)
        e = CUDART_CALL(DeviceGet, &dev, device);
    if (e == cudaSuccess)
        e = CUDART_CALL(DevicePrimaryCtxReset, dev);
    if (e == cudaSuccess)
        cudart_forget_primary(device);
    return cudart_done(e);
}

cudaError_t cudaDeviceSynchronize(void) { CUDART_PASS(CtxSynchronize); }
