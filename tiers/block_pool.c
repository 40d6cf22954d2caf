#define TN_TIERS_BLOCK_MEMBERS
#include "tiers/block_pool.h"

#include "tiers/block_pool_inside.h"
#include "tiers/seam_use.h"
#include "tiers/span_make.h"

static inline void put_free(tn_block_pool *pool, uint32_t block)
{
    uint32_t c = tn_pool_chunk_of(pool, block);
    tn_pool_chunk *chunk = &pool->chunks[c];
    pool->blocks[block].next = chunk->first;
    chunk->first = block;
    chunk->free++;
    if (c < pool->open)
        pool->open = c;
}

void tn_pool_put_free(tn_block_pool *pool, uint32_t block)
{
    put_free(pool, block);
}

void tn_pool_settle(tn_block_pool *pool)
{
    for (unsigned rounds = 0; pool->moving;) {
        tn_spin_unlock(&pool->lock);
        tn_spin_pause(&rounds);
        tn_spin_lock(&pool->lock);
    }
}

static inline void take_first(tn_block_pool *pool, tn_pool_chunk *chunk)
{
    chunk->first = pool->blocks[chunk->first].next;
    chunk->free--;
}

/* A free block of the first chunk that has one. The search begins where it ended: `open` moves on only when it must. */
static uint32_t take_free(tn_block_pool *pool)
{
    while (pool->open < pool->chunks_committed) {
        tn_pool_chunk *chunk = &pool->chunks[pool->open];
        uint32_t block = chunk->first;
        if (block != TN_POOL_NONE) {
            take_first(pool, chunk);
            return block;
        }
        pool->open++;
    }
    return TN_POOL_NONE;
}

/* The three steps of a hand-out. Each writes lines of its own, and the one with the lock comes last: the exchange by which the next call takes
 * the lock waits for all stores before it, and those to one line in a row cost half of what they cost in turn (1.2 ns a pair). */
static inline void fill(tn_block_pool *pool, tn_block *owner, uint64_t generation, uint32_t hold, uint32_t block)
{
    owner->tn_block_hold_ = hold;
    owner->tn_block_id_ = block;
    owner->tn_block_pool_ = pool->identity;
    owner->tn_block_generation_ = generation;
}

static inline void hand_out(tn_block_pool *pool, tn_block *owner, uint32_t block)
{
    fill(pool, owner, pool->generations + 1, TN_POOL_OWN, block);
    pool->blocks[block].generation = pool->generations + 1;
}

static inline void count_acquire(tn_block_pool *pool)
{
    if (pool->live + 1 > pool->high_water)
        pool->high_water = pool->live + 1;
    pool->live++;
    pool->generations++;
}

static __attribute__((noinline)) tn_mem_error acquire_where_none_is_free(tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    tn_mem_error error = TN_MEM_OK;
    uint32_t block;
    for (;;) {
        block = tn_pool_take_ready(pool, queue);
        if (block == TN_POOL_NONE)
            block = take_free(pool);
        if (block != TN_POOL_NONE || error != TN_MEM_OK)
            break;
        if (pool->moving) {
            tn_pool_settle(pool);
        } else if (pool->chunks_committed == pool->chunk_count) {
            error = TN_MEM_E_EXHAUSTED;
            break;
        } else {
            error = tn_pool_grow(pool); /* others may have released meanwhile, whatever came of it: look again */
        }
    }
    if (block != TN_POOL_NONE) {
        hand_out(pool, owner, block);
        count_acquire(pool);
        return TN_MEM_OK;
    }
    if (pool->stats.waiting > 0) {
        pool->stats.must_wait++;
        return TN_MEM_E_MUST_WAIT;
    }
    pool->stats.exhausted++;
    return error;
}

static void *address_of(const tn_block_pool *pool, uint32_t block)
{
    return (char *)pool->region.base + block * pool->options.stride;
}

/* Slots have no bytes to tell of. */
static bool is_listened_to(const tn_block_pool *pool)
{
    return tn_seam_now() != NULL && pool->options.backend != NULL;
}

/* Whatever is to be done, with the lock held, and lets go of it. This and the next are functions of their own, called last, so that the common
 * way has no registers to save: their stores too would be waited for. */
static __attribute__((noinline)) tn_mem_error acquire_locked(tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    tn_mem_error error = TN_MEM_OK;
    uint32_t block = take_free(pool);
    if (block != TN_POOL_NONE) {
        hand_out(pool, owner, block);
        count_acquire(pool);
    } else {
        error = acquire_where_none_is_free(pool, queue, owner);
    }
    tn_spin_unlock(&pool->lock);
    if (is_listened_to(pool) && error == TN_MEM_OK)
        TN_SEAM(handed_out, pool, pool->options.tag, address_of(pool, owner->tn_block_id_), pool->options.stride);
    return error;
}

static __attribute__((noinline)) tn_mem_error acquire_waiting(tn_block_pool *pool, uint64_t queue, tn_block *owner, bool wait)
{
    if (wait)
        tn_spin_lock_slowly(&pool->lock);
    else
        tn_spin_lock(&pool->lock);
    return acquire_locked(pool, queue, owner);
}

tn_mem_error tn_block_pool_acquire(tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    if (pool == NULL || owner == NULL || owner->tn_block_pool_ != 0)
        return TN_MEM_E_ARGUMENT;
    if (__builtin_expect(is_listened_to(pool), 0))
        return acquire_waiting(pool, queue, owner, false);
    if (__builtin_expect(!tn_spin_try(&pool->lock), 0))
        return acquire_waiting(pool, queue, owner, true);
    tn_pool_chunk *chunk = &pool->chunks[pool->open];
    uint32_t block = chunk->first;
    if (__builtin_expect(block == TN_POOL_NONE, 0))
        return acquire_locked(pool, queue, owner);
    hand_out(pool, owner, block);
    take_first(pool, chunk);
    count_acquire(pool);
    tn_spin_unlock(&pool->lock);
    return TN_MEM_OK;
}

static __attribute__((noinline, cold)) tn_mem_error bad_handle(tn_block_pool *pool, const tn_block *owner, tn_mem_error error)
{
    if (pool->stats.bad_handles++ == 0) {
        pool->stats.first_bad = error;
        pool->stats.first_bad_id = owner->tn_block_id_;
    }
    return error;
}

/* Whether the owner holds what it says. One that was overwritten is as stale as one that was released. */
static inline bool holds(const tn_block_pool *pool, const tn_block *owner)
{
    uint32_t b = owner->tn_block_id_, h = owner->tn_block_hold_;
    uint64_t generation = owner->tn_block_generation_;
    if (b >= pool->block_count || generation == TN_POOL_NOT_GIVEN)
        return false;
    if (__builtin_expect(h == TN_POOL_OWN, 1))
        return pool->blocks[b].generation == generation;
    if (h > pool->hold_count)
        return false;
    const tn_pool_hold *hold = &pool->holds[h - 1];
    return hold->generation == generation && hold->block == b;
}

static inline tn_mem_error check(tn_block_pool *pool, const tn_block *owner)
{
    if (__builtin_expect(owner->tn_block_pool_ != pool->identity, 0))
        return bad_handle(pool, owner, TN_MEM_E_FOREIGN);
    if (__builtin_expect(!holds(pool, owner), 0))
        return bad_handle(pool, owner, TN_MEM_E_STALE);
    return TN_MEM_OK;
}

static bool is_given(const tn_block_pool *pool, const tn_block *owner)
{
    return pool != NULL && owner != NULL && owner->tn_block_pool_ != 0;
}

tn_mem_error tn_block_pool_share(tn_block_pool *pool, const tn_block *from, tn_block *to)
{
    if (!is_given(pool, from) || to == NULL || to->tn_block_pool_ != 0)
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = check(pool, from);
    if (error == TN_MEM_OK && pool->options.max_shares == 0)
        error = TN_MEM_E_NOT_SHARED;
    if (error == TN_MEM_OK && pool->stats.shares == pool->options.max_shares) {
        pool->stats.exhausted++;
        error = TN_MEM_E_EXHAUSTED;
    }
    if (error == TN_MEM_OK) {
        uint32_t block = from->tn_block_id_;
        uint32_t h = pool->first_hold;
        tn_pool_hold *hold = &pool->holds[h];
        pool->first_hold = hold->next;
        hold->block = block;
        hold->generation = ++pool->generations;
        pool->shares_given++;
        fill(pool, to, hold->generation, h + 1, block);
        if (++pool->blocks[block].others == 1)
            pool->stats.shared++;
        if (++pool->stats.shares > pool->stats.high_shares)
            pool->stats.high_shares = pool->stats.shares;
    }
    tn_spin_unlock(&pool->lock);
    return error;
}

/* The block has no owner any more. */
static void retire(tn_block_pool *pool, uint32_t block)
{
    pool->live--;
    if (pool->sets == NULL || tn_work_set_is_clean(&pool->sets[block], &pool->work))
        tn_pool_put_free(pool, block);
    else
        tn_pool_put_waiting(pool, block);
}

static void drop_hold(tn_block_pool *pool, uint32_t block, uint32_t h)
{
    if (h == TN_POOL_OWN) {
        pool->blocks[block].generation = TN_POOL_NOT_GIVEN;
        return;
    }
    tn_pool_hold *hold = &pool->holds[h - 1];
    hold->generation = TN_POOL_NOT_GIVEN;
    hold->next = pool->first_hold;
    pool->first_hold = h - 1;
}

static void drop_reference(tn_block_pool *pool, uint32_t b)
{
    tn_pool_block *block = &pool->blocks[b];
    if (block->others == 0) {
        retire(pool, b);
        return;
    }
    /* One owner less is one share less, whether this one came by it as a share or by the acquire. */
    pool->stats.shares--;
    if (--block->others == 0)
        pool->stats.shared--;
}

/* Tells that the last owner lets go, with the lock let go meanwhile and before another can have the block: it is nobody's, for its hold is
 * gone, and still counts as live. */
static __attribute__((noinline)) void tell_taken_back(tn_block_pool *pool, uint32_t block)
{
    tn_spin_unlock(&pool->lock);
    TN_SEAM(taken_back, pool, address_of(pool, block));
    tn_spin_lock(&pool->lock);
}

static bool are_marks(const tn_block_pool *pool, const tn_work_mark *marks, size_t count)
{
    return count == 0 || (marks != NULL && pool->sets != NULL);
}

static void add_marks(tn_block_pool *pool, uint32_t block, const tn_work_mark *marks, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tn_work_set_add(&pool->sets[block], &pool->work, marks[i]);
}

static void give_up(tn_block_pool *pool, uint32_t block, uint32_t h, const tn_work_mark *marks, size_t mark_count, bool listened)
{
    add_marks(pool, block, marks, mark_count);
    drop_hold(pool, block, h);
    if (listened && pool->blocks[block].others == 0)
        tell_taken_back(pool, block);
    drop_reference(pool, block);
}

/* As for an acquire: all that can be, with the lock held. */
static __attribute__((noinline)) tn_mem_error release_locked(tn_block_pool *pool, tn_block *owner, const tn_work_mark *marks, size_t mark_count)
{
    tn_mem_error error = check(pool, owner);
    if (error == TN_MEM_OK)
        give_up(pool, owner->tn_block_id_, owner->tn_block_hold_, marks, mark_count, is_listened_to(pool));
    tn_spin_unlock(&pool->lock);
    if (error == TN_MEM_OK)
        owner->tn_block_pool_ = 0;
    return error;
}

static __attribute__((noinline)) tn_mem_error release_waiting(tn_block_pool *pool, tn_block *owner, const tn_work_mark *marks, size_t mark_count,
                                                              bool wait)
{
    if (wait)
        tn_spin_lock_slowly(&pool->lock);
    else
        tn_spin_lock(&pool->lock);
    return release_locked(pool, owner, marks, mark_count);
}

/* What can be known of a common release without the lock: the owner's bytes, but for its generation, are those of an acquire of this pool, there
 * are no marks, and nobody listens. */
static inline bool is_common(const tn_block_pool *pool, const tn_block *owner, size_t mark_count)
{
    return owner->tn_block_pool_ == pool->identity && owner->tn_block_hold_ == TN_POOL_OWN && owner->tn_block_id_ < pool->block_count &&
           owner->tn_block_generation_ != TN_POOL_NOT_GIVEN && mark_count == 0 && !is_listened_to(pool);
}

tn_mem_error tn_block_pool_release(tn_block_pool *pool, tn_block *owner, const tn_work_mark *marks, size_t mark_count)
{
    if (!is_given(pool, owner) || !are_marks(pool, marks, mark_count))
        return TN_MEM_E_ARGUMENT;
    if (__builtin_expect(!is_common(pool, owner, mark_count), 0))
        return release_waiting(pool, owner, marks, mark_count, false);
    uint32_t b = owner->tn_block_id_;
    uint64_t generation = owner->tn_block_generation_;
    tn_pool_block *block = &pool->blocks[b];
    if (__builtin_expect(!tn_spin_try(&pool->lock), 0))
        return release_waiting(pool, owner, marks, mark_count, true);
    if (__builtin_expect(block->generation != generation || block->others != 0 || (pool->sets != NULL && pool->sets[b].count != 0), 0))
        return release_locked(pool, owner, marks, mark_count);
    block->generation = TN_POOL_NOT_GIVEN;
    put_free(pool, b);
    pool->live--;
    tn_spin_unlock(&pool->lock);
    owner->tn_block_pool_ = 0;
    return TN_MEM_OK;
}

tn_mem_error tn_block_pool_look(tn_block_pool *pool, const tn_block *owner, size_t *references)
{
    if (!is_given(pool, owner))
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = check(pool, owner);
    if (error == TN_MEM_OK && references != NULL)
        *references = (size_t)pool->blocks[owner->tn_block_id_].others + 1;
    tn_spin_unlock(&pool->lock);
    return error;
}

tn_mem_error tn_block_pool_span(tn_block_pool *pool, const tn_block *owner, tn_stable_span *span)
{
    if (span == NULL)
        return TN_MEM_E_ARGUMENT;
    *span = tn_stable_none();
    if (pool == NULL || pool->options.backend == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = tn_block_pool_look(pool, owner, NULL);
    if (error == TN_MEM_OK)
        *span = tn_stable_make(address_of(pool, owner->tn_block_id_), pool->options.stride);
    return error;
}

tn_stable_span tn_block_pool_slab(const tn_block_pool *pool)
{
    if (pool == NULL || pool->options.backend == NULL)
        return tn_stable_none();
    return tn_stable_make(pool->region.base, pool->options.blocks * pool->options.stride);
}

tn_mem_error tn_block_pool_reset(tn_block_pool *pool, const tn_work_mark *marks, size_t mark_count)
{
    if (pool == NULL || !are_marks(pool, marks, mark_count))
        return TN_MEM_E_ARGUMENT;
    if (is_listened_to(pool))
        TN_SEAM(taken_back_all, pool);
    tn_spin_lock(&pool->lock);
    for (uint32_t b = 0; b < pool->block_count; b++)
        if (pool->blocks[b].generation != TN_POOL_NOT_GIVEN)
            give_up(pool, b, TN_POOL_OWN, marks, mark_count, false);
    for (uint32_t h = 1; h <= pool->hold_count; h++)
        if (pool->holds[h - 1].generation != TN_POOL_NOT_GIVEN)
            give_up(pool, pool->holds[h - 1].block, h, marks, mark_count, false);
    pool->stats.resets++;
    tn_spin_unlock(&pool->lock);
    return TN_MEM_OK;
}

void tn_block_pool_read_stats(tn_block_pool *pool, tn_block_pool_stats *stats)
{
    tn_spin_lock(&pool->lock);
    *stats = pool->stats;
    stats->live = pool->live;
    stats->high_water = pool->high_water;
    stats->acquires = pool->generations - pool->shares_given;
    stats->free = tn_pool_free(pool);
    stats->references = stats->live + stats->shares;
    tn_spin_unlock(&pool->lock);
}
