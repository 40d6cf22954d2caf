#define TN_TIERS_BLOCK_MEMBERS
#include "tiers/block_pool.h"

#include "tiers/block_pool_inside.h"
#include "tiers/seam_use.h"
#include "tiers/span_make.h"

void tn_pool_put_free(tn_block_pool *pool, uint32_t block)
{
    uint32_t c = tn_pool_chunk_of(pool, block);
    tn_pool_chunk *chunk = &pool->chunks[c];
    pool->blocks[block].next = chunk->first;
    chunk->first = block;
    chunk->free++;
    if (c < pool->open)
        pool->open = c;
}

void tn_pool_put_waiting(tn_block_pool *pool, uint32_t block)
{
    pool->blocks[block].next = TN_POOL_NONE;
    if (pool->wait_first == TN_POOL_NONE)
        pool->wait_first = block;
    else
        pool->blocks[pool->wait_last].next = block;
    pool->wait_last = block;
    pool->stats.waiting++;
}

/* `before` is the one before it in the queue, TN_POOL_NONE of the first. */
static void take_out_of_waiting(tn_block_pool *pool, uint32_t block, uint32_t before)
{
    uint32_t next = pool->blocks[block].next;
    if (before == TN_POOL_NONE)
        pool->wait_first = next;
    else
        pool->blocks[before].next = next;
    if (pool->wait_last == block)
        pool->wait_last = before;
    pool->stats.waiting--;
}

size_t tn_pool_collect(tn_block_pool *pool)
{
    size_t found = 0;
    for (uint32_t before = TN_POOL_NONE, b = pool->wait_first, next; b != TN_POOL_NONE; b = next) {
        next = pool->blocks[b].next;
        if (!tn_work_set_is_clean(&pool->sets[b], &pool->work)) {
            before = b;
            continue;
        }
        take_out_of_waiting(pool, b, before);
        tn_pool_put_free(pool, b);
        found++;
    }
    return found;
}

void tn_pool_settle(tn_block_pool *pool)
{
    for (unsigned rounds = 0; pool->moving;) {
        tn_spin_unlock(&pool->lock);
        tn_spin_pause(&rounds);
        tn_spin_lock(&pool->lock);
    }
}

/* A free block of the first chunk that has one. The search begins where it ended: `open` moves on only when it must. */
static uint32_t take_free(tn_block_pool *pool)
{
    while (pool->open < pool->chunks_committed) {
        tn_pool_chunk *chunk = &pool->chunks[pool->open];
        uint32_t block = chunk->first;
        if (block != TN_POOL_NONE) {
            chunk->first = pool->blocks[block].next;
            chunk->free--;
            return block;
        }
        pool->open++;
    }
    return TN_POOL_NONE;
}

/* The one that was released first of those that `queue` may use. Marks that are ordered before its work but not done stay in the
 * set: another queue may be the next to have the block. */
static uint32_t take_ready(tn_block_pool *pool, uint64_t queue)
{
    for (uint32_t before = TN_POOL_NONE, b = pool->wait_first; b != TN_POOL_NONE; before = b, b = pool->blocks[b].next)
        if (tn_work_set_is_ready(&pool->sets[b], &pool->work, queue)) {
            take_out_of_waiting(pool, b, before);
            return b;
        }
    return TN_POOL_NONE;
}

static void fill(tn_block_pool *pool, tn_block *owner, uint32_t block)
{
    uint32_t h = pool->first_hold;
    tn_pool_hold *hold = &pool->holds[h];
    pool->first_hold = hold->next;
    hold->block = block;
    owner->tn_block_pool_ = pool->identity;
    owner->tn_block_generation_ = ++hold->generation;
    owner->tn_block_hold_ = h;
    owner->tn_block_id_ = block;
}

static void hand_out(tn_block_pool *pool, uint32_t block, tn_block *owner)
{
    pool->blocks[block].references = 1;
    fill(pool, owner, block);
    pool->stats.acquires++;
    if (++pool->stats.live > pool->stats.high_water)
        pool->stats.high_water = pool->stats.live;
}

static __attribute__((noinline)) tn_mem_error acquire_where_none_is_free(tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    tn_mem_error error = TN_MEM_OK;
    uint32_t block;
    for (;;) {
        block = take_ready(pool, queue);
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
        hand_out(pool, block, owner);
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

tn_mem_error tn_block_pool_acquire(tn_block_pool *pool, uint64_t queue, tn_block *owner)
{
    if (pool == NULL || owner == NULL || owner->tn_block_pool_ != 0)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = TN_MEM_OK;
    tn_spin_lock(&pool->lock);
    uint32_t block = take_free(pool);
    if (__builtin_expect(block != TN_POOL_NONE, 1))
        hand_out(pool, block, owner);
    else
        error = acquire_where_none_is_free(pool, queue, owner);
    tn_spin_unlock(&pool->lock);
    if (__builtin_expect(is_listened_to(pool), 0) && error == TN_MEM_OK)
        TN_SEAM(handed_out, pool, pool->options.tag, address_of(pool, owner->tn_block_id_), pool->options.stride);
    return error;
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
static tn_mem_error check(tn_block_pool *pool, const tn_block *owner)
{
    if (owner->tn_block_pool_ != pool->identity)
        return bad_handle(pool, owner, TN_MEM_E_FOREIGN);
    if (owner->tn_block_hold_ < pool->hold_count) {
        const tn_pool_hold *hold = &pool->holds[owner->tn_block_hold_];
        if (hold->generation == owner->tn_block_generation_ && hold->generation % 2 == 1 && hold->block == owner->tn_block_id_)
            return TN_MEM_OK;
    }
    return bad_handle(pool, owner, TN_MEM_E_STALE);
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
        fill(pool, to, block);
        if (++pool->blocks[block].references == 2)
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
    pool->stats.live--;
    if (pool->sets == NULL || tn_work_set_is_clean(&pool->sets[block], &pool->work))
        tn_pool_put_free(pool, block);
    else
        tn_pool_put_waiting(pool, block);
}

static void drop_hold(tn_block_pool *pool, uint32_t h)
{
    tn_pool_hold *hold = &pool->holds[h];
    hold->generation++;
    hold->next = pool->first_hold;
    pool->first_hold = h;
}

static void drop_reference(tn_block_pool *pool, uint32_t b)
{
    tn_pool_block *block = &pool->blocks[b];
    if (--block->references == 0) {
        retire(pool, b);
        return;
    }
    /* One owner less is one share less, whether this one came by it as a share or by the acquire. */
    pool->stats.shares--;
    if (block->references == 1)
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

tn_mem_error tn_block_pool_release(tn_block_pool *pool, tn_block *owner, const tn_work_mark *marks, size_t mark_count)
{
    if (!is_given(pool, owner) || !are_marks(pool, marks, mark_count))
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = check(pool, owner);
    if (error == TN_MEM_OK) {
        uint32_t block = owner->tn_block_id_;
        add_marks(pool, block, marks, mark_count);
        drop_hold(pool, owner->tn_block_hold_);
        if (__builtin_expect(is_listened_to(pool), 0) && pool->blocks[block].references == 1)
            tell_taken_back(pool, block);
        drop_reference(pool, block);
    }
    tn_spin_unlock(&pool->lock);
    if (error == TN_MEM_OK)
        owner->tn_block_pool_ = 0;
    return error;
}

tn_mem_error tn_block_pool_look(tn_block_pool *pool, const tn_block *owner, size_t *references)
{
    if (!is_given(pool, owner))
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = check(pool, owner);
    if (error == TN_MEM_OK && references != NULL)
        *references = pool->blocks[owner->tn_block_id_].references;
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
    for (size_t i = 0; i < pool->hold_count; i++)
        if (pool->holds[i].generation % 2 == 1) {
            add_marks(pool, pool->holds[i].block, marks, mark_count);
            drop_hold(pool, (uint32_t)i);
            drop_reference(pool, pool->holds[i].block);
        }
    pool->stats.resets++;
    tn_spin_unlock(&pool->lock);
    return TN_MEM_OK;
}

size_t tn_block_pool_collect(tn_block_pool *pool)
{
    if (pool == NULL)
        return 0;
    tn_spin_lock(&pool->lock);
    size_t found = tn_pool_collect(pool);
    tn_spin_unlock(&pool->lock);
    return found;
}

tn_mem_error tn_block_pool_wait(tn_block_pool *pool)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_pool_collect(pool);
    bool has_free = tn_pool_free(pool) > 0, has_waiting = pool->stats.waiting > 0;
    tn_work_set set = {.count = 0};
    if (has_waiting)
        set = pool->sets[pool->wait_first];
    tn_spin_unlock(&pool->lock);
    if (has_free)
        return TN_MEM_OK;
    if (!has_waiting)
        return TN_MEM_E_EXHAUSTED;
    tn_mem_error error = tn_work_set_wait(&set, &pool->work);
    if (error == TN_MEM_OK)
        tn_block_pool_collect(pool);
    return error;
}

void tn_block_pool_read_stats(tn_block_pool *pool, tn_block_pool_stats *stats)
{
    tn_spin_lock(&pool->lock);
    *stats = pool->stats;
    stats->free = tn_pool_free(pool);
    stats->references = stats->live + stats->shares;
    tn_spin_unlock(&pool->lock);
}
