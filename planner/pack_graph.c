/* Conflicts as the caller's pairs, and cliques among them: each clique's sizes add up to a lower bound, as a moment's do. */
#include <stdlib.h>
#include <string.h>

#include "planner/pack_build.h"

/* At most this much looking for cliques, in neighbours read. */
#define CLIQUE_STEPS (UINT64_C(1) << 26)

static int compare_u32(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* index[i] is the place that the caller's buffer i has in the problem. */
static tn_pack_error fill_conflicts(pack_problem *p, const tn_pack_conflict *conflicts, size_t count,
                                    const uint32_t *index)
{
    size_t *fill = malloc(((size_t)p->n + 1) * sizeof(*fill)), to = 0;
    p->adj_at = calloc((size_t)p->n + 2, sizeof(*p->adj_at));
    p->adj = malloc((2 * count + 1) * sizeof(*p->adj));
    if (!fill || !p->adj_at || !p->adj) {
        free(fill);
        return TN_PACK_E_NOMEM;
    }
    for (size_t k = 0; k < count; k++) {
        p->adj_at[index[conflicts[k].a] + 1]++;
        p->adj_at[index[conflicts[k].b] + 1]++;
    }
    for (uint32_t i = 0; i < p->n; i++)
        p->adj_at[i + 1] += p->adj_at[i];
    memcpy(fill, p->adj_at, ((size_t)p->n + 1) * sizeof(*fill));
    for (size_t k = 0; k < count; k++) {
        uint32_t a = index[conflicts[k].a], b = index[conflicts[k].b];
        p->adj[fill[a]++] = b;
        p->adj[fill[b]++] = a;
    }
    free(fill);
    /* Sorted and each once; what has no bytes conflicts with nothing. Sizes fall with the index. */
    for (uint32_t i = 0; i < p->n; i++) {
        size_t from = p->adj_at[i], end = p->adj_at[i + 1];
        qsort(p->adj + from, end - from, sizeof(*p->adj), compare_u32);
        p->adj_at[i] = to;
        for (size_t k = from; k < end && p->size[i] > 0 && p->size[p->adj[k]] > 0; k++)
            if (k == from || p->adj[k] != p->adj[k - 1])
                p->adj[to++] = p->adj[k];
    }
    p->adj_at[p->n] = to;
    return TN_PACK_OK;
}

/* Greedily from `seed`: always the largest buffer that conflicts with all that are in. Returns how many are in. */
static uint32_t grow_clique(const pack_problem *p, uint32_t seed, uint32_t *clique, uint32_t *left, uint64_t *steps)
{
    uint32_t count = 0, candidates = 0;
    clique[count++] = seed;
    for (size_t k = p->adj_at[seed]; k < p->adj_at[seed + 1]; k++)
        left[candidates++] = p->adj[k];
    while (candidates > 0) {
        uint32_t next = left[0], kept = 0;
        clique[count++] = next;
        size_t k = p->adj_at[next], end = p->adj_at[next + 1];
        *steps += candidates + (end - k);
        for (uint32_t j = 1; j < candidates; j++) {
            while (k < end && p->adj[k] < left[j])
                k++;
            if (k < end && p->adj[k] == left[j])
                left[kept++] = left[j];
        }
        candidates = kept;
    }
    return count;
}

typedef struct clique_list {
    uint32_t *buffer, *clique; /* entries, clique by clique */
    size_t count, room;
} clique_list;

static bool add_entry(clique_list *list, uint32_t buffer, uint32_t clique)
{
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 1024;
        uint32_t *buffers = realloc(list->buffer, room * sizeof(*buffers));
        if (buffers)
            list->buffer = buffers;
        uint32_t *cliques = realloc(list->clique, room * sizeof(*cliques));
        if (cliques)
            list->clique = cliques;
        if (!buffers || !cliques)
            return false;
        list->room = room;
    }
    list->buffer[list->count] = buffer;
    list->clique[list->count++] = clique;
    return true;
}

static tn_pack_error sort_members(pack_problem *p, const clique_list *list)
{
    p->member_at = calloc((size_t)p->n + 2, sizeof(*p->member_at));
    p->member = malloc((list->count + 1) * sizeof(*p->member));
    p->load = calloc((size_t)p->sections + 1, sizeof(*p->load));
    size_t *fill = malloc(((size_t)p->n + 1) * sizeof(*fill));
    if (!p->member_at || !p->member || !p->load || !fill) {
        free(fill);
        return TN_PACK_E_NOMEM;
    }
    for (size_t k = 0; k < list->count; k++)
        p->member_at[list->buffer[k] + 1]++;
    for (uint32_t i = 0; i < p->n; i++)
        p->member_at[i + 1] += p->member_at[i];
    memcpy(fill, p->member_at, ((size_t)p->n + 1) * sizeof(*fill));
    for (size_t k = 0; k < list->count; k++) {
        p->member[fill[list->buffer[k]]++] = list->clique[k];
        p->load[list->clique[k]] += p->size[list->buffer[k]];
    }
    free(fill);
    return TN_PACK_OK;
}

static tn_pack_error find_cliques(pack_problem *p)
{
    uint32_t *clique = malloc(((size_t)p->n + 1) * sizeof(*clique)), *left = malloc(((size_t)p->n + 1) * sizeof(*left));
    clique_list list = {0};
    tn_pack_error error = clique && left ? TN_PACK_OK : TN_PACK_E_NOMEM;
    uint64_t steps = 0;
    for (uint32_t seed = 0; !error && seed < p->n && steps < CLIQUE_STEPS; seed++) {
        if (p->size[seed] == 0)
            break;
        uint32_t count = grow_clique(p, seed, clique, left, &steps);
        for (uint32_t k = 0; !error && k < count; k++)
            if (!add_entry(&list, clique[k], p->sections))
                error = TN_PACK_E_NOMEM;
        p->sections++;
    }
    if (!error)
        error = sort_members(p, &list);
    free(clique);
    free(left);
    free(list.buffer);
    free(list.clique);
    return error;
}

tn_pack_error pack_build_graph(pack_problem *p, const tn_pack_conflict *conflicts, size_t count, size_t *culprit)
{
    for (size_t k = 0; k < count; k++)
        if (conflicts[k].a >= p->n || conflicts[k].b >= p->n || conflicts[k].a == conflicts[k].b) {
            *culprit = k;
            return TN_PACK_E_CONFLICT;
        }
    uint32_t *index = malloc(((size_t)p->n + 1) * sizeof(*index));
    if (!index)
        return TN_PACK_E_NOMEM;
    for (uint32_t i = 0; i < p->n; i++)
        index[p->name[i]] = i;
    tn_pack_error error = fill_conflicts(p, conflicts, count, index);
    free(index);
    for (uint32_t i = 0; !error && i < p->n; i++)
        p->length[i] = p->adj_at[i + 1] - p->adj_at[i];
    return error ? error : find_cliques(p);
}
