/* The prefix cache: each entry owns a reference of its own, so that an entry that goes away takes nothing from a request that uses the block,
 * and a block that is handed on has no entry left. */
#include <string.h>

#include "kv_cache.h"

uint64_t kv_hash(const int *tokens, size_t count)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (uint64_t)(unsigned)tokens[i]) * 0x100000001B3u;
    return hash;
}

static void remove_entry(kv_cache *kv, size_t index)
{
    memmove(&kv->entries[index], &kv->entries[index + 1], (kv->entry_count - index - 1) * sizeof *kv->entries);
    kv->entry_count--;
    memset(&kv->entries[kv->entry_count], 0, sizeof *kv->entries);
}

kv_entry *kv_find(kv_cache *kv, uint64_t hash)
{
    for (size_t i = 0; i < kv->entry_count; i++)
        if (kv->entries[i].hash == hash) {
            kv_entry found = kv->entries[i]; /* to the end of the list: it was used last */
            remove_entry(kv, i);
            kv->entries[kv->entry_count] = found;
            return &kv->entries[kv->entry_count++];
        }
    return NULL;
}

void kv_keep(kv_cache *kv, uint64_t hash, const int *tokens, uint64_t queue, tn_block *owner)
{
    if (kv_find(kv, hash) != NULL || (kv->entry_count == KV_ENTRIES && !kv_evict(kv))) {
        kv_give(kv, kv->pool, queue, owner);
        return;
    }
    kv_entry *entry = &kv->entries[kv->entry_count++];
    memset(entry, 0, sizeof *entry);
    entry->hash = hash;
    entry->queue = queue;
    memcpy(entry->tokens, tokens, sizeof entry->tokens);
    ck_assert(tn_block_move(owner, &entry->owner));
}

bool kv_evict(kv_cache *kv)
{
    for (size_t i = 0; i < kv->entry_count; i++)
        if (kv->entries[i].pins == 0) {
            kv_give(kv, kv->pool, kv->entries[i].queue, &kv->entries[i].owner);
            remove_entry(kv, i);
            kv->evictions++;
            return true;
        }
    return false;
}

size_t kv_pin(kv_cache *kv, const int *tokens, size_t count, int by)
{
    size_t pinned = 0;
    for (size_t end = KV_TOKENS; end <= count; end += KV_TOKENS) {
        kv_entry *entry = kv_find(kv, kv_hash(tokens, end));
        if (entry == NULL)
            break;
        entry->pins = (size_t)((int)entry->pins + by);
        pinned++;
    }
    return pinned;
}

size_t kv_save(kv_cache *kv, kv_saved *saved, size_t room)
{
    size_t count = kv->entry_count < room ? kv->entry_count : room;
    for (size_t i = 0; i < count; i++) {
        saved[i].hash = kv->entries[i].hash;
        memcpy(saved[i].tokens, kv->entries[i].tokens, sizeof saved[i].tokens);
        memcpy(saved[i].bytes, kv_bytes(kv->pool, &kv->entries[i].owner), KV_STRIDE);
    }
    return count;
}

tn_mem_error kv_load(kv_cache *kv, const kv_saved *saved, size_t count)
{
    tn_block owners[KV_ENTRIES];
    memset(owners, 0, sizeof owners);
    tn_mem_error error = TN_MEM_OK;
    /* Everything is taken first: only then does the cache name any of it. */
    for (size_t i = 0; i < count && error == TN_MEM_OK; i++) {
        if (kv_find(kv, saved[i].hash) != NULL)
            continue;
        error = kv_step(kv);
        if (error == TN_MEM_OK)
            error = kv_take(kv, kv->pool, TN_WORK_NO_QUEUE, &owners[i]);
        if (error == TN_MEM_OK)
            memcpy(kv_bytes(kv->pool, &owners[i]), saved[i].bytes, KV_STRIDE);
    }
    for (size_t i = 0; i < count; i++)
        if (tn_block_is_empty(&owners[i]))
            continue;
        else if (error == TN_MEM_OK)
            kv_keep(kv, saved[i].hash, saved[i].tokens, TN_WORK_NO_QUEUE, &owners[i]);
        else
            kv_give(kv, kv->pool, TN_WORK_NO_QUEUE, &owners[i]);
    return error;
}
