/* The short way of a request that a tier answers, and of its free. Of a served pair the hooks around it were the larger part: frames, marks of
 * memory that does not move, the runtime in between. So here is one straight function for each of the two, with everything looked at before
 * anything is written: who does not fit (a capture, a command, a reading that is due, a site that the plan does not name, no slot that is clean)
 * takes the whole long way, which finds all as it was. Journal, ledger and place are told exactly what the long way tells them.
 *
 * Between the runtime's own functions and the driver's: a runtime's hook answers by itself, and its runtime is not called, only where this
 * thread has been through that copy with the context that is current now and nothing has set a context or a device on it since, and where
 * no fault has been seen: then all that the runtime would have done is call the driver. Any thread; a signal handler between any two lines. */
#ifndef TENURE_SHIM_SERVE_SHORT_H
#define TENURE_SHIM_SERVE_SHORT_H

#include "planner/plan.h"
#include "shim/cuda_abi.h"
#include "shim/hook.h"

/* From now on, for good, every request goes the long way. */
static inline void tn_serve_short_close(void) { atomic_store_explicit(&tn_hot_page->serves, 0, memory_order_relaxed); }
static inline int tn_serve_short_is_open(void) { return __builtin_expect(atomic_load_explicit(&tn_hot_page->serves, memory_order_relaxed) != 0, 0); }

/* The call: row, `driver` the row that a runtime's function stands for (itself at the driver's level), return address and frame address of the
 * exported function, and the copy of the runtime that would be called; NULL at the driver's level. */
typedef struct tn_short_call {
    uint16_t api, driver;
    const void *caller, *stack, *copy;
} tn_short_call;

/* 1: served, *out is the block. 0: nothing has happened. `stream`: TN_STREAM_NONE, or the stream as tn_launch_stream() names it. */
int tn_short_take(const tn_short_call *call, tn_family family, uint32_t flags, size_t bytes, const void *stream, void **out) __attribute__((hot));
/* 1: freed. `kind`: the only one (TN_KIND_*) that is freed here. */
int tn_short_give(const tn_short_call *call, int kind, void *address, const void *stream) __attribute__((hot));

/* A runtime's hook has been through its runtime with success. */
static inline void tn_short_been_through(const void *copy)
{
    tn_thread *t = &tn_self;
    t->through.copy = copy;
    t->through.context = t->known.handle;
    t->through.generation = t->known.generation;
}
/* Something may have changed the current context, or will at the runtime's next call. */
static inline void tn_short_leaves(void) { tn_self.through.copy = NULL; }

static inline int tn_fault_is_seen(void) { return __builtin_expect(atomic_load_explicit(&tn_hot_page->faults, memory_order_relaxed) != 0, 0); }

/* ---- the rows. TN_IS_SHORT(name) is 1 for the names that have a line here. */
#define TN_SHORT_ROW_cuMemAlloc_v2 ~,
#define TN_SHORT_ROW_cuMemAllocAsync ~,
#define TN_SHORT_ROW_cuMemAllocAsync_ptsz ~,
#define TN_SHORT_ROW_cuMemHostAlloc ~,
#define TN_SHORT_ROW_cuMemAllocHost_v2 ~,
#define TN_SHORT_ROW_cuMemFree_v2 ~,
#define TN_SHORT_ROW_cuMemFreeAsync ~,
#define TN_SHORT_ROW_cuMemFreeAsync_ptsz ~,
#define TN_SHORT_ROW_cuMemFreeHost ~,
#define TN_SHORT_ROW_cudaMalloc ~,
#define TN_SHORT_ROW_cudaMallocAsync ~,
#define TN_SHORT_ROW_cudaMallocAsync_ptsz ~,
#define TN_SHORT_ROW_cudaFree ~,
#define TN_SHORT_ROW_cudaFreeAsync ~,
#define TN_SHORT_ROW_cudaFreeAsync_ptsz ~,
#define TN_SHORT_SECOND(a, b, ...) b
#define TN_IS_SHORT_(...) TN_SHORT_SECOND(__VA_ARGS__, 0, ~)
#define TN_IS_SHORT(name) TN_IS_SHORT_(TN_SHORT_ROW_##name 1)

#define TN_SHORT_CALL(api_, driver_, copy_)                                                                                       \
    (&(tn_short_call){.api = TN_API_##api_, .driver = TN_API_##driver_, .caller = __builtin_return_address(0),                       \
                      .stack = __builtin_frame_address(0), .copy = (copy_)})
#define TN_SHORT_PLAIN(api, driver, copy, out, bytes) \
    ((out) && (bytes) && tn_short_take(TN_SHORT_CALL(api, driver, copy), TN_FAMILY_DEVICE, 0, bytes, (void *)-1, (void **)(out)))
#define TN_SHORT_ASYNC(api, driver, copy, ptds, out, bytes, stream)                                                               \
    ((out) && (bytes) && tn_short_take(TN_SHORT_CALL(api, driver, copy), TN_FAMILY_ASYNC, 0, bytes,                                   \
                                       (stream) ? (const void *)(stream) : (const void *)((ptds) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY), (void **)(out)))
#define TN_SHORT_PINNED(api, out, bytes, flags) \
    ((out) && (bytes) && tn_short_take(TN_SHORT_CALL(api, api, NULL), TN_FAMILY_PINNED, flags, bytes, (void *)-1, (void **)(out)))
#define TN_SHORT_FREE(api, driver, copy, kind, address) \
    ((address) && tn_short_give(TN_SHORT_CALL(api, driver, copy), kind, (void *)(uintptr_t)(address), (void *)-1))
#define TN_SHORT_FREE_ASYNC(api, driver, copy, ptds, address, stream)                                                             \
    ((address) && tn_short_give(TN_SHORT_CALL(api, driver, copy), TN_KIND_ASYNC, (void *)(uintptr_t)(address),                        \
                                (stream) ? (const void *)(stream) : (const void *)((ptds) ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY)))

#define TN_SHORT_cuMemAlloc_v2(copy, out, bytes) TN_SHORT_PLAIN(cuMemAlloc_v2, cuMemAlloc_v2, NULL, out, bytes)
#define TN_SHORT_cudaMalloc(copy, out, bytes) TN_SHORT_PLAIN(cudaMalloc, cuMemAlloc_v2, copy, out, bytes)
#define TN_SHORT_cuMemAllocAsync(copy, out, bytes, stream) TN_SHORT_ASYNC(cuMemAllocAsync, cuMemAllocAsync, NULL, 0, out, bytes, stream)
#define TN_SHORT_cuMemAllocAsync_ptsz(copy, out, bytes, stream) TN_SHORT_ASYNC(cuMemAllocAsync_ptsz, cuMemAllocAsync_ptsz, NULL, 1, out, bytes, stream)
#define TN_SHORT_cudaMallocAsync(copy, out, bytes, stream) TN_SHORT_ASYNC(cudaMallocAsync, cuMemAllocAsync, copy, 0, out, bytes, stream)
#define TN_SHORT_cudaMallocAsync_ptsz(copy, out, bytes, stream) TN_SHORT_ASYNC(cudaMallocAsync_ptsz, cuMemAllocAsync_ptsz, copy, 1, out, bytes, stream)
#define TN_SHORT_cuMemHostAlloc(copy, out, bytes, flags) TN_SHORT_PINNED(cuMemHostAlloc, out, bytes, flags)
#define TN_SHORT_cuMemAllocHost_v2(copy, out, bytes) TN_SHORT_PINNED(cuMemAllocHost_v2, out, bytes, 0)
#define TN_SHORT_cuMemFree_v2(copy, address) TN_SHORT_FREE(cuMemFree_v2, cuMemFree_v2, NULL, TN_KIND_DEVICE, address)
#define TN_SHORT_cudaFree(copy, address) TN_SHORT_FREE(cudaFree, cuMemFree_v2, copy, TN_KIND_DEVICE, address)
#define TN_SHORT_cuMemFreeHost(copy, address) TN_SHORT_FREE(cuMemFreeHost, cuMemFreeHost, NULL, TN_KIND_PINNED, address)
#define TN_SHORT_cuMemFreeAsync(copy, address, stream) TN_SHORT_FREE_ASYNC(cuMemFreeAsync, cuMemFreeAsync, NULL, 0, address, stream)
#define TN_SHORT_cuMemFreeAsync_ptsz(copy, address, stream) TN_SHORT_FREE_ASYNC(cuMemFreeAsync_ptsz, cuMemFreeAsync_ptsz, NULL, 1, address, stream)
#define TN_SHORT_cudaFreeAsync(copy, address, stream) TN_SHORT_FREE_ASYNC(cudaFreeAsync, cuMemFreeAsync, copy, 0, address, stream)
#define TN_SHORT_cudaFreeAsync_ptsz(copy, address, stream) TN_SHORT_FREE_ASYNC(cudaFreeAsync_ptsz, cuMemFreeAsync_ptsz, copy, 1, address, stream)

#endif
