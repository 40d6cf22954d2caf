/* What serving tells the account of memory that programs are answered from. Any thread, inside its hook. */
#ifndef TENURE_SHIM_SERVE_INFO_H
#define TENURE_SHIM_SERVE_INFO_H

#include <stdatomic.h>
#include <stdint.h>

#include "shim/hook.h"

/* A stream-ordered block was served, or freed: for the figures of the pool that it would have come from. One that a plain free ends stays in the
 * pool's used bytes for good, and not in its reserved ones (seen on an H200). */
enum { TN_POOLED_TAKEN = 0, TN_POOLED_FREED, TN_POOLED_FREED_PLAINLY };
void tn_serve_pooled(uint8_t device, uint64_t bytes, int what) __attribute__((hot));

/* A block of the device's default pool that no tier serves has come or gone. */
void tn_serve_pool_native(tn_hook_frame *f, uint8_t device);
/* What the default pool would have reserved for served blocks. */
uint64_t tn_serve_pool_reserved(uint8_t device);

/* A wait has succeeded: a pool gives back what lies idle in it beyond its release threshold. */
extern _Atomic int tn_serve_pools_kept; /* something was freed since the last */
void tn_serve_pools_give_back(void);
static inline void tn_serve_pools_wait(void)
{
    if (__builtin_expect(atomic_load_explicit(&tn_serve_pools_kept, memory_order_relaxed), 0)) tn_serve_pools_give_back();
}
/* An arena of the default pool went back by a plain free, since its context has ended: the pool's used bytes have it for good, as of any block. */
void tn_serve_pool_arena_ended(uint8_t device, uint64_t bytes);
/* The program had the pool give back all but `keep` bytes. */
void tn_serve_pool_trimmed(uint64_t pool, uint64_t keep);

/* The program made `pool` the current one of a device, or destroyed it. */
void tn_serve_pool_set(uint64_t device, uint64_t pool);
void tn_serve_pool_gone(uint64_t pool);
/* Whether stream-ordered requests come out of a pool that is not the device's default one: that pool's figures are the program's to see, so
 * none of them is served. */
int tn_serve_pool_is_own(uint8_t device) __attribute__((hot));

#endif
