/* One walk an instance: what each thread has alive of each site, and its most. */
#include "planner/room_threads.h"

#include <stdlib.h>

#include "planner/trace_index.h"

typedef struct share { uint32_t unit; uint64_t live, most; } share;

typedef struct shares { share *at; size_t count; tn_index of; /* unit and thread -> index */ } shares;

static share *share_of(shares *all, uint32_t unit, uint8_t thread, tn_error *error)
{
    uint64_t key = (uint64_t)unit << 8 | thread;
    uint32_t i = tn_index_find(&all->of, key);
    if (i != TN_INDEX_NONE)
        return &all->at[i];
    share *made = TN_TRACE_PUSH(all->at, all->count);
    *error = made ? tn_index_set(&all->of, key, (uint32_t)all->count - 1) : TN_E_NOMEM;
    if (*error != TN_OK)
        return NULL;
    *made = (share){.unit = unit};
    return made;
}

static tn_error walk(const tn_section *s, const tn_instance *in, shares *all)
{
    tn_error error = TN_OK;
    tn_walk w = tn_walk_begin(s, in, 1);
    uint32_t i;
    for (int what; (what = tn_walk_next(&w, &i));) {
        const tn_life *l = &w.lives[i];
        share *h = share_of(all, s->unit_of[l->site], l->thread, &error);
        if (!h)
            return error;
        if (what < 0)
            h->live--;
        else if (++h->live > h->most)
            h->most = h->live;
    }
    return TN_OK;
}

static void give(tn_unit *u, uint64_t blocks)
{
    uint64_t twice = u->live_blocks * 2, two_more = u->live_blocks + 2, limit = twice > two_more ? twice : two_more;
    if (blocks > limit)
        blocks = limit;
    if (blocks <= u->live_blocks)
        return;
    tn_room more = {.given = 1, .blocks = blocks, .bytes = (blocks - u->live_blocks) * tn_unit_bytes(u, u->largest)};
    tn_room_join(&u->room, &more);
}

tn_error tn_room_for_threads(tn_section *s)
{
    uint64_t *most = calloc(s->unit_count + 1, sizeof *most), *now = calloc(s->unit_count + 1, sizeof *now);
    tn_error error = most && now ? TN_OK : TN_E_NOMEM;
    for (size_t k = 0; k < s->instance_count && error == TN_OK; k++) {
        shares all = {0};
        error = walk(s, &s->instances[k], &all);
        for (size_t i = 0; i < all.count; i++)
            now[all.at[i].unit] += all.at[i].most;
        for (size_t i = 0; i < s->unit_count; i++) {
            if (now[i] > most[i])
                most[i] = now[i];
            now[i] = 0;
        }
        free(all.at);
        tn_index_free(&all.of);
    }
    for (size_t i = 0; i < s->unit_count && error == TN_OK; i++)
        give(&s->units[i], most[i]);
    free(most);
    free(now);
    return error;
}
