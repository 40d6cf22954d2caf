/* Where the library's own structures live: one function in the manner of realloc, so that a program without malloc, or a test that lets it
 * fail, can bring its own. What an allocator was made with it keeps using; the function may be called by any thread that uses it. */
#ifndef TENURE_TIERS_METADATA_H
#define TENURE_TIERS_METADATA_H

#include <stddef.h>

/* Moves `block` (NULL, or of `old_bytes` bytes) to one of `new_bytes`, keeping what fits; NULL where there is no memory, and then `block`
 * is as it was. `new_bytes` 0 frees it and returns NULL. */
typedef struct tn_metadata {
    void *(*resize)(void *self, void *block, size_t old_bytes, size_t new_bytes);
    void *self;
} tn_metadata;

#endif
