/* Inside of the fake CUDA runtime: what its files share.
 *
 * The runtime owns no memory and no stream; it translates to the driver, which
 * it knows only through the pointers in cudart_drv, filled once per process at
 * the first call by cuGetProcAddress. Per-thread state (last error, chosen
 * device, launch configuration) is thread-local; the table of primary contexts
 * has its own lock. Linked statically with hidden symbols, every copy has its
 * own state, as with the toolkit's libcudart_static.a. */
#ifndef FAKEGPU_CUDART_INTERNAL_H
#define FAKEGPU_CUDART_INTERNAL_H

#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <stddef.h>

/** Variant of a stream-taking call: what a NULL stream means. Indexes TWO entries. */
enum cudart_variant { CUDART_LEGACY = 0, CUDART_PER_THREAD = 1 };

struct cudart_driver {
    PFN_cuInit_v2000 Init;
    PFN_cuGetProcAddress_v11030 GetProcAddressV1; /* four arguments */
    PFN_cuGetProcAddress_v12000 GetProcAddress;   /* five arguments */
#define ONE(name, version) PFN_cu##name##_v##version name;
#define TWO(name, version, pver) PFN_cu##name##_v##version name[2];
#include "cudart_driver_list.h"
#undef ONE
#undef TWO
};

/** Filled by cudart_driver(); a member the driver lacks stays NULL. */
extern struct cudart_driver cudart_drv;

/** Largest number of devices the runtime keeps a primary context for. */
#define CUDART_MAX_DEVICES 64

/** Opens and initialises the driver once; creates no context. Any thread.
 *  Returns cudaErrorInsufficientDriver without a (recent enough) driver, the
 *  driver's own refusal of cuInit otherwise, cudaErrorCudartUnloading late in
 *  the exit of the process. */
cudaError_t cudart_driver(void);

/** Number of devices, as the driver said when it was opened. */
extern int cudart_device_count;

/** As cudart_driver, and leaves a context current on this thread: the one found
 *  there, else the primary context of the thread's device, created if need be. */
cudaError_t cudart_context(void);

/** The device of this thread: that of the current context, else the chosen one. */
cudaError_t cudart_current_device(int *device);

/** The primary context of a device, retained if it was not; not made current. */
cudaError_t cudart_primary(int device, CUcontext *context);

/** Forgets one device's primary context after the driver has reset it. */
void cudart_forget_primary(int device);

/** Makes `device` this thread's choice (no driver call). */
void cudart_choose_device(int device);

/** Records a failure as this thread's last error and passes the code through;
 *  success leaves an older error where it is. Every public function that can
 *  fail ends in this, except those that read the error state. */
cudaError_t cudart_done(cudaError_t error);

/** The runtime's code for a driver result; codes are equal where both exist. */
cudaError_t cudart_map(CUresult result);

/** The stored last error; reading and clearing are the caller's. */
cudaError_t *cudart_last_error(void);

/** Device pointers are unsigned integers at driver level. */
static inline CUdeviceptr cudart_dptr(const void *p) { return (CUdeviceptr)(size_t)p; }
static inline void *cudart_hptr(CUdeviceptr p) { return (void *)(size_t)p; }

/** The driver function behind a registered kernel symbol or kernel handle. */
cudaError_t cudart_function(const void *symbol, CUfunction *function);
/** The kernel symbol behind a driver function, for graph node parameters. */
const void *cudart_symbol_of(CUfunction function);
/** Address and size of a registered device variable. */
cudaError_t cudart_variable(const void *symbol, CUdeviceptr *address, size_t *bytes);

/** Bytes of one element of an array, by its driver description. */
size_t cudart_element_size(CUarray_format format, unsigned channels);
/** Runtime description of a 3D copy to the driver's. */
cudaError_t cudart_copy3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
/** And back, for graph node queries. */
cudaError_t cudart_copy3d_back(const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *out);
/** A one-dimensional copy written as the driver's 3D description. */
void cudart_copy1d(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                   CUDA_MEMCPY3D *out);
/** Which memory types a copy kind promises; false for an unknown kind. */
int cudart_kind(enum cudaMemcpyKind kind, CUmemorytype *dst, CUmemorytype *src);

/** One driver call, its result as the runtime's; 36 where the driver is too old. */
#define CUDART_CALL(fn, ...)                                                                  \
    (cudart_drv.fn ? cudart_map(cudart_drv.fn(__VA_ARGS__)) : cudaErrorCallRequiresNewerDriver)

/** Body of a public function that is one driver call under a context. */
#define CUDART_PASS(fn, ...)                                                                  \
    do {                                                                                      \
        cudaError_t pass_ = cudart_context();                                                 \
        return cudart_done(pass_ != cudaSuccess ? pass_ : CUDART_CALL(fn, __VA_ARGS__));      \
    } while (0)

/** The same without a context: device queries, graph building. */
#define CUDART_PASS_NO_CONTEXT(fn, ...)                                                       \
    do {                                                                                      \
        cudaError_t pass_ = cudart_driver();                                                  \
        return cudart_done(pass_ != cudaSuccess ? pass_ : CUDART_CALL(fn, __VA_ARGS__));      \
    } while (0)

/** Defines a public function and its per-thread-default-stream twin over one
 *  implementation whose first parameter is the variant. */
#define CUDART_BOTH(name, suffix, impl, params, ...)                                          \
    cudaError_t name params { return impl(CUDART_LEGACY, __VA_ARGS__); }                      \
    cudaError_t name##suffix params;                                                          \
    cudaError_t name##suffix params { return impl(CUDART_PER_THREAD, __VA_ARGS__); }

#endif
