/* The whole of a pool walked through, for tests: every block in the one place that its state says, and the figures those of a recount. */
#include <stdlib.h>

#include "tiers/block_pool_inside.h"

/* `owners`: by block. */
typedef struct recount {
    size_t free, waiting, live, shared, references, unused;
    size_t *owners;
} recount;

/* No block is in two lists, since each ends and the figures add up. One in a list has no owner. */
static bool count_lists(const tn_block_pool *pool, recount *r)
{
    size_t committed = pool->stats.committed;
    for (uint32_t c = 0; c <= pool->chunk_count; c++) {
        size_t here = 0;
        for (uint32_t b = pool->chunks[c].first; b != TN_POOL_NONE; b = pool->blocks[b].next) {
            if (b >= committed || c == pool->chunk_count || tn_pool_chunk_of(pool, b) != c || r->owners[b] != 0 || ++here > committed)
                return false;
            if (pool->sets != NULL && pool->sets[b].count != 0)
                return false;
        }
        if (here != pool->chunks[c].free || (here > 0 && c < pool->open))
            return false;
        r->free += here;
    }
    uint32_t last = TN_POOL_NONE;
    for (uint32_t b = pool->wait_first; b != TN_POOL_NONE; b = pool->blocks[b].next) {
        if (b >= committed || r->owners[b] != 0 || pool->sets[b].count == 0 || ++r->waiting > committed)
            return false;
        last = b;
    }
    return last == pool->wait_last;
}

static bool count_holds(const tn_block_pool *pool, recount *r)
{
    for (uint32_t b = 0; b < pool->block_count; b++)
        r->owners[b] = pool->blocks[b].generation != TN_POOL_NOT_GIVEN;
    for (size_t i = 0; i < pool->hold_count; i++)
        if (pool->holds[i].generation != TN_POOL_NOT_GIVEN) {
            if (pool->holds[i].block >= pool->block_count)
                return false;
            r->owners[pool->holds[i].block]++;
        }
    for (uint32_t h = pool->first_hold; h != TN_POOL_NONE; h = pool->holds[h].next)
        if (h >= pool->hold_count || pool->holds[h].generation != TN_POOL_NOT_GIVEN || ++r->unused > pool->hold_count)
            return false;
    return true;
}

static bool count_blocks(const tn_block_pool *pool, recount *r)
{
    size_t shares_held = 0;
    for (uint32_t b = 0; b < pool->block_count; b++) {
        const tn_pool_block *block = &pool->blocks[b];
        size_t owners = r->owners[b];
        if (block->others != (owners > 1 ? owners - 1 : 0) || (owners > 0 && b >= pool->stats.committed) || block->generation > pool->generations)
            return false;
        r->references += owners;
        r->live += owners > 0;
        r->shared += owners > 1;
        shares_held += owners - (block->generation != TN_POOL_NOT_GIVEN);
    }
    return r->unused + shares_held == pool->hold_count;
}

bool tn_pool_is_sound(tn_block_pool *pool)
{
    recount r = {.owners = calloc(pool->block_count, sizeof *r.owners)};
    if (r.owners == NULL)
        return false;
    tn_spin_lock(&pool->lock);
    bool sound = count_holds(pool, &r) && count_lists(pool, &r) && count_blocks(pool, &r);
    const tn_block_pool_stats *s = &pool->stats;
    sound = sound && r.free == tn_pool_free(pool) && r.waiting == s->waiting && r.live == pool->live && r.shared == s->shared &&
            r.references == pool->live + s->shares && r.free + r.waiting + r.live == s->committed && s->shares <= pool->options.max_shares &&
            pool->live <= pool->high_water && s->shares <= s->high_shares;
    tn_spin_unlock(&pool->lock);
    free(r.owners);
    return sound;
}
