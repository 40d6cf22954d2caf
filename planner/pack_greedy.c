/* The greedy members, each an order and a way to choose a hole. */
#include <stdlib.h>
#include <string.h>

#include "planner/pack_order.h"
#include "planner/pack_search.h"

/* Up to so many buffers a placement takes milliseconds, and all members run whatever the limit. */
enum { CHEAP = 4096 };

void pack_state_offer(pack_state *s, tn_pack_member member, uint64_t height)
{
    if (height < s->heights[member])
        s->heights[member] = height;
    if (height >= s->height)
        return;
    s->height = height;
    s->winner = member;
    memcpy(s->offsets, s->trial, s->p->n * sizeof(*s->offsets));
}

/* In order of offset everything finds its place at or below where it stands. */
static bool order_by_offset(pack_state *s)
{
    const pack_problem *p = s->p;
    pack_keyed *keys = malloc(((size_t)p->n + 1) * sizeof(*keys));
    for (uint32_t i = 0; keys && i < p->n; i++)
        keys[i] = (pack_keyed){~s->offsets[i], i};
    if (keys)
        pack_sort_keyed(keys, p->n, s->order);
    free(keys);
    return keys != NULL;
}

static bool has_hints(const pack_problem *p)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->hint[i] != UINT64_MAX)
            return true;
    return false;
}

tn_pack_error pack_greedy(pack_state *s, uint64_t limit)
{
    static const tn_pack_member members[] = {TN_PACK_HINTS,       TN_PACK_BY_SIZE,  TN_PACK_BY_PRESSURE, TN_PACK_BY_AREA,
                                             TN_PACK_BY_LIFETIME, TN_PACK_BY_CROWD, TN_PACK_BY_BIRTH,    TN_PACK_ONLINE};
    const pack_problem *p = s->p;
    pack_fitter *f = pack_fitter_new(p);
    bool good = f != NULL, in_order = true;
    uint64_t end = s->steps + limit;
    for (size_t k = 0; good && k < sizeof(members) / sizeof(members[0]); k++) {
        tn_pack_member member = members[k];
        bool tight = member == TN_PACK_ONLINE, hinted = member == TN_PACK_HINTS;
        if (hinted && !has_hints(p))
            continue;
        if (s->height <= s->target || (s->height != UINT64_MAX && s->steps >= end && p->n > CHEAP))
            break;
        uint64_t before = s->height;
        good = pack_order(p, member, s->order);
        s->steps += p->n;
        uint64_t height = !good ? 0 : pack_fit(f, s->order, hinted ? PACK_HINTED : tight ? PACK_TIGHTEST : PACK_LOWEST,
                                               tight || member == TN_PACK_BY_BIRTH, UINT64_MAX, s->trial, &s->steps);
        good = good && !pack_fitter_failed(f);
        if (good)
            pack_state_offer(s, member, height);
        if (s->height < before)
            in_order = !tight && !hinted;
    }
    /* The searches begin from the winner's order. */
    if (good)
        good = in_order ? pack_order(p, s->winner, s->order) : order_by_offset(s);
    pack_fitter_free(f);
    return good ? TN_PACK_OK : TN_PACK_E_NOMEM;
}
