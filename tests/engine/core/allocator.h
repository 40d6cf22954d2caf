/* A bump arena and a fixed-block pool over one device region each.
 *
 * Both were written for a design that the engine never adopted: the start-up
 * self-check is their only user. Not thread-safe. */
#ifndef ENGINE_CORE_ALLOCATOR_H
#define ENGINE_CORE_ALLOCATOR_H

#include <stddef.h>

struct arena {
    char *base;
    size_t capacity;
    size_t used;
};

struct block_pool {
    char *base;
    size_t stride;
    int n_blocks;
    int free_head;
    int next[64];
};

void arena_open(struct arena *a, size_t capacity);
/* NULL when the arena is full; 256-byte alignment. */
void *arena_take(struct arena *a, size_t bytes);
void arena_close(struct arena *a);

/* At most 64 blocks. */
void pool_open(struct block_pool *p, size_t stride, int n_blocks);
/* A block's index, or -1 when none is left. */
int pool_take(struct block_pool *p);
void pool_give(struct block_pool *p, int block);
void pool_close(struct block_pool *p);

/* Runs both disciplines once; ends the process if one misbehaves. */
void core_self_check(void);

#endif
