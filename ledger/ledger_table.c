/* The ledger's hash table: cells of one word in lines of a cache line each, entered and taken out by one compare-and-swap. Which table is in
 * use changes now and then (ledger_grow.c), so that whoever finds nothing, or has entered something, looks whether it still is. */
#define _GNU_SOURCE
#include "ledger/ledger_internal.h"
#include "ledger/tn_hot_data.h"

/* Lines from its own at which a cell says that the table is crowded. */
#define FAR 3u

TN_HOT_DATA tn_table tn_tables[TN_CLASS_MAX + 1];
TN_HOT_DATA uint64_t tn_view;

static tn_line *line_of(unsigned class, uint64_t cell, uint32_t distance)
{
    uint32_t mask = ((uint32_t)1 << class) - 1;
    return &tn_tables[class].lines[((uint32_t)(cell >> 32) + distance) & mask];
}

/* One less beyond this line, if its table has not been prepared anew since `over` was read. */
static void count_down(tn_line *own, uint64_t over)
{
    uint64_t now = __atomic_load_n(&own->over, __ATOMIC_RELAXED);
    while (now >> 32 == over >> 32 && (uint32_t)now != 0 &&
           !__atomic_compare_exchange_n(&own->over, &now, now - 1, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static void extend_reach(tn_table *t, uint32_t distance)
{
    uint32_t reach = __atomic_load_n(&t->reach, __ATOMIC_RELAXED);
    while (reach < distance && !__atomic_compare_exchange_n(&t->reach, &reach, distance, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* Where a cell was put. */
typedef struct place {
    uint64_t *at;
    tn_line *own; /* its line, where it had to leave it; NULL: it did not */
    uint64_t over;
    uint32_t distance;
} place;

enum { PUT, FULL, CLOSED };

/* The line's count goes up before the cell is there, so that nobody stops too early. */
static int put(unsigned class, uint64_t cell, place *p)
{
    tn_table *t = &tn_tables[class];
    p->own = NULL;
    for (p->distance = 0; p->distance >> class == 0; p->distance++) {
        tn_line *line = line_of(class, cell, p->distance);
        if (p->distance == 1) {
            p->own = line_of(class, cell, 0);
            p->over = __atomic_fetch_add(&p->own->over, 1, __ATOMIC_ACQ_REL);
        }
        for (unsigned i = 0; i < TN_LINE_CELLS; i++) {
            uint64_t there = __atomic_load_n(&line->cells[i], __ATOMIC_RELAXED);
            if (there == TN_CELL_FREE) {
                if (p->distance > 0)
                    extend_reach(t, p->distance);
                if (__atomic_compare_exchange_n(&line->cells[i], &there, cell, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
                    p->at = &line->cells[i];
                    return PUT;
                }
            }
            if (there == TN_CELL_CLOSED) { /* nothing is put here any more */
                if (p->own != NULL)
                    count_down(p->own, p->over);
                return CLOSED;
            }
        }
    }
    if (p->own != NULL)
        count_down(p->own, p->over);
    return FULL;
}

int tn_cell_put(unsigned class, uint64_t cell)
{
    place p;
    return put(class, cell, &p) == PUT;
}

int tn_cells_add(uint64_t cell)
{
    for (;;) {
        place p;
        uint64_t view = __atomic_load_n(&tn_view, __ATOMIC_ACQUIRE);
        int how = put(tn_view_newest(view), cell, &p);
        if (how == FULL && !tn_table_make_room())
            return 0;
        if (how != PUT)
            continue;
        if (__builtin_expect(p.distance >= FAR, 0))
            tn_table_crowded();
        /* The table may have been left between the two, and even prepared for another time: then the cell is taken out again and put
         * where it belongs, unless it has been moved there already. Whoever prepared a table has changed the view before, and the swap that
         * put the cell acquired what they released. */
        if (__builtin_expect(__atomic_load_n(&tn_view, __ATOMIC_RELAXED) == view, 1))
            return 1;
        uint64_t expected = cell;
        if (!__atomic_compare_exchange_n(p.at, &expected, TN_CELL_FREE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return 1;
        if (p.own != NULL)
            count_down(p.own, p.over);
    }
}

static int take_from(tn_line *line, uint64_t cell)
{
    for (unsigned i = 0; i < TN_LINE_CELLS; i++) {
        uint64_t expected = cell;
        if (__atomic_load_n(&line->cells[i], __ATOMIC_ACQUIRE) == cell &&
            __atomic_compare_exchange_n(&line->cells[i], &expected, TN_CELL_FREE, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return 1;
    }
    return 0;
}

int tn_cell_take(unsigned class, uint64_t cell)
{
    tn_line *own = line_of(class, cell, 0);
    uint64_t over = __atomic_load_n(&own->over, __ATOMIC_ACQUIRE);
    if (take_from(own, cell))
        return 1;
    if ((uint32_t)over == 0)
        return 0;
    uint32_t reach = __atomic_load_n(&tn_tables[class].reach, __ATOMIC_ACQUIRE);
    for (uint32_t d = 1; d <= reach; d++) {
        if (take_from(line_of(class, cell, d), cell)) {
            count_down(own, over);
            return 1;
        }
    }
    return 0;
}

void tn_cells_remove(uint64_t cell)
{
    for (;;) {
        uint64_t view = __atomic_load_n(&tn_view, __ATOMIC_ACQUIRE);
        unsigned old = tn_view_old(view), older = tn_view_older(view);
        if ((older != 0 && tn_cell_take(older, cell)) || (old != 0 && tn_cell_take(old, cell)) ||
            tn_cell_take(tn_view_newest(view), cell) || __atomic_load_n(&tn_view, __ATOMIC_RELAXED) == view)
            return;
    }
}
