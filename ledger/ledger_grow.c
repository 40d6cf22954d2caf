/* How the ledger's table grows and shrinks. Whether it should is seen from how far a cell is from its line and from a sample of lines, so
 * that nobody counts. Then another table is prepared, new cells go there, and the old one's are moved; all this in small parts by the calls that
 * insert and remove, one at a time under the growth lock, which no other call waits for. A cell is in the new table before it leaves the
 * old one, and look-ups ask the old one first: so none is ever missed. */
#define _GNU_SOURCE
#include <errno.h>

#include "ledger/ledger_internal.h"
#include "ledger/tn_sys.h"

/* Lines a call prepares (a page of memory) and moves.. */
#define PREPARE_LINES 64u
#define MOVE_LINES 16u
#define SAMPLE_LINES 64u

static tn_lock growth = TN_LOCK_INIT(TN_LOCK_LEDGER);
/* Under the growth lock. */
static enum { IDLE, PREPARING, MOVING } phase;
static unsigned target; /* the class of the table that is prepared, or that cells are moved to */
static uint64_t at;     /* the line that is next, of the table that is prepared or is left */

static void set_view(unsigned newest, unsigned old, unsigned older, uint64_t work)
{
    uint64_t number = __atomic_load_n(&tn_view, __ATOMIC_RELAXED) / TN_VIEW_NUMBER + 1;
    __atomic_store_n(&tn_view, number * TN_VIEW_NUMBER | work | (uint64_t)older << TN_VIEW_OLDER_SHIFT | (uint64_t)old << TN_VIEW_OLD_SHIFT | newest,
                     __ATOMIC_RELEASE);
}

static uint64_t view_now(void)
{
    return __atomic_load_n(&tn_view, __ATOMIC_RELAXED);
}

static unsigned newest(void)
{
    return tn_view_newest(view_now());
}

/* Lines of a table that nobody uses: their cells are all closed. Readers and writers that come late, with a view of long ago, find them closed
 * until they are free, and notice by the view then. */
static void prepare(uint64_t lines)
{
    tn_table *t = &tn_tables[target];
    for (; lines > 0 && at >> target == 0; lines--, at++) {
        tn_line *line = &t->lines[at];
        __atomic_store_n(&line->over, (uint64_t)t->life << 32, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < TN_LINE_CELLS; i++)
            __atomic_store_n(&line->cells[i], TN_CELL_FREE, __ATOMIC_RELEASE);
    }
}

static int begin(unsigned class)
{
    tn_table *t = &tn_tables[class];
    if (class < TN_CLASS_MIN || class > TN_CLASS_MAX)
        return 0;
    if (t->lines == NULL) {
        tn_line *lines = tn_sys_map_memory(sizeof(tn_line) << class);
        if (lines == NULL)
            return 0;
        __atomic_store_n(&t->lines, lines, __ATOMIC_RELEASE);
    }
    t->life++;
    __atomic_store_n(&t->reach, 0, __ATOMIC_RELAXED);
    target = class;
    at = 0;
    phase = PREPARING;
    return 1;
}

/* Closes one cell of the old table, having put what it holds into the new one; 0 when there was no room for it. */
static int move(uint64_t *cell)
{
    uint64_t there = __atomic_load_n(cell, __ATOMIC_ACQUIRE);
    while (there != TN_CELL_CLOSED) {
        int held = there != TN_CELL_FREE;
        if (held && !tn_cell_put(target, there))
            return 0;
        uint64_t expected = there;
        if (__atomic_compare_exchange_n(cell, &expected, TN_CELL_CLOSED, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 1;
        /* Removed meanwhile: its copy is one too many. Where the same cell was entered again in between, one of the two stays. */
        if (held)
            (void)tn_cell_take(target, there);
        there = expected;
    }
    return 1;
}

/* The table is closed and asked for no more; its memory goes back, and reads as closed from then on. */
static int finish(unsigned left)
{
    unsigned old = tn_view_old(view_now());
    at = 0;
    if (left != old) {
        set_view(target, old, 0, TN_VIEW_WORK);
    } else {
        set_view(target, 0, 0, 0);
        phase = IDLE;
    }
    (void)tn_sys_advise(tn_tables[left].lines, sizeof(tn_line) << left, MADV_DONTNEED);
    return left > target;
}

/* One part of what is to do. 1: the table has become smaller by it. Growth lock. */
static int work(void)
{
    if (phase == PREPARING) {
        prepare(PREPARE_LINES);
        if (at >> target != 0) {
            set_view(target, newest(), 0, TN_VIEW_WORK);
            phase = MOVING;
            at = 0;
        }
    } else if (phase == MOVING) {
        unsigned left = tn_view_older(view_now()) != 0 ? tn_view_older(view_now()) : tn_view_old(view_now());
        for (unsigned lines = 0; lines < MOVE_LINES && at >> left == 0; lines++, at++)
            for (unsigned i = 0; i < TN_LINE_CELLS; i++)
                if (!move(&tn_tables[left].lines[at].cells[i]))
                    return 0;
        if (at >> left != 0)
            return finish(left);
    }
    return 0;
}

void tn_table_work(void)
{
    int saved = errno;
    if (tn_lock_try(&growth)) {
        int smaller = work();
        tn_lock_release(&growth);
        if (smaller)
            tn_nodes_trim();
    }
    errno = saved;
}

/* How many of the cells in a sample of the newest table's lines are taken, of SAMPLE_LINES * TN_LINE_CELLS. */
static unsigned sample(void)
{
    static uint32_t seed; /* any value will do, also a torn one */
    unsigned class = newest(), taken = 0;
    uint32_t from = __atomic_load_n(&seed, __ATOMIC_RELAXED) + 0x9e3779b9u;
    __atomic_store_n(&seed, from, __ATOMIC_RELAXED);
    for (unsigned k = 0; k < SAMPLE_LINES; k++, from += 0x9e3779b9u) {
        const tn_line *line = &tn_tables[class].lines[from & (((uint32_t)1 << class) - 1)];
        for (unsigned i = 0; i < TN_LINE_CELLS; i++)
            taken += __atomic_load_n(&line->cells[i], __ATOMIC_RELAXED) > TN_CELL_FREE;
    }
    return taken;
}

static void begin_if_idle(unsigned from, int step)
{
    int saved = errno;
    if (tn_lock_try(&growth)) {
        if (phase == IDLE && newest() == from && begin((unsigned)((int)from + step)))
            set_view(from, 0, 0, TN_VIEW_WORK);
        tn_lock_release(&growth);
    }
    errno = saved;
}

void tn_table_crowded(void)
{
    uint64_t view = __atomic_load_n(&tn_view, __ATOMIC_RELAXED);
    /* Many small blocks in one page crowd one line, and a larger table would not help that. */
    if ((view & TN_VIEW_WORK) == 0 && sample() * 2 > SAMPLE_LINES * TN_LINE_CELLS)
        begin_if_idle(tn_view_newest(view), 1);
}

void tn_table_sparse(void)
{
    uint64_t view = __atomic_load_n(&tn_view, __ATOMIC_RELAXED);
    if ((view & TN_VIEW_WORK) == 0 && tn_view_newest(view) > TN_CLASS_MIN && sample() * 8 < SAMPLE_LINES * TN_LINE_CELLS)
        begin_if_idle(tn_view_newest(view), -1);
}

/* Moves all that is left to move; 0 where the table that it goes to is full. */
static int move_all(void)
{
    while (phase == MOVING) {
        uint64_t was = at, number = view_now();
        (void)work();
        if (phase == MOVING && at == was && view_now() == number)
            return 0;
    }
    return 1;
}

/* The table that cells are moved to is full before they all are there: others entered cells faster than they were moved. A third one, by far larger,
 * takes what is in both, and this call does all of it. */
static int begin_third(void)
{
    unsigned old = tn_view_old(view_now()), middle = target;
    uint64_t line = at;
    if (tn_view_older(view_now()) != 0 || middle + 3 > TN_CLASS_MAX || !begin(middle + 3))
        return 0;
    prepare((uint64_t)1 << target);
    set_view(target, middle, old, TN_VIEW_WORK);
    phase = MOVING;
    at = line;
    return move_all();
}

int tn_table_make_room(void)
{
    int saved = errno, can = 1;
    uint64_t full = __atomic_load_n(&tn_view, __ATOMIC_RELAXED);
    tn_lock_take(&growth);
    if (tn_view_newest(full) == newest()) { /* or somebody has made room while this call waited */
        if (phase == MOVING)
            can = move_all() || begin_third();
        if (phase == IDLE && tn_view_newest(full) == newest())
            can = begin(newest() + 1);
        while (can && phase == PREPARING)
            (void)work();
    }
    tn_lock_release(&growth);
    errno = saved;
    return can;
}

int tn_table_start(void)
{
    int saved = errno, done = 1;
    tn_lock_take(&growth);
    if (newest() == 0) {
        done = begin(TN_CLASS_MIN);
        if (done) {
            prepare((uint64_t)1 << TN_CLASS_MIN);
            set_view(TN_CLASS_MIN, 0, 0, 0);
            phase = IDLE;
        }
    }
    tn_lock_release(&growth);
    errno = saved;
    return done;
}
