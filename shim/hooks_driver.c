/* The driver's and NVML's hooks, one exported function a row. */
#include "shim/hooks.h"
#include "shim/real.h"
#include "shim/record.h"
#include "shim/record_charge.h"
#include "shim/short.h"

#define TN_COPY_HERE NULL

/* A program that links libcuda itself gets here before any resolver was asked; one that links a library of another name with
 * functions of the driver's names (a test's stand-in) gets those. */
#define TN_REAL_DRIVER(name)                                      \
    (tn_real.name || (tn_driver_bind(NULL, NULL), tn_real.name) ? tn_real.name \
                                                                : (__typeof__(tn_real.name))tn_behind_us(#name, (const void *)TN_EXPORTED(name)))
#define TN_DRIVER(klass, variant, name, params, args, before, after) \
    CUresult TN_EXPORTED(name) params TN_BODY(CUresult, klass, name, variant, args, before, after, TN_REAL_DRIVER(name))
/* The short way first: shim/launch.h. The long one has the same frame: it is jumped to, with the caller's return address in its place. */
#define TN_LAUNCH(variant, name, params, args, function, into)                                                                             \
    static __attribute__((noinline)) CUresult long_##name params                                                                           \
        TN_BODY(CUresult, WORK, name, variant, args, rec_launch_begin(TN_F, function), rec_launch(TN_F, r, function, r == 0 ? (into) : NULL), \
                TN_REAL_DRIVER(name))                                                                                                      \
    __attribute__((aligned(64), optimize("no-stack-protector"))) CUresult TN_EXPORTED(name) params                                         \
    {                                                                                                                                      \
        TN_STEP_ASIDE(name, args, tn_real.name)                                                                                            \
        __typeof__(&TN_EXPORTED(name)) short_ = (__typeof__(short_))tn_launch_short(TN_SHORT_##name, function);                            \
        if (TN_LIKELY(short_)) {                                                                                                           \
            CUresult r = short_ args;                                                                                                      \
            if (!TN_LIKELY(r == 0) || !TN_LIKELY(tn_launch_add(TN_API_##name, tn_launch_stream(into, variant))))                            \
                rec_launch_late(TN_API_##name, variant, __builtin_return_address(0), __builtin_frame_address(0), r, function, into);       \
            return r;                                                                                                                      \
        }                                                                                                                                  \
        return long_##name args;                                                                                                           \
    }
/* Likewise: shim/short.h. */
#define TN_COPY(variant, name, params, args, dst, src, bytes, write, before, stream)                                                       \
    static __attribute__((noinline)) CUresult long_##name params                                                                           \
        TN_BODY(CUresult, WORK, name, variant, args, before, rec_copy(TN_F, r, (uint64_t)(dst), (uint64_t)(src), write, stream, 0);             \
                rec_copy_open(TN_F, TN_COPY_##name, (void (*)(void))call), TN_REAL_DRIVER(name))                                          \
    __attribute__((aligned(64), optimize("no-stack-protector"))) CUresult TN_EXPORTED(name) params                                         \
    {                                                                                                                                      \
        TN_STEP_ASIDE(name, args, tn_real.name)                                                                                            \
        __typeof__(&TN_EXPORTED(name)) short_ =                                                                                            \
            (__typeof__(short_))tn_copy_short(TN_COPY_##name, (uint64_t)(dst), (uint64_t)(src), (uint64_t)(bytes), write, tn_launch_stream(stream, variant)); \
        if (TN_LIKELY(short_)) {                                                                                                           \
            CUresult r = short_ args;                                                                                                      \
            if (!TN_LIKELY(tn_copy_add(TN_API_##name, r, tn_launch_stream(stream, variant))))                                              \
                rec_copy_late(TN_API_##name, variant, __builtin_return_address(0), __builtin_frame_address(0), r, (uint64_t)(dst),         \
                              (uint64_t)(src), write, stream);                                                                             \
            return r;                                                                                                                      \
        }                                                                                                                                  \
        return long_##name args;                                                                                                           \
    }
#define TN_WAIT(variant, name, params, args, what, stream, event)                                                                          \
    static __attribute__((noinline)) CUresult long_##name params                                                                           \
        TN_BODY(CUresult, WAIT, name, variant, args, , rec_wait_on(TN_F, r, what, stream, event);                                         \
                rec_wait_open(TN_F, TN_WAITS_##name, (void (*)(void))call), TN_REAL_DRIVER(name))                                         \
    __attribute__((aligned(64), optimize("no-stack-protector"))) CUresult TN_EXPORTED(name) params                                         \
    {                                                                                                                                      \
        uint64_t begun;                                                                                                                    \
        TN_STEP_ASIDE(name, args, tn_real.name)                                                                                            \
        __typeof__(&TN_EXPORTED(name)) short_ = (__typeof__(short_))tn_wait_short(TN_WAITS_##name, &begun);                                \
        if (TN_LIKELY(short_)) {                                                                                                           \
            CUresult r = short_ args;                                                                                                      \
            rec_wait_short(TN_API_##name, variant, __builtin_return_address(0), __builtin_frame_address(0), r, what, stream, event, begun); \
            return r;                                                                                                                      \
        }                                                                                                                                  \
        return long_##name args;                                                                                                           \
    }
/* Likewise: a kernel that is known in the current context. */
#define TN_KERNEL(variant, name, params, args, kernel)                                                                                     \
    static __attribute__((noinline)) CUresult long_##name params                                                                           \
        TN_BODY(CUresult, CHARGE, name, variant, args, rec_kernel_begin(TN_F, kernel), rec_kernel(TN_F, r), TN_REAL_DRIVER(name))           \
    __attribute__((aligned(64), optimize("no-stack-protector"))) CUresult TN_EXPORTED(name) params                                         \
    {                                                                                                                                      \
        TN_STEP_ASIDE(name, args, tn_real.name)                                                                                            \
        if (!TN_LIKELY(tn_kernel_is_known(kernel))) return long_##name args;                                                               \
        CUresult r = tn_real.name args;                                                                                                    \
        tn_kernel_add(TN_API_##name, r);                                                                                                   \
        return r;                                                                                                                          \
    }
#include "shim/api_driver_memory.def"
#include "shim/api_driver_order.def"
#include "shim/api_driver_work.def"
#include "shim/api_driver_copy.def"
#undef TN_DRIVER

#define TN_REAL_NVML(name)                                             \
    (tn_real_nvml.name || (tn_nvml_bind(NULL), tn_real_nvml.name) ? tn_real_nvml.name \
                                                                  : (__typeof__(tn_real_nvml.name))tn_behind_us(#name, (const void *)TN_EXPORTED(name)))
#define TN_NVML(klass, name, params, args, after) \
    int TN_EXPORTED(name) params TN_BODY(int, klass, name, LEGACY, args, , after, TN_REAL_NVML(name))
#include "shim/api_nvml.def"
#undef TN_NVML
