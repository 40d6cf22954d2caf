/* The exported functions themselves, one a row, and what their bodies are made of. In the preload their names
 * are CUDA's; in libtenure_wrap.a they are the __wrap_ names that the linker's --wrap sends the callers to,
 * and the real runtime function is the linker's __real_ one. */
#ifndef TENURE_SHIM_HOOKS_H
#define TENURE_SHIM_HOOKS_H

#include "shim/cuda_abi.h"
#include "shim/hook.h"
#include "shim/serve_calls.h"
#include "shim/serve_reach.h"
#include "shim/serve_short.h"

#define TN_EXPORT __attribute__((visibility("default")))
#ifdef TENURE_WRAP
#define TN_EXPORTED(name) __wrap_##name
#define TN_LINKED(name) __real_##name
#else
#define TN_EXPORTED(name) name
#endif

#define TN_DRIVER(klass, variant, name, params, ...) TN_EXPORT CUresult TN_EXPORTED(name) params;
#define TN_RUNTIME(klass, variant, name, params, ...) TN_EXPORT cudaError_t TN_EXPORTED(name) params;
#define TN_NVML(klass, name, params, ...) TN_EXPORT int TN_EXPORTED(name) params;
#include "shim/api_all.def"

/* What a program calls between its own work, again and again, stands on pages of its own with all that it calls (ARCHITECTURE.md). */
#define TN_HOT_HOOK(name) extern TN_EXPORT __typeof__(TN_EXPORTED(name)) TN_EXPORTED(name) __attribute__((hot));
TN_HOT_HOOK(cudaMalloc) TN_HOT_HOOK(cudaMallocAsync) TN_HOT_HOOK(cudaMallocAsync_ptsz)
TN_HOT_HOOK(cudaFree) TN_HOT_HOOK(cudaFreeAsync) TN_HOT_HOOK(cudaFreeAsync_ptsz)
TN_HOT_HOOK(cuMemAlloc_v2) TN_HOT_HOOK(cuMemAllocAsync) TN_HOT_HOOK(cuMemAllocAsync_ptsz)
TN_HOT_HOOK(cuMemFree_v2) TN_HOT_HOOK(cuMemFreeAsync) TN_HOT_HOOK(cuMemFreeAsync_ptsz)
#define TN_DRIVER(...)
#define TN_LAUNCH(variant, name, ...) TN_HOT_HOOK(name)
#include "shim/api_driver_work.def"
#define TN_DRIVER(...)
#define TN_COPY(variant, name, ...) TN_HOT_HOOK(name)
#include "shim/api_driver_copy.def"
#define TN_DRIVER(...)
#define TN_WAIT(variant, name, ...) TN_HOT_HOOK(name)
#define TN_KERNEL(variant, name, ...) TN_HOT_HOOK(name)
#include "shim/api_driver_order.def"
#undef TN_DRIVER

#ifdef TENURE_WRAP
/* Weak: a program need not link everything that can be wrapped. */
#define TN_DRIVER(klass, variant, name, params, ...) extern __attribute__((weak)) CUresult TN_LINKED(name) params;
#define TN_RUNTIME(klass, variant, name, params, ...) extern __attribute__((weak)) cudaError_t TN_LINKED(name) params;
#define TN_NVML(klass, name, params, ...) extern __attribute__((weak)) int TN_LINKED(name) params;
#include "shim/api_all.def"
#endif

#define LEGACY 0
#define PTDS 1
#define TN_F (&tn_frame_)
#define TN_CALL ((const void *)call) /* the real function */
/* What a call without a real function behind it answers, at every level: 3, not initialised. It happens
 * where a program holds a weak reference to a CUDA name, links no CUDA, and calls it all the same. */
#define TN_NOT_INITIALIZED 3

/* A build for benchmarks only can be told to step aside: what recording costs is then the difference between two parts of one process,
 * and not between two processes, which differ by several per cent in where their memory lies. */
#ifdef TENURE_BENCH_ASIDE
extern TN_EXPORT volatile int tenure_bench_aside;
#define TN_STEP_ASIDE(name, args, real)                                \
    if (tenure_bench_aside) {                                          \
        __typeof__(&TN_EXPORTED(name)) aside_ = (real);                \
        if (aside_) return aside_ args;                                \
    }
#else
#define TN_STEP_ASIDE(name, args, real)
#endif

/* A row in which a plan takes part asks it, where there is one (shim/serve_calls.h); all others call. */
#define TN_ANSWER(served, name, args) TN_ANSWER_(served, name, args)
#define TN_ANSWER_(served, name, args) TN_ANSWER_##served(name, args)
#define TN_ANSWER_0(name, args) call args
#define TN_ANSWER_1(name, args) \
    (__builtin_expect(tn_serving, 0) && tn_frame_.on ? tn_serve_##name(TN_F, call, TN_LIST args) : call args)
#define TN_LIST(...) __VA_ARGS__

/* What requests that a plan serves do before all that (shim/serve_short.h). TN_COPY_HERE: the copy of the runtime that would be called. */
#define TN_SHORTLY(is, name, args) TN_SHORTLY_(is, name, args)
#define TN_SHORTLY_(is, name, args) TN_SHORTLY_##is(name, args)
#define TN_SHORTLY_0(name, args)
#define TN_SHORTLY_1(name, args) \
    if (tn_serve_short_is_open() && TN_APPLY(TN_SHORT_##name, TN_COPY_HERE, TN_LIST args)) return 0;
#define TN_APPLY(macro, ...) macro(__VA_ARGS__)
/* And after a call that went the long way: whether the next one may go the short one. */
#define TN_AFTERWARDS(is, klass) TN_AFTERWARDS_(is, klass)
#define TN_AFTERWARDS_(is, klass) TN_AFTERWARDS_##is(klass)
#define TN_AFTERWARDS_0(klass) \
    if (TN_CLASS_##klass == TN_CLASS_CONTEXT) tn_short_leaves();
#define TN_AFTERWARDS_1(klass) \
    if (tn_serve_short_is_open() && TN_COPY_HERE && r == 0 && tn_frame_.on && !tn_frame_.nested && tn_frame_.thread->recorded != tn_frame_.recorded) \
        tn_short_been_through(TN_COPY_HERE);
#define TN_IS_FAULT(r) ((unsigned)(r)-700u < 22u || (unsigned)(r)-214u < 13u || (r) == 911) /* tn_note_failure() says which of these are */

/* The body of every hook: `real` is an expression for the real function. */
#define TN_BODY(result_type, klass, name, ptds, args, before, after, real)                \
    {                                                                                     \
        TN_STEP_ASIDE(name, args, real)                                                   \
        TN_SHORTLY(TN_IS_SHORT(name), name, args)                                         \
        tn_hook_frame tn_frame_;                                                               \
        tn_enter(TN_F, TN_API_##name, ptds, __builtin_return_address(0),                  \
                 __builtin_frame_address(0));                                             \
        __typeof__(&TN_EXPORTED(name)) call = (real);                                     \
        if (tn_frame_.on) { before; }                                                     \
        tn_call(TN_F);                                                                    \
        result_type r = call ? TN_ANSWER(TN_SERVED_IS(name), name, args) : (result_type)TN_NOT_INITIALIZED; \
        tn_returned(TN_F);                                                                \
        if (__builtin_expect(TN_IS_FAULT((int)r), 0)) tn_note_failure((int)r);            \
        if (tn_frame_.on || TN_CLASS_##klass == TN_CLASS_RESOLVE) { after; }              \
        TN_AFTERWARDS(TN_IS_SHORT(name), klass)                                           \
        tn_leave(TN_F);                                                                   \
        return r;                                                                         \
    }

/* An output parameter's value after the call: 0 where it failed or the program did not want it. */
#define TN_OUT(p) (r == 0 && (p) ? (uint64_t) * (p) : 0)
#define TN_OUTV(p) TN_OUT(p)
#define TN_OUTP(p) (r == 0 && (p) ? (void *)*(p) : NULL)
/* A copy of nothing returns at once: it waits for nobody. */
#define TN_SYNC_OF(bytes) ((bytes) ? TN_SYNC : 0)
/* The stream of a launch's configuration. */
#define TN_INTO(config) (!(config) ? NULL : (config)->numAttrs ? rec_config_stream(config) : (config)->hStream)
/* The structs of the 2D, 3D and peer copies share these fields' names. */
#define TN_COPY_STRUCT(c, stream, sync)                                                                       \
    rec_copy_struct(TN_F, r, r == 0 ? TN_SIDE((c)->dst) : 0, r == 0 ? TN_SIDE((c)->src) : 0,                  \
                    r == 0 ? (int)(c)->dstMemoryType : 0, r == 0 ? (int)(c)->srcMemoryType : 0, stream,                    \
                    sync && r == 0 && (c)->WidthInBytes && (c)->Height)
#define TN_SIDE(side)                                                                             \
    (side##MemoryType == CU_MEMORYTYPE_HOST ? (uint64_t)side##Host                                \
     : side##MemoryType == CU_MEMORYTYPE_ARRAY ? 0                                                \
                                               : (uint64_t)side##Device)

#endif
