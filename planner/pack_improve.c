/* Local search over orders of placing ("squeaky wheel"). An order is placed with a ceiling just below the best height;
 * the buffer that reaches the ceiling is the one that needs to be placed earlier, so it moves forward and the next attempt
 * begins. Chance comes from a generator with a fixed seed: the search is the same in every run. */
#include <stdlib.h>
#include <string.h>

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

tn_pack_error pack_improve(pack_state *s, uint64_t limit)
{
    const pack_problem *p = s->p;
    if (s->height <= s->target)
        return TN_PACK_OK;
    uint64_t random = 1, end = s->steps + limit;
    uint32_t *best = malloc(((size_t)p->n + 1) * sizeof(*best)), tries = 0;
    pack_fitter *f = pack_fitter_new(p);
    bool good = f && best;
    if (good)
        memcpy(best, s->order, p->n * sizeof(*best));
    while (good && s->height > s->target && s->steps < end) {
        uint64_t height = pack_fit(f, s->order, PACK_LOWEST, false, s->height, s->trial, &s->steps);
        s->steps += p->n / 8 + 1;
        good = !pack_fitter_failed(f);
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
    pack_fitter_free(f);
    free(best);
    if (good && s->heights[TN_PACK_IMPROVED] == UINT64_MAX)
        s->heights[TN_PACK_IMPROVED] = s->height;
    return good ? TN_PACK_OK : TN_PACK_E_NOMEM;
}
