/* The ledger's operations; its structure is described in ledger_internal.h. None allocates except insert, and none takes a lock on its
 * common way. */
#define _GNU_SOURCE
#include "ledger/ledger.h"

#include <string.h>

#include "ledger/ledger_internal.h"

#define LEVEL_MIN 9u
/* Levels up to this one are noted for each piece of 2^30 bytes that a block touches, so that a look-up asks no level that is not used there.
 * Notes stay; two pieces may share one. */
#define LEVEL_LOCAL 30u
#define PIECES 1024u
#define SPARSE_EVERY 256u

static uint64_t local_levels[PIECES];          /* atomic: bit L for level L */
static uint64_t wide_levels[TN_SPACE_COUNT];   /* atomic */
static __thread uint32_t removals __attribute__((tls_model("initial-exec")));

/* Where a block is entered beside its start: its pages of 2^level bytes. */
typedef struct home {
    unsigned level, page_count; /* 0 for handles */
    uint64_t pages[2];
} home;

/* Handles are numbers, not ranges: their bytes say nothing about their neighbours. */
static int exact(tn_space space)
{
    return space == TN_SPACE_VMM_HANDLE || space == TN_SPACE_ARRAY;
}

static home home_of(tn_space space, uint64_t addr, uint64_t bytes)
{
    home h = { 0 };
    if (exact(space))
        return h;
    uint64_t last = addr;
    if (bytes > 1)
        last = addr + bytes - 1 >= addr ? addr + bytes - 1 : UINT64_MAX;
    uint64_t span = last - addr;
    h.level = LEVEL_MIN;
    if (span >> LEVEL_MIN != 0)
        h.level = 64u - (unsigned)__builtin_clzll(span);
    if (h.level > 63)
        h.level = 63; /* two pages cover everything there is */
    h.pages[0] = addr >> h.level;
    h.pages[1] = last >> h.level;
    h.page_count = h.pages[0] == h.pages[1] ? 1 : 2;
    return h;
}

static uint64_t *piece_of(tn_space space, uint64_t addr)
{
    uint64_t x = ((addr >> LEVEL_LOCAL) * TN_SPACE_COUNT + (unsigned)space) * 0x9e3779b97f4a7c15u;
    return &local_levels[x >> 54];
}
_Static_assert(PIECES == 1u << 10, "piece_of() takes ten bits");

static void note_level(uint64_t *levels, unsigned level)
{
    uint64_t bit = (uint64_t)1 << level;
    if ((__atomic_load_n(levels, __ATOMIC_RELAXED) & bit) == 0)
        __atomic_fetch_or(levels, bit, __ATOMIC_RELAXED);
}

static void note_levels(tn_space space, const home *h)
{
    for (unsigned i = 0; i < h->page_count; i++)
        note_level(h->level <= LEVEL_LOCAL ? piece_of(space, h->pages[i] << h->level) : &wide_levels[space], h->level);
}

/* ---- nodes. A state read before the words and again after them says whether they belong together: who begins another life has ended the
 * one before, and stores each word with release order. */

static uint64_t word_of(const tn_node *n, unsigned i)
{
    return __atomic_load_n(&n->words[i], __ATOMIC_ACQUIRE);
}

static int lives_in(uint64_t state, tn_space space)
{
    return (state & TN_STATE_LIVES) != 0 && TN_STATE_SPACE(state) == (unsigned)space;
}

/* The entry as of `state`; what it holds is only good if the state is found unchanged afterwards. */
static void copy_words(const tn_node *n, uint64_t state, tn_entry *out)
{
    uint64_t words[TN_NODE_WORDS];
    for (unsigned i = 0; i < TN_NODE_WORDS; i++)
        words[i] = word_of(n, i);
    memcpy(out, words, sizeof *out);
    out->first_write = (uint8_t)(state & TN_STATE_WRITE);
}

/* 1 where the node still lives the life that `state` is of. *state becomes the present one. */
static int read_entry(const tn_node *n, uint64_t *state, tn_entry *out)
{
    uint64_t before = *state;
    copy_words(n, before, out);
    *state = __atomic_load_n(&n->state, __ATOMIC_RELAXED);
    out->first_write = (uint8_t)(*state & TN_STATE_WRITE);
    return tn_state_same_life(before, *state);
}

/* Ends the life that *state is of, if it still is lived; to exactly one caller it says 1, and to that one *out is good. */
static __attribute__((hot)) int end_life(tn_node *n, uint64_t *state, tn_entry *out)
{
    uint64_t before = *state;
    while (tn_state_same_life(before, *state)) {
        copy_words(n, *state, out);
        if (__atomic_compare_exchange_n(&n->state, state, tn_state_next(*state), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return 1;
    }
    return 0;
}

static void leave_pages(tn_space space, uint32_t node, const home *h, unsigned pages)
{
    for (unsigned i = 0; i < pages; i++)
        tn_cells_remove(tn_cell(tn_hash_page(space, h->level, h->pages[i]), h->level, node));
}

/* Takes a node whose life has ended out of the table, and frees it. */
static void leave(tn_space space, uint32_t node, uint64_t addr, uint64_t bytes)
{
    home h = home_of(space, addr, bytes);
    tn_cells_remove(tn_cell(tn_hash_page(space, 0, addr), h.level, node));
    leave_pages(space, node, &h, h.page_count);
    tn_node_free(node);
}

/* ---- blocks that come again. Drivers give the addresses back that were freed last, and programs ask for the same sizes: so a thread leaves the
 * nodes of its last removals where they are, with their cells, and what it inserts at the same place lives in the same node again. That spares
 * four of the five locked instructions that a removal costs, and all of an insertion's. Their states say that nobody lives in them, so
 * nobody but the thread itself takes them for anything. */

#define RECENT 8u
typedef struct recent {
    uint32_t node; /* TN_NO_NODE: none */
    uint32_t space;
} recent;
static __thread recent recents[RECENT] __attribute__((tls_model("initial-exec")));

static recent *recent_of(tn_space space, uint64_t addr)
{
    return &recents[(addr + (uint64_t)space) * 0x9e3779b97f4a7c15u >> 61];
}
_Static_assert(RECENT == 1u << 3, "recent_of() takes three bits");

/* A signal handler may jump away from here: then the node is lost, and nothing else. */
static void forget(recent *r)
{
    uint32_t node = r->node;
    if (node == TN_NO_NODE)
        return;
    r->node = TN_NO_NODE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    leave((tn_space)r->space, node, word_of(tn_node_at(node), 0), word_of(tn_node_at(node), 1));
}

/* A node whose life has just ended. */
static __attribute__((hot)) void keep(tn_space space, uint32_t node, const tn_entry *e)
{
    recent *r = recent_of(space, e->addr);
    if (r->node != TN_NO_NODE) {
        /* Many are removed one after the other, and this one will be forgotten too: by then the lines of its pages are there. */
        home h = home_of(space, e->addr, e->bytes);
        for (unsigned i = 0; i < h.page_count; i++)
            tn_cells_prefetch(tn_hash_page(space, h.level, h.pages[i]));
        forget(r);
    }
    r->space = (uint32_t)space;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    r->node = node;
}

static int is_recent(const recent *r, tn_space space, const tn_entry *e)
{
    return r->node != TN_NO_NODE && r->space == (uint32_t)space && word_of(tn_node_at(r->node), 0) == e->addr && word_of(tn_node_at(r->node), 1) == e->bytes;
}

void tn_ledger_thread_ends(void)
{
    for (unsigned i = 0; i < RECENT; i++)
        forget(&recents[i]);
}

/* ---- looking up */

/* What a look-up is for, and what it found. */
typedef struct query {
    tn_space space;
    uint64_t addr;
    /* Found: */
    uint32_t node;
    uint64_t state;
    tn_entry entry;
} query;

typedef int (*match_fn)(query *q, uint64_t cell);

static inline __attribute__((always_inline)) int look_in_line(tn_line *line, uint32_t hash, match_fn match, query *q)
{
    for (unsigned i = 0; i < TN_LINE_CELLS; i++) {
        if (__builtin_expect(!tn_cell_has_hash(&line->cells[i], hash), 1))
            continue;
        uint64_t cell = __atomic_load_n(&line->cells[i], __ATOMIC_ACQUIRE);
        if ((uint32_t)(cell >> 32) == hash && cell > TN_CELL_FREE && match(q, cell))
            return 1;
    }
    return 0;
}

static inline __attribute__((always_inline)) int look_in(unsigned class, uint32_t hash, match_fn match, query *q)
{
    const tn_table *t = &tn_tables[class];
    uint32_t mask = ((uint32_t)1 << class) - 1;
    tn_line *own = &t->lines[hash & mask];
    if (look_in_line(own, hash, match, q))
        return 1;
    if (__builtin_expect((uint32_t)__atomic_load_n(&own->over, __ATOMIC_ACQUIRE) == 0, 1))
        return 0;
    uint32_t reach = __atomic_load_n(&t->reach, __ATOMIC_ACQUIRE);
    for (uint32_t d = 1; d <= reach; d++) {
        if (look_in_line(&t->lines[(hash + d) & mask], hash, match, q))
            return 1;
    }
    return 0;
}

/* The old tables first, since what leaves it is in the new one before. Where nothing is found and the view is another afterwards, it may have
 * been moved on twice. */
static inline __attribute__((always_inline)) int look(uint64_t view, uint32_t hash, match_fn match, query *q)
{
    unsigned old = tn_view_old(view), older = tn_view_older(view);
    if (__builtin_expect(old != 0, 0) && ((older != 0 && look_in(older, hash, match, q)) || look_in(old, hash, match, q)))
        return 1;
    return look_in(tn_view_newest(view), hash, match, q);
}

/* Whether the block that the cell leads to holds the address, or starts there. */
static inline __attribute__((always_inline)) int holds(query *q, uint64_t cell, int start_only)
{
    q->node = tn_cell_node(cell);
    const tn_node *n = tn_node_at(q->node);
    q->state = __atomic_load_n(&n->state, __ATOMIC_ACQUIRE);
    if (!lives_in(q->state, q->space))
        return 0;
    uint64_t start = word_of(n, 0);
    if (q->addr != start) {
        uint64_t bytes = word_of(n, 1);
        if (start_only || q->addr < start || q->addr - start >= (bytes != 0 ? bytes : 1))
            return 0;
    }
    return 1;
}
_Static_assert(offsetof(tn_entry, addr) == 0 && offsetof(tn_entry, bytes) == 8, "the first two words");

static int find_start(query *q, uint64_t cell)
{
    return holds(q, cell, 1) && read_entry(tn_node_at(q->node), &q->state, &q->entry);
}

static int find_inside(query *q, uint64_t cell)
{
    return holds(q, cell, 0) && read_entry(tn_node_at(q->node), &q->state, &q->entry);
}

static __attribute__((hot)) int end_start(query *q, uint64_t cell)
{
    return holds(q, cell, 1) && end_life(tn_node_at(q->node), &q->state, &q->entry);
}

/* Entries that start at the address, then the levels upward. All levels' lines are asked for before the first is looked at, so that their
 * cache misses overlap. */
static int find_in(uint64_t view, query *q)
{
    uint32_t hashes[64];
    /* Most addresses that come back are the ones that were handed out. */
    if (look(view, tn_hash_page(q->space, 0, q->addr), find_start, q))
        return 1;
    if (exact(q->space))
        return 0;
    uint64_t levels = __atomic_load_n(piece_of(q->space, q->addr), __ATOMIC_RELAXED) | __atomic_load_n(&wide_levels[q->space], __ATOMIC_RELAXED);
    for (uint64_t rest = levels; rest != 0; rest &= rest - 1) {
        unsigned level = (unsigned)__builtin_ctzll(rest);
        hashes[level] = tn_hash_page(q->space, level, q->addr >> level);
        tn_cells_prefetch(hashes[level]);
    }
    for (; levels != 0; levels &= levels - 1)
        if (look(view, hashes[__builtin_ctzll(levels)], find_inside, q))
            return 1;
    return 0;
}

static int find(query *q)
{
    for (;;) {
        uint64_t view = __atomic_load_n(&tn_view, __ATOMIC_ACQUIRE);
        if (find_in(view, q))
            return 1;
        if (__builtin_expect(__atomic_load_n(&tn_view, __ATOMIC_RELAXED) == view, 1))
            return 0;
    }
}

/* ---- the ledger's functions */

static void work_if_any(void)
{
    if (__builtin_expect((__atomic_load_n(&tn_view, __ATOMIC_RELAXED) & TN_VIEW_WORK) != 0, 0))
        tn_table_work();
}

tn_error tn_ledger_init(void)
{
    return tn_table_start() ? TN_OK : TN_E_NOMEM;
}

static __attribute__((hot)) int remove_start(tn_space space, uint64_t addr, tn_entry *out)
{
    query q;
    uint32_t hash = tn_hash_page(space, 0, addr);
    q.space = space;
    q.addr = addr;
    for (;;) {
        uint64_t view = __atomic_load_n(&tn_view, __ATOMIC_ACQUIRE);
        if (look(view, hash, end_start, &q))
            break;
        if (__builtin_expect(__atomic_load_n(&tn_view, __ATOMIC_RELAXED) == view, 1))
            return 0;
    }
    keep(space, q.node, &q.entry);
    if (out != NULL)
        *out = q.entry;
    return 1;
}

/* Fills a node and lets it live. From here on it is there, and may be gone at once. */
static __attribute__((hot)) void begin_life(tn_node *n, tn_space space, const tn_entry *e)
{
    uint64_t words[TN_NODE_WORDS];
    memcpy(words, e, sizeof words);
    for (unsigned i = 0; i < TN_NODE_WORDS; i++)
        __atomic_store_n(&n->words[i], words[i], __ATOMIC_RELEASE);
    __atomic_store_n(&n->state, tn_state_next(__atomic_load_n(&n->state, __ATOMIC_RELAXED)) | TN_STATE_LIVES | (uint64_t)space << 8 | e->first_write,
                     __ATOMIC_RELEASE);
}

/* 0 when there is no memory. */
static int insert_new(tn_space space, const tn_entry *e)
{
    home h = home_of(space, e->addr, e->bytes);
    for (unsigned i = 0; i < h.page_count; i++)
        tn_cells_prefetch(tn_hash_page(space, h.level, h.pages[i]));
    uint32_t node = tn_node_new();
    if (node == TN_NO_NODE)
        return 0;
    note_levels(space, &h);
    unsigned pages = 0;
    while (pages < h.page_count && tn_cells_add(tn_cell(tn_hash_page(space, h.level, h.pages[pages]), h.level, node)))
        pages++;
    if (pages < h.page_count || !tn_cells_add(tn_cell(tn_hash_page(space, 0, e->addr), h.level, node))) {
        leave_pages(space, node, &h, pages);
        tn_node_free(node);
        return 0;
    }
    begin_life(tn_node_at(node), space, e);
    return 1;
}

int tn_ledger_insert(tn_space space, const tn_entry *e, tn_entry *replaced)
{
    int was_there = remove_start(space, e->addr, replaced);
    return tn_ledger_insert_new(space, e) == 0 ? was_there : -1;
}

int tn_ledger_insert_new(tn_space space, const tn_entry *e)
{
    recent *r = recent_of(space, e->addr);
    if (is_recent(r, space, e)) {
        tn_node *n = tn_node_at(r->node);
        r->node = TN_NO_NODE;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        begin_life(n, space, e);
    } else if (!insert_new(space, e)) {
        return -1;
    }
    work_if_any();
    return 0;
}

int tn_ledger_remove(tn_space space, uint64_t addr, tn_entry *out)
{
    int removed = remove_start(space, addr, out);
    if (++removals % SPARSE_EVERY == 0)
        tn_table_sparse();
    work_if_any();
    return removed;
}

int tn_ledger_find(tn_space space, uint64_t addr, tn_entry *out)
{
    query q;
    q.space = space;
    q.addr = addr;
    if (!find(&q))
        return 0;
    if (out != NULL)
        *out = q.entry;
    return 1;
}

/* A life's sequence is in its node's state, so the same state is the same life. */
static void note(tn_written *where, const query *q, uint64_t state)
{
    where->start = q->entry.addr;
    where->bytes = q->entry.bytes != 0 ? q->entry.bytes : 1;
    where->state = &tn_node_at(q->node)->state;
    where->value = state;
}

static void note_written(tn_written *where, const query *q, uint64_t state)
{
    if (where != NULL && (state & TN_STATE_WRITE) != 0)
        note(where, q, state);
}

int tn_ledger_find_at(tn_space space, uint64_t addr, tn_entry *out, tn_written *where)
{
    query q;
    q.space = space;
    q.addr = addr;
    if (!find(&q))
        return 0;
    *out = q.entry;
    note(where, &q, q.state);
    return 1;
}

static int mark_write_in(tn_space space, uint64_t addr, uint8_t write, tn_entry *out, tn_written *where, int *found)
{
    query q;
    q.space = space;
    q.addr = addr;
    while ((*found = find(&q)) != 0) {
        /* Read first: a store would take the line from whoever looks up the same block. */
        if ((q.state & TN_STATE_WRITE) != 0) {
            note_written(where, &q, q.state);
            return 0;
        }
        uint64_t state = q.state;
        if (__atomic_compare_exchange_n(&tn_node_at(q.node)->state, &state, state | write, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            q.entry.first_write = write;
            note_written(where, &q, state | write);
            if (out != NULL)
                *out = q.entry;
            return write != 0;
        }
    }
    return 0;
}

int tn_ledger_mark_write_at(uint64_t addr, uint8_t write, tn_entry *out, tn_written *where)
{
    int found;
    int set = mark_write_in(TN_SPACE_ADDRESS, addr, write, out, where, &found);
    return found ? set : mark_write_in(TN_SPACE_MAPPING, addr, write, out, where, &found);
}

int tn_ledger_mark_write(uint64_t addr, uint8_t write, tn_entry *out)
{
    return tn_ledger_mark_write_at(addr, write, out, NULL);
}

void tn_ledger_sweep(int (*drop)(const tn_entry *, void *), void (*gone)(const tn_entry *, void *), void *arg)
{
    for (uint32_t node = tn_node_next(TN_NO_NODE); node != TN_NO_NODE; node = tn_node_next(node)) {
        tn_node *n = tn_node_at(node);
        tn_entry e;
        uint64_t state = __atomic_load_n(&n->state, __ATOMIC_ACQUIRE);
        if ((state & TN_STATE_LIVES) == 0 || !read_entry(n, &state, &e) || !drop(&e, arg) || !end_life(n, &state, &e))
            continue;
        leave((tn_space)TN_STATE_SPACE(state), node, e.addr, e.bytes);
        work_if_any();
        if (gone != NULL)
            gone(&e, arg);
    }
    tn_table_sparse();
}

size_t tn_ledger_count(void)
{
    size_t count = 0;
    for (uint32_t node = tn_node_next(TN_NO_NODE); node != TN_NO_NODE; node = tn_node_next(node))
        count += (__atomic_load_n(&tn_node_at(node)->state, __ATOMIC_RELAXED) & TN_STATE_LIVES) != 0;
    return count;
}
