/* The placed pieces stand in one list, sorted by offset, in chunks of 64, so that a look at a chunk is a few vector
 * instructions: 62,185 buffers by size take a second or two, where sorting each one's neighbours took minutes. */
#include "planner/pack_fit.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 };

/* Each piece of a buffer is held against each that stands there: from so many a buffer on the list of whom it conflicts with is shorter. Of a server's
 * 1,000 requests, 160 slots with 560 pieces each, they took nine tenths of a plan's time, and that rose with their square. */
enum { MANY_PIECES = 8 };

/* Unused entries have from = PACK_NONE, which overlaps nothing. */
typedef struct chunk {
    uint32_t from[CHUNK], to[CHUNK]; /* by neighbours: from is the buffer */
    uint64_t offset[CHUNK], end[CHUNK];
    uint64_t max_end;
    uint32_t count;
} chunk;

struct pack_fitter {
    const pack_problem *p;
    chunk **list, **spare;
    size_t count, room, spares;
    bool by_neighbours; /* buffers stand there once, not piece by piece: of a graph, or where their pieces are many */
    uint32_t *stamp; /* by neighbours: stamp[j] == turn where j conflicts with the buffer in hand */
    uint32_t turn;
    uint32_t stuck;
    bool failed;
};

pack_fitter *pack_fitter_new(const pack_problem *p)
{
    pack_fitter *f = calloc(1, sizeof(*f));
    if (f) {
        f->p = p;
        f->by_neighbours = p->graph || (p->adj_at && p->piece_at[p->n] > (size_t)MANY_PIECES * p->n);
        f->stamp = f->by_neighbours ? calloc((size_t)p->n + 1, sizeof(*f->stamp)) : NULL;
    }
    if (f && f->by_neighbours && !f->stamp) {
        free(f);
        return NULL;
    }
    return f;
}

void pack_fitter_free(pack_fitter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->count; i++)
        free(f->list[i]);
    for (size_t i = 0; i < f->spares; i++)
        free(f->spare[i]);
    free(f->list);
    free(f->spare);
    free(f->stamp);
    free(f);
}

bool pack_fitter_failed(const pack_fitter *f)
{
    return f->failed;
}

uint32_t pack_fitter_stuck(const pack_fitter *f)
{
    return f->stuck;
}

/* Room for one more chunk in both lists. */
static bool grow(pack_fitter *f)
{
    if (f->count + f->spares + 1 <= f->room)
        return true;
    size_t room = f->room ? 2 * f->room : 16;
    chunk **list = realloc(f->list, room * sizeof(*list));
    if (list)
        f->list = list;
    chunk **spare = realloc(f->spare, room * sizeof(*spare));
    if (spare)
        f->spare = spare;
    if (!list || !spare)
        return false;
    f->room = room;
    return true;
}

static chunk *new_chunk(pack_fitter *f, size_t at)
{
    chunk *c = f->spares > 0 ? f->spare[--f->spares] : NULL;
    if (!c && grow(f))
        c = malloc(sizeof(*c));
    if (!c) {
        f->failed = true;
        return NULL;
    }
    memset(c->from, 0xFF, sizeof(c->from));
    memset(c->to, 0, sizeof(c->to));
    c->max_end = 0;
    c->count = 0;
    memmove(f->list + at + 1, f->list + at, (f->count - at) * sizeof(*f->list));
    f->list[at] = c;
    f->count++;
    return c;
}

static void drop_chunk(pack_fitter *f, size_t at)
{
    f->spare[f->spares++] = f->list[at];
    f->count--;
    memmove(f->list + at, f->list + at + 1, (f->count - at) * sizeof(*f->list));
}

static void recount(chunk *c)
{
    c->max_end = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->end[i] > c->max_end)
            c->max_end = c->end[i];
}

static void move_entries(chunk *to, uint32_t at, const chunk *from, uint32_t first, uint32_t count)
{
    memmove(to->from + at, from->from + first, count * sizeof(to->from[0]));
    memmove(to->to + at, from->to + first, count * sizeof(to->to[0]));
    memmove(to->offset + at, from->offset + first, count * sizeof(to->offset[0]));
    memmove(to->end + at, from->end + first, count * sizeof(to->end[0]));
}

static bool insert(pack_fitter *f, uint32_t from, uint32_t to, uint64_t offset, uint64_t end)
{
    size_t low = 0, high = f->count;
    while (low < high) { /* the last chunk that begins at or below offset */
        size_t middle = (low + high) / 2;
        if (f->list[middle]->offset[0] <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    size_t at = low > 0 ? low - 1 : 0;
    chunk *c = f->count > 0 ? f->list[at] : new_chunk(f, 0);
    if (!c)
        return false;
    if (c->count == CHUNK) {
        chunk *upper = new_chunk(f, at + 1);
        if (!upper)
            return false;
        move_entries(upper, 0, c, CHUNK / 2, CHUNK / 2);
        upper->count = c->count = CHUNK / 2;
        memset(c->from + CHUNK / 2, 0xFF, CHUNK / 2 * sizeof(c->from[0]));
        memset(c->to + CHUNK / 2, 0, CHUNK / 2 * sizeof(c->to[0]));
        recount(c);
        recount(upper);
        if (upper->offset[0] <= offset)
            c = upper;
    }
    uint32_t i = c->count;
    while (i > 0 && c->offset[i - 1] > offset)
        i--;
    move_entries(c, i + 1, c, i, c->count - i);
    c->from[i] = from;
    c->to[i] = to;
    c->offset[i] = offset;
    c->end[i] = end;
    c->count++;
    if (end > c->max_end)
        c->max_end = end;
    return true;
}

static void forget_dead(chunk *c, uint32_t now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->count; i++)
        if (c->to[i] > now) {
            c->from[kept] = c->from[i];
            c->to[kept] = c->to[i];
            c->offset[kept] = c->offset[i];
            c->end[kept++] = c->end[i];
        }
    for (uint32_t i = kept; i < c->count; i++) {
        c->from[i] = PACK_NONE;
        c->to[i] = 0;
    }
    c->count = kept;
    recount(c);
}

/* hit[i] where entry i conflicts with the buffer in hand. */
static void mark_hits(const pack_fitter *f, const chunk *c, const pack_piece *pieces, size_t count, uint8_t hit[CHUNK])
{
    if (f->by_neighbours) {
        memset(hit, 0, CHUNK);
        for (uint32_t i = 0; i < c->count; i++)
            hit[i] = f->stamp[c->from[i]] == f->turn;
        return;
    }
    uint32_t from = pieces[0].from, to = pieces[0].to;
    for (int i = 0; i < CHUNK; i++)
        hit[i] = (c->from[i] < to) & (c->to[i] > from);
    for (size_t k = 1; k < count; k++) {
        from = pieces[k].from;
        to = pieces[k].to;
        for (int i = 0; i < CHUNK; i++)
            hit[i] |= (c->from[i] < to) & (c->to[i] > from);
    }
}

typedef struct place {
    uint64_t size, align, hint;
    uint64_t floor;          /* all conflicting pieces so far end at or below this */
    uint64_t best, best_gap; /* UINT64_MAX: no hole yet */
} place;

/* The hole between floor and the next conflicting piece; true where the search is over. */
static bool look_at_hole(place *w, pack_fit_mode mode, uint64_t top)
{
    if (mode == PACK_HINTED && w->hint >= w->floor && w->hint < top && top - w->hint >= w->size) {
        w->best = w->hint;
        return true;
    }
    if (top < w->floor || top - w->floor < w->size)
        return false;
    if (mode == PACK_LOWEST) {
        w->best = w->floor;
        return true;
    }
    if (mode == PACK_HINTED) {
        if (w->best == UINT64_MAX)
            w->best = w->floor;
        return w->hint < w->floor;
    }
    if (top - w->floor < w->best_gap) {
        w->best = w->floor;
        w->best_gap = top - w->floor;
    }
    return false;
}

static bool scan_chunk(const chunk *c, const uint8_t *hit, place *w, pack_fit_mode mode)
{
    for (uint32_t base = 0; base < c->count; base += 8) {
        uint64_t word;
        memcpy(&word, hit + base, sizeof(word));
        for (; word; word &= word - 1) {
            uint32_t i = base + (uint32_t)__builtin_ctzll(word) / 8;
            if (c->offset[i] > w->floor && look_at_hole(w, mode, c->offset[i]))
                return true;
            if (c->end[i] > w->floor)
                w->floor = pack_align(c->end[i], w->align);
        }
    }
    return false;
}

static uint64_t find_place(pack_fitter *f, uint32_t i, pack_fit_mode mode, bool by_birth, uint64_t *steps)
{
    const pack_problem *p = f->p;
    const pack_piece *pieces = f->by_neighbours ? NULL : p->piece + p->piece_at[i];
    size_t count = f->by_neighbours ? 0 : p->piece_at[i + 1] - p->piece_at[i];
    place w = {p->size[i], p->align[i], p->hint[i], 0, UINT64_MAX, UINT64_MAX};
    for (size_t at = 0; at < f->count; at++) {
        chunk *c = f->list[at];
        if (mode != PACK_TIGHTEST && c->max_end <= w.floor) {
            *steps += 2;
            continue;
        }
        /* Nothing from here on stands lower. */
        if (mode == PACK_LOWEST && c->offset[0] > w.floor && c->offset[0] - w.floor >= w.size)
            return w.floor;
        uint8_t hit[CHUNK];
        mark_hits(f, c, pieces, count, hit);
        *steps += f->by_neighbours ? c->count : CHUNK / 2 * count;
        if (scan_chunk(c, hit, &w, mode))
            return w.best;
        if (by_birth) {
            uint32_t dead = 0;
            for (uint32_t k = 0; k < c->count; k++)
                dead += c->to[k] <= pieces[0].from;
            if (dead >= CHUNK / 2 || dead == c->count)
                forget_dead(c, pieces[0].from);
            if (c->count == 0)
                drop_chunk(f, at--);
        }
    }
    if (mode == PACK_HINTED)
        look_at_hole(&w, mode, UINT64_MAX);
    return w.best == UINT64_MAX ? w.floor : w.best;
}

static bool put(pack_fitter *f, uint32_t i, uint64_t offset)
{
    const pack_problem *p = f->p;
    if (f->by_neighbours)
        return insert(f, i, i, offset, offset + p->size[i]);
    for (size_t k = p->piece_at[i]; k < p->piece_at[i + 1]; k++)
        if (!insert(f, p->piece[k].from, p->piece[k].to, offset, offset + p->size[i]))
            return false;
    return true;
}

static void mark_neighbours(pack_fitter *f, uint32_t i, uint64_t *steps)
{
    const pack_problem *p = f->p;
    if (++f->turn == 0) {
        memset(f->stamp, 0, ((size_t)p->n + 1) * sizeof(*f->stamp));
        f->turn = 1;
    }
    for (size_t k = p->adj_at[i]; k < p->adj_at[i + 1]; k++)
        f->stamp[p->adj[k]] = f->turn;
    *steps += p->adj_at[i + 1] - p->adj_at[i];
}

uint64_t pack_fit(pack_fitter *f, const uint32_t *order, pack_fit_mode mode, bool by_birth, uint64_t ceiling,
                  uint64_t *offsets, uint64_t *steps)
{
    const pack_problem *p = f->p;
    uint64_t height = 0;
    while (f->count > 0)
        f->spare[f->spares++] = f->list[--f->count];
    for (uint32_t k = 0; k < p->n; k++) {
        uint32_t i = order[k];
        uint64_t offset = 0;
        if (pack_has_conflicts(p, i)) {
            if (f->by_neighbours)
                mark_neighbours(f, i, steps);
            offset = find_place(f, i, mode == PACK_HINTED && p->hint[i] == UINT64_MAX ? PACK_LOWEST : mode, by_birth && !f->by_neighbours, steps);
            if (!put(f, i, offset))
                return UINT64_MAX;
        }
        offsets[i] = offset;
        if (offset + p->size[i] > height)
            height = offset + p->size[i];
        if (height >= ceiling) {
            f->stuck = k;
            return UINT64_MAX;
        }
    }
    return height;
}
