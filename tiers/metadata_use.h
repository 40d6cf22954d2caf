/* For the allocators alone: tn_metadata called, with malloc behind it where none was given. */
#ifndef TENURE_TIERS_METADATA_USE_H
#define TENURE_TIERS_METADATA_USE_H

#include <stdbool.h>

#include "tiers/metadata.h"

/* The given one, or that of malloc. */
tn_metadata tn_metadata_or_malloc(const tn_metadata *given);

/* Grows an array of `item`-byte elements to hold at least `needed`: false where there is no memory, and then nothing has changed. */
bool tn_metadata_grow(const tn_metadata *metadata, void **array, size_t *room, size_t needed, size_t item);

void tn_metadata_free(const tn_metadata *metadata, void *block, size_t bytes);

#endif
