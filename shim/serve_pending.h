/* Served plain blocks that were freed in the order of a stream: the driver knows such a block, with all that it answers of it, until the stream has
 * passed the free and somebody has waited for that (seen on an H200: a stream that has passed it unwaited leaves it known). Stream-ordered blocks are none of these: the driver knows them no longer from the
 * call on. Owned by the process, any thread, no lock. Memory of its own, which grows with what waits at once and stays: each free looks
 * whether a few others have been passed. */
#ifndef TENURE_SHIM_SERVE_PENDING_H
#define TENURE_SHIM_SERVE_PENDING_H

#include <stdatomic.h>

#include "ledger/ledger.h"
#include "shim/hook.h"
#include "tiers/work_mark.h"

/* The block has just been freed in `stream`, behind all that `mark` stands for. Records an event there. Inside the hook of that free. */
void tn_serve_pending_add(tn_hook_frame *f, const tn_entry *block, void *stream, tn_work_mark mark);

extern _Atomic int tn_serve_pending_count __attribute__((visibility("hidden")));
int tn_serve_pending_look(uint64_t address, tn_entry *block);
/* Whether the address lies in one whose free no wait has covered; *block is it then. */
static inline int tn_serve_pending_find(uint64_t address, tn_entry *block)
{
    return __builtin_expect(atomic_load_explicit(&tn_serve_pending_count, memory_order_acquire) != 0, 0) && tn_serve_pending_look(address, block);
}

/* The context is gone, and its events with it. */
void tn_serve_pending_context_ended(uint32_t ctx);

#endif
