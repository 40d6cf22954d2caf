/* For the files of the arenas alone: what each context has. An entry stays where it is for as long as the process lives and is found by the remainder of
 * its context's number; it is another context's when nothing of the last one's is left in it. Any thread; who may change what is said beside it. */
#ifndef TENURE_SHIM_SERVE_PLACES_INSIDE_H
#define TENURE_SHIM_SERVE_PLACES_INSIDE_H

#include <stdatomic.h>

#include "shim/serve.h"
#include "tiers/backend_async.h"
#include "tiers/backend_driver.h"
#include "tiers/backend_pinned.h"

#define TN_PLACES 64u               /* remainders */
#define TN_PLACE_LEAVING UINT32_MAX /* the number of no context: the entry is being taken apart, and nobody finds it */

enum { TN_PLACE_IS_EMPTY = 0, TN_PLACE_IS_MAKING, TN_PLACE_IS_READY, TN_PLACE_IS_FAILED, TN_PLACE_IS_ENDED };

/* Stands between a place and a backend: journals what is acquired and knows the addresses. */
typedef struct tn_watched {
    tn_backend outer, *inner;
    struct tn_context_place *owner;
    uint8_t kind, flags;
} tn_watched;

typedef struct tn_context_place {
    _Atomic uint32_t ctx; /* 0: nobody's. Claimed under a lock, given up by who takes it apart */
    _Atomic int state;
    uint32_t number;      /* of the context whose this is or was last */
    uint8_t device;
    uint8_t is_quiet;     /* of one that is leaving: no thread is within a call on it, and `uncovered` is what the device may still do there */
    uint64_t beside;      /* device bytes that acquiring took and no device arena has: the stream, page tables of pinned arenas */
    tn_place *place;
    tn_cuda cuda;
    tn_driver *driver;
    tn_async *async;
    tn_pinned *pinned[TN_PLACE_PINNED_SETS];
    tn_watched device_memory, async_memory, pinned_memory[TN_PLACE_PINNED_SETS];
    tn_work_set uncovered;
    _Atomic(struct tn_context_place *) next; /* of the same remainder */
} tn_context_place;

/* The first of a remainder's entries. */
tn_context_place *tn_places_of(uint32_t remainder);

/* Takes apart what ended contexts have left: all of it where no stream-ordered block is live there and the device is done with those that were. What is not so
 * far stays for the next time. While no capture is active; calls the driver, with a context current. */
void tn_places_take_apart(tn_hook_frame *f);

#endif
