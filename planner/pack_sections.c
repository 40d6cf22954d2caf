/* Sections of time, and from them the conflicts, the memberships and the lower bound. */
#include <stdlib.h>
#include <string.h>

#include "planner/pack_build.h"

/* A piece of a lifetime begins or ends. At one time ends come first: lifetimes are half-open. */
typedef struct event {
    uint64_t time;
    uint32_t begins; /* 0 or 1 */
    uint32_t piece;
} event;

static int compare_events(const void *left, const void *right)
{
    const event *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (a->begins != b->begins)
        return a->begins < b->begins ? -1 : 1;
    return a->piece < b->piece ? -1 : a->piece > b->piece;
}

static void add_piece(event *events, size_t *count, uint64_t lower, uint64_t upper)
{
    if (lower >= upper)
        return;
    uint32_t piece = (uint32_t)(*count / 2);
    events[*count] = (event){lower, 1, piece};
    events[*count + 1] = (event){upper, 0, piece};
    *count += 2;
}

/* A section closes when something ends after something began: the set that is alive then is a subset of no other. */
tn_pack_error pack_build_sections(pack_problem *p, const tn_pack_buffer *buffers)
{
    size_t pieces = 0;
    for (uint32_t i = 0; i < p->n; i++)
        pieces += buffers[p->name[i]].gap_count + 1;
    event *events = malloc((2 * pieces + 1) * sizeof(*events));
    p->piece = malloc((pieces + 1) * sizeof(*p->piece));
    if (!events || !p->piece) {
        free(events);
        return TN_PACK_E_NOMEM;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const tn_pack_buffer *b = &buffers[p->name[i]];
        p->piece_at[i] = count / 2;
        if (p->size[i] == 0)
            continue;
        uint64_t from = b->lower;
        for (size_t g = 0; g < b->gap_count; g++) {
            add_piece(events, &count, from, b->gaps[g].lower);
            from = b->gaps[g].upper;
        }
        add_piece(events, &count, from, b->upper);
    }
    p->piece_at[p->n] = count / 2;
    qsort(events, count, sizeof(*events), compare_events);
    uint32_t section = 0;
    bool began = false;
    for (size_t i = 0; i < count; i++) {
        if (events[i].begins) {
            p->piece[events[i].piece].from = section;
            began = true;
        } else {
            section += began;
            began = false;
            p->piece[events[i].piece].to = section;
        }
    }
    p->sections = section;
    free(events);
    return TN_PACK_OK;
}

/* For every section the pieces that begin in it, as a list of buffers. */
static tn_pack_error bucket_by_begin(const pack_problem *p, size_t **at, uint32_t **who)
{
    size_t pieces = p->piece_at[p->n];
    *at = calloc((size_t)p->sections + 2, sizeof(**at));
    *who = malloc((pieces + 1) * sizeof(**who));
    if (!*at || !*who) {
        free(*at);
        free(*who);
        return TN_PACK_E_NOMEM;
    }
    for (size_t k = 0; k < pieces; k++)
        (*at)[p->piece[k].from + 1]++;
    for (uint32_t s = 0; s < p->sections; s++)
        (*at)[s + 1] += (*at)[s];
    for (uint32_t i = 0; i < p->n; i++)
        for (size_t k = p->piece_at[i]; k < p->piece_at[i + 1]; k++)
            (*who)[(*at)[p->piece[k].from]++] = i;
    for (uint32_t s = p->sections; s > 0; s--)
        (*at)[s] = (*at)[s - 1];
    (*at)[0] = 0;
    return TN_PACK_OK;
}

/* How many pairs of pieces overlap; stops counting above the limit. */
static size_t count_overlaps(const pack_problem *p, const size_t *begin_at)
{
    size_t *ends = calloc((size_t)p->sections + 1, sizeof(*ends));
    if (!ends)
        return SIZE_MAX;
    size_t pieces = p->piece_at[p->n], alive = 0, pairs = 0;
    for (size_t k = 0; k < pieces; k++)
        ends[p->piece[k].to]++;
    for (uint32_t s = 0; s < p->sections && pairs <= PACK_MAX_LISTED; s++) {
        alive -= ends[s];
        size_t begins = begin_at[s + 1] - begin_at[s];
        pairs += begins * alive + begins * (begins - 1) / 2;
        alive += begins;
    }
    free(ends);
    return pairs;
}

static int compare_u32(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* Sorted, each neighbour once (two buffers with gaps may meet several times). */
static void tidy(pack_problem *p)
{
    size_t to = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        size_t from = p->adj_at[i], end = p->adj_at[i + 1];
        qsort(p->adj + from, end - from, sizeof(*p->adj), compare_u32);
        p->adj_at[i] = to;
        for (size_t k = from; k < end; k++)
            if (k == from || p->adj[k] != p->adj[k - 1])
                p->adj[to++] = p->adj[k];
    }
    p->adj_at[p->n] = to;
}

/* Where the buffer's piece that begins with a section ends: pieces rise. */
static uint32_t end_of_piece(const pack_problem *p, uint32_t i, uint32_t section)
{
    size_t low = p->piece_at[i], high = p->piece_at[i + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->piece[middle].from < section)
            low = middle + 1;
        else
            high = middle;
    }
    return p->piece[low].to;
}

static size_t row_words(const pack_problem *p)
{
    return ((size_t)p->n + 63) / 64;
}

/* Walks the sections with the set that is alive: into `met`, a row of bits for each buffer, where that is given; else into adj by `fill`; else it
 * counts into adj_at[i + 1]. */
static void walk_overlaps(pack_problem *p, const size_t *at, const uint32_t *who, uint32_t *alive, uint32_t *until,
                          size_t *fill, uint64_t *met)
{
    size_t row = row_words(p);
    uint32_t count = 0;
    for (uint32_t s = 0; s < p->sections; s++) {
        uint32_t kept = 0;
        for (uint32_t k = 0; k < count; k++)
            if (until[k] > s) {
                alive[kept] = alive[k];
                until[kept++] = until[k];
            }
        count = kept;
        for (size_t k = at[s]; k < at[s + 1]; k++) {
            uint32_t i = who[k];
            for (uint32_t j = 0; j < count; j++) {
                if (met) {
                    met[i * row + alive[j] / 64] |= (uint64_t)1 << alive[j] % 64;
                    met[alive[j] * row + i / 64] |= (uint64_t)1 << i % 64;
                } else if (fill) {
                    p->adj[fill[i]++] = alive[j];
                    p->adj[fill[alive[j]]++] = i;
                } else {
                    p->adj_at[i + 1]++;
                    p->adj_at[alive[j] + 1]++;
                }
            }
            alive[count] = i;
            until[count++] = end_of_piece(p, i, s);
        }
    }
}

/* Few buffers that are alive many thousand times each meet the same others again and again: their pairs once, from rows of bits. */
static tn_pack_error list_met(pack_problem *p, const size_t *at, const uint32_t *who, uint32_t *alive, uint32_t *until)
{
    size_t row = row_words(p), pairs = 0, to = 0;
    uint64_t *met = calloc((size_t)p->n * row + 1, sizeof(*met));
    if (!met)
        return TN_PACK_E_NOMEM;
    walk_overlaps(p, at, who, alive, until, NULL, met);
    for (size_t k = 0; k < (size_t)p->n * row; k++)
        pairs += (size_t)__builtin_popcountll(met[k]);
    if (pairs <= 2 * (size_t)PACK_MAX_LISTED) {
        p->adj_at = calloc((size_t)p->n + 1, sizeof(*p->adj_at));
        p->adj = malloc((pairs + 1) * sizeof(*p->adj));
    }
    for (uint32_t i = 0; p->adj_at && p->adj && i < p->n; i++) {
        for (size_t k = 0; k < row; k++)
            for (uint64_t bits = met[i * row + k]; bits; bits &= bits - 1)
                p->adj[to++] = (uint32_t)(k * 64 + (size_t)__builtin_ctzll(bits));
        p->adj_at[i + 1] = to;
    }
    free(met);
    return pairs > 2 * (size_t)PACK_MAX_LISTED || (p->adj_at && p->adj) ? TN_PACK_OK : TN_PACK_E_NOMEM;
}

/* Rows of bits of so many take 2 MiB. */
enum { MOST_IN_ROWS = 4096 };

tn_pack_error pack_build_conflicts(pack_problem *p)
{
    size_t *at, *fill = NULL;
    uint32_t *who, *alive = NULL, *until = NULL;
    tn_pack_error error = bucket_by_begin(p, &at, &who);
    if (error)
        return error;
    size_t pairs = count_overlaps(p, at);
    int listed = pairs <= PACK_MAX_LISTED, by_rows = !listed && p->n <= MOST_IN_ROWS;
    if (listed || by_rows) {
        alive = malloc(((size_t)p->n + 1) * sizeof(*alive));
        until = malloc(((size_t)p->n + 1) * sizeof(*until));
        error = alive && until ? TN_PACK_OK : TN_PACK_E_NOMEM;
    }
    if (!error && by_rows)
        error = list_met(p, at, who, alive, until);
    if (!error && listed) {
        p->adj_at = calloc((size_t)p->n + 1, sizeof(*p->adj_at));
        p->adj = malloc((2 * pairs + 1) * sizeof(*p->adj));
        fill = malloc(((size_t)p->n + 1) * sizeof(*fill));
        if (!p->adj_at || !p->adj || !fill) {
            error = TN_PACK_E_NOMEM;
        } else {
            walk_overlaps(p, at, who, alive, until, NULL, NULL);
            for (uint32_t i = 0; i < p->n; i++)
                p->adj_at[i + 1] += p->adj_at[i];
            memcpy(fill, p->adj_at, ((size_t)p->n + 1) * sizeof(*fill));
            walk_overlaps(p, at, who, alive, until, fill, NULL);
            tidy(p);
        }
    }
    free(at);
    free(who);
    free(fill);
    free(alive);
    free(until);
    return error;
}

tn_pack_error pack_build_members(pack_problem *p)
{
    if (p->graph)
        return TN_PACK_OK;
    p->load = calloc((size_t)p->sections + 1, sizeof(*p->load));
    if (!p->load)
        return TN_PACK_E_NOMEM;
    size_t members = 0, pieces = p->piece_at[p->n];
    for (uint32_t i = 0; i < p->n; i++)
        for (size_t k = p->piece_at[i]; k < p->piece_at[i + 1]; k++) {
            p->load[p->piece[k].from] += p->size[i];
            p->load[p->piece[k].to] -= p->size[i];
        }
    for (uint32_t s = 1; s < p->sections; s++)
        p->load[s] += p->load[s - 1];
    for (size_t k = 0; k < pieces && members <= PACK_MAX_MEMBERS; k++)
        members += p->piece[k].to - p->piece[k].from;
    if (members > PACK_MAX_MEMBERS || !p->adj_at)
        return TN_PACK_OK;
    p->member_at = malloc(((size_t)p->n + 1) * sizeof(*p->member_at));
    p->member = malloc((members + 1) * sizeof(*p->member));
    if (!p->member_at || !p->member)
        return TN_PACK_E_NOMEM;
    size_t to = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        p->member_at[i] = to;
        for (size_t k = p->piece_at[i]; k < p->piece_at[i + 1]; k++)
            for (uint32_t s = p->piece[k].from; s < p->piece[k].to; s++)
                p->member[to++] = s;
    }
    p->member_at[p->n] = to;
    return TN_PACK_OK;
}

void pack_build_bound(pack_problem *p)
{
    p->bound = 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->size[i] > p->bound)
            p->bound = p->size[i];
    for (uint32_t s = 0; s < p->sections; s++)
        if (p->load[s] > p->bound)
            p->bound = p->load[s];
}
