/* Walks through time with a search tree of the address ranges that are alive. In the tree two ranges that overlap compare
 * equal, so the insertion of a range that overlaps a live one finds that one. */
#define _GNU_SOURCE
#include "planner/pack_check.h"

#include <search.h>
#include <stdlib.h>

typedef struct range {
    uint64_t first, last; /* bytes, both inclusive: a range that ends at 2^64 has no end that could be written down */
    size_t buffer;
} range;

typedef struct moment {
    uint64_t time;
    bool death;
    range *range;
} moment;

static int compare_ranges(const void *left, const void *right)
{
    const range *a = left, *b = right;
    if (a->last < b->first)
        return -1;
    return a->first > b->last;
}

/* Deaths before births: lifetimes are half-open. */
static int compare_moments(const void *left, const void *right)
{
    const moment *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->death != b->death)
        return a->death ? -1 : 1;
    return a->range->buffer < b->range->buffer ? -1 : a->range->buffer > b->range->buffer;
}

static tn_pack_verdict check_places(const tn_pack_buffer *buffers, size_t count, const uint64_t *offsets,
                                    uint64_t capacity, tn_pack_fault *fault)
{
    for (size_t i = 0; i < count; i++) {
        *fault = (tn_pack_fault){i, i};
        if (buffers[i].alignment > 1 && offsets[i] % buffers[i].alignment != 0)
            return TN_PACK_MISALIGNED;
        if (offsets[i] > capacity || capacity - offsets[i] < buffers[i].size)
            return TN_PACK_TOO_HIGH;
    }
    return TN_PACK_HOLDS;
}

static size_t add_life(moment *moments, size_t at, uint64_t lower, uint64_t upper, range *range)
{
    if (lower >= upper)
        return at;
    moments[at] = (moment){lower, false, range};
    moments[at + 1] = (moment){upper, true, range};
    return at + 2;
}

static tn_pack_verdict walk(moment *moments, size_t count, tn_pack_fault *fault)
{
    void *tree = NULL;
    tn_pack_verdict verdict = TN_PACK_HOLDS;
    qsort(moments, count, sizeof(*moments), compare_moments);
    for (size_t k = 0; k < count && verdict == TN_PACK_HOLDS; k++) {
        range *mine = moments[k].range;
        if (moments[k].death) {
            tdelete(mine, &tree, compare_ranges);
            continue;
        }
        range **found = tsearch(mine, &tree, compare_ranges);
        if (!found)
            verdict = TN_PACK_UNCHECKED;
        else if (*found != mine) {
            verdict = TN_PACK_OVERLAP;
            *fault = (tn_pack_fault){(*found)->buffer, mine->buffer};
        }
    }
    while (tree)
        tdelete(*(range **)tree, &tree, compare_ranges);
    return verdict;
}

tn_pack_verdict tn_pack_check(const tn_pack_buffer *buffers, size_t count, const uint64_t *offsets, uint64_t capacity,
                              tn_pack_fault *fault)
{
    tn_pack_verdict verdict = check_places(buffers, count, offsets, capacity, fault);
    size_t pieces = 0, at = 0;
    if (verdict != TN_PACK_HOLDS)
        return verdict;
    for (size_t i = 0; i < count; i++)
        pieces += buffers[i].gap_count + 1;
    range *ranges = malloc((count + 1) * sizeof(*ranges));
    moment *moments = malloc((2 * pieces + 1) * sizeof(*moments));
    for (size_t i = 0; ranges && moments && i < count; i++) {
        const tn_pack_buffer *b = &buffers[i];
        uint64_t from = b->lower;
        if (b->size == 0)
            continue;
        ranges[i] = (range){offsets[i], offsets[i] + (b->size - 1), i};
        for (size_t g = 0; g < b->gap_count; g++) {
            at = add_life(moments, at, from, b->gaps[g].lower, &ranges[i]);
            from = b->gaps[g].upper;
        }
        at = add_life(moments, at, from, b->upper, &ranges[i]);
    }
    verdict = ranges && moments ? walk(moments, at, fault) : TN_PACK_UNCHECKED;
    free(ranges);
    free(moments);
    return verdict;
}

tn_pack_verdict tn_pack_check_graph(const tn_pack_buffer *buffers, size_t count, const tn_pack_conflict *conflicts,
                                    size_t conflict_count, const uint64_t *offsets, uint64_t capacity, tn_pack_fault *fault)
{
    tn_pack_verdict verdict = check_places(buffers, count, offsets, capacity, fault);
    for (size_t k = 0; verdict == TN_PACK_HOLDS && k < conflict_count; k++) {
        size_t a = conflicts[k].a, b = conflicts[k].b;
        if (buffers[a].size == 0 || buffers[b].size == 0)
            continue;
        if (offsets[a] <= offsets[b] + (buffers[b].size - 1) && offsets[b] <= offsets[a] + (buffers[a].size - 1)) {
            *fault = (tn_pack_fault){a, b};
            verdict = TN_PACK_OVERLAP;
        }
    }
    return verdict;
}
