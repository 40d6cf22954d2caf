#include "tiers/metadata_use.h"

#include <stdlib.h>

#include "tiers/size.h"

static void *resize_by_malloc(void *self, void *block, size_t old_bytes, size_t new_bytes)
{
    (void)self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_bytes);
}

tn_metadata tn_metadata_or_malloc(const tn_metadata *given)
{
    return given != NULL && given->resize != NULL ? *given : (tn_metadata){.resize = resize_by_malloc};
}

bool tn_metadata_grow(const tn_metadata *metadata, void **array, size_t *room, size_t needed, size_t item)
{
    if (needed <= *room)
        return true;
    size_t wanted, bytes;
    /* Doubled, so that a long run of takes moves each element a constant number of times. */
    if (!tn_size_multiply(*room, 2, &wanted))
        return false;
    wanted = wanted < needed ? needed : wanted;
    wanted = wanted < 8 ? 8 : wanted;
    if (!tn_size_multiply(wanted, item, &bytes))
        return false;
    void *moved = metadata->resize(metadata->self, *array, *room * item, bytes);
    if (moved == NULL)
        return false;
    *array = moved;
    *room = wanted;
    return true;
}

void tn_metadata_free(const tn_metadata *metadata, void *block, size_t bytes)
{
    if (block != NULL)
        (void)metadata->resize(metadata->self, block, bytes, 0);
}
