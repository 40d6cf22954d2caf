/* Two local searches over orders of placing. Blame: everything that ends above the bound gets a higher priority, again and
 * again; it finds its way in large problems (28,526 buffers: from 1.017 to 1.004 times the bound in 30 placements). Then
 * single moves: an order is placed with a ceiling just below the best height, the buffer that reaches it moves forward, and
 * the next attempt begins. Chance comes from a generator with a fixed seed: the search is the same in every run. */
#include <stdlib.h>
#include <string.h>

#include "planner/pack_order.h"
#include "planner/pack_search.h"

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static void move_forward(uint32_t *order, uint32_t from, uint32_t to)
{
    uint32_t i = order[from];
    memmove(order + to + 1, order + to, (from - to) * sizeof(*order));
    order[to] = i;
}

/* The binary logarithm in 1/256, by linear pieces. */
static uint64_t logarithm(uint64_t size)
{
    uint32_t bits = 63 - (uint32_t)__builtin_clzll(size);
    return (uint64_t)bits << 8 | (bits >= 8 ? (size >> (bits - 8) & 0xFF) : (size << (8 - bits) & 0xFF));
}

/* A blamed buffer goes before all that are up to eight times as large. */
enum { BLAME = 3 << 8 };

static tn_pack_error blame(pack_state *s, pack_fitter *f, uint32_t *best, uint64_t end)
{
    const pack_problem *p = s->p;
    uint64_t *priority = malloc(((size_t)p->n + 1) * sizeof(*priority));
    pack_keyed *keys = malloc(((size_t)p->n + 1) * sizeof(*keys));
    bool good = priority && keys;
    for (uint32_t i = 0; good && i < p->n; i++)
        priority[i] = p->size[i] ? logarithm(p->size[i]) : 0;
    while (good && s->height > s->target && s->steps < end) {
        for (uint32_t i = 0; i < p->n; i++)
            keys[i] = (pack_keyed){priority[i], i};
        pack_sort_keyed(keys, p->n, s->order);
        s->steps += 4 * (uint64_t)p->n + 1;
        uint64_t height = pack_fit(f, s->order, PACK_LOWEST, false, UINT64_MAX, s->trial, &s->steps);
        good = !pack_fitter_failed(f);
        if (good && height < s->height)
            memcpy(best, s->order, p->n * sizeof(*best));
        if (good)
            pack_state_offer(s, TN_PACK_IMPROVED, height);
        for (uint32_t i = 0; good && i < p->n; i++)
            if (s->trial[i] + p->size[i] > s->target)
                priority[i] += BLAME;
    }
    free(priority);
    free(keys);
    return good ? TN_PACK_OK : TN_PACK_E_NOMEM;
}

static tn_pack_error move(pack_state *s, pack_fitter *f, uint32_t *best, uint64_t end)
{
    const pack_problem *p = s->p;
    uint64_t random = 1;
    uint32_t tries = 0;
    memcpy(s->order, best, p->n * sizeof(*best));
    while (s->height > s->target && s->steps < end) {
        uint64_t height = pack_fit(f, s->order, PACK_LOWEST, false, s->height, s->trial, &s->steps);
        s->steps += p->n / 8 + 1;
        if (pack_fitter_failed(f))
            return TN_PACK_E_NOMEM;
        if (height < s->height) {
            pack_state_offer(s, TN_PACK_IMPROVED, height);
            memcpy(best, s->order, p->n * sizeof(*best));
            tries = 0;
            continue;
        }
        uint32_t stuck = pack_fitter_stuck(f);
        /* Far forward at times, mostly a little: the others' places should stay as they are. */
        uint64_t draw = next_random(&random);
        uint32_t reach = (draw & 3) == 0 ? stuck : stuck / (2u << ((draw >> 2) & 3));
        uint32_t step = reach > 0 ? (uint32_t)((draw >> 8) % reach) + 1 : 0;
        if (stuck == 0 || ++tries > 400) {
            memcpy(s->order, best, p->n * sizeof(*best));
            tries = 0;
            for (uint32_t k = 0; k < 3 && p->n > 1; k++) {
                uint32_t from = 1 + (uint32_t)(next_random(&random) % (p->n - 1));
                move_forward(s->order, from, (uint32_t)(next_random(&random) % from));
            }
            continue;
        }
        move_forward(s->order, stuck, stuck - step);
    }
    return TN_PACK_OK;
}

tn_pack_error pack_improve(pack_state *s, uint64_t limit)
{
    const pack_problem *p = s->p;
    uint64_t begin = s->steps;
    if (s->height <= s->target)
        return TN_PACK_OK;
    uint32_t *best = malloc(((size_t)p->n + 1) * sizeof(*best));
    pack_fitter *f = pack_fitter_new(p);
    tn_pack_error error = f && best ? TN_PACK_OK : TN_PACK_E_NOMEM;
    if (!error) {
        memcpy(best, s->order, p->n * sizeof(*best));
        error = blame(s, f, best, begin + limit / 2);
    }
    if (!error)
        error = move(s, f, best, begin + limit);
    pack_fitter_free(f);
    free(best);
    if (!error && s->heights[TN_PACK_IMPROVED] == UINT64_MAX)
        s->heights[TN_PACK_IMPROVED] = s->height;
    return error;
}
