/* A paged KV cache as an inference engine keeps it, over two block pools: positional tables of requests, a prefix cache by content, pins, a
 * sliding window, a persisted cache. Two kinds of holder there are, a request's table and the prefix cache; a pin is a policy of the
 * cache's. Every block's bytes name the tokens it stands for, so that a block that two requests write to is a wrong value. */
#ifndef TENURE_TESTS_TIERS_KV_CACHE_H
#define TENURE_TESTS_TIERS_KV_CACHE_H

#include "work_device.h"

enum {
    KV_TOKENS = 4,     /* a block */
    KV_TABLE = 24,     /* blocks of a request at most */
    KV_SEQUENCES = 6,
    KV_ENTRIES = 64,   /* of the prefix cache */
    KV_WINDOW = 2,     /* blocks that the sliding window needs */
    KV_STRIDE = 4096
};

typedef struct kv_sequence {
    bool active;
    uint64_t queue;                        /* where its work runs */
    int tokens[KV_TABLE * KV_TOKENS];
    size_t token_count;
    tn_block table[KV_TABLE];              /* by position; an empty owner is a hole, and the positions behind it stay */
    tn_block window[KV_TABLE];             /* likewise, in a pool of its own: all but the last KV_WINDOW are holes */
    size_t blocks;                         /* length of both, holes and all */
    size_t reused;                         /* blocks that came from the prefix cache */
} kv_sequence;

typedef struct kv_entry {
    uint64_t hash;                         /* of all tokens up to and with the block's */
    int tokens[KV_TOKENS];
    tn_block owner;                        /* the cache's own reference */
    uint64_t queue;                        /* of the request it came from, whose work may still run */
    size_t pins;                           /* by how many it is wanted kept: no reference */
} kv_entry;

typedef struct kv_cache {
    tn_host *host;
    tn_block_pool *pool, *window;
    kv_sequence sequences[KV_SEQUENCES];
    kv_entry entries[KV_ENTRIES];          /* the least recently used first */
    size_t entry_count;
    uint64_t (*uses[2])[DEVICE_QUEUES + 1]; /* by pool, block and queue: the last work on it */
    size_t evictions, waits, hits;
    size_t misuses;                        /* of handles, by the test: kv_check expects so many refusals */
    size_t step, fail_at;                  /* the step that fails; 0: none */
} kv_cache;

typedef struct kv_options {
    size_t blocks, window_blocks, max_shares;
} kv_options;

/* One entry on disk. */
typedef struct kv_saved {
    uint64_t hash;
    int tokens[KV_TOKENS];
    char bytes[KV_STRIDE];
} kv_saved;

/* Two pools that grow by single blocks, so that every acquisition that finds none free asks the backend. */
void kv_open(kv_cache *kv, const kv_options *options);

/* The pools are empty, but for nothing: every holder has let go before. */
void kv_close(kv_cache *kv);

/* Starts a request with a prompt: what the prefix cache has of it is shared, the rest computed. After an error nothing is left of it. */
tn_mem_error kv_begin(kv_cache *kv, kv_sequence *sequence, uint64_t queue, const int *tokens, size_t count);

/* One token more, with a block more where it is the first of one. After an error the request is as it was. */
tn_mem_error kv_append(kv_cache *kv, kv_sequence *sequence, int token);

/* Drafts so many tokens and takes them back, as speculation does that is refused. */
tn_mem_error kv_speculate(kv_cache *kv, kv_sequence *sequence, size_t count);

/* A second request that goes on from the first: full blocks are shared, the open one and the window copied. */
tn_mem_error kv_fork(kv_cache *kv, const kv_sequence *from, kv_sequence *to);

/* Drops the blocks at first..last-1; the table keeps its length. */
void kv_make_holes(kv_cache *kv, kv_sequence *sequence, size_t first, size_t last);

/* Ends the request: its full blocks up to the first hole go to the prefix cache, which is a move and not a copy. */
void kv_finish(kv_cache *kv, kv_sequence *sequence);

/* Ends it at whatever point it is, with its work still running. */
void kv_cancel(kv_cache *kv, kv_sequence *sequence);

/* What a kernel is given: block numbers, -1 where there is a hole. */
void kv_block_table(const kv_sequence *sequence, int32_t *table);

/* The prefix cache. */
kv_entry *kv_find(kv_cache *kv, uint64_t hash);
uint64_t kv_hash(const int *tokens, size_t count);
/* Empties the owner: into the cache, or into the pool where the cache has these tokens already. */
void kv_keep(kv_cache *kv, uint64_t hash, const int *tokens, uint64_t queue, tn_block *owner);

/* Drops the least recently used entry that is not pinned. */
bool kv_evict(kv_cache *kv);

/* Adds `by` to the pins of the prompt's entries; how many there are. */
size_t kv_pin(kv_cache *kv, const int *tokens, size_t count, int by);

size_t kv_save(kv_cache *kv, kv_saved *saved, size_t room);

/* After an error nothing was loaded. */
tn_mem_error kv_load(kv_cache *kv, const kv_saved *saved, size_t count);

/* For kv_*.c: a clean block for the queue, after waits and evictions if need be. */
tn_mem_error kv_take(kv_cache *kv, tn_block_pool *pool, uint64_t queue, tn_block *owner);
void kv_give(kv_cache *kv, tn_block_pool *pool, uint64_t queue, tn_block *owner); /* with the holder's last work on it, in `queue` */
tn_mem_error kv_step(kv_cache *kv);
char *kv_bytes(tn_block_pool *pool, const tn_block *owner);
void kv_note_use(kv_cache *kv, tn_block_pool *pool, const tn_block *owner, uint64_t queue);

/* Where a test is, for what it prints when it fails. */
extern const char *kv_where;

/* Fails the test where a block does not hold its tokens or the references are not those of the holders, one for one. */
void kv_check(kv_cache *kv);
size_t kv_holders(const kv_cache *kv);

#endif
