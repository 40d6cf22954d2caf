/* What the common path of every thread reads and hardly anybody writes, on one page that a forked child finds zeroed: there
 * `own` is 0, `known` is empty, and nothing is recorded. The page belongs to the process that started; before the start a
 * stand-in is in its place. */
#ifndef TENURE_SHIM_HOT_H
#define TENURE_SHIM_HOT_H

#include <stdatomic.h>
#include <stdint.h>

#include "shim/api.h"

#define TN_KNOWN 256u

/* The launches that may go the short way: their real functions are on the page's first line. */
enum { TN_SHORT_cuLaunchKernel, TN_SHORT_cuLaunchKernel_ptsz, TN_SHORT_cuLaunchKernelEx, TN_SHORT_cuLaunchKernelEx_ptsz, TN_SHORT_COUNT };

/* A row of the API table, as far as entering and leaving its hook depends on it, in one byte, so that rows that are called together
 * share a line: TN_LEVEL_* in the lowest three bits, and */
enum {
    TN_ROW_LEVEL = 7,
    TN_ROW_STAMPED = 8,  /* when the call began is part of its event */
    TN_ROW_MARKED = 16,  /* it may move device memory */
    TN_ROW_WINDOW = 32,  /* it may get a reading around it */
    TN_ROW_HIDDEN = 64,  /* a test switched it off */
};

typedef struct tn_hot {
    _Atomic int own;               /* 1: this process started the recording */
    _Atomic int captures;          /* active in the process */
    _Atomic int managed;           /* managed blocks alive: any launch may move their pages */
    _Atomic int long_way;          /* not 0: launches are counted by a trigger, or hidden by a test; `known` stays empty */
    _Atomic uint64_t generation;   /* of the handles of streams and contexts: raised when one may mean another */
    void (*launch[TN_SHORT_COUNT])(void); /* NULL where no driver is bound */
    int (*get_current)(void **context);
    uint32_t *attention;           /* tn_attention of shim/phase.h */
    _Atomic uint64_t last_reading; /* stamp of the last reading of a device, by anybody */
    _Atomic uint64_t runtime, runtime_bytes; /* where the first runtime that was met lies: most calls of driver hooks come from it */
    _Atomic uint8_t row[TN_API_COUNT]; /* from the start on; bits are only ever taken away */
    /* Functions launched lately, each at a place of its own: a decode step launches few over and over. */
    _Alignas(64) _Atomic uint64_t known[TN_KNOWN];
} tn_hot;

extern tn_hot *tn_hot_page;

static inline unsigned tn_known_place(const void *function) { return (unsigned)(((uint64_t)function >> 4) * 0x9e3779b97f4a7c15u >> 56); }

#endif
