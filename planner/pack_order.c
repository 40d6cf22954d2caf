/* Keys and sorting. */
#include "planner/pack_order.h"

#include <stdlib.h>

static int compare_keyed(const void *left, const void *right)
{
    const pack_keyed *a = left, *b = right;
    if (a->key != b->key)
        return a->key > b->key ? -1 : 1;
    return a->i < b->i ? -1 : a->i > b->i;
}

void pack_sort_keyed(pack_keyed *keys, uint32_t n, uint32_t *order)
{
    qsort(keys, n, sizeof(*keys), compare_keyed);
    for (uint32_t k = 0; k < n; k++)
        order[k] = keys[k].i;
}

/* The highest load in [from, to), by a table of maxima over powers of two. */
typedef struct maxima {
    uint64_t *level[32];
    uint32_t levels;
} maxima;

static void free_maxima(maxima *m)
{
    for (uint32_t k = 1; k < m->levels; k++)
        free(m->level[k]);
}

static bool build_maxima(const pack_problem *p, maxima *m)
{
    m->level[0] = p->load;
    m->levels = 1;
    for (uint32_t width = 2; width <= p->sections; width *= 2) {
        uint64_t *above = malloc(((size_t)p->sections + 1) * sizeof(*above)), *below = m->level[m->levels - 1];
        if (!above) {
            free_maxima(m);
            return false;
        }
        for (uint32_t s = 0; s + width <= p->sections; s++)
            above[s] = below[s] > below[s + width / 2] ? below[s] : below[s + width / 2];
        m->level[m->levels++] = above;
        if (width > UINT32_MAX / 2)
            break;
    }
    return true;
}

bool pack_peaks(const pack_problem *p, uint64_t *peak)
{
    maxima m;
    if (p->graph) {
        for (uint32_t i = 0; i < p->n; i++) {
            peak[i] = p->size[i];
            for (size_t k = p->member_at[i]; k < p->member_at[i + 1]; k++)
                if (p->load[p->member[k]] > peak[i])
                    peak[i] = p->load[p->member[k]];
        }
        return true;
    }
    if (!build_maxima(p, &m))
        return false;
    for (uint32_t i = 0; i < p->n; i++) {
        peak[i] = p->size[i];
        for (size_t k = p->piece_at[i]; k < p->piece_at[i + 1]; k++) {
            uint32_t from = p->piece[k].from, to = p->piece[k].to;
            uint32_t level = 31 - (uint32_t)__builtin_clz(to - from);
            uint64_t a = m.level[level][from], b = m.level[level][to - (1u << level)];
            a = a > b ? a : b;
            peak[i] = a > peak[i] ? a : peak[i];
        }
    }
    free_maxima(&m);
    return true;
}

static unsigned __int128 pair(uint64_t high, uint64_t low)
{
    return (unsigned __int128)high << 64 | low;
}

/* Born in which section; of a graph, the caller's lower. */
static uint64_t born(const pack_problem *p, uint32_t i)
{
    return p->graph ? p->birth[i] : p->piece_at[i + 1] > p->piece_at[i] ? p->piece[p->piece_at[i]].from : 0;
}

/* The bytes that a buffer meets: of each neighbour once where they are listed, else of each section. */
static unsigned __int128 crowd(const pack_problem *p, uint32_t i, const unsigned __int128 *sums)
{
    unsigned __int128 total = 0;
    if (p->adj_at) {
        for (size_t k = p->adj_at[i]; k < p->adj_at[i + 1]; k++)
            total += p->size[p->adj[k]];
        return total;
    }
    for (size_t k = p->piece_at[i]; k < p->piece_at[i + 1]; k++)
        total += sums[p->piece[k].to] - sums[p->piece[k].from];
    return total;
}

/* sums[s]: the loads of all sections before s. */
static unsigned __int128 *sum_loads(const pack_problem *p)
{
    unsigned __int128 *sums = malloc(((size_t)p->sections + 1) * sizeof(*sums));
    if (sums)
        sums[0] = 0;
    for (uint32_t s = 0; sums && s < p->sections; s++)
        sums[s + 1] = sums[s] + p->load[s];
    return sums;
}

bool pack_order(const pack_problem *p, tn_pack_member member, uint32_t *order)
{
    pack_keyed *keys = malloc(((size_t)p->n + 1) * sizeof(*keys));
    uint64_t *peak = malloc(((size_t)p->n + 1) * sizeof(*peak));
    unsigned __int128 *sums = sum_loads(p);
    bool good = keys && peak && sums && (member != TN_PACK_BY_PRESSURE || pack_peaks(p, peak));
    for (uint32_t i = 0; good && i < p->n; i++) {
        unsigned __int128 key = 0;
        switch (member) {
        case TN_PACK_HINTS: /* the lowest hint first: each then stands on what it stood on */
            key = pair(~p->hint[i], p->size[i]);
            break;
        case TN_PACK_BY_AREA:
            key = (unsigned __int128)p->size[i] * p->length[i];
            break;
        case TN_PACK_BY_LIFETIME:
            key = pair(p->length[i], p->size[i]);
            break;
        case TN_PACK_BY_PRESSURE: /* those of the fullest sections, in steps of an eighth of the bound */
            key = pair(peak[i] / (p->bound / 8 + 1), p->size[i]);
            break;
        case TN_PACK_BY_BIRTH:
        case TN_PACK_ONLINE:
            key = pair(~born(p, i), p->size[i]);
            break;
        case TN_PACK_BY_CROWD:
            key = crowd(p, i, sums);
            break;
        default:
            key = p->size[i];
        }
        keys[i] = (pack_keyed){key, i};
    }
    if (good)
        pack_sort_keyed(keys, p->n, order);
    free(keys);
    free(peak);
    free(sums);
    return good;
}
