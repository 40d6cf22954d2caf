/* Memory for the call-site tables: blocks from anonymous mappings, handed out front to back. A tn_pool belongs to one table and is used
 * under that table's lock. Mappings stay for the life of the process, so that a reader without a lock never touches unmapped memory. */
#ifndef TENURE_SHIM_CALLSITE_MEMORY_H
#define TENURE_SHIM_CALLSITE_MEMORY_H

#include <stddef.h>

typedef struct tn_pool_block tn_pool_block;
typedef struct tn_pool {
    tn_pool_block *first, *current;
    size_t used; /* bytes of current */
} tn_pool;

/* Zeroed pages, or NULL. */
void *tn_pages(size_t bytes);
/* 16-byte aligned, at most 64 KiB, contents undefined after a rewind, else zero. NULL when no memory is left. */
void *tn_pool_take(tn_pool *pool, size_t bytes);
/* All of it is free again; the blocks stay mapped. */
void tn_pool_rewind(tn_pool *pool);

#endif
