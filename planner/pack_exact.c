/* Branch and bound. Every placement can be pushed down until each buffer rests on the floor or on a neighbour, and then
 * be built bottom up; so a node of the search chooses which buffer is placed next, at its own floor, in rising order of
 * offsets. Whoever could have been next at a lower or equal place and was not is lifted: it must rest on something that
 * is yet to come. A node is cut where in some section the buffers that are left do not fit above their floors, and a
 * buffer is no candidate where another fits wholly beneath it. What is left may fall into parts that are independent;
 * these are searched one by one, so that the failure of one never repeats the work for another. */
#include "planner/pack_exact.h"

#include <stdlib.h>
#include <string.h>

#include "planner/pack_order.h"

enum { MAX_BUFFERS = 8192, MAX_WORK = 1 << 22 };

typedef struct undo {
    uint32_t i;
    uint64_t floor;
} undo;

struct pack_exact {
    const pack_problem *p;
    uint64_t capacity, steps, limit;
    bool out;                /* of steps */
    uint64_t *floor, *offset;
    bool *placed;
    uint32_t *rank;          /* by preference */
    bool low_first;
    uint64_t *filled; /* per section, for one bound; zero between */
    uint32_t *touched;
    uint32_t *reach, *part;  /* per section, for one split; reach is zero between */
    bool *lifted;            /* per buffer, false between */
    uint32_t *from, *to;     /* hulls, in sections */
    undo *trail;
    size_t trailed, trail_room;
    uint32_t *lists;         /* a stack of lists of buffers, one or two a node */
    size_t list_top, list_room;
    bool no_memory;
};

bool pack_exact_fits(const pack_problem *p)
{
    return p->adj_at && p->member_at && p->n <= MAX_BUFFERS && p->adj_at[p->n] <= MAX_WORK && p->member_at[p->n] <= MAX_WORK;
}

void pack_exact_free(pack_exact *x)
{
    if (!x)
        return;
    free(x->floor);
    free(x->offset);
    free(x->placed);
    free(x->rank);
    free(x->filled);
    free(x->reach);
    free(x->part);
    free(x->lifted);
    free(x->touched);
    free(x->from);
    free(x->to);
    free(x->trail);
    free(x->lists);
    free(x);
}

pack_exact *pack_exact_new(const pack_problem *p)
{
    pack_exact *x = calloc(1, sizeof(*x));
    if (!x)
        return NULL;
    size_t n = (size_t)p->n + 1, sections = (size_t)p->sections + 1;
    x->p = p;
    x->floor = malloc(n * sizeof(*x->floor));
    x->offset = malloc(n * sizeof(*x->offset));
    x->placed = malloc(n * sizeof(*x->placed));
    x->rank = malloc(n * sizeof(*x->rank));
    x->from = calloc(n, sizeof(*x->from));
    x->to = calloc(n, sizeof(*x->to));
    x->filled = calloc(sections, sizeof(*x->filled));
    x->reach = calloc(sections, sizeof(*x->reach));
    x->part = malloc(sections * sizeof(*x->part));
    x->lifted = calloc(n, sizeof(*x->lifted));
    x->touched = malloc(sections * sizeof(*x->touched));
    if (!x->floor || !x->offset || !x->placed || !x->rank || !x->from || !x->to || !x->filled || !x->reach || !x->part || !x->lifted || !x->touched) {
        pack_exact_free(x);
        return NULL;
    }
    for (uint32_t i = 0; !p->graph && i < p->n; i++)
        if (p->piece_at[i + 1] > p->piece_at[i]) {
            x->from[i] = p->piece[p->piece_at[i]].from;
            x->to[i] = p->piece[p->piece_at[i + 1] - 1].to;
        }
    return x;
}

static bool reserve_lists(pack_exact *x, size_t more)
{
    if (x->list_top + more <= x->list_room)
        return true;
    size_t room = 2 * (x->list_top + more) + 1024;
    uint32_t *lists = realloc(x->lists, room * sizeof(*lists));
    if (!lists) {
        x->no_memory = x->out = true;
        return false;
    }
    x->lists = lists;
    x->list_room = room;
    return true;
}

static bool lift(pack_exact *x, uint32_t i, uint64_t floor)
{
    if (x->trailed == x->trail_room) {
        size_t room = x->trail_room ? 2 * x->trail_room : 4096;
        undo *trail = realloc(x->trail, room * sizeof(*trail));
        if (!trail) {
            x->no_memory = x->out = true;
            return false;
        }
        x->trail = trail;
        x->trail_room = room;
    }
    x->trail[x->trailed++] = (undo){i, x->floor[i]};
    x->floor[i] = floor;
    return floor + x->p->size[i] <= x->capacity;
}

static void take_back(pack_exact *x, size_t to)
{
    while (x->trailed > to) {
        const undo *u = &x->trail[--x->trailed];
        x->floor[u->i] = u->floor;
    }
}

/* In `list`, sorted by falling floor: in no section may what is left above some height exceed the capacity. */
static bool may_fit(pack_exact *x, const uint32_t *list, uint32_t count)
{
    const pack_problem *p = x->p;
    uint32_t touched = 0;
    bool fits = true;
    for (uint32_t k = 0; k < count && fits; k++) {
        uint32_t i = list[k];
        uint64_t floor = x->floor[i], size = p->size[i];
        x->steps += p->member_at[i + 1] - p->member_at[i];
        for (size_t m = p->member_at[i]; m < p->member_at[i + 1]; m++) {
            uint32_t s = p->member[m];
            if (x->filled[s] == 0)
                x->touched[touched++] = s;
            x->filled[s] += size;
            fits &= floor + x->filled[s] <= x->capacity;
        }
    }
    while (touched > 0)
        x->filled[x->touched[--touched]] = 0;
    return fits;
}

/* Falling floors, then rising indexes. */
static bool is_before(const pack_exact *x, uint32_t a, uint32_t b)
{
    return x->floor[a] > x->floor[b] || (x->floor[a] == x->floor[b] && a < b);
}

/* Appends to the stack the list without c, by falling floor again: those lifted since `mark` are sorted and merged with
 * the others, whose order has not changed. Returns how many. */
static uint32_t push_rest(pack_exact *x, size_t list, uint32_t count, uint32_t c, size_t mark)
{
    if (!reserve_lists(x, 2 * (size_t)count))
        return 0;
    uint32_t *out = x->lists + x->list_top, *lifted = out + count, moved = 0, left = 0;
    for (size_t t = mark; t < x->trailed; t++)
        x->lifted[x->trail[t].i] = true;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = x->lists[list + k];
        if (!x->lifted[i])
            continue;
        uint32_t j = moved++;
        for (; j > 0 && is_before(x, i, lifted[j - 1]); j--)
            lifted[j] = lifted[j - 1];
        x->steps += (moved - j) / 4;
        lifted[j] = i;
    }
    for (uint32_t k = 0, m = 0; k < count || m < moved;) {
        uint32_t i = k < count ? x->lists[list + k] : PACK_NONE;
        if (k < count && (i == c || x->lifted[i])) {
            k++;
        } else if (m == moved || (k < count && is_before(x, i, lifted[m]))) {
            out[left++] = i;
            k++;
        } else {
            out[left++] = lifted[m++];
        }
    }
    for (size_t t = mark; t < x->trailed; t++)
        x->lifted[x->trail[t].i] = false;
    return left;
}

static void sort_candidates(pack_exact *x, uint32_t *list, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++) {
        uint32_t i = list[k], j = k;
        for (; j > 0; j--) {
            uint32_t other = list[j - 1];
            bool before = x->rank[i] < x->rank[other];
            if (x->low_first && x->floor[i] != x->floor[other])
                before = x->floor[i] < x->floor[other];
            if (!before)
                break;
            list[j] = other;
        }
        x->steps += (k - j) / 4;
        list[j] = i;
    }
}

/* The lowest place that i can have when it rests on a neighbour that is yet to come, none below `from`. */
static uint64_t place_on_another(pack_exact *x, uint32_t i, uint64_t from)
{
    const pack_problem *p = x->p;
    uint64_t lowest = UINT64_MAX;
    x->steps += p->adj_at[i + 1] - p->adj_at[i];
    for (size_t k = p->adj_at[i]; k < p->adj_at[i + 1]; k++) {
        uint32_t j = p->adj[k];
        if (x->placed[j])
            continue;
        uint64_t top = (x->floor[j] > from ? x->floor[j] : from) + p->size[j];
        if (top < lowest)
            lowest = top;
    }
    return lowest == UINT64_MAX ? lowest : pack_align(lowest, p->align[i]);
}

static bool solve(pack_exact *x, size_t list, uint32_t count);

static bool same(const pack_problem *p, uint32_t a, uint32_t b)
{
    if (p->graph || p->size[a] != p->size[b] || p->align[a] != p->align[b])
        return false;
    size_t pieces = p->piece_at[a + 1] - p->piece_at[a];
    return pieces == p->piece_at[b + 1] - p->piece_at[b] &&
           memcmp(p->piece + p->piece_at[a], p->piece + p->piece_at[b], pieces * sizeof(*p->piece)) == 0;
}

/* Places c; tried[0 .. tries) were tried before and failed. The list is c's node's. */
static bool place(pack_exact *x, size_t list, uint32_t count, uint32_t c, size_t tried, uint32_t tries)
{
    const pack_problem *p = x->p;
    size_t mark = x->trailed, top = x->list_top;
    uint64_t at = x->floor[c], end = at + p->size[c];
    bool good = true;
    x->placed[c] = true;
    x->offset[c] = at;
    x->steps += p->adj_at[c + 1] - p->adj_at[c] + count;
    for (size_t k = p->adj_at[c]; good && k < p->adj_at[c + 1]; k++) {
        uint32_t j = p->adj[k];
        if (!x->placed[j] && x->floor[j] < end)
            good = lift(x, j, pack_align(end, p->align[j]));
    }
    for (uint32_t k = 0; good && k < count; k++) {
        uint32_t j = x->lists[list + k];
        if (!x->placed[j] && x->floor[j] < at) {
            uint64_t floor = place_on_another(x, j, at);
            good = floor != UINT64_MAX && lift(x, j, floor);
        }
    }
    for (uint32_t k = 0; good && k < tries; k++) {
        uint32_t j = x->lists[tried + k];
        if (x->floor[j] == at) {
            uint64_t floor = place_on_another(x, j, at);
            good = floor != UINT64_MAX && lift(x, j, floor);
        }
    }
    if (good) {
        uint32_t left = push_rest(x, list, count, c, mark);
        x->list_top += left;
        good = !x->out && solve(x, top, left);
    }
    x->list_top = top;
    if (good && !x->out)
        return true;
    take_back(x, mark);
    x->placed[c] = false;
    return false;
}

/* All of one list, which does not fall into parts. */
static bool branch(pack_exact *x, size_t list, uint32_t count)
{
    const pack_problem *p = x->p;
    size_t top = x->list_top;
    if (!reserve_lists(x, count))
        return false;
    uint64_t beneath = UINT64_MAX;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = x->lists[list + k];
        if (x->floor[i] + p->size[i] < beneath)
            beneath = x->floor[i] + p->size[i];
    }
    uint32_t found = 0;
    for (uint32_t k = count; k > 0 && x->floor[x->lists[list + k - 1]] < beneath; k--)
        x->lists[top + found++] = x->lists[list + k - 1];
    sort_candidates(x, x->lists + top, found);
    x->list_top = top + found;
    for (uint32_t k = 0; k < found && !x->out; k++) {
        uint32_t c = x->lists[top + k];
        bool repeated = false;
        for (uint32_t t = 0; t < k && !repeated; t++)
            repeated = x->floor[x->lists[top + t]] == x->floor[c] && same(p, x->lists[top + t], c);
        if (!repeated && place(x, list, count, c, top, k))
            return true;
    }
    x->list_top = top;
    return false;
}

/* Where no hull crosses, what is left falls into parts. Numbers them by section in x->part and returns how many; of a
 * graph nothing is known about hulls. */
static uint32_t number_parts(pack_exact *x, const uint32_t *list, uint32_t count)
{
    uint32_t first = PACK_NONE, last = 0, parts = 0, reach = 0;
    if (x->p->graph || count < 2)
        return 1;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t i = list[k];
        first = x->from[i] < first ? x->from[i] : first;
        last = x->to[i] > last ? x->to[i] : last;
        if (x->to[i] > x->reach[x->from[i]])
            x->reach[x->from[i]] = x->to[i];
    }
    x->steps += (last - first) / 4;
    for (uint32_t s = first; s < last; s++) {
        parts += s >= reach && x->reach[s] > 0; /* sections that nothing is left in belong to none */
        reach = x->reach[s] > reach ? x->reach[s] : reach;
        x->reach[s] = 0;
        x->part[s] = parts - 1;
    }
    return parts;
}

/* Pushes where each part begins (parts + 1 numbers) and then the list, part by part, each in its old order. */
static void push_parts(pack_exact *x, size_t list, uint32_t count, uint32_t parts)
{
    uint32_t *starts = x->lists + x->list_top, *out = starts + parts + 1;
    memset(starts, 0, ((size_t)parts + 1) * sizeof(*starts));
    for (uint32_t k = 0; k < count; k++)
        starts[x->part[x->from[x->lists[list + k]]] + 1]++;
    for (uint32_t k = 0; k < parts; k++)
        starts[k + 1] += starts[k];
    for (uint32_t k = 0; k < count; k++)
        out[starts[x->part[x->from[x->lists[list + k]]]]++] = x->lists[list + k];
    memmove(starts + 1, starts, parts * sizeof(*starts));
    starts[0] = 0;
    x->list_top += (size_t)parts + 1 + count;
}

/* A list by falling floor. */
static bool solve(pack_exact *x, size_t list, uint32_t count)
{
    size_t mark = x->trailed, top = x->list_top;
    x->steps += count + 16;
    if (x->steps >= x->limit)
        x->out = true;
    if (x->out || !may_fit(x, x->lists + list, count))
        return false;
    if (count == 0)
        return true;
    uint32_t parts = number_parts(x, x->lists + list, count);
    if (parts == 1)
        return branch(x, list, count);
    if (!reserve_lists(x, (size_t)parts + 1 + count))
        return false;
    push_parts(x, list, count, parts);
    bool good = true;
    for (uint32_t k = 0; good && k < parts; k++) {
        uint32_t first = x->lists[top + k], end = x->lists[top + k + 1];
        good = branch(x, top + parts + 1 + first, end - first);
        if (!good) { /* the parts before it did succeed */
            for (uint32_t j = 0; j < first; j++)
                x->placed[x->lists[top + parts + 1 + j]] = false;
            take_back(x, mark);
        }
    }
    x->list_top = top;
    return good;
}

/* 0 to 7, so that a key grows by up to seven eighths; 0 in round 0. */
static uint32_t noise(uint32_t round, uint32_t i)
{
    uint64_t z = ((uint64_t)round << 32 | i) * UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return round ? (uint32_t)(z >> 61) : 0;
}

static bool rank_buffers(pack_exact *x, pack_preference preference, uint32_t round)
{
    const pack_problem *p = x->p;
    pack_keyed *keys = malloc(((size_t)p->n + 1) * sizeof(*keys));
    if (!keys)
        return false;
    x->low_first = preference >= PACK_LOW_THEN_LARGE;
    uint64_t longest = 1;
    for (uint32_t i = 0; i < p->n; i++)
        longest = p->length[i] > longest ? p->length[i] : longest;
    /* Sizes are below 2^63, lengths below 2^60 after this, the factor is below 2^4: products stay below 2^127. */
    int shift = 64 - __builtin_clzll(longest) > 60 ? 4 : 0;
    for (uint32_t i = 0; i < p->n; i++) {
        unsigned __int128 key = p->size[i];
        if (preference == PACK_AREA_FIRST || preference == PACK_LOW_THEN_AREA)
            key *= p->length[i] >> shift;
        else if (preference == PACK_LONG_FIRST || preference == PACK_LOW_THEN_LONG)
            key = p->length[i];
        keys[i] = (pack_keyed){key * (8 + noise(round, i)), i};
    }
    pack_sort_keyed(keys, p->n, x->lists); /* which has room, and is filled only later */
    for (uint32_t k = 0; k < p->n; k++)
        x->rank[x->lists[k]] = k;
    free(keys);
    return true;
}

pack_answer pack_exact_run(pack_exact *x, uint64_t capacity, pack_preference preference, uint32_t round,
                           uint64_t limit, uint64_t *offsets, uint64_t *steps)
{
    const pack_problem *p = x->p;
    x->capacity = capacity;
    x->limit = limit;
    x->steps = 0;
    x->out = x->no_memory = false;
    x->trailed = x->list_top = 0;
    memset(x->floor, 0, ((size_t)p->n + 1) * sizeof(*x->floor));
    memset(x->placed, 0, ((size_t)p->n + 1) * sizeof(*x->placed));
    if (!reserve_lists(x, (size_t)p->n + 1) || !rank_buffers(x, preference, round))
        return PACK_NO_MEMORY;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->size[i] > capacity)
            return PACK_NEVER;
    for (uint32_t i = 0; i < p->n; i++)
        x->lists[i] = i; /* all floors are 0 */
    x->list_top = p->n;
    bool found = solve(x, 0, p->n);
    *steps += x->steps;
    if (x->no_memory)
        return PACK_NO_MEMORY;
    if (x->out)
        return PACK_UNKNOWN;
    if (found)
        memcpy(offsets, x->offset, p->n * sizeof(*offsets));
    return found ? PACK_FOUND : PACK_NEVER;
}
