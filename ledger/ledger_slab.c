/* Where the ledger's nodes live: slabs of 64 KiB, each owned by one shard and given back to the system when
 * its last node goes and the shard has another one with room. */
#define _GNU_SOURCE
#include "ledger/ledger_internal.h"
#include "ledger/tn_sys.h"

#define SLAB_BYTES 65536u
#define SLAB_NODES (SLAB_BYTES / (uint32_t)sizeof(tn_node)) /* place 0 is the slab's own head */
#define SLABS_MAX 65535u

typedef struct slab_head {
    uint32_t shard;
    uint32_t used;        /* live nodes */
    uint32_t fresh;       /* places from here on were never given out, so their pages are not touched yet */
    uint32_t first_free;  /* place, 0: none */
    uint32_t previous, next; /* the shard's slabs with free nodes, as id + 1 */
    int listed;
} slab_head;

/* Slab by id: address, and owner + 1 (0: no slab). Written under `lock`; a slab cannot go while its owner's lock
 * is held, so its holder reads both without. */
typedef struct directory_row {
    slab_head *slab;
    uint32_t owner;
    uint32_t next_free;
} directory_row;

static directory_row *directory;
static tn_lock directory_lock = TN_LOCK_INIT(TN_LOCK_LEDGER_SLABS);
static uint32_t directory_end;  /* atomic */
static uint32_t free_rows;      /* id + 1 */

int tn_slabs_init(void)
{
    if (directory == NULL)
        directory = tn_sys_map_memory(SLABS_MAX * sizeof *directory);
    return directory != NULL;
}

static slab_head *slab_at(uint32_t id)
{
    return __atomic_load_n(&directory[id].slab, __ATOMIC_RELAXED);
}

static void list_add(tn_shard *s, uint32_t id)
{
    slab_head *h = slab_at(id);
    h->previous = 0;
    h->next = s->partial_slab;
    if (h->next != 0)
        slab_at(h->next - 1)->previous = id + 1;
    s->partial_slab = id + 1;
    h->listed = 1;
}

static void list_remove(tn_shard *s, uint32_t id)
{
    slab_head *h = slab_at(id);
    if (h->previous != 0)
        slab_at(h->previous - 1)->next = h->next;
    else
        s->partial_slab = h->next;
    if (h->next != 0)
        slab_at(h->next - 1)->previous = h->previous;
    h->listed = 0;
}

static int new_slab(uint32_t shard)
{
    slab_head *h = tn_sys_map_memory(SLAB_BYTES);
    if (h == NULL)
        return 0;
    h->shard = shard;
    h->fresh = 1;
    uint32_t id = SLABS_MAX;
    tn_lock_take(&directory_lock);
    if (free_rows != 0) {
        id = free_rows - 1;
        free_rows = directory[id].next_free;
    } else if (directory_end < SLABS_MAX) {
        id = directory_end;
        __atomic_store_n(&directory_end, id + 1, __ATOMIC_RELEASE);
    }
    if (id < SLABS_MAX) {
        __atomic_store_n(&directory[id].slab, h, __ATOMIC_RELAXED);
        __atomic_store_n(&directory[id].owner, shard + 1, __ATOMIC_RELEASE);
    }
    tn_lock_release(&directory_lock);
    if (id == SLABS_MAX) {
        tn_sys_unmap(h, SLAB_BYTES);
        return 0;
    }
    list_add(&tn_shards[shard], id);
    return 1;
}

static void drop_slab(uint32_t id)
{
    slab_head *h = slab_at(id);
    tn_lock_take(&directory_lock);
    __atomic_store_n(&directory[id].owner, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&directory[id].slab, NULL, __ATOMIC_RELAXED);
    directory[id].next_free = free_rows;
    free_rows = id + 1;
    tn_lock_release(&directory_lock);
    tn_sys_unmap(h, SLAB_BYTES);
}

/* A node's number is its slab's id and its place, which is never 0. */
tn_node *tn_node_at(uint32_t node)
{
    return (tn_node *)slab_at(node >> 16) + (node & 0xffffu);
}

uint32_t tn_node_new(uint32_t shard)
{
    tn_shard *s = &tn_shards[shard];
    if (s->partial_slab == 0 && !new_slab(shard))
        return TN_NO_NODE;
    uint32_t id = s->partial_slab - 1;
    slab_head *h = slab_at(id);
    uint32_t place = h->first_free;
    if (place != 0)
        h->first_free = ((tn_node *)h)[place].next_free;
    else
        place = h->fresh++;
    if (++h->used == SLAB_NODES - 1)
        list_remove(s, id);
    return id << 16 | place;
}

void tn_node_free(uint32_t shard, uint32_t node)
{
    tn_shard *s = &tn_shards[shard];
    uint32_t id = node >> 16, place = node & 0xffffu;
    slab_head *h = slab_at(id);
    tn_node *n = (tn_node *)h + place;
    n->live = 0;
    n->next_free = h->first_free;
    h->first_free = place;
    h->used--;
    if (!h->listed)
        list_add(s, id);
    /* The last one with room stays, so that one block allocated and freed in turn costs no mapping. */
    if (h->used == 0 && (h->previous != 0 || h->next != 0)) {
        list_remove(s, id);
        drop_slab(id);
    }
}

uint32_t tn_slab_end(void)
{
    return __atomic_load_n(&directory_end, __ATOMIC_ACQUIRE);
}

int tn_slab_shard(uint32_t slab, uint32_t *shard)
{
    uint32_t owner = __atomic_load_n(&directory[slab].owner, __ATOMIC_ACQUIRE);
    *shard = owner - 1;
    return owner != 0;
}

const tn_node *tn_slab_node(uint32_t slab, uint32_t i, int *live)
{
    slab_head *h = slab_at(slab);
    if (i + 1 >= h->fresh)
        return NULL;
    const tn_node *n = (const tn_node *)h + i + 1;
    *live = n->live;
    return n;
}

_Static_assert(sizeof(slab_head) <= sizeof(tn_node), "the head takes one place");
_Static_assert(SLAB_NODES <= 65536u, "a place fits 16 bits");
