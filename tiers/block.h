/* The owner of one reference to a block of a pool: it is filled by an acquire or a share and emptied by the release, so that it cannot be
 * released twice. It names pool, reference and the reference's generation: a copy that outlives the release is refused as stale. The
 * caller keeps it; calls on one owner must not overlap. C++ refuses a copy; in C a copy is one more stale handle to come: use tn_block_move. */
#ifndef TENURE_TIERS_BLOCK_H
#define TENURE_TIERS_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_BLOCK_NO_ID UINT32_MAX /* the id of an empty owner; -1 in a kernel's table of ints */

/* The members are closed to everyone but the pool, as those of a stable span are (span.h): an owner cannot be made up, nor one block's
 * be turned into another's. */
#if defined(__cplusplus)
struct tn_block {
    tn_block() : tn_block_pool_(0), tn_block_generation_(0), tn_block_hold_(0), tn_block_id_(0) {}
    tn_block(const tn_block &) = delete;
    tn_block &operator=(const tn_block &) = delete;
    tn_block(tn_block &&from) noexcept
        : tn_block_pool_(from.tn_block_pool_), tn_block_generation_(from.tn_block_generation_),
          tn_block_hold_(from.tn_block_hold_), tn_block_id_(from.tn_block_id_)
    {
        from.tn_block_pool_ = 0;
    }

private:
    uint64_t tn_block_pool_, tn_block_generation_;
    uint32_t tn_block_hold_, tn_block_id_;
};
#else
#if defined(TN_TIERS_BLOCK_MEMBERS)
#define TN_BLOCK_CLOSED_STRUCT
#define TN_BLOCK_CLOSED
#elif defined(__clang__)
#define TN_BLOCK_CLOSED_STRUCT
#define TN_BLOCK_CLOSED __attribute__((unavailable("only its pool fills an owner")))
#else
#pragma GCC diagnostic error "-Wdesignated-init"
#define TN_BLOCK_CLOSED_STRUCT __attribute__((designated_init))
#define TN_BLOCK_CLOSED
#endif
typedef struct TN_BLOCK_CLOSED_STRUCT tn_block {
    TN_BLOCK_CLOSED uint64_t tn_block_pool_;       /* of the pool, never given twice; 0: empty */
    TN_BLOCK_CLOSED uint64_t tn_block_generation_; /* of the hold: how often it was taken and given back */
    TN_BLOCK_CLOSED uint32_t tn_block_hold_;       /* which of the pool's references */
    TN_BLOCK_CLOSED uint32_t tn_block_id_;         /* to which block */
} tn_block;
#undef TN_BLOCK_CLOSED_STRUCT
#undef TN_BLOCK_CLOSED

/* An empty owner, to start a variable with; so is one of static storage or of zeroed memory. In C++ a tn_block begins empty. */
tn_block tn_block_none(void);
#endif
#ifndef TN_TIERS_BLOCK_MEMBERS
#pragma GCC poison tn_block_pool_ tn_block_generation_ tn_block_hold_ tn_block_id_
#endif

bool tn_block_is_empty(const tn_block *owner);

/* The number of the block within its pool, from 0; TN_BLOCK_NO_ID of an empty owner. Asks the owner alone, not the pool. */
uint32_t tn_block_id(const tn_block *owner);

/* Hands the reference on: `to` has it, `from` is empty. False, and nothing moves, where `from` is empty or `to` is not. */
bool tn_block_move(tn_block *from, tn_block *to);

#ifdef __cplusplus
}
#endif

#endif
