/* The portfolio: a problem is built, falls into parts, and each part is packed as low as the highest of them needs. */
#include "planner/pack.h"

#include <stdlib.h>
#include <string.h>

#include "planner/pack_exact.h"
#include "planner/pack_search.h"

static const char *const error_texts[TN_PACK_ERROR_COUNT] = {
    [TN_PACK_OK] = "no error",
    [TN_PACK_E_NOMEM] = "no host memory is left",
    [TN_PACK_E_LIFETIME] = "a lifetime ends before it begins",
    [TN_PACK_E_GAP] = "a gap is empty, outside its buffer's lifetime, or not after the gap before it",
    [TN_PACK_E_ALIGNMENT] = "an alignment is above 2^40",
    [TN_PACK_E_DUPLICATE] = "two buffers have the same id",
    [TN_PACK_E_CONFLICT] = "a conflict names no two buffers",
    [TN_PACK_E_OVERFLOW] = "the sizes add up to more than 2^62 bytes",
    [TN_PACK_E_LIMIT] = "there are more than 2^31 buffers, gaps or conflicts",
};

const char *tn_pack_error_text(tn_pack_error error)
{
    return (unsigned)error < TN_PACK_ERROR_COUNT ? error_texts[error] : "an unknown error";
}

const char *tn_pack_member_name(tn_pack_member member)
{
    static const char *const names[TN_PACK_MEMBER_COUNT] = {
        [TN_PACK_HINTS] = "hints",
        [TN_PACK_BY_SIZE] = "by size",
        [TN_PACK_BY_AREA] = "by area",
        [TN_PACK_BY_LIFETIME] = "by lifetime",
        [TN_PACK_BY_PRESSURE] = "by pressure",
        [TN_PACK_BY_BIRTH] = "by birth",
        [TN_PACK_ONLINE] = "best fit, online",
        [TN_PACK_BY_CROWD] = "by crowd",
        [TN_PACK_IMPROVED] = "improved",
        [TN_PACK_EXACT] = "exact",
    };
    return (unsigned)member < TN_PACK_MEMBER_COUNT ? names[member] : "unknown";
}

/* One group of buffers without a conflict with any other. */
typedef struct part {
    pack_problem problem;
    pack_state state;
} part;

static void free_parts(part *parts, uint32_t count)
{
    for (uint32_t k = 0; parts && k < count; k++) {
        pack_problem_free(&parts[k].problem);
        free(parts[k].state.offsets);
        free(parts[k].state.trial);
        free(parts[k].state.order);
    }
    free(parts);
}

static tn_pack_error begin_part(part *part)
{
    pack_state *s = &part->state;
    size_t n = (size_t)part->problem.n + 1;
    s->p = &part->problem;
    s->offsets = calloc(n, sizeof(*s->offsets));
    s->trial = calloc(n, sizeof(*s->trial));
    s->order = calloc(n, sizeof(*s->order));
    s->height = UINT64_MAX;
    s->bound = part->problem.bound;
    for (int m = 0; m < TN_PACK_MEMBER_COUNT; m++)
        s->heights[m] = UINT64_MAX;
    return s->offsets && s->trial && s->order ? TN_PACK_OK : TN_PACK_E_NOMEM;
}

/* Buffers that conflict with nothing stay where calloc put them: at 0. They are in no part. */
static tn_pack_error split(const pack_problem *p, part **parts, uint32_t *count)
{
    uint32_t *number = malloc(((size_t)p->n + 1) * sizeof(*number)), *which = malloc(((size_t)p->n + 1) * sizeof(*which));
    uint32_t *start = NULL, all = number && which ? pack_problem_parts(p, number) : PACK_NONE;
    tn_pack_error error = all == PACK_NONE ? TN_PACK_E_NOMEM : TN_PACK_OK;
    *count = 0;
    *parts = NULL;
    if (!error) {
        start = calloc((size_t)all + 2, sizeof(*start));
        error = start ? TN_PACK_OK : TN_PACK_E_NOMEM;
    }
    if (!error) { /* which: the buffers part by part, each part in the problem's order */
        for (uint32_t i = 0; i < p->n; i++)
            start[number[i] + 2]++;
        for (uint32_t k = 0; k < all; k++)
            start[k + 1] += start[k];
        for (uint32_t i = 0; i < p->n; i++)
            which[start[number[i] + 1]++] = i;
        *parts = calloc((size_t)all + 1, sizeof(**parts));
        error = *parts ? TN_PACK_OK : TN_PACK_E_NOMEM;
    }
    for (uint32_t k = 0; !error && k < all; k++) {
        uint32_t size = start[k + 1] - start[k];
        if (size < 2)
            continue;
        part *part = &(*parts)[(*count)++];
        error = pack_problem_extract(p, which + start[k], size, &part->problem);
        if (!error)
            error = begin_part(part);
    }
    free(number);
    free(which);
    free(start);
    return error;
}

static uint64_t highest(const pack_problem *p, const part *parts, uint32_t count, bool bound)
{
    uint64_t height = p->n ? p->size[0] : 0; /* the largest comes first */
    for (uint32_t k = 0; k < count; k++) {
        uint64_t one = bound ? parts[k].state.bound : parts[k].state.height;
        height = one > height ? one : height;
    }
    return height;
}

/* Searches, the highest part first: only what stands above every bound needs work. */
static tn_pack_error search(const pack_problem *p, part *parts, uint32_t count, uint64_t left)
{
    bool *done = calloc((size_t)count + 1, sizeof(*done));
    tn_pack_error error = done ? TN_PACK_OK : TN_PACK_E_NOMEM;
    while (!error) {
        uint32_t worst = PACK_NONE, open = 0;
        uint64_t target = highest(p, parts, count, true);
        for (uint32_t k = 0; k < count; k++) /* nor can the whole be lower than a part that is done */
            if (done[k] && parts[k].state.height > target)
                target = parts[k].state.height;
        for (uint32_t k = 0; k < count; k++) {
            if (done[k] || parts[k].state.height <= target)
                continue;
            open++;
            if (worst == PACK_NONE || parts[k].state.height > parts[worst].state.height)
                worst = k;
        }
        if (worst == PACK_NONE || left == 0)
            break;
        pack_state *s = &parts[worst].state;
        uint64_t before = s->steps, share = left / open;
        s->target = target;
        /* What is small closes at once, and the search for a better order would be a waste of steps. */
        bool closes = pack_exact_fits(s->p);
        error = closes ? pack_close(s, share / 64) : TN_PACK_OK;
        if (!error)
            error = pack_improve(s, closes ? share / 16 : share);
        if (!error)
            error = pack_close(s, share - (s->steps - before < share ? s->steps - before : share));
        uint64_t used = s->steps - before;
        left -= used < left ? used : left;
        done[worst] = true;
    }
    free(done);
    return error;
}

static void fill_result(const pack_problem *p, const part *parts, uint32_t count, const tn_pack_buffer *buffers,
                        const tn_pack_options *options, const uint64_t *offsets, tn_pack_result *r)
{
    uint64_t units = highest(p, parts, count, false), bound = highest(p, parts, count, true), slack = 0;
    memset(r, 0, sizeof(*r));
    for (uint32_t i = 0; i < p->n; i++) {
        uint64_t size = buffers[p->name[i]].size;
        if (offsets[p->name[i]] + size > r->height)
            r->height = offsets[p->name[i]] + size;
        if (size > r->lower_bound)
            r->lower_bound = size;
        if (size > 0) {
            uint64_t rest = p->size[i] * p->unit - size;
            slack = rest > slack ? rest : slack;
        }
    }
    /* A bound of B units: the topmost block of some section ends there, but for what rounding added to it. */
    if (bound * p->unit > r->lower_bound + slack)
        r->lower_bound = bound * p->unit - slack;
    if (options && options->lower_bound > r->lower_bound)
        r->lower_bound = options->lower_bound;
    r->proved = r->height == r->lower_bound;
    r->parts = count;
    r->conflicts = p->adj_at ? p->adj_at[p->n] / 2 : SIZE_MAX;
    r->winner = TN_PACK_BY_SIZE;
    for (uint32_t k = 0; k < count; k++) {
        const pack_state *s = &parts[k].state;
        r->steps += s->steps;
        if (s->height == units)
            r->winner = s->winner;
    }
    for (int m = 0; m < TN_PACK_MEMBER_COUNT; m++) {
        uint64_t height = p->n ? p->size[0] : 0;
        bool ran = false;
        for (uint32_t k = 0; k < count; k++) { /* where it did not run the part was low enough without it */
            const pack_state *s = &parts[k].state;
            uint64_t one = s->heights[m] != UINT64_MAX ? s->heights[m] : s->height;
            ran |= s->heights[m] != UINT64_MAX;
            height = one > height ? one : height;
        }
        r->members[m].ran = ran;
        r->members[m].height = ran ? height * p->unit : 0;
    }
}

static tn_pack_error pack(const tn_pack_buffer *buffers, size_t count, bool graph, const tn_pack_conflict *conflicts,
                          size_t conflict_count, const tn_pack_options *options, uint64_t *offsets, tn_pack_result *result,
                          size_t *culprit)
{
    pack_problem p;
    part *parts = NULL;
    uint32_t part_count = 0;
    size_t ignored;
    tn_pack_error error = pack_problem_build(&p, buffers, count, graph, conflicts, conflict_count, culprit ? culprit : &ignored);
    if (error)
        return error;
    uint64_t left = options && options->steps ? options->steps : TN_PACK_DEFAULT_STEPS;
    error = split(&p, &parts, &part_count);
    for (uint32_t k = 0; !error && k < part_count; k++) {
        pack_state *s = &parts[k].state;
        s->target = s->bound;
        error = pack_greedy(s, left / part_count / 2);
    }
    uint64_t used = 0;
    for (uint32_t k = 0; k < part_count; k++)
        used += parts[k].state.steps;
    if (!error && !(options && options->greedy_only) && used < left)
        error = search(&p, parts, part_count, left - used);
    if (!error) {
        for (size_t k = 0; k < count; k++)
            offsets[k] = 0;
        for (uint32_t k = 0; k < part_count; k++)
            for (uint32_t i = 0; i < parts[k].problem.n; i++)
                offsets[p.name[parts[k].problem.name[i]]] = parts[k].state.offsets[i] * p.unit;
        fill_result(&p, parts, part_count, buffers, options, offsets, result);
    }
    free_parts(parts, part_count);
    pack_problem_free(&p);
    return error;
}

tn_pack_error tn_pack(const tn_pack_buffer *buffers, size_t count, const tn_pack_options *options, uint64_t *offsets,
                      tn_pack_result *result, size_t *culprit)
{
    return pack(buffers, count, false, NULL, 0, options, offsets, result, culprit);
}

tn_pack_error tn_pack_graph(const tn_pack_buffer *buffers, size_t count, const tn_pack_conflict *conflicts,
                            size_t conflict_count, const tn_pack_options *options, uint64_t *offsets,
                            tn_pack_result *result, size_t *culprit)
{
    return pack(buffers, count, true, conflicts, conflict_count, options, offsets, result, culprit);
}
