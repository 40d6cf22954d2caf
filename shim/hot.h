/* What the common path of every thread reads and hardly anybody writes, on pages of its own that a forked child finds zeroed: there
 * `own` is 0, `known` is empty, and nothing is recorded. At a fixed place, so that no pointer to it has to be fetched first. It
 * belongs to the process that started. */
#ifndef TENURE_SHIM_HOT_H
#define TENURE_SHIM_HOT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/api.h"

#define TN_KNOWN 256u
#ifdef __aarch64__
#define TN_PAGE_MAX 65536
#else
#define TN_PAGE_MAX 4096
#endif

/* The launches that may go the short way: their real functions are on the page's first line. */
enum {
#define TN_DRIVER(...)
#define TN_LAUNCH(variant, name, ...) TN_SHORT_##name,
#include "shim/api_driver_work.def"
#undef TN_DRIVER
    TN_SHORT_COUNT
};

/* And the copies and waits that may (shim/short.h): theirs are on the lines behind it. */
enum {
#define TN_DRIVER(...)
#define TN_COPY(variant, name, ...) TN_COPY_##name,
#include "shim/api_driver_copy.def"
    TN_COPY_COUNT
};
enum {
#define TN_WAIT(variant, name, ...) TN_WAITS_##name,
#include "shim/api_driver_order.def"
#undef TN_DRIVER
    TN_WAITS_COUNT
};

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
    /* The first line: what a short launch reads. While a plan serves, the stamp of work (serve/marks.h), which waits move: on a line of its own
     * it would be one more for each launch, and what a wait of another thread takes away is one line either way. */
    _Alignas(TN_PAGE_MAX) _Atomic uint64_t tick;
    _Atomic uint64_t generation;   /* of the handles of streams and contexts: raised when one may mean another, and when `captures` changes */
    void (*launch[TN_SHORT_COUNT])(void); /* NULL where no driver is bound */
    intptr_t self;                 /* from the thread pointer to tn_self: the loader's word for it is on a line, and a page, that nothing else here needs */
    _Atomic int captures;          /* active in the process */
    _Atomic int long_way;          /* reasons for every short way to be closed: managed blocks, a trigger that counts calls, a test that hides launches */
    _Atomic int own;               /* 1: this process started the recording */
    _Atomic int managed;           /* managed blocks alive: any launch may move their pages */
    int (*get_current)(void **context);
    uint32_t *attention;           /* tn_attention of shim/phase.h */
    struct tn_journal *journal;
    struct {
        void (*_Atomic real)(void); /* NULL: closed */
        _Atomic uint64_t due;       /* from this stamp on the row wants a reading around it */
    } wait[TN_WAITS_COUNT];
    /* No arena of a tier lies outside; equal: there is none (shim/serve_reach.h). On one line with the copies from the device. */
    _Alignas(64) _Atomic uint64_t arenas, arenas_end;
    void (*_Atomic copy[TN_COPY_COUNT])(void); /* NULL: closed */
    _Atomic int serves;            /* requests that a plan serves may go the short way (shim/serve_short.h) */
    _Atomic int faults;            /* an error was seen after which a context is lost */
    _Atomic uint64_t last_reading; /* stamp of the last reading of a device, by anybody */
    _Atomic uint64_t runtime, runtime_bytes; /* where the first runtime that was met lies: most calls of driver hooks come from it */
    _Atomic uint8_t row[TN_API_COUNT]; /* from the start on; bits are only ever taken away */
    /* Functions launched lately and kernels looked up lately (tn_known_kernel()), each at a place of its own: a decode step has few, over and over. */
    _Alignas(64) _Atomic uint64_t known[TN_KNOWN];
} tn_hot;

_Static_assert(offsetof(tn_hot, own) == 64, "all that a short launch reads, but the function itself, is on one line");

extern tn_hot tn_hot_pages;
#define tn_hot_page (&tn_hot_pages)

/* Notes an error after which a context is lost, of those that a call may return (shim/frame.c). */
void tn_note_failure(int r);

/* From now on, and until as many calls of tn_known_open(), every launch goes the long way. Any thread. */
static inline void tn_known_close(void)
{
    atomic_fetch_add(&tn_hot_page->long_way, 1);
    for (unsigned i = 0; i < TN_KNOWN; i++) atomic_store(&tn_hot_page->known[i], 0);
}

static inline void tn_known_open(void) { atomic_fetch_sub(&tn_hot_page->long_way, 1); }

static inline unsigned tn_known_place(uint64_t known) { return (uint32_t)(known >> 4) * 0x9e3779b1u >> 24; }

/* A kernel in a context, as `known` names it: of two handles one word, which by chance alone is another pair's or a function's. */
static inline uint64_t tn_known_kernel(const void *kernel, const void *context) { return (uint64_t)kernel ^ (uint64_t)context * 0x9e3779b97f4a7c15u; }

#endif
