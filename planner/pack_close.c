/* The exact search, asked for lower and lower placements with more and more steps. Short runs and many of them: which of the
 * preferences and disturbances leads somewhere differs from problem to problem, and mostly shows early. */
#include "planner/pack_exact.h"
#include "planner/pack_search.h"

enum { FIRST_LIMIT = 1 << 18, GRADES = 8 };

/* All preferences at one capacity. A proof raises the bound, a placement lowers the height. */
static pack_answer ask(pack_state *s, pack_exact *x, uint64_t capacity, uint32_t round, uint64_t limit, uint64_t end)
{
    pack_answer answer = PACK_UNKNOWN;
    for (uint32_t k = 0; answer == PACK_UNKNOWN && k < PACK_PREFERENCES && s->steps < end; k++) {
        uint64_t left = end - s->steps;
        answer = pack_exact_run(x, capacity, (pack_preference)k, round, limit < left ? limit : left, s->trial, &s->steps);
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

/* Capacities between what is proved and what is found, the easiest first and the bound itself last; each success begins
 * again from the new height. */
static bool descend(pack_state *s, pack_exact *x, uint32_t round, uint64_t limit, uint64_t end)
{
    for (uint32_t grade = GRADES; grade-- > 0;) {
        uint64_t low = s->bound > s->target ? s->bound : s->target;
        if (s->height <= low || s->steps >= end)
            break;
        pack_answer answer = ask(s, x, low + (s->height - 1 - low) / GRADES * grade, round, limit, end);
        if (answer == PACK_NO_MEMORY)
            return false;
        if (answer == PACK_FOUND)
            grade = GRADES;
    }
    return true;
}

tn_pack_error pack_close(pack_state *s, uint64_t limit)
{
    uint64_t end = s->steps + limit, low = s->bound > s->target ? s->bound : s->target;
    if (!pack_exact_fits(s->p) || s->height <= low || limit == 0)
        return TN_PACK_OK;
    pack_exact *x = pack_exact_new(s->p);
    bool good = x != NULL;
    uint64_t run = FIRST_LIMIT;
    uint64_t half = s->steps + limit / 2;
    for (uint32_t round = 0; good && s->height > low && s->steps < half; round++, run += run / 4) {
        good = descend(s, x, round, run, half);
        low = s->bound > s->target ? s->bound : s->target;
    }
    /* The other half for the bound itself: some problems close only there, after a long search. */
    while (good && s->height > low && s->steps < end) {
        pack_answer answer = ask(s, x, low, 0, (end - s->steps) / PACK_PREFERENCES + 1, end);
        good = answer != PACK_NO_MEMORY;
        low = s->bound > s->target ? s->bound : s->target;
        if (answer == PACK_UNKNOWN)
            break;
    }
    s->target = low;
    pack_exact_free(x);
    if (s->heights[TN_PACK_EXACT] == UINT64_MAX)
        s->heights[TN_PACK_EXACT] = s->height;
    return good ? TN_PACK_OK : TN_PACK_E_NOMEM;
}
