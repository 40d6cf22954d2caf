/* What the common path of every thread reads and hardly anybody writes, on one page that a forked child finds zeroed: there
 * `own` is 0, `known` is empty, and nothing is recorded. The page belongs to the process that started; before the start a
 * zeroed stand-in is in its place. */
#ifndef TENURE_SHIM_HOT_H
#define TENURE_SHIM_HOT_H

#include <stdatomic.h>
#include <stdint.h>

#define TN_KNOWN 256u

typedef struct tn_hot {
    _Atomic int own;             /* 1: this process started the recording */
    _Atomic int captures;        /* active in the process */
    _Atomic int managed;         /* managed blocks alive: any launch may move their pages */
    int hidden_launches;         /* a test switched a launch's row off: none goes the short way */
    uint32_t *attention;         /* tn_attention of shim/phase.h */
    _Atomic uint64_t generation; /* of the handles of streams and contexts: raised when one may mean another */
    /* Functions launched lately, each at a place of its own: a decode step launches few over and over. */
    _Alignas(64) _Atomic uint64_t known[TN_KNOWN];
} tn_hot;

extern tn_hot *tn_hot_page;

static inline _Atomic uint64_t *tn_known_place(const void *function)
{
    return &tn_hot_page->known[((uint64_t)function >> 4) * 0x9e3779b97f4a7c15u >> 56];
}

#endif
