#include "tiers/fixed.h"

#include <stdbool.h>
#include <string.h>

#include "tiers/metadata_use.h"
#include "tiers/span_make.h"

/* Who swaps `asked` for 0 has the block, and may empty `owner`; who takes it fills `owner` first. */
typedef struct record {
    size_t asked; /* bytes; 0: not live */
    tn_block owner;
} record;

struct tn_fixed {
    char *base;
    size_t stride, blocks;
    record *records;
    tn_block_pool *pool;
    bool tracks_work;
    tn_metadata metadata;
    uint64_t too_large, bad_frees;
    const void *first_bad_free;
};

static void free_all(tn_fixed *f)
{
    tn_metadata metadata = f->metadata;
    tn_metadata_free(&metadata, f->records, f->blocks * sizeof *f->records);
    tn_metadata_free(&metadata, f, sizeof *f);
}

tn_mem_error tn_fixed_create(const tn_block_pool_options *options, tn_fixed **fixed)
{
    if (options == NULL || fixed == NULL || options->backend == NULL || options->blocks == 0 || options->blocks > TN_BLOCK_POOL_MAX)
        return TN_MEM_E_ARGUMENT;
    tn_metadata metadata = tn_metadata_or_malloc(options->metadata);
    tn_fixed *f = metadata.resize(metadata.self, NULL, 0, sizeof *f);
    if (f == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *f = (tn_fixed){.stride = options->stride, .blocks = options->blocks, .tracks_work = options->work != NULL, .metadata = metadata};
    f->records = metadata.resize(metadata.self, NULL, 0, f->blocks * sizeof *f->records);
    tn_mem_error error = f->records == NULL ? TN_MEM_E_HOST_MEMORY : tn_block_pool_create(options, &f->pool);
    if (error != TN_MEM_OK) {
        free_all(f);
        return error;
    }
    memset(f->records, 0, f->blocks * sizeof *f->records);
    f->base = tn_stable_data(tn_block_pool_slab(f->pool));
    *fixed = f;
    return TN_MEM_OK;
}

tn_mem_error tn_fixed_destroy(tn_fixed **fixed)
{
    if (fixed == NULL || *fixed == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_fixed *f = *fixed;
    tn_mem_error error = tn_block_pool_reset(f->pool, NULL, 0);
    memset(f->records, 0, f->blocks * sizeof *f->records);
    if (error == TN_MEM_OK)
        error = tn_block_pool_destroy(&f->pool);
    if (error != TN_MEM_OK)
        return error;
    free_all(f);
    *fixed = NULL;
    return TN_MEM_OK;
}

tn_mem_error tn_fixed_take(tn_fixed *fixed, size_t bytes, uint64_t queue, tn_stable_span *span)
{
    if (fixed == NULL || span == NULL)
        return TN_MEM_E_ARGUMENT;
    *span = tn_stable_none();
    if (bytes == 0)
        return TN_MEM_E_ARGUMENT;
    if (bytes > fixed->stride) {
        __atomic_fetch_add(&fixed->too_large, 1, __ATOMIC_RELAXED);
        return TN_MEM_E_EXHAUSTED;
    }
    tn_block owner = tn_block_none();
    tn_mem_error error = tn_block_pool_acquire(fixed->pool, queue, &owner);
    if (error != TN_MEM_OK)
        return error;
    uint32_t id = tn_block_id(&owner);
    record *r = &fixed->records[id];
    (void)tn_block_move(&owner, &r->owner); /* empty: its last was moved out before it was released */
    __atomic_store_n(&r->asked, bytes, __ATOMIC_RELEASE);
    tn_stable_put(fixed->base + id * fixed->stride, bytes, span);
    return TN_MEM_OK;
}

static tn_mem_error bad_free(tn_fixed *f, const void *address, tn_mem_error error)
{
    if (__atomic_fetch_add(&f->bad_frees, 1, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&f->first_bad_free, address, __ATOMIC_RELAXED);
    return error;
}

/* False outside the slab. */
static bool offset_of(const tn_fixed *f, const void *address, size_t *offset)
{
    *offset = (uintptr_t)address - (uintptr_t)f->base;
    return (uintptr_t)address >= (uintptr_t)f->base && *offset < f->blocks * f->stride;
}

tn_mem_error tn_fixed_free(tn_fixed *fixed, const void *address, const tn_work_set *uncovered)
{
    size_t offset, mark_count = uncovered != NULL ? uncovered->count : 0;
    if (fixed == NULL || (mark_count > 0 && !fixed->tracks_work))
        return TN_MEM_E_ARGUMENT;
    if (!offset_of(fixed, address, &offset) || offset % fixed->stride != 0)
        return bad_free(fixed, address, TN_MEM_E_ARGUMENT);
    record *r = &fixed->records[offset / fixed->stride];
    if (__atomic_exchange_n(&r->asked, 0, __ATOMIC_ACQ_REL) == 0)
        return bad_free(fixed, address, TN_MEM_E_STALE);
    tn_block owner = tn_block_none();
    (void)tn_block_move(&r->owner, &owner);
    return tn_block_pool_release(fixed->pool, &owner, mark_count > 0 ? uncovered->marks : NULL, mark_count);
}

tn_mem_error tn_fixed_find(const tn_fixed *fixed, const void *address, void **base, size_t *bytes)
{
    size_t offset;
    if (fixed == NULL || !offset_of(fixed, address, &offset))
        return TN_MEM_E_ARGUMENT;
    size_t id = offset / fixed->stride, asked = __atomic_load_n(&fixed->records[id].asked, __ATOMIC_ACQUIRE);
    if (offset - id * fixed->stride >= asked)
        return TN_MEM_E_STALE;
    if (base != NULL)
        *base = fixed->base + id * fixed->stride;
    if (bytes != NULL)
        *bytes = asked;
    return TN_MEM_OK;
}

tn_block_pool *tn_fixed_pool(const tn_fixed *fixed)
{
    return fixed->pool;
}

void tn_fixed_read_stats(tn_fixed *fixed, tn_fixed_stats *stats)
{
    *stats = (tn_fixed_stats){.too_large = __atomic_load_n(&fixed->too_large, __ATOMIC_RELAXED),
                              .bad_frees = __atomic_load_n(&fixed->bad_frees, __ATOMIC_RELAXED),
                              .first_bad_free = __atomic_load_n(&fixed->first_bad_free, __ATOMIC_RELAXED)};
    tn_block_pool_read_stats(fixed->pool, &stats->pool);
    for (size_t i = 0; i < fixed->blocks; i++)
        stats->live_bytes += __atomic_load_n(&fixed->records[i].asked, __ATOMIC_RELAXED);
}
