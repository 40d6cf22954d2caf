/* Stable slots, for buffers whose addresses a captured graph has: each key has a slot of its own, and a slot that was released comes back to
 * the same key at the same address, and to no other until the key is dropped. The caller owns the allocator and keeps its backend
 * and its work table alive. Any thread may call any function but create and destroy: a short lock is held within. */
#ifndef TENURE_TIERS_STABLE_SLOTS_H
#define TENURE_TIERS_STABLE_SLOTS_H

#include <stdint.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"
#include "tiers/span.h"
#include "tiers/work_mark.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_stable_slots_options {
    tn_backend *backend;
    const char *tag;             /* of the region; outlives the allocator */
    size_t capacity;             /* bytes, acquired at once and for good */
    size_t alignment;            /* of the region; 0: TN_ALIGNMENT_DEFAULT. Slots that ask for more may leave up to that much unused */
    size_t slots;                /* at most */
    const tn_work *work;         /* what the device's work is known by; NULL: a released slot is clean at once */
    const tn_metadata *metadata; /* NULL: malloc; not called after create */
} tn_stable_slots_options;

typedef struct tn_stable_slots_stats {
    size_t capacity, used;     /* used: what slots were made of, dropped ones too, with padding */
    size_t slots;              /* that were made */
    size_t taken, released, dropped;
    size_t taken_bytes;        /* as asked for */
    uint64_t comebacks;        /* takes that got the slot that their key had before */
    uint64_t exhausted, must_waits;
    uint64_t bad_keys;         /* releases and drops of a key that is not there, and takes of one in use */
} tn_stable_slots_stats;

typedef struct tn_stable_slots tn_stable_slots;

/* Acquires the region. ARGUMENT: no backend, no tag, capacity or slots 0, a bad alignment or work table. HOST_MEMORY, or the backend's
 * error. */
TN_MEM_MUST_USE tn_mem_error tn_stable_slots_create(const tn_stable_slots_options *options, tn_stable_slots **slots);

/* Gives the region back, frees the allocator and sets *slots to NULL. LEFTOVER: a slot is taken. Or the backend's error; after any the
 * allocator is there as before. */
TN_MEM_MUST_USE tn_mem_error tn_stable_slots_destroy(tn_stable_slots **slots);

/* The slot of `key`: the one that it had, or a new one. `queue` is where it will be used first (TN_WORK_NO_QUEUE: not known), as for a packed
 * take. *span is empty after an error. IN_USE: it is taken. NOT_GROWABLE: the key's slot is smaller, or not so aligned, and cannot move.
 * MUST_WAIT: the slot is not clean. EXHAUSTED: no room, or no slots, for a new one. ARGUMENT: zero bytes, a bad alignment. */
TN_MEM_MUST_USE tn_mem_error tn_stable_slots_take(tn_stable_slots *slots, uint64_t key, size_t bytes, size_t alignment, uint64_t queue,
                                                  tn_stable_span *span);

/* The key's buffer is not used now; `uncovered` (NULL: nothing) is what the device may still do with it. STALE: it is released already.
 * ARGUMENT: the key has no slot, or marks where there is no work table. */
TN_MEM_MUST_USE tn_mem_error tn_stable_slots_release(tn_stable_slots *slots, uint64_t key, const tn_work_set *uncovered);

/* No graph has the key's address any more: its slot is for other keys. IN_USE: it is taken. ARGUMENT: the key has no slot. */
TN_MEM_MUST_USE tn_mem_error tn_stable_slots_drop(tn_stable_slots *slots, uint64_t key);

void tn_stable_slots_read_stats(tn_stable_slots *slots, tn_stable_slots_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
