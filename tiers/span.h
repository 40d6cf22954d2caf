/* Two views of memory that own nothing: a device span may point anywhere, a stable span keeps its address for as long as its region
 * lives, which is what a captured graph needs. A function that needs that takes a tn_stable_span; only the tier allocators make one.
 * A stable span widens to a device span; there is no way back. Both are plain values: copy them freely, on any thread. */
#ifndef TENURE_TIERS_SPAN_H
#define TENURE_TIERS_SPAN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `bytes` bytes at `data`; of an empty span NULL and 0. */
typedef struct tn_device_span {
    void *data;
    size_t bytes;
} tn_device_span;

/* What the compiler refuses are conversions and accesses by name. Whoever writes a stable span's bytes, by memcpy, a cast or a union, can
 * still forge one: the type keeps mistakes out, not intent. */

/* The members are closed to everyone but span.c, by what each compiler offers: C++ has private; GCC refuses initialisers by position
 * (designated_init) and Clang those of unavailable members; both refuse the poisoned names, which are all that is left. */
#if defined(__cplusplus)
#define TN_STABLE_CLOSED_STRUCT
#define TN_STABLE_CLOSED_MEMBER private:
#elif defined(TN_TIERS_SPAN_MEMBERS)
#define TN_STABLE_CLOSED_STRUCT
#define TN_STABLE_CLOSED_MEMBER
#elif defined(__clang__)
#define TN_STABLE_CLOSED_STRUCT
#define TN_STABLE_CLOSED_MEMBER __attribute__((unavailable("only tier allocators make stable spans")))
#else
#pragma GCC diagnostic error "-Wdesignated-init"
#define TN_STABLE_CLOSED_STRUCT __attribute__((designated_init))
#define TN_STABLE_CLOSED_MEMBER
#endif

typedef struct TN_STABLE_CLOSED_STRUCT tn_stable_span {
    TN_STABLE_CLOSED_MEMBER uintptr_t tn_stable_address_;
    TN_STABLE_CLOSED_MEMBER size_t tn_stable_bytes_;
} tn_stable_span;

#undef TN_STABLE_CLOSED_STRUCT
#undef TN_STABLE_CLOSED_MEMBER
#ifndef TN_TIERS_SPAN_MEMBERS
#pragma GCC poison tn_stable_address_ tn_stable_bytes_
#endif

/* The empty span, to start a variable with. */
tn_stable_span tn_stable_none(void) __attribute__((hot));

/* The first byte, NULL of an empty span; how many there are. */
void *tn_stable_data(tn_stable_span span) __attribute__((hot));
size_t tn_stable_bytes(tn_stable_span span);

/* The same memory without the promise. */
tn_device_span tn_stable_widen(tn_stable_span span);

#ifdef __cplusplus
}
#endif

#endif
