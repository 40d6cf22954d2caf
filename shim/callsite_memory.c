/* Bump allocation from mappings of our own. See callsite_memory.h. */
#define _GNU_SOURCE
#include "shim/callsite_memory.h"

#include "ledger/tn_sys.h"

/* A small program has some hundred sites of about 300 bytes: one block. */
#define BLOCK_BYTES ((size_t)256 * 1024)

struct tn_pool_block {
    tn_pool_block *next;
    size_t reserved;
};

void *tn_pages(size_t bytes)
{
    return tn_sys_map_memory(bytes);
}

void *tn_pool_take(tn_pool *pool, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!pool->current || pool->used + bytes > BLOCK_BYTES) {
        tn_pool_block *block = pool->current ? pool->current->next : NULL;
        if (!block) {
            block = tn_pages(BLOCK_BYTES);
            if (!block)
                return NULL;
            if (pool->current)
                pool->current->next = block;
            else
                pool->first = block;
        }
        pool->current = block;
        pool->used = sizeof *block;
    }
    void *p = (char *)pool->current + pool->used;
    pool->used += bytes;
    return p;
}

void tn_pool_rewind(tn_pool *pool)
{
    pool->current = pool->first;
    pool->used = sizeof(tn_pool_block);
}
