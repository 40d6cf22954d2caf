/* From the caller's buffers to a problem: checks, the order by content, units, sections, conflicts. */
#define _GNU_SOURCE
#include "planner/pack_problem.h"

#include <stdlib.h>
#include <string.h>

#include "planner/pack_build.h"

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* By content, largest first; the id only where everything else is equal. */
static int compare_buffers(const void *left, const void *right, void *context)
{
    const tn_pack_buffer *buffers = context;
    const tn_pack_buffer *a = &buffers[*(const uint32_t *)left], *b = &buffers[*(const uint32_t *)right];
    int c = compare_u64(b->size, a->size);
    if (c == 0)
        c = compare_u64(a->lower, b->lower);
    if (c == 0)
        c = compare_u64(a->upper, b->upper);
    if (c == 0)
        c = compare_u64(a->alignment, b->alignment);
    if (c == 0)
        c = compare_u64(a->gap_count, b->gap_count);
    for (size_t i = 0; c == 0 && i < a->gap_count; i++) {
        c = compare_u64(a->gaps[i].lower, b->gaps[i].lower);
        if (c == 0)
            c = compare_u64(a->gaps[i].upper, b->gaps[i].upper);
    }
    if (c == 0)
        c = compare_u64(a->hint, b->hint);
    return c ? c : compare_u64(a->id, b->id);
}

static int compare_ids(const void *left, const void *right, void *context)
{
    const tn_pack_buffer *buffers = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int c = compare_u64(buffers[a].id, buffers[b].id);
    return c ? c : compare_u64(a, b);
}

#define MAX_ALIGNMENT (UINT64_C(1) << 40)
#define MAX_TOTAL (UINT64_C(1) << 62)

static tn_pack_error check_buffer(const tn_pack_buffer *b, bool graph)
{
    if (b->alignment > MAX_ALIGNMENT)
        return TN_PACK_E_ALIGNMENT;
    if (graph)
        return TN_PACK_OK;
    if (b->upper < b->lower)
        return TN_PACK_E_LIFETIME;
    for (size_t i = 0; i < b->gap_count; i++) {
        const tn_pack_gap *gap = &b->gaps[i];
        if (gap->upper <= gap->lower || gap->lower < b->lower || gap->upper > b->upper)
            return TN_PACK_E_GAP;
        if (i > 0 && gap->lower <= b->gaps[i - 1].upper)
            return TN_PACK_E_GAP;
    }
    return TN_PACK_OK;
}

/* Every offset that any member can choose is below the sum of all sizes, each rounded up to its own alignment. */
static tn_pack_error check_all(const tn_pack_buffer *buffers, uint32_t n, bool graph, uint32_t *by_id, size_t *culprit)
{
    uint64_t total = 0, pieces = 0;
    for (uint32_t i = 0; i < n; i++) {
        *culprit = i;
        tn_pack_error error = check_buffer(&buffers[i], graph);
        if (error)
            return error;
        uint64_t align = buffers[i].alignment ? buffers[i].alignment : 1;
        if (buffers[i].size > MAX_TOTAL || (total += buffers[i].size) > MAX_TOTAL || (total += 2 * align) > MAX_TOTAL)
            return TN_PACK_E_OVERFLOW;
        pieces += buffers[i].gap_count + 1;
        if (pieces > INT32_MAX)
            return TN_PACK_E_LIMIT;
        by_id[i] = i;
    }
    qsort_r(by_id, n, sizeof(*by_id), compare_ids, (void *)buffers);
    for (uint32_t i = 1; i < n; i++)
        if (buffers[by_id[i]].id == buffers[by_id[i - 1]].id) {
            *culprit = by_id[i];
            return TN_PACK_E_DUPLICATE;
        }
    return TN_PACK_OK;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static uint64_t lifetime(const tn_pack_buffer *b)
{
    uint64_t length = b->upper > b->lower ? b->upper - b->lower : 0;
    for (size_t i = 0; i < b->gap_count; i++)
        length -= b->gaps[i].upper - b->gaps[i].lower;
    return length;
}

tn_pack_error pack_build_arrays(pack_problem *p, uint32_t n)
{
    p->n = n;
    p->size = calloc((size_t)n + 1, sizeof(*p->size));
    p->align = calloc((size_t)n + 1, sizeof(*p->align));
    p->hint = calloc((size_t)n + 1, sizeof(*p->hint));
    p->birth = calloc((size_t)n + 1, sizeof(*p->birth));
    p->length = calloc((size_t)n + 1, sizeof(*p->length));
    p->name = calloc((size_t)n + 1, sizeof(*p->name));
    p->piece_at = calloc((size_t)n + 1, sizeof(*p->piece_at));
    bool all = p->size && p->align && p->hint && p->birth && p->length && p->name && p->piece_at;
    return all ? TN_PACK_OK : TN_PACK_E_NOMEM;
}

void pack_problem_free(pack_problem *p)
{
    void *const arrays[] = {p->size, p->align, p->hint, p->birth, p->length, p->name, p->piece_at, p->piece,
                            p->load, p->adj_at, p->adj, p->member_at, p->member};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
    memset(p, 0, sizeof(*p));
}

/* Hints that are no multiple of the alignment are of no use. */
static void fill(pack_problem *p, const tn_pack_buffer *buffers, bool graph)
{
    uint64_t unit = 0;
    for (uint32_t i = 0; i < p->n; i++)
        unit = common_divisor(buffers[i].alignment ? buffers[i].alignment : 1, unit);
    p->unit = unit ? unit : 1;
    for (uint32_t i = 0; i < p->n; i++) {
        const tn_pack_buffer *b = &buffers[p->name[i]];
        uint64_t align = b->alignment ? b->alignment : 1;
        p->size[i] = b->size / p->unit + (b->size % p->unit != 0);
        p->align[i] = align / p->unit;
        bool usable = b->hint != TN_PACK_NO_HINT && b->hint % align == 0 && b->hint <= MAX_TOTAL;
        p->hint[i] = usable ? b->hint / p->unit : UINT64_MAX;
        p->birth[i] = b->lower;
        p->length[i] = graph ? 0 : lifetime(b);
    }
}

tn_pack_error pack_problem_build(pack_problem *p, const tn_pack_buffer *buffers, size_t count, bool graph,
                                 const tn_pack_conflict *conflicts, size_t conflict_count, size_t *culprit)
{
    memset(p, 0, sizeof(*p));
    *culprit = 0;
    if (count > INT32_MAX || conflict_count > INT32_MAX)
        return TN_PACK_E_LIMIT;
    p->graph = graph;
    tn_pack_error error = pack_build_arrays(p, (uint32_t)count);
    if (!error)
        error = check_all(buffers, p->n, graph, p->name, culprit);
    if (!error) {
        for (uint32_t i = 0; i < p->n; i++)
            p->name[i] = i;
        qsort_r(p->name, p->n, sizeof(*p->name), compare_buffers, (void *)buffers);
        fill(p, buffers, graph);
        error = graph ? pack_build_graph(p, conflicts, conflict_count, culprit) : pack_build_sections(p, buffers);
    }
    if (!error && !graph)
        error = pack_build_conflicts(p);
    if (!error)
        error = pack_build_members(p);
    if (!error)
        pack_build_bound(p);
    if (error)
        pack_problem_free(p);
    return error;
}
