/* The ledger's operations; its structure is described in ledger_internal.h. No operation allocates except
 * insert, and none leaves with a lock held. */
#define _GNU_SOURCE
#include "ledger/ledger.h"

#include <errno.h>

#include "ledger/ledger_internal.h"

#define SWEEP_BATCH 32u

tn_shard tn_shards[TN_SHARDS];

/* Where a block is entered: its start in shards[0] (level 0), its pages of 2^level bytes in both. */
typedef struct tn_home {
    unsigned level;
    uint64_t start;
    uint64_t pages[2];
    uint32_t shards[2];
    unsigned page_count; /* 0 for handles */
} tn_home;

/* Handles are numbers, not ranges: their bytes say nothing about their neighbours. */
static int exact(tn_space space)
{
    return space == TN_SPACE_VMM_HANDLE || space == TN_SPACE_ARRAY;
}

static uint32_t mix(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 40);
}

static uint32_t shard_of_page(tn_space space, unsigned level, uint64_t page)
{
    if (exact(space))
        return mix(page) % TN_TIER0_SHARDS;
    if (level <= TN_TIER0_LEVEL)
        return mix((page >> (TN_TIER0_LEVEL - level)) * TN_SPACE_COUNT + space) % TN_TIER0_SHARDS;
    if (level <= TN_TIER1_LEVEL)
        return TN_TIER0_SHARDS + mix((page >> (TN_TIER1_LEVEL - level)) * TN_SPACE_COUNT + space) % TN_TIER1_SHARDS;
    return TN_SHARDS - 1;
}

static tn_home home_of(tn_space space, uint64_t addr, uint64_t bytes)
{
    tn_home h = { .start = addr };
    if (exact(space)) {
        h.shards[0] = h.shards[1] = shard_of_page(space, 0, addr);
        return h;
    }
    uint64_t last = addr;
    if (bytes > 1)
        last = addr + bytes - 1 >= addr ? addr + bytes - 1 : UINT64_MAX;
    uint64_t span = last - addr;
    h.level = TN_LEVEL_MIN;
    if (span >> TN_LEVEL_MIN != 0)
        h.level = 64u - (unsigned)__builtin_clzll(span);
    if (h.level > 63)
        h.level = 63; /* two pages cover everything there is */
    h.pages[0] = addr >> h.level;
    h.pages[1] = last >> h.level;
    h.page_count = h.pages[0] == h.pages[1] ? 1 : 2;
    for (unsigned i = 0; i < h.page_count; i++)
        h.shards[i] = shard_of_page(space, h.level, h.pages[i]);
    if (h.page_count == 1)
        h.shards[1] = h.shards[0];
    return h;
}

static void lock_home(const tn_home *h)
{
    uint32_t a = h->shards[0], b = h->shards[1];
    tn_lock_take(&tn_shards[a < b ? a : b].lock);
    if (a != b)
        tn_lock_take(&tn_shards[a < b ? b : a].lock);
}

static void unlock_home(const tn_home *h)
{
    if (h->shards[0] != h->shards[1])
        tn_lock_release(&tn_shards[h->shards[1]].lock);
    tn_lock_release(&tn_shards[h->shards[0]].lock);
}

static void count_level(tn_shard *s, tn_space space, unsigned level, int up)
{
    uint32_t *count = &s->level_count[space][level];
    uint64_t bit = (uint64_t)1 << level;
    if (up ? (*count)++ == 0 : --*count == 0)
        __atomic_store_n(&s->levels[space], s->levels[space] ^ bit, __ATOMIC_RELAXED);
}

static void copy_out(const tn_node *n, tn_entry *out)
{
    if (out == NULL)
        return;
    *out = n->entry;
    out->first_write = __atomic_load_n(&n->first_write, __ATOMIC_RELAXED);
}

static int holds(const tn_node *n, tn_space space, uint64_t addr)
{
    return n->space == (uint8_t)space && addr >= n->entry.addr &&
           addr - n->entry.addr < (n->entry.bytes != 0 ? n->entry.bytes : 1);
}

/* The node that starts at addr, in a locked shard. */
static uint32_t search_start(const tn_shard *s, tn_space space, uint64_t addr)
{
    uint32_t hash = tn_hash_page(space, 0, addr);
    if (s->slots.at == NULL)
        return TN_NO_NODE;
    for (uint32_t i = hash & s->slots.mask; s->slots.at[i].node != TN_NO_NODE; i = (i + 1) & s->slots.mask) {
        if (s->slots.at[i].hash != hash)
            continue;
        const tn_node *n = tn_node_at(s->slots.at[i].node);
        if (n->space == (uint8_t)space && n->entry.addr == addr)
            return s->slots.at[i].node;
    }
    return TN_NO_NODE;
}

/* The node that holds addr among the levels of a locked shard. All levels' home places are asked for before the
 * first is looked at, so that their cache misses overlap. */
static uint32_t search_levels(const tn_shard *s, tn_space space, uint64_t addr)
{
    uint32_t hashes[64];
    uint64_t levels = s->levels[space] & ~(uint64_t)1;
    for (uint64_t rest = levels; rest != 0; rest &= rest - 1) {
        unsigned level = (unsigned)__builtin_ctzll(rest);
        hashes[level] = tn_hash_page(space, level, addr >> level);
        __builtin_prefetch(&s->slots.at[hashes[level] & s->slots.mask]);
    }
    for (; levels != 0; levels &= levels - 1) {
        uint32_t hash = hashes[__builtin_ctzll(levels)];
        for (uint32_t i = hash & s->slots.mask; s->slots.at[i].node != TN_NO_NODE; i = (i + 1) & s->slots.mask) {
            if (s->slots.at[i].hash == hash && holds(tn_node_at(s->slots.at[i].node), space, addr))
                return s->slots.at[i].node;
        }
    }
    return TN_NO_NODE;
}

/* Locks the shard that knows addr's block and returns the node; TN_NO_NODE with nothing locked. */
static uint32_t find_locked(tn_space space, uint64_t addr, int start_only, uint32_t *shard)
{
    static const unsigned tier_level[] = { TN_TIER0_LEVEL, TN_TIER1_LEVEL, 63 };
    unsigned tiers = exact(space) ? 1 : 3;
    for (unsigned tier = 0; tier < tiers; tier++) {
        unsigned level = exact(space) ? 0 : tier_level[tier];
        uint32_t index = shard_of_page(space, level, addr >> level);
        tn_shard *s = &tn_shards[index];
        /* A block entered before this call began is seen here without the lock too; others may be missed. */
        if (__atomic_load_n(&s->levels[space], __ATOMIC_RELAXED) == 0)
            continue;
        tn_lock_take(&s->lock);
        /* Most addresses that come back are the ones that were handed out. */
        uint32_t node = search_start(s, space, addr);
        if (node == TN_NO_NODE && !start_only && !exact(space))
            node = search_levels(s, space, addr);
        if (node != TN_NO_NODE) {
            *shard = index;
            return node;
        }
        tn_lock_release(&s->lock);
    }
    return TN_NO_NODE;
}

tn_error tn_ledger_init(void)
{
    if (!tn_slabs_init())
        return TN_E_NOMEM;
    for (unsigned i = 0; i < TN_SHARDS; i++)
        tn_shards[i].lock.rank = TN_LOCK_LEDGER;
    return TN_OK;
}

/* Asks for the pages' places early: the work on the start's own hides the misses. Both shards locked. */
static void prefetch_pages(const tn_home *h, tn_space space)
{
    for (unsigned i = 0; i < h->page_count; i++) {
        const tn_slots *s = &tn_shards[h->shards[i]].slots;
        if (s->at != NULL)
            __builtin_prefetch(&s->at[tn_hash_page(space, h->level, h->pages[i]) & s->mask], 1);
    }
}

/* Takes the node out of its tables and frees it. Both shards locked. */
static void take_out(const tn_home *h, tn_space space, uint32_t node)
{
    tn_shard *first = &tn_shards[h->shards[0]];
    prefetch_pages(h, space);
    tn_slots_remove(&first->slots, tn_hash_page(space, 0, h->start), node);
    count_level(first, space, 0, 0);
    for (unsigned i = 0; i < h->page_count; i++) {
        tn_shard *s = &tn_shards[h->shards[i]];
        tn_slots_remove(&s->slots, tn_hash_page(space, h->level, h->pages[i]), node);
        count_level(s, space, h->level, 0);
    }
    tn_node_free(h->shards[0], node);
    __atomic_store_n(&first->live, first->live - 1, __ATOMIC_RELAXED);
}

/* Removes the block that starts at addr if `drop` (may be NULL) agrees. */
static int remove_start(tn_space space, uint64_t addr, int (*drop)(const tn_entry *, void *), void *arg, tn_entry *out)
{
    for (;;) {
        uint32_t shard;
        uint32_t node = find_locked(space, addr, 1, &shard);
        if (node == TN_NO_NODE)
            return 0;
        tn_home h = home_of(space, addr, tn_node_at(node)->entry.bytes);
        if (h.shards[0] != h.shards[1]) {
            /* The second lock may have the lower index: take both in order, then look again. */
            tn_lock_release(&tn_shards[shard].lock);
            lock_home(&h);
            node = search_start(&tn_shards[h.shards[0]], space, addr);
            if (node == TN_NO_NODE || home_of(space, addr, tn_node_at(node)->entry.bytes).level != h.level ||
                home_of(space, addr, tn_node_at(node)->entry.bytes).pages[1] != h.pages[1]) {
                unlock_home(&h); /* removed or replaced meanwhile */
                continue;
            }
        }
        tn_entry copy;
        copy_out(tn_node_at(node), &copy);
        int agreed = drop == NULL || drop(&copy, arg);
        if (agreed)
            take_out(&h, space, node);
        unlock_home(&h);
        if (agreed && out != NULL)
            *out = copy;
        return agreed;
    }
}

int tn_ledger_insert(tn_space space, const tn_entry *e, tn_entry *replaced)
{
    int saved = errno;
    int was_there = remove_start(space, e->addr, NULL, NULL, replaced);
    tn_home h = home_of(space, e->addr, e->bytes);
    uint32_t node = TN_NO_NODE;
    lock_home(&h);
    prefetch_pages(&h, space);
    tn_shard *first = &tn_shards[h.shards[0]], *second = &tn_shards[h.shards[1]];
    /* All memory first, so that failing leaves nothing half entered. */
    if (tn_slots_reserve(&first->slots, 3) && (first == second || tn_slots_reserve(&second->slots, 1)))
        node = tn_node_new(h.shards[0]);
    if (node != TN_NO_NODE) {
        tn_node *n = tn_node_at(node);
        n->entry = *e;
        n->space = (uint8_t)space;
        n->level = (uint8_t)h.level;
        n->live = 1;
        __atomic_store_n(&n->first_write, e->first_write, __ATOMIC_RELAXED);
        tn_slots_add(&first->slots, tn_hash_page(space, 0, h.start), node);
        count_level(first, space, 0, 1);
        for (unsigned i = 0; i < h.page_count; i++) {
            tn_shard *s = &tn_shards[h.shards[i]];
            tn_slots_add(&s->slots, tn_hash_page(space, h.level, h.pages[i]), node);
            count_level(s, space, h.level, 1);
        }
        __atomic_store_n(&first->live, first->live + 1, __ATOMIC_RELAXED);
    }
    unlock_home(&h);
    errno = saved;
    return node == TN_NO_NODE ? -1 : was_there;
}

int tn_ledger_remove(tn_space space, uint64_t addr, tn_entry *out)
{
    int saved = errno; /* a table that shrinks makes system calls */
    int removed = remove_start(space, addr, NULL, NULL, out);
    errno = saved;
    return removed;
}

int tn_ledger_find(tn_space space, uint64_t addr, tn_entry *out)
{
    uint32_t shard;
    uint32_t node = find_locked(space, addr, 0, &shard);
    if (node == TN_NO_NODE)
        return 0;
    copy_out(tn_node_at(node), out);
    tn_lock_release(&tn_shards[shard].lock);
    return 1;
}

static int mark_write_in(tn_space space, uint64_t addr, uint8_t write, tn_entry *out, int *found)
{
    uint32_t shard;
    uint32_t node = find_locked(space, addr, 0, &shard);
    *found = node != TN_NO_NODE;
    if (node == TN_NO_NODE)
        return 0;
    tn_node *n = tn_node_at(node);
    uint8_t none = 0;
    /* Read first: a store would take the line from whoever looks up the same block. */
    int set = __atomic_load_n(&n->first_write, __ATOMIC_RELAXED) == 0 &&
              __atomic_compare_exchange_n(&n->first_write, &none, write, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (set)
        copy_out(n, out);
    tn_lock_release(&tn_shards[shard].lock);
    return set;
}

int tn_ledger_mark_write(uint64_t addr, uint8_t write, tn_entry *out)
{
    int found;
    int set = mark_write_in(TN_SPACE_ADDRESS, addr, write, out, &found);
    return found ? set : mark_write_in(TN_SPACE_MAPPING, addr, write, out, &found);
}

/* Collects up to SWEEP_BATCH blocks of a slab, from *place on, that `drop` wants; returns their number. Sets *place
 * to UINT32_MAX at the slab's end. */
static unsigned collect(uint32_t slab, uint32_t *place, int (*drop)(const tn_entry *, void *), void *arg,
                        uint64_t addrs[SWEEP_BATCH], uint8_t spaces[SWEEP_BATCH])
{
    uint32_t shard, again;
    unsigned count = 0;
    if (!tn_slab_shard(slab, &shard)) {
        *place = UINT32_MAX;
        return 0;
    }
    tn_lock_take(&tn_shards[shard].lock);
    /* Only now can it not go; it may have gone, and its id to another shard, in between. */
    if (tn_slab_shard(slab, &again) && again == shard) {
        while (count < SWEEP_BATCH) {
            int live = 0;
            const tn_node *n = tn_slab_node(slab, *place, &live);
            if (n == NULL) {
                *place = UINT32_MAX;
                break;
            }
            ++*place;
            tn_entry copy;
            if (!live)
                continue;
            copy_out(n, &copy);
            if (drop(&copy, arg)) {
                addrs[count] = copy.addr;
                spaces[count++] = n->space;
            }
        }
    }
    tn_lock_release(&tn_shards[shard].lock);
    return count;
}

void tn_ledger_sweep(int (*drop)(const tn_entry *, void *), void (*gone)(const tn_entry *, void *), void *arg)
{
    int saved = errno;
    for (uint32_t slab = 0; slab < tn_slab_end(); slab++) {
        uint32_t place = 0;
        while (place != UINT32_MAX) {
            uint64_t addrs[SWEEP_BATCH];
            uint8_t spaces[SWEEP_BATCH];
            unsigned count = collect(slab, &place, drop, arg, addrs, spaces);
            for (unsigned i = 0; i < count; i++) {
                tn_entry e;
                if (remove_start((tn_space)spaces[i], addrs[i], drop, arg, &e) && gone != NULL)
                    gone(&e, arg);
            }
        }
    }
    errno = saved;
}

size_t tn_ledger_count(void)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < TN_SHARDS; i++)
        n += __atomic_load_n(&tn_shards[i].live, __ATOMIC_RELAXED);
    return (size_t)n;
}
