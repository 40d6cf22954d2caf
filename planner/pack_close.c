/* The exact search, asked for lower and lower placements with more and more steps. */
#include "planner/pack_exact.h"
#include "planner/pack_search.h"

enum { FIRST_LIMIT = 1 << 21 };

/* All preferences at one capacity. A proof raises the bound, a placement lowers the height. */
static pack_answer ask(pack_state *s, pack_exact *x, uint64_t capacity, uint64_t limit, uint64_t end)
{
    pack_answer answer = PACK_UNKNOWN;
    for (uint32_t k = 0; answer == PACK_UNKNOWN && k < PACK_PREFERENCES && s->steps < end; k++) {
        uint64_t left = end - s->steps;
        answer = pack_exact_run(x, capacity, (pack_preference)k, limit < left ? limit : left, s->trial, &s->steps);
    }
    if (answer == PACK_NEVER && capacity >= s->bound)
        s->bound = capacity + 1;
    if (answer == PACK_FOUND) {
        uint64_t height = 0;
        for (uint32_t i = 0; i < s->p->n; i++)
            if (s->trial[i] + s->p->size[i] > height)
                height = s->trial[i] + s->p->size[i];
        pack_state_offer(s, TN_PACK_EXACT, height);
    }
    return answer;
}

tn_pack_error pack_close(pack_state *s, uint64_t limit)
{
    uint64_t end = s->steps + limit;
    if (!pack_exact_fits(s->p) || s->height <= s->target || limit == 0)
        return TN_PACK_OK;
    pack_exact *x = pack_exact_new(s->p);
    pack_answer answer = x ? PACK_UNKNOWN : PACK_NO_MEMORY;
    for (uint64_t run = FIRST_LIMIT; answer != PACK_NO_MEMORY && s->height > s->target && s->steps < end; run *= 4) {
        /* At the bound itself; then halfway between, for as long as that succeeds; then nearer to the height. */
        answer = ask(s, x, s->bound > s->target ? s->bound : s->target, run, end);
        while (answer != PACK_NO_MEMORY && s->height > s->target && s->height > s->bound && s->steps < end) {
            answer = ask(s, x, s->bound + (s->height - 1 - s->bound) / 2, run, end);
            if (answer == PACK_UNKNOWN)
                break;
        }
        if (answer != PACK_NO_MEMORY && s->height > s->target && s->height > s->bound && s->steps < end)
            answer = ask(s, x, s->bound + (s->height - 1 - s->bound) / 4 * 3, run, end);
        if (s->bound > s->target)
            s->target = s->bound;
    }
    pack_exact_free(x);
    if (s->heights[TN_PACK_EXACT] == UINT64_MAX)
        s->heights[TN_PACK_EXACT] = s->height;
    return answer == PACK_NO_MEMORY ? TN_PACK_E_NOMEM : TN_PACK_OK;
}
