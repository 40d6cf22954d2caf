/* Slices of the least that was live. A slice is so many allocations of the process wide; where 16 slices do not reach, the width
 * doubles and pairs of slices become one. A row's slices are brought up to date when it changes. */
#include "report/report_growth.h"

#include <stdlib.h>
#include <string.h>

#include "report/report_big.h"

enum { SLICES = 16 };

typedef struct track { /* one row of one process */
    uint32_t process, row;
    uint32_t window;  /* of the process, when this was begun */
    uint32_t level;   /* a slice is 2^level allocations wide */
    uint32_t slices;  /* that are filled in */
    uint64_t live, blocks;
    uint64_t allocs, frees, first_bytes, last_bytes;
    uint64_t least[SLICES], least_blocks[SLICES];
} track;

typedef struct clock { /* of one process */
    uint64_t allocs;  /* in this window */
    uint32_t level;
    uint32_t window;  /* 0: the process has not served; then the number of times that it began to, at most 1 */
    uint32_t row_end;
    uint32_t *track_of; /* [row_end] index in tracks */
} clock;

struct tn_growth_state {
    clock *clocks; /* [process_count] */
    track *tracks;
    size_t count, capacity;
};

typedef struct tn_growth_state state;

static tn_error begin(tn_report *report)
{
    tn_growth *g = report->growth = calloc(1, sizeof(*g));
    if (!g)
        return TN_E_NOMEM;
    g->state = calloc(1, sizeof(*g->state));
    if (!g->state)
        return TN_E_NOMEM;
    g->state->clocks = calloc(report->process_count, sizeof(clock));
    return g->state->clocks ? TN_OK : TN_E_NOMEM;
}

static void drop_state(tn_growth *g, size_t processes)
{
    if (!g->state)
        return;
    for (size_t i = 0; g->state->clocks && i < processes; i++)
        free(g->state->clocks[i].track_of);
    free(g->state->clocks);
    free(g->state->tracks);
    free(g->state);
    g->state = NULL;
}

static void drop(tn_report *report)
{
    if (!report->growth)
        return;
    drop_state(report->growth, report->process_count);
    free(report->growth->sites);
    free(report->growth);
    report->growth = NULL;
}

/* ---- tracks ---- */

static track *track_of(state *s, uint32_t process, uint32_t row, size_t rows)
{
    clock *c = &s->clocks[process];
    if (row >= c->row_end) {
        size_t end = rows + rows / 2 + 64;
        uint32_t *grown = realloc(c->track_of, end * sizeof(*grown));
        if (!grown)
            return NULL;
        memset(grown + c->row_end, 0xff, (end - c->row_end) * sizeof(*grown));
        c->track_of = grown;
        c->row_end = (uint32_t)end;
    }
    if (c->track_of[row] == TN_NO_INDEX) {
        if (s->count == s->capacity) {
            size_t capacity = s->capacity ? s->capacity * 2 : 512;
            track *grown = tn_big_grow(s->tracks, s->count * sizeof(*grown), capacity * sizeof(*grown));
            if (!grown)
                return NULL;
            s->tracks = grown;
            s->capacity = capacity;
        }
        c->track_of[row] = (uint32_t)s->count;
        s->tracks[s->count++] = (track){.process = process, .row = row};
    }
    return &s->tracks[c->track_of[row]];
}

static void halve(track *t)
{
    for (uint32_t i = 0; i < t->slices; i++) {
        uint32_t to = i / 2;
        if (i % 2 == 0 || t->least[i] < t->least[to])
            t->least[to] = t->least[i];
        if (i % 2 == 0 || t->least_blocks[i] < t->least_blocks[to])
            t->least_blocks[to] = t->least_blocks[i];
    }
    t->slices = (t->slices + 1) / 2;
    t->level++;
}

/* What was live so far held in every slice that went by. */
static void catch_up(track *t, const clock *c)
{
    if (t->window != c->window) { /* what came before the process served is where its site begins */
        t->window = c->window;
        t->level = t->slices = 0;
        t->allocs = t->frees = 0;
    }
    while (t->level < c->level)
        halve(t);
    uint32_t now = (uint32_t)(c->allocs >> c->level);
    for (; t->slices <= now; t->slices++) {
        t->least[t->slices] = t->live;
        t->least_blocks[t->slices] = t->blocks;
    }
}

static void note_least(track *t)
{
    uint32_t last = t->slices - 1;
    if (t->live < t->least[last])
        t->least[last] = t->live;
    if (t->blocks < t->least_blocks[last])
        t->least_blocks[last] = t->blocks;
}

/* ---- the watcher ---- */

static tn_error change(const tn_moment *m, const tn_change *c)
{
    state *s = m->report->growth->state;
    clock *clk = &s->clocks[m->process];
    if (c->row == TN_NO_INDEX || c->cause == TN_CHANGE_PROCESS_END)
        return TN_OK;
    track *t = track_of(s, m->process, c->row, m->report->row_count);
    if (!t)
        return TN_E_NOMEM;
    catch_up(t, clk);
    if (c->sign > 0) {
        if (t->allocs++ == 0)
            t->first_bytes = c->backed;
        t->last_bytes = c->backed;
        t->live += c->backed;
        t->blocks++;
        if (++clk->allocs >> clk->level == SLICES)
            clk->level++;
    } else {
        t->frees++;
        t->live -= c->backed;
        t->blocks--;
        note_least(t);
    }
    return TN_OK;
}

/* A swap takes a process out of Serving and back: it served all the same, and what grew over swaps grew. */
static tn_error event(const tn_moment *m)
{
    clock *c = &m->report->growth->state->clocks[m->process];
    if (m->event->kind == TN_PHASE_SERVING && c->window == 0) {
        c->window = 1;
        c->allocs = 0;
        c->level = 0;
        m->report->growth->serving = 1;
    }
    return TN_OK;
}

/* Whether the least that was live never fell before its highest point, which is the end but for the last slice, and rose again and
 * again, the last time in the last quarter: what fills up and then stays is no growth. */
static int has_grown(const track *t, uint32_t *top)
{
    uint32_t n = t->slices, quarter = n < 8 ? 1 : n / 4, highest = 0, rises = 0, last_rise = 0;
    for (uint32_t i = 1; i < n; i++)
        if (t->least[i] >= t->least[highest])
            highest = i;
    if (n < 4 || highest + 2 < n)
        return 0;
    for (uint32_t i = 1; i <= highest; i++) {
        if (t->least[i] < t->least[i - 1])
            return 0;
        if (t->least[i] > t->least[i - 1]) {
            rises++;
            if (i + 1 < n || n < 5) /* the last slice is not over: what a free would have shown as its least may be missing */
                last_rise = i;
        }
    }
    *top = highest;
    return rises >= 2 && rises >= quarter && last_rise + 1 + quarter >= n;
}

static tn_growth_kind kind_of(const track *t, uint32_t top)
{
    uint32_t first = 0;
    while (first < top && t->least_blocks[first] == 0) /* the first block is no growth in number */
        first++;
    if (t->least_blocks[top] <= t->least_blocks[first] && t->least[top] > t->least[first])
        return TN_GROWTH_POOL;
    return t->live >= t->least[top] ? TN_GROWTH_LOST : TN_GROWTH_KEPT;
}

static int by_rise(const void *a, const void *b)
{
    const tn_growth_site *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static tn_error end(tn_report *report)
{
    tn_growth *g = report->growth;
    state *s = g->state;
    g->sites = calloc(s->count + 1, sizeof(*g->sites));
    if (!g->sites)
        return TN_E_NOMEM;
    for (size_t i = 0; i < s->count; i++) {
        track *t = &s->tracks[i];
        const clock *c = &s->clocks[t->process];
        uint32_t top;
        if (g->serving && !c->window)
            continue;
        catch_up(t, c);
        if (!has_grown(t, &top))
            continue;
        tn_growth_site site = {.process = t->process, .row = t->row, .serving = c->window != 0, .allocs = t->allocs, .frees = t->frees,
                               .bytes = t->least[top] - t->least[0], .first_bytes = t->first_bytes, .last_bytes = t->last_bytes,
                               .kind = kind_of(t, top)};
        if (site.kind != TN_GROWTH_POOL)
            site.blocks = t->least_blocks[top] - t->least_blocks[0];
        g->sites[g->count++] = site;
    }
    qsort(g->sites, g->count, sizeof(*g->sites), by_rise);
    drop_state(g, report->process_count);
    return TN_OK;
}

const tn_watcher tn_growth_watcher = {
    .types = TN_WATCH(TN_EV_PHASE), .begin = begin, .event = event, .change = change, .end = end, .drop = drop};

const char *tn_growth_kind_name(tn_growth_kind kind)
{
    static const char *const names[] = {[TN_GROWTH_POOL] = "pool growth", [TN_GROWTH_LOST] = "lost pointers", [TN_GROWTH_KEPT] = "kept blocks"};
    return names[kind];
}
