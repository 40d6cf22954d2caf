/* The ledger's inside, shared by its own files only. Nodes hold the blocks, cells of one hash table lead to them: a block is entered by its
 * start, and at the level L whose page of 2^L bytes is at least as large as it. It touches at most two such pages, and a look-up of an
 * interior address asks each level in use about the one page that would hold it. Any thread; no lock but where a function says so: a node
 * belongs to whoever took it out of the free ones, from the moment its state says that it lives to everybody, and to whoever ends that life
 * by one compare-and-swap of the state. Memory stays mapped for good, so that a late reader finds at worst zeros. */
#ifndef TENURE_LEDGER_LEDGER_INTERNAL_H
#define TENURE_LEDGER_LEDGER_INTERNAL_H

#include "ledger/ledger.h"
#include "ledger/tn_lock.h"

/* ---- nodes: ledger_nodes.c */

#define TN_NODE_WORDS 7u
#define TN_NO_NODE 0u

typedef struct tn_node {
    uint64_t words[TN_NODE_WORDS]; /* the tn_entry while it lives; in a free one the first word is the next one's number */
    uint64_t state;
} tn_node;
_Static_assert(sizeof(tn_entry) == TN_NODE_WORDS * sizeof(uint64_t), "an entry fills its words");
_Static_assert(sizeof(tn_node) == 64, "a node is one cache line");

/* A state: first_write, the space, whether it lives, and a sequence number that each change of that raises, so that no two lives of a node
 * have equal states. The entry's own first_write is not used. */
#define TN_STATE_WRITE 0xffu
#define TN_STATE_SPACE(state) ((unsigned)((state) >> 8) & 7u)
#define TN_STATE_LIVES ((uint64_t)1 << 11)
#define TN_STATE_SEQUENCE ((uint64_t)1 << 16)
static inline uint64_t tn_state_next(uint64_t state)
{
    return (state & ~(TN_STATE_SEQUENCE - 1)) + TN_STATE_SEQUENCE;
}
static inline int tn_state_same_life(uint64_t a, uint64_t b)
{
    return (a ^ b) <= TN_STATE_WRITE;
}

/* Numbers are below 2^26: a slab of 1 MiB, a page of 4 KiB in it, one of 64 places. Page 0 is the slab's own. */
#define TN_NODE_BITS 26u
#define TN_SLAB_NODES_BITS 14u
extern tn_node *tn_slabs[1u << (TN_NODE_BITS - TN_SLAB_NODES_BITS)];
static inline tn_node *tn_node_at(uint32_t node)
{
    return __atomic_load_n(&tn_slabs[node >> TN_SLAB_NODES_BITS], __ATOMIC_RELAXED) + (node & ((1u << TN_SLAB_NODES_BITS) - 1));
}

/* A node of the caller's own, or TN_NO_NODE when there is no memory. Takes a lock once in 64 times that nobody has a free one. */
uint32_t tn_node_new(void);
/* Its state does not say that it lives, and no cell leads to it. */
void tn_node_free(uint32_t node);
/* Gives pages back that hold free nodes only. Takes a lock; time goes with the number of free nodes. */
void tn_nodes_trim(void);
/* Numbers of all nodes there may be: first, then each one's next; TN_NO_NODE at the end. */
uint32_t tn_node_next(uint32_t node);

/* ---- cells: ledger_table.c and ledger_grow.c */

/* A cell: the upper 32 bits are the hash, then 6 bits for the level, then the node. 0: closed, 1: free. A closed cell stays so until its
 * table is prepared again; only in free ones can be inserted. Equal cells may be there more than once for a moment, and are as good as one
 * another. */
#define TN_CELL_CLOSED 0u
#define TN_CELL_FREE 1u
#define TN_LINE_CELLS 7u
static inline uint64_t tn_cell(uint32_t hash, unsigned level, uint32_t node)
{
    return (uint64_t)hash << 32 | (uint64_t)level << TN_NODE_BITS | node;
}
static inline uint32_t tn_cell_node(uint64_t cell)
{
    return (uint32_t)cell & ((1u << TN_NODE_BITS) - 1);
}
static inline unsigned tn_cell_level(uint64_t cell)
{
    return (unsigned)(cell >> TN_NODE_BITS) & 63u;
}

/* The hash gives a line. Cells that find no room there go to the next ones, and `over` of their own line counts them: so a look-up
 * ends at a line that nobody had to leave, and removing leaves no traces. */
typedef struct tn_line {
    uint64_t over; /* upper half: the preparation of the table that it counts for */
    uint64_t cells[TN_LINE_CELLS];
} tn_line;
_Static_assert(sizeof(tn_line) == 64, "one cache line");

/* Tables of 2^c lines, one for each c that was ever needed. */
#define TN_CLASS_MIN 6u
#define TN_CLASS_MAX 26u
typedef struct tn_table {
    tn_line *lines;
    uint32_t reach; /* no cell is further from its own line */
    uint32_t life;  /* how often it was prepared */
} tn_table;
extern tn_table tn_tables[TN_CLASS_MAX + 1];

/* Which table takes new cells (bits 0 to 5), which ones are being left (6 to 11; 12 to 17, where even the one that cells were moved to became full;
 * 0: none), whether there is work to do on them (18), and above that a number that every change raises. */
extern uint64_t tn_view;
#define TN_VIEW_OLD_SHIFT 6
#define TN_VIEW_OLDER_SHIFT 12
#define TN_VIEW_WORK ((uint64_t)1 << 18)
#define TN_VIEW_NUMBER ((uint64_t)1 << 20)
static inline unsigned tn_view_newest(uint64_t view)
{
    return (unsigned)view & 63u;
}
static inline unsigned tn_view_old(uint64_t view)
{
    return (unsigned)(view >> TN_VIEW_OLD_SHIFT) & 63u;
}
static inline unsigned tn_view_older(uint64_t view)
{
    return (unsigned)(view >> TN_VIEW_OLDER_SHIFT) & 63u;
}

static inline uint32_t tn_hash_page(unsigned space, unsigned level, uint64_t page)
{
    uint64_t x = page ^ ((uint64_t)(level * TN_SPACE_COUNT + space + 1) << 55);
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return (uint32_t)(x >> 32);
}

/* Whether a cell may be of this hash, by its upper half alone: one comparison with memory. */
static inline int tn_cell_has_hash(const uint64_t *cell, uint32_t hash)
{
    return __atomic_load_n((const uint32_t *)(const void *)cell + 1, __ATOMIC_ACQUIRE) == hash;
}
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the upper half is the second one");
/* Enters a cell; 0 when there is no memory for it. */
int tn_cells_add(uint64_t cell);
/* Takes it out again. It must have been entered. */
void tn_cells_remove(uint64_t cell);
/* Both in one table and by the holder of the growth lock: how a cell is moved. 0: the table is full. */
int tn_cell_put(unsigned class, uint64_t cell);
int tn_cell_take(unsigned class, uint64_t cell);
/* The first cells of the lines are looked at soon. */
static inline void tn_cells_prefetch(uint32_t hash)
{
    unsigned class = tn_view_newest(__atomic_load_n(&tn_view, __ATOMIC_RELAXED));
    __builtin_prefetch(&tn_tables[class].lines[hash & (((uint32_t)1 << class) - 1)], 1);
}

/* ledger_grow.c. The first table; 0 when there is no memory. */
int tn_table_start(void);
/* A cell was put far from its line: perhaps the table is too small. */
void tn_table_crowded(void);
/* There was no room at all: waits for the growth lock and makes some. 0 when there is no memory. */
int tn_table_make_room(void);
/* Now and then after a removal: perhaps the table is too large by now. */
void tn_table_sparse(void);
/* A small part of the work that a growing or shrinking table has left, unless somebody is at it. */
void tn_table_work(void);

#endif
