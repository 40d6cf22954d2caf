/* For the allocators alone: 64-bit keys to 32-bit numbers in a table of a size that never changes. The caller puts no more in than it was made
 * for and keeps calls from overlapping. */
#ifndef TENURE_TIERS_KEY_MAP_H
#define TENURE_TIERS_KEY_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/metadata_use.h"
#include "tiers/size.h"

#define TN_KEY_MAP_NONE UINT32_MAX /* no number: a key that is not there */

typedef struct tn_key_map_entry {
    uint64_t key;
    uint32_t number;
} tn_key_map_entry;

typedef struct tn_key_map {
    tn_key_map_entry *entries;
    size_t room; /* a power of two, twice what is put in at least */
} tn_key_map;

static inline bool tn_key_map_create(tn_key_map *map, size_t most, const tn_metadata *metadata)
{
    size_t room = 8, bytes;
    while (room / 2 < most)
        if (!tn_size_multiply(room, 2, &room))
            return false;
    if (!tn_size_multiply(room, sizeof(tn_key_map_entry), &bytes))
        return false;
    map->entries = metadata->resize(metadata->self, NULL, 0, bytes);
    if (map->entries == NULL)
        return false;
    map->room = room;
    for (size_t i = 0; i < room; i++)
        map->entries[i].number = TN_KEY_MAP_NONE;
    return true;
}

static inline void tn_key_map_free(tn_key_map *map, const tn_metadata *metadata)
{
    tn_metadata_free(metadata, map->entries, map->room * sizeof(tn_key_map_entry));
    *map = (tn_key_map){0};
}

static inline size_t tn_key_map_home(const tn_key_map *map, uint64_t key)
{
    return (size_t)((key ^ key >> 32) * 0x9E3779B97F4A7C15u >> 20) & (map->room - 1);
}

/* Where the key is, or would be put. */
static inline size_t tn_key_map_place(const tn_key_map *map, uint64_t key)
{
    size_t at = tn_key_map_home(map, key);
    while (map->entries[at].number != TN_KEY_MAP_NONE && map->entries[at].key != key)
        at = (at + 1) & (map->room - 1);
    return at;
}

static inline uint32_t tn_key_map_find(const tn_key_map *map, uint64_t key)
{
    return map->entries[tn_key_map_place(map, key)].number;
}

/* The key is not there yet. */
static inline void tn_key_map_put(tn_key_map *map, uint64_t key, uint32_t number)
{
    map->entries[tn_key_map_place(map, key)] = (tn_key_map_entry){key, number};
}

/* The key is there. What stands behind it moves up, so that every search still ends at the first gap. */
static inline void tn_key_map_remove(tn_key_map *map, uint64_t key)
{
    size_t mask = map->room - 1, gap = tn_key_map_place(map, key);
    for (size_t at = (gap + 1) & mask; map->entries[at].number != TN_KEY_MAP_NONE; at = (at + 1) & mask) {
        size_t home = tn_key_map_home(map, map->entries[at].key);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        map->entries[gap] = map->entries[at];
        gap = at;
    }
    map->entries[gap].number = TN_KEY_MAP_NONE;
}

#endif
