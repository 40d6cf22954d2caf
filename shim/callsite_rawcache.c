/* Raw chains of return addresses to site ids, for one generation of loaded code. Readers take no lock: a chain is published by one
 * release store of its pointer, and memory is used again only in a later epoch, which a reader notices by reading the epoch a second
 * time after it has read the chain (a sequence lock whose writer is a dlclose). */
#include "shim/callsite_tables.h"

#include "ledger/tn_hot_data.h"
#include "shim/callsite_memory.h"

/* A dlclose adds RUNNING when it begins and GENERATION - RUNNING when it ends: one atomic addition each. */
#define RUNNING 1u
#define GENERATION 0x10000u
#define RUNNING_MASK (GENERATION - 1u)

#define FIRST_SLOTS 2048u
/* Of 17 frames each, 20 MiB. A host whose stacks end in ever new garbage (code without unwind tables) would fill any table; a full one starts
 * a new generation. */
#define CHAINS_MAX 131072u

typedef struct raw_chain {
    uint64_t hash;
    uint64_t value; /* frame count above, site id in the lower 32 bits */
    uint64_t frames[];
} raw_chain;

typedef struct raw_table {
    uint64_t mask;
    raw_chain *slots[];
} raw_table;

TN_HOT_DATA uint64_t tn_the_epoch = GENERATION;
static struct {
    raw_table *table;
    uint64_t epoch; /* whose chains the table holds; 0 while it is cleared */
    uint64_t count;
    tn_pool pool;
} raw;

int tn_epoch_idle(uint64_t epoch)
{
    return (epoch & RUNNING_MASK) == 0;
}

void tn_epoch_dlclose_begin(void)
{
    __atomic_fetch_add(&tn_the_epoch, RUNNING, __ATOMIC_SEQ_CST);
}

void tn_epoch_dlclose_end(void)
{
    __atomic_fetch_add(&tn_the_epoch, GENERATION - RUNNING, __ATOMIC_SEQ_CST);
}

/* Four independent lanes, so that the multiplications overlap. Its quality decides only how long a probe is: a hit compares the whole chain. */
uint64_t tn_rawcache_hash(const uint64_t *frames, int n)
{
    uint64_t lane[4] = { 0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u, (uint64_t)n };
    for (int i = 0; i < n; i++) {
        uint64_t x = (lane[i & 3] ^ frames[i]) * 0x9e3779b97f4a7c15u;
        lane[i & 3] = x ^ (x >> 32);
    }
    uint64_t h = lane[0] * 0xff51afd7ed558ccdu ^ lane[1] * 0xc4ceb9fe1a85ec53u ^ lane[2] * 0xd6e8feb86659fd93u ^ lane[3] * 0xa0761d6478bd642fu;
    return h ^ (h >> 32);
}

static int is_chain(const raw_chain *c, uint64_t hash, const uint64_t *frames, int n, uint32_t *value)
{
    if (__atomic_load_n(&c->hash, __ATOMIC_RELAXED) != hash)
        return 0;
    uint64_t v = __atomic_load_n(&c->value, __ATOMIC_RELAXED);
    if (v >> 32 != (uint64_t)n)
        return 0;
    for (int i = 0; i < n; i++)
        if (__atomic_load_n(&c->frames[i], __ATOMIC_RELAXED) != frames[i])
            return 0;
    *value = (uint32_t)v;
    return 1;
}

int tn_rawcache_find(uint64_t epoch, uint64_t hash, const uint64_t *frames, int n, uint32_t *value)
{
    if (!tn_epoch_idle(epoch) || __atomic_load_n(&raw.epoch, __ATOMIC_ACQUIRE) != epoch)
        return 0;
    const raw_table *t = __atomic_load_n(&raw.table, __ATOMIC_ACQUIRE);
    for (uint64_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        const raw_chain *c = __atomic_load_n(&t->slots[i], __ATOMIC_ACQUIRE);
        if (!c)
            return 0;
        if (is_chain(c, hash, frames, n, value))
            break;
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return __atomic_load_n(&tn_the_epoch, __ATOMIC_RELAXED) == epoch;
}

static void place(raw_table *t, raw_chain *c)
{
    uint64_t i = __atomic_load_n(&c->hash, __ATOMIC_RELAXED) & t->mask;
    while (t->slots[i])
        i = (i + 1) & t->mask;
    __atomic_store_n(&t->slots[i], c, __ATOMIC_RELEASE);
}

/* At most half full, so that a reader's probe always ends. The old table stays as it is for readers that still hold it. */
static int grow(void)
{
    uint64_t slots = raw.table ? 2 * (raw.table->mask + 1) : FIRST_SLOTS;
    raw_table *t = tn_pages(sizeof *t + slots * sizeof t->slots[0]);
    if (!t)
        return 0;
    t->mask = slots - 1;
    for (uint64_t i = 0; raw.table && i <= raw.table->mask; i++)
        if (raw.table->slots[i])
            place(t, raw.table->slots[i]);
    __atomic_store_n(&raw.table, t, __ATOMIC_RELEASE);
    return 1;
}

/* Empties the table for a new epoch. raw.epoch is 0 meanwhile, so no reader of the new epoch looks in before it is empty; readers of the
 * old one fail at their second look at the epoch, which the fence orders before the first word that is overwritten. */
static int begin_epoch(uint64_t epoch)
{
    __atomic_store_n(&raw.epoch, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!raw.table && !grow())
        return 0;
    if (raw.count)
        for (uint64_t i = 0; i <= raw.table->mask; i++)
            __atomic_store_n(&raw.table->slots[i], NULL, __ATOMIC_RELAXED);
    raw.count = 0;
    tn_pool_rewind(&raw.pool);
    __atomic_store_n(&raw.epoch, epoch, __ATOMIC_RELEASE);
    return 1;
}

void tn_rawcache_insert(uint64_t epoch, uint64_t hash, const uint64_t *frames, int n, uint32_t value)
{
    uint32_t known;
    if (!tn_epoch_idle(epoch) || tn_epoch() != epoch || tn_rawcache_find(epoch, hash, frames, n, &known))
        return;
    if (raw.epoch != epoch && !begin_epoch(epoch))
        return;
    if (raw.count >= CHAINS_MAX) {
        __atomic_fetch_add(&tn_the_epoch, GENERATION, __ATOMIC_SEQ_CST);
        return;
    }
    if (2 * (raw.count + 1) > raw.table->mask && !grow())
        return;
    raw_chain *c = tn_pool_take(&raw.pool, sizeof *c + (size_t)n * sizeof c->frames[0]);
    if (!c)
        return;
    __atomic_store_n(&c->hash, hash, __ATOMIC_RELAXED);
    __atomic_store_n(&c->value, (uint64_t)n << 32 | value, __ATOMIC_RELAXED);
    for (int i = 0; i < n; i++)
        __atomic_store_n(&c->frames[i], frames[i], __ATOMIC_RELAXED);
    place(raw.table, c);
    raw.count++;
}
