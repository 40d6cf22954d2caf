/* How a pool comes into being and goes: its options checked, its structures and its slab acquired. */
#include <string.h>

#include "tiers/block_pool_inside.h"
#include "tiers/metadata_use.h"
#include "tiers/size.h"

enum { LINE = 64 }; /* of a cache */

static uint64_t identities; /* given out; a pool's is never 0 and never another's */

size_t tn_pool_blocks_before(const tn_block_pool *pool, uint32_t chunk)
{
    size_t blocks = (size_t)chunk << pool->chunk_shift;
    return blocks < pool->options.blocks ? blocks : pool->options.blocks;
}

static tn_mem_error check_options(const tn_block_pool_options *o)
{
    if (o->blocks == 0 || o->blocks > TN_BLOCK_POOL_MAX || o->max_shares > TN_BLOCK_POOL_MAX ||
        (o->work != NULL && !tn_work_is_valid(o->work)))
        return TN_MEM_E_ARGUMENT;
    if (o->backend == NULL) {
        bool slots = o->stride == 0 && o->alignment == 0 && o->chunk_blocks == 0 && o->initial_blocks == 0 && o->idle_steps == 0 &&
                     !o->whole_if_fixed;
        return slots ? TN_MEM_OK : TN_MEM_E_ARGUMENT;
    }
    if (o->tag == NULL || o->stride == 0 || !tn_is_power_of_two(o->alignment) || o->alignment > TN_ALIGNMENT_MAX ||
        o->stride % o->alignment != 0)
        return TN_MEM_E_ARGUMENT;
    if (o->chunk_blocks == 0 ? o->initial_blocks != 0 || o->idle_steps != 0 || o->whole_if_fixed
                             : !tn_is_power_of_two(o->chunk_blocks) || o->initial_blocks > o->blocks)
        return TN_MEM_E_ARGUMENT;
    size_t bytes;
    if (!tn_size_multiply(o->blocks, o->stride, &bytes) || bytes > TN_BYTES_MAX)
        return TN_MEM_E_OUT_OF_MEMORY;
    return TN_MEM_OK;
}

/* Room for `count` items of `item` bytes after what there is; *offset is where. */
static bool reserve_part(size_t *total, size_t count, size_t item, size_t *offset)
{
    size_t bytes;
    *offset = *total;
    return tn_size_multiply(count, item, &bytes) && tn_size_add(*total, bytes, total) && tn_size_align_up(*total, LINE, total);
}

/* All structures in one block of host memory. */
static tn_block_pool *make_structures(const tn_block_pool_options *o)
{
    uint32_t shift = o->chunk_blocks == 0 ? 31 : (uint32_t)__builtin_ctzll(o->chunk_blocks);
    shift = shift > 31 ? 31 : shift; /* there are fewer than 2^31 blocks, so that is one chunk */
    size_t chunk_count = ((o->blocks - 1) >> shift) + 1, hold_count = o->max_shares == 0 ? 0 : o->blocks + o->max_shares;
    size_t total = 0, pool_at, blocks_at, holds_at, chunks_at, sets_at;
    if (!reserve_part(&total, 1, sizeof(tn_block_pool), &pool_at) ||
        !reserve_part(&total, o->blocks, sizeof(tn_pool_block), &blocks_at) ||
        !reserve_part(&total, hold_count, sizeof(tn_pool_hold), &holds_at) ||
        !reserve_part(&total, chunk_count + 1, sizeof(tn_pool_chunk), &chunks_at) ||
        !reserve_part(&total, o->work != NULL ? o->blocks : 0, sizeof(tn_work_set), &sets_at))
        return NULL;
    tn_metadata metadata = tn_metadata_or_malloc(o->metadata);
    if (!tn_size_add(total, LINE, &total))
        return NULL;
    char *block = metadata.resize(metadata.self, NULL, 0, total);
    if (block == NULL)
        return NULL;
    memset(block, 0, total);
    char *memory = block + (LINE - (uintptr_t)block % LINE) % LINE;
    tn_block_pool *pool = (tn_block_pool *)(memory + pool_at);
    *pool = (tn_block_pool){
        .first_hold = TN_POOL_NONE,
        .wait_first = TN_POOL_NONE,
        .wait_last = TN_POOL_NONE,
        .chunk_shift = shift,
        .identity = __atomic_add_fetch(&identities, 1, __ATOMIC_RELAXED),
        .blocks = (tn_pool_block *)(memory + blocks_at),
        .holds = (tn_pool_hold *)(memory + holds_at),
        .chunks = (tn_pool_chunk *)(memory + chunks_at),
        .sets = o->work != NULL ? (tn_work_set *)(memory + sets_at) : NULL,
        .stats = {.blocks = o->blocks, .first_bad_id = TN_BLOCK_NO_ID},
        .chunk_count = (uint32_t)chunk_count,
        .hold_count = hold_count,
        .block_count = (uint32_t)o->blocks,
        .options = *o,
        .metadata = metadata,
        .metadata_block = block,
        .metadata_bytes = total,
    };
    if (o->work != NULL)
        pool->work = *o->work;
    pool->options.work = NULL; /* the caller's structs may be gone by now; the copies are what counts */
    pool->options.metadata = NULL;
    return pool;
}

static void free_structures(tn_block_pool *pool)
{
    tn_metadata metadata = pool->metadata;
    tn_metadata_free(&metadata, pool->metadata_block, pool->metadata_bytes);
}

static void link_structures(tn_block_pool *pool)
{
    for (size_t i = pool->hold_count; i-- > 0;) {
        pool->holds[i].next = pool->first_hold;
        pool->first_hold = (uint32_t)i;
    }
    for (uint32_t c = 0; c <= pool->chunk_count; c++)
        pool->chunks[c].first = TN_POOL_NONE;
    pool->chunks_initial = pool->chunk_count;
    if (pool->options.chunk_blocks != 0) {
        size_t initial = pool->options.initial_blocks;
        pool->chunks_initial = initial == 0 ? 0 : (uint32_t)((initial - 1) >> pool->chunk_shift) + 1;
    }
    while (pool->chunks_committed < pool->chunks_initial)
        tn_pool_open_chunk(pool);
    pool->open = 0;
}

static tn_mem_error acquire_slab(tn_block_pool *pool)
{
    const tn_block_pool_options *o = &pool->options;
    if (o->backend == NULL)
        return TN_MEM_OK;
    size_t bytes = o->blocks * o->stride;
    if (o->chunk_blocks == 0)
        return tn_backend_acquire(o->backend, bytes, o->alignment, o->tag, &pool->region);
    size_t initial = tn_pool_blocks_before(pool, pool->chunks_initial) * o->stride;
    tn_mem_error error = tn_backend_acquire_growable(o->backend, bytes, initial, o->alignment, o->tag, &pool->region);
    if (error != TN_MEM_E_NOT_GROWABLE || !o->whole_if_fixed)
        return error;
    error = tn_backend_acquire(o->backend, bytes, o->alignment, o->tag, &pool->region); /* the guard is asked anew, for all of it */
    if (error != TN_MEM_OK)
        return error;
    pool->stats.whole = true;
    pool->chunks_initial = pool->chunk_count;
    while (pool->chunks_committed < pool->chunk_count)
        tn_pool_open_chunk(pool);
    return TN_MEM_OK;
}

tn_mem_error tn_block_pool_create(const tn_block_pool_options *options, tn_block_pool **pool)
{
    if (options == NULL || pool == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_block_pool_options o = *options;
    if (o.backend != NULL && o.alignment == 0)
        o.alignment = TN_ALIGNMENT_DEFAULT;
    tn_mem_error error = check_options(&o);
    if (error != TN_MEM_OK)
        return error;
    tn_block_pool *made = make_structures(&o);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    link_structures(made);
    error = acquire_slab(made);
    if (error != TN_MEM_OK) {
        free_structures(made);
        return error;
    }
    *pool = made;
    return TN_MEM_OK;
}

tn_mem_error tn_block_pool_destroy(tn_block_pool **pool)
{
    if (pool == NULL || *pool == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_block_pool *p = *pool;
    if (p->live > 0)
        return TN_MEM_E_LEFTOVER;
    tn_pool_collect(p);
    if (p->stats.waiting > 0)
        return TN_MEM_E_MUST_WAIT;
    if (p->region.base != NULL) {
        tn_mem_error error = tn_backend_release(p->options.backend, &p->region);
        if (error != TN_MEM_OK) {
            tn_pool_close_lost(p);
            return error;
        }
    }
    free_structures(p);
    *pool = NULL;
    return TN_MEM_OK;
}
