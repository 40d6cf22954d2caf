/* The whole of a pool walked through, for tests: every block in the one place that its state says, and the figures those of a recount. */
#include "tiers/block_pool_inside.h"

typedef struct recount {
    size_t free, waiting, live, shared, references, unused;
} recount;

static bool count_lists(const tn_block_pool *pool, recount *r)
{
    size_t committed = pool->stats.committed;
    for (uint32_t c = 0; c < pool->chunk_count; c++) {
        size_t here = 0;
        for (uint32_t b = pool->chunks[c].first; b != TN_POOL_NONE; b = pool->blocks[b].next) {
            if (b >= committed || tn_pool_chunk_of(pool, b) != c || pool->blocks[b].references != 0 || ++here > committed)
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
        if (b >= committed || pool->blocks[b].references != 0 || pool->sets[b].count == 0 || ++r->waiting > committed)
            return false;
        last = b;
    }
    return last == pool->wait_last;
}

static bool count_holds(const tn_block_pool *pool, recount *r)
{
    for (size_t i = 0; i < pool->hold_count; i++) {
        const tn_pool_hold *hold = &pool->holds[i];
        bool given = hold->generation % 2 == 1;
        r->references += given;
        if (given && (hold->block >= pool->stats.committed || pool->blocks[hold->block].references == 0))
            return false;
    }
    for (uint32_t h = pool->first_hold; h != TN_POOL_NONE; h = pool->holds[h].next)
        if (h >= pool->hold_count || pool->holds[h].generation % 2 == 1 || ++r->unused > pool->hold_count)
            return false;
    return true;
}

bool tn_pool_is_sound(tn_block_pool *pool)
{
    recount r = {0};
    size_t references = 0;
    tn_spin_lock(&pool->lock);
    bool sound = count_lists(pool, &r) && count_holds(pool, &r);
    for (size_t b = 0; b < pool->options.blocks; b++) {
        references += pool->blocks[b].references;
        r.live += pool->blocks[b].references > 0;
        r.shared += pool->blocks[b].references > 1;
        sound = sound && (b < pool->stats.committed || pool->blocks[b].references == 0);
    }
    const tn_block_pool_stats *s = &pool->stats;
    sound = sound && r.free == tn_pool_free(pool) && r.waiting == s->waiting && r.live == s->live && r.shared == s->shared &&
            r.references == references && references == s->live + s->shares && r.free + r.waiting + r.live == s->committed && r.unused + r.references == pool->hold_count && s->shares <= pool->options.max_shares &&
            s->live <= s->high_water && s->shares <= s->high_shares;
    tn_spin_unlock(&pool->lock);
    return sound;
}
