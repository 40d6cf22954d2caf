#include "tiers/load_staging.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "tiers/metadata_use.h"

/* A block that was asked for; its region's base is NULL until the backend has given it, and while it is being given back. */
typedef struct block {
    tn_region region;
    uint64_t serial;
    bool there;
} block;

struct tn_staging {
    tn_backend *backend;
    tn_metadata metadata;
    pthread_mutex_t lock;
    block *blocks; /* the first taken first */
    size_t count, room;
    uint64_t next_serial;
    bool over;
    tn_staging_stats stats;
};

static block *find_serial(const tn_staging *s, uint64_t serial)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->blocks[i].serial == serial)
            return &s->blocks[i];
    return NULL;
}

static block *find_region(const tn_staging *s, const tn_region *region)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->blocks[i].there && s->blocks[i].region.id == region->id && s->blocks[i].region.base == region->base)
            return &s->blocks[i];
    return NULL;
}

static void take_out(tn_staging *s, block *b)
{
    memmove(b, b + 1, (size_t)(s->blocks + s->count - (b + 1)) * sizeof *b);
    s->count--;
}

tn_mem_error tn_staging_create(tn_backend *backend, const tn_metadata *metadata, tn_staging **staging)
{
    if (backend == NULL || staging == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_metadata with = tn_metadata_or_malloc(metadata);
    tn_staging *made = with.resize(with.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_staging){.backend = backend, .metadata = with};
    pthread_mutex_init(&made->lock, NULL);
    *staging = made;
    return TN_MEM_OK;
}

tn_mem_error tn_staging_destroy(tn_staging **staging)
{
    if (staging == NULL || *staging == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_staging *s = *staging;
    while (s->count > 0) {
        tn_region last = s->blocks[s->count - 1].region;
        tn_mem_error error = tn_staging_give(s, &last);
        if (error != TN_MEM_OK)
            return error;
    }
    pthread_mutex_destroy(&s->lock);
    tn_metadata metadata = s->metadata;
    tn_metadata_free(&metadata, s->blocks, s->room * sizeof *s->blocks);
    tn_metadata_free(&metadata, s, sizeof *s);
    *staging = NULL;
    return TN_MEM_OK;
}

/* Room for the block, so that what the backend gives is never without a record: an end of Loading meanwhile finds it. */
static tn_mem_error open_block(tn_staging *s, size_t bytes, const char *tag, uint64_t *serial)
{
    if (s->over) {
        s->stats.late++;
        return TN_MEM_E_BUDGET;
    }
    void *blocks = s->blocks;
    bool made = tn_metadata_grow(&s->metadata, &blocks, &s->room, s->count + 1, sizeof *s->blocks);
    s->blocks = blocks;
    if (!made)
        return TN_MEM_E_HOST_MEMORY;
    *serial = ++s->next_serial;
    s->blocks[s->count++] = (block){.region = {.tag = tag, .committed = bytes}, .serial = *serial};
    return TN_MEM_OK;
}

static void count_block(tn_staging *s, const tn_region *region)
{
    s->stats.taken++;
    s->stats.live++;
    s->stats.live_bytes += region->committed;
    if (s->stats.live_bytes > s->stats.high_water)
        s->stats.high_water = s->stats.live_bytes;
}

tn_mem_error tn_staging_take(tn_staging *staging, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    if (staging == NULL || region == NULL)
        return TN_MEM_E_ARGUMENT;
    *region = (tn_region){0};
    uint64_t serial = 0;
    pthread_mutex_lock(&staging->lock);
    tn_mem_error error = open_block(staging, bytes, tag, &serial);
    pthread_mutex_unlock(&staging->lock);
    if (error != TN_MEM_OK)
        return error;
    error = tn_backend_acquire(staging->backend, bytes, alignment, tag, region);
    pthread_mutex_lock(&staging->lock);
    block *b = find_serial(staging, serial);
    if (error == TN_MEM_OK) {
        b->region = *region;
        b->there = true;
        count_block(staging, region);
    } else {
        take_out(staging, b);
    }
    pthread_mutex_unlock(&staging->lock);
    return error;
}

tn_mem_error tn_staging_give(tn_staging *staging, tn_region *region)
{
    if (staging == NULL || region == NULL || region->base == NULL)
        return TN_MEM_E_ARGUMENT;
    pthread_mutex_lock(&staging->lock);
    block *b = find_region(staging, region);
    uint64_t serial = b != NULL ? b->serial : 0;
    size_t bytes = region->committed;
    if (b != NULL)
        b->there = false; /* another copy is STALE from now on; to the end of Loading it is there until it has gone */
    pthread_mutex_unlock(&staging->lock);
    if (serial == 0)
        return TN_MEM_E_STALE;
    tn_mem_error error = tn_backend_release(staging->backend, region);
    pthread_mutex_lock(&staging->lock);
    b = find_serial(staging, serial);
    if (error == TN_MEM_OK) {
        take_out(staging, b);
        staging->stats.given++;
        staging->stats.live--;
        staging->stats.live_bytes -= bytes;
    } else {
        b->there = true;
    }
    pthread_mutex_unlock(&staging->lock);
    return error;
}

tn_mem_error tn_staging_end_loading(tn_staging *staging, tn_staging_leftover *leftover)
{
    if (staging == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_staging_leftover left = {0};
    pthread_mutex_lock(&staging->lock);
    for (size_t i = 0; i < staging->count; i++) {
        const tn_region *r = &staging->blocks[i].region;
        if (left.count++ == 0) {
            left.tag = r->tag;
            left.address = r->base;
            left.bytes = r->committed;
        }
        left.total += r->committed;
    }
    staging->over = left.count == 0;
    pthread_mutex_unlock(&staging->lock);
    if (leftover != NULL)
        *leftover = left;
    return left.count == 0 ? TN_MEM_OK : TN_MEM_E_LEFTOVER;
}

void tn_staging_begin_loading(tn_staging *staging)
{
    pthread_mutex_lock(&staging->lock);
    staging->over = false;
    pthread_mutex_unlock(&staging->lock);
}

void tn_staging_read_stats(tn_staging *staging, tn_staging_stats *stats)
{
    pthread_mutex_lock(&staging->lock);
    *stats = staging->stats;
    pthread_mutex_unlock(&staging->lock);
}
