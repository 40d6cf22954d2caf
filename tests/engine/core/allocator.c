#include "core/allocator.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/buffer.h"
#include "core/check.h"
#include "core/probe.h"

void arena_open(struct arena *a, size_t capacity)
{
    a->capacity = capacity;
    a->used = 0;
    CU_CHECK(cudaMalloc((void **)&a->base, capacity));
    buf_dev("core/arena", a->base, capacity);
}

void *arena_take(struct arena *a, size_t bytes)
{
    size_t need = round_up(bytes, 256);
    if (a->capacity - a->used < need)
        return NULL;
    void *p = a->base + a->used;
    a->used += need;
    return p;
}

void arena_close(struct arena *a)
{
    void *base = a->base;
    buf_free(&base);
    a->base = NULL;
    a->used = a->capacity = 0;
}

void pool_open(struct block_pool *p, size_t stride, int n_blocks)
{
    p->stride = stride;
    p->n_blocks = n_blocks;
    p->free_head = 0;
    for (int i = 0; i < n_blocks; i++)
        p->next[i] = i + 1 < n_blocks ? i + 1 : -1;
    CU_CHECK(cudaMalloc((void **)&p->base, stride * (size_t)n_blocks));
    buf_dev("core/pool", p->base, stride * (size_t)n_blocks);
}

int pool_take(struct block_pool *p)
{
    int block = p->free_head;
    if (block >= 0)
        p->free_head = p->next[block];
    return block;
}

void pool_give(struct block_pool *p, int block)
{
    p->next[block] = p->free_head;
    p->free_head = block;
}

void pool_close(struct block_pool *p)
{
    void *base = p->base;
    buf_free(&base);
    p->base = NULL;
    p->n_blocks = 0;
}

static void require(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "engine: self-check: %s\n", what);
    exit(4);
}

void core_self_check(void)
{
    struct arena a;
    struct block_pool p;
    struct device_buffer one = device_buffer_create("core/self_check", TOKEN_BYTES);

    arena_open(&a, KIB(64));
    char *first = arena_take(&a, 1000);
    char *second = arena_take(&a, 1000);
    require(first != NULL && second == first + 1024, "arena does not bump by aligned sizes");
    require(arena_take(&a, KIB(64)) == NULL, "arena gives more than it has");
    CU_CHECK(cudaMemcpy(second, one.data, 512, cudaMemcpyDeviceToDevice));
    CU_CHECK(cudaDeviceSynchronize()); /* within the device it returns before it is done, and what reads it is another stream */

    pool_open(&p, KIB(8), 16);
    int x = pool_take(&p);
    int y = pool_take(&p);
    pool_give(&p, x);
    require(pool_take(&p) == x && x != y, "pool does not return the last given block first");

    pool_close(&p);
    arena_close(&a);
    device_buffer_release(&one);
}
