#include "memory/kv_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/kernels.h"
#include "core/probe.h"
#include "memory/vram_allocator.h"

#define PREFIX_ENTRIES 8
#define PREFIX_BLOCKS 16
#define RESIDUAL_TOKENS 64

struct sequence {
    int blocks[KV_MAX_SEQ_BLOCKS];
    int n_blocks;
    int n_tokens;
};

struct prefix_entry {
    uint64_t hash;
    int blocks[PREFIX_BLOCKS];
    int n_blocks;
    unsigned last_use;
    int pins;
};

static struct sequence seqs[KV_MAX_SEQS];
static struct prefix_entry prefixes[PREFIX_ENTRIES];
static unsigned use_clock;
static int prefix_hits;
static int passed_over;
static int holes_made;
static void *residual_ring;
static void *host_table;
static int block_tokens;

void kv_manager_init(struct engine *eng)
{
    const struct engine_config *cfg = eng->cfg;
    size_t ring = (size_t)cfg->max_batch * (size_t)cfg->n_layers * 2 * RESIDUAL_TOKENS * (size_t)cfg->kv_heads *
                  (size_t)cfg->head_dim * 2 / 16;
    size_t table = (size_t)cfg->max_batch * KV_MAX_SEQ_BLOCKS * sizeof(int32_t);

    residual_ring = vram_alloc(ring, "memory/residual_ring", 0);
    CU_CHECK(cudaHostAlloc(&host_table, table, cudaHostAllocDefault));
    buf_host("memory/host_block_table", host_table, table);
    block_tokens = cfg->kv_block_tokens;
}

void kv_manager_release(void)
{
    kv_prefix_drop_all();
    buf_free_host(&host_table);
    vram_free(&residual_ring);
}

void *kv_residual_ring(void)
{
    return residual_ring;
}

/* The least recently used entry, pinned or not as asked; NULL if there is none. */
static struct prefix_entry *oldest(bool also_pinned)
{
    struct prefix_entry *found = NULL;
    for (int i = 0; i < PREFIX_ENTRIES; i++) {
        struct prefix_entry *e = &prefixes[i];
        if (e->n_blocks == 0 || (e->pins > 0 && !also_pinned))
            continue;
        if (found == NULL || e->last_use < found->last_use)
            found = e;
    }
    return found;
}

static void drop_prefix(struct prefix_entry *e)
{
    for (int i = 0; i < e->n_blocks; i++)
        kv_block_drop(e->blocks[i]);
    e->n_blocks = 0;
    e->pins = 0;
}

/* Drops the least recently used prefix that is not pinned; false if there is none. */
static bool evict_prefix(void)
{
    struct prefix_entry *victim = oldest(false);
    if (victim == NULL)
        return false;
    passed_over += oldest(true) != victim;
    drop_prefix(victim);
    return true;
}

bool kv_seq_grow(int seq, int n_tokens, cudaStream_t stream)
{
    struct sequence *s = &seqs[seq];
    int before = s->n_blocks;
    int need = (s->n_tokens + n_tokens + block_tokens - 1) / block_tokens;
    if (need > KV_MAX_SEQ_BLOCKS)
        return false;
    while (s->n_blocks < need) {
        int block = kv_block_take();
        if (block < 0 && evict_prefix())
            continue;
        if (block < 0) {
            while (s->n_blocks > before)
                kv_block_drop(s->blocks[--s->n_blocks]);
            return false;
        }
        s->blocks[s->n_blocks++] = block;
    }
    s->n_tokens += n_tokens;
    if (s->n_blocks > before) {
        int32_t *row = (int32_t *)host_table + (size_t)(seq % 4) * 128;
        memcpy(row, s->blocks, sizeof(int32_t) * (size_t)(s->n_blocks < 128 ? s->n_blocks : 128));
        kernel_unary(kv_device_table(), row, stream);
        /* The row is rewritten by the next growth, so the copy must have read it. */
        CU_CHECK(cudaStreamSynchronize(stream));
    }
    return true;
}

int kv_seq_reuse_prefix(int seq, uint64_t prefix_hash, int n_tokens)
{
    struct sequence *s = &seqs[seq];
    for (int i = 0; i < PREFIX_ENTRIES; i++) {
        struct prefix_entry *e = &prefixes[i];
        if (e->n_blocks == 0 || e->hash != prefix_hash || e->n_blocks * block_tokens > n_tokens)
            continue;
        for (int b = 0; b < e->n_blocks; b++) {
            kv_block_ref(e->blocks[b]);
            s->blocks[s->n_blocks++] = e->blocks[b];
        }
        s->n_tokens = e->n_blocks * block_tokens;
        e->last_use = ++use_clock;
        prefix_hits++;
        return s->n_tokens;
    }
    return 0;
}

void kv_seq_cache_prefix(int seq, uint64_t prefix_hash, int n_blocks)
{
    struct sequence *s = &seqs[seq];
    struct prefix_entry *e = NULL;
    for (int i = 0; i < PREFIX_ENTRIES; i++)
        if (prefixes[i].n_blocks > 0 && prefixes[i].hash == prefix_hash)
            return;
    if (n_blocks > PREFIX_BLOCKS || n_blocks > s->n_blocks)
        return;
    for (int b = 0; b < n_blocks; b++)
        if (s->blocks[b] == KV_HOLE)
            return;
    do {
        for (int i = 0; i < PREFIX_ENTRIES && e == NULL; i++)
            if (prefixes[i].n_blocks == 0)
                e = &prefixes[i];
    } while (e == NULL && evict_prefix());
    if (e == NULL)
        return;
    for (int b = 0; b < n_blocks; b++) {
        kv_block_ref(s->blocks[b]);
        e->blocks[b] = s->blocks[b];
    }
    e->hash = prefix_hash;
    e->n_blocks = n_blocks;
    e->last_use = ++use_clock;
}

void kv_seq_evict_middle(int seq, int keep_front, int keep_back)
{
    struct sequence *s = &seqs[seq];
    for (int b = keep_front; b < s->n_blocks - keep_back; b++) {
        if (s->blocks[b] == KV_HOLE)
            continue;
        kv_block_drop(s->blocks[b]);
        s->blocks[b] = KV_HOLE;
        holes_made++;
    }
}

void kv_seq_free(int seq)
{
    struct sequence *s = &seqs[seq];
    for (int b = 0; b < s->n_blocks; b++)
        if (s->blocks[b] != KV_HOLE)
            kv_block_drop(s->blocks[b]);
    s->n_blocks = 0;
    s->n_tokens = 0;
}

int kv_seq_block(int seq, int slot)
{
    const struct sequence *s = &seqs[seq];
    if (s->n_blocks == 0)
        return 0;
    int block = s->blocks[slot % s->n_blocks];
    return block == KV_HOLE ? s->blocks[s->n_blocks - 1] : block;
}

int kv_seq_length(int seq)
{
    return seqs[seq].n_tokens;
}

void kv_prefix_pin(uint64_t prefix_hash)
{
    for (int i = 0; i < PREFIX_ENTRIES; i++)
        if (prefixes[i].n_blocks > 0 && prefixes[i].hash == prefix_hash)
            prefixes[i].pins++;
}

int kv_prefix_hits(void)
{
    return prefix_hits;
}

int kv_prefix_passed_over(void)
{
    return passed_over;
}

int kv_holes_made(void)
{
    return holes_made;
}

int kv_prefix_persist(struct engine *eng)
{
    void *staging = NULL;
    size_t bytes = (size_t)PREFIX_ENTRIES * PREFIX_BLOCKS * KERNEL_WINDOW;
    int loaded = 0;

    CU_CHECK(cudaHostAlloc(&staging, bytes, cudaHostAllocWriteCombined));
    buf_host("memory/prefix_persist", staging, bytes);
    for (int i = 0; i < PREFIX_ENTRIES; i++) {
        struct prefix_entry *e = &prefixes[i];
        for (int b = 0; b < e->n_blocks; b++) {
            char *slot = (char *)staging + (size_t)(i * PREFIX_BLOCKS + b) * KERNEL_WINDOW;
            kernel_unary(slot, kv_block_keys(e->blocks[b]), eng->copy);
            int fresh = kv_block_take();
            if (fresh < 0)
                continue;
            /* A loaded block replaces the entry's reference by one of its own. */
            kernel_unary(kv_block_values(fresh), slot, eng->copy);
            kv_block_drop(e->blocks[b]);
            e->blocks[b] = fresh;
            loaded++;
        }
    }
    CU_CHECK(cudaStreamSynchronize(eng->copy));
    buf_free_host(&staging);
    return loaded;
}

void kv_prefix_drop_all(void)
{
    for (int i = 0; i < PREFIX_ENTRIES; i++)
        drop_prefix(&prefixes[i]);
}
