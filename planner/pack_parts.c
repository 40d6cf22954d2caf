/* A problem falls into parts that have nothing to do with one another; each is a smaller problem. */
#include <stdlib.h>
#include <string.h>

#include "planner/pack_build.h"

/* Along the listed conflicts. */
static uint32_t parts_by_conflicts(const pack_problem *p, uint32_t *part)
{
    uint32_t *stack = malloc(((size_t)p->n + 1) * sizeof(*stack)), parts = 0;
    if (!stack)
        return PACK_NONE;
    for (uint32_t i = 0; i < p->n; i++)
        part[i] = PACK_NONE;
    for (uint32_t i = 0; i < p->n; i++) {
        if (part[i] != PACK_NONE)
            continue;
        uint32_t depth = 0;
        part[i] = parts;
        stack[depth++] = i;
        while (depth > 0) {
            uint32_t at = stack[--depth];
            for (size_t k = p->adj_at[at]; k < p->adj_at[at + 1]; k++)
                if (part[p->adj[k]] == PACK_NONE) {
                    part[p->adj[k]] = parts;
                    stack[depth++] = p->adj[k];
                }
        }
        parts++;
    }
    free(stack);
    return parts;
}

/* Without a list: cut the sections where no lifetime, gaps included, crosses. */
static uint32_t parts_by_time(const pack_problem *p, uint32_t *part)
{
    uint32_t *reach = calloc((size_t)p->sections + 1, sizeof(*reach));
    uint32_t *number = calloc((size_t)p->sections + 1, sizeof(*number));
    uint32_t parts = 0, open_until = 0;
    if (!reach || !number) {
        free(reach);
        free(number);
        return PACK_NONE;
    }
    for (uint32_t i = 0; i < p->n; i++)
        if (p->piece_at[i + 1] > p->piece_at[i]) {
            uint32_t from = p->piece[p->piece_at[i]].from, to = p->piece[p->piece_at[i + 1] - 1].to;
            if (to > reach[from])
                reach[from] = to;
        }
    for (uint32_t s = 0; s < p->sections; s++) {
        if (s >= open_until)
            parts++;
        number[s] = parts - 1;
        if (reach[s] > open_until)
            open_until = reach[s];
    }
    for (uint32_t i = 0; i < p->n; i++)
        part[i] = p->piece_at[i + 1] > p->piece_at[i] ? number[p->piece[p->piece_at[i]].from] : parts++;
    free(reach);
    free(number);
    return parts;
}

uint32_t pack_problem_parts(const pack_problem *p, uint32_t *part)
{
    return p->adj_at ? parts_by_conflicts(p, part) : parts_by_time(p, part);
}

static void copy_buffers(const pack_problem *p, const uint32_t *which, pack_problem *sub)
{
    for (uint32_t i = 0; i < sub->n; i++) {
        uint32_t from = which[i];
        sub->size[i] = p->size[from];
        sub->align[i] = p->align[from];
        sub->hint[i] = p->hint[from];
        sub->birth[i] = p->birth[from];
        sub->length[i] = p->length[from];
        sub->name[i] = from;
    }
}

/* Sections that hold none of the chosen buffers fall away; the others keep their order. */
static tn_pack_error copy_pieces(const pack_problem *p, const uint32_t *which, pack_problem *sub)
{
    size_t pieces = 0;
    uint32_t first = PACK_NONE, last = 0;
    for (uint32_t i = 0; i < sub->n; i++)
        for (size_t k = p->piece_at[which[i]]; k < p->piece_at[which[i] + 1]; k++) {
            pieces++;
            first = p->piece[k].from < first ? p->piece[k].from : first;
            last = p->piece[k].to > last ? p->piece[k].to : last;
        }
    uint32_t span = pieces ? last - first : 0;
    int32_t *used = calloc((size_t)span + 2, sizeof(*used));
    sub->piece = malloc((pieces + 1) * sizeof(*sub->piece));
    if (!used || !sub->piece) {
        free(used);
        return TN_PACK_E_NOMEM;
    }
    for (uint32_t i = 0; i < sub->n; i++)
        for (size_t k = p->piece_at[which[i]]; k < p->piece_at[which[i] + 1]; k++) {
            used[p->piece[k].from - first]++;
            used[p->piece[k].to - first]--;
        }
    /* used[s] becomes the new number of section s: how many used ones come before. */
    int32_t depth = 0, number = 0;
    for (uint32_t s = 0; s <= span; s++) {
        depth += used[s];
        used[s] = number;
        number += depth > 0;
    }
    size_t to = 0;
    for (uint32_t i = 0; i < sub->n; i++) {
        sub->piece_at[i] = to;
        for (size_t k = p->piece_at[which[i]]; k < p->piece_at[which[i] + 1]; k++, to++) {
            sub->piece[to].from = (uint32_t)used[p->piece[k].from - first];
            sub->piece[to].to = (uint32_t)used[p->piece[k].to - first];
        }
    }
    sub->piece_at[sub->n] = to;
    sub->sections = (uint32_t)number;
    free(used);
    return TN_PACK_OK;
}

static tn_pack_error copy_conflicts(const pack_problem *p, const uint32_t *which, pack_problem *sub)
{
    size_t pairs = 0, to = 0;
    for (uint32_t i = 0; i < sub->n; i++)
        pairs += p->adj_at[which[i] + 1] - p->adj_at[which[i]];
    uint32_t *number = malloc(((size_t)p->n + 1) * sizeof(*number));
    sub->adj_at = malloc(((size_t)sub->n + 1) * sizeof(*sub->adj_at));
    sub->adj = malloc((pairs + 1) * sizeof(*sub->adj));
    if (!number || !sub->adj_at || !sub->adj) {
        free(number);
        return TN_PACK_E_NOMEM;
    }
    memset(number, 0xFF, ((size_t)p->n + 1) * sizeof(*number));
    for (uint32_t i = 0; i < sub->n; i++)
        number[which[i]] = i;
    for (uint32_t i = 0; i < sub->n; i++) {
        sub->adj_at[i] = to;
        for (size_t k = p->adj_at[which[i]]; k < p->adj_at[which[i] + 1]; k++)
            if (number[p->adj[k]] != PACK_NONE)
                sub->adj[to++] = number[p->adj[k]];
    }
    sub->adj_at[sub->n] = to;
    free(number);
    return TN_PACK_OK;
}

static tn_pack_error copy_cliques(const pack_problem *p, const uint32_t *which, pack_problem *sub)
{
    size_t members = 0, to = 0;
    for (uint32_t i = 0; i < sub->n; i++)
        members += p->member_at[which[i] + 1] - p->member_at[which[i]];
    uint32_t *number = malloc(((size_t)p->sections + 1) * sizeof(*number));
    sub->member_at = malloc(((size_t)sub->n + 1) * sizeof(*sub->member_at));
    sub->member = malloc((members + 1) * sizeof(*sub->member));
    sub->load = calloc((size_t)p->sections + 1, sizeof(*sub->load));
    if (!number || !sub->member_at || !sub->member || !sub->load) {
        free(number);
        return TN_PACK_E_NOMEM;
    }
    memset(number, 0xFF, ((size_t)p->sections + 1) * sizeof(*number));
    for (uint32_t i = 0; i < sub->n; i++) {
        sub->member_at[i] = to;
        for (size_t k = p->member_at[which[i]]; k < p->member_at[which[i] + 1]; k++) {
            uint32_t *section = &number[p->member[k]];
            if (*section == PACK_NONE)
                *section = sub->sections++;
            sub->load[*section] += sub->size[i];
            sub->member[to++] = *section;
        }
    }
    sub->member_at[sub->n] = to;
    free(number);
    return TN_PACK_OK;
}

tn_pack_error pack_problem_extract(const pack_problem *p, const uint32_t *which, uint32_t count, pack_problem *sub)
{
    memset(sub, 0, sizeof(*sub));
    sub->unit = p->unit;
    sub->graph = p->graph;
    tn_pack_error error = pack_build_arrays(sub, count);
    if (!error) {
        copy_buffers(p, which, sub);
        error = p->graph ? copy_cliques(p, which, sub) : copy_pieces(p, which, sub);
    }
    if (!error)
        error = p->adj_at ? copy_conflicts(p, which, sub) : p->graph ? TN_PACK_OK : pack_build_conflicts(sub);
    if (!error)
        error = pack_build_members(sub);
    if (!error)
        pack_build_bound(sub);
    if (error)
        pack_problem_free(sub);
    return error;
}
