#include "tiers/handle_pool.h"

#include "tiers/key_map.h"
#include "tiers/spin.h"

#define NONE UINT32_MAX

typedef struct entry {
    uint64_t handle;
    uint32_t next; /* of the free ones, or of those that hold no handle */
    bool taken;
    tn_work_set set;
} entry;

struct tn_handle_pool {
    tn_spin lock;
    size_t bytes, room;
    entry *entries;
    uint32_t free_head, free_tail; /* the longest free first: it is the likeliest to be clean */
    uint32_t empty;
    tn_key_map by_handle;
    const tn_handle_table *table;
    void *self;
    tn_work work; /* table NULL: none */
    tn_metadata metadata;
    tn_handle_pool_stats counted;
};

static void append_free(tn_handle_pool *p, uint32_t at)
{
    p->entries[at].next = NONE;
    p->entries[at].taken = false;
    if (p->free_head == NONE)
        p->free_head = at;
    else
        p->entries[p->free_tail].next = at;
    p->free_tail = at;
    p->counted.free++;
}

/* `before` is the one before it, NONE of the first. */
static void unlink_free(tn_handle_pool *p, uint32_t at, uint32_t before)
{
    uint32_t next = p->entries[at].next;
    if (before == NONE)
        p->free_head = next;
    else
        p->entries[before].next = next;
    if (p->free_tail == at)
        p->free_tail = before;
    p->counted.free--;
}

static void put_empty(tn_handle_pool *p, uint32_t at)
{
    p->entries[at].next = p->empty;
    p->empty = at;
}

/* The handle is not the pool's any more. */
static void forget(tn_handle_pool *p, uint32_t at)
{
    tn_key_map_remove(&p->by_handle, p->entries[at].handle);
    p->counted.handles--;
}

static void remember(tn_handle_pool *p, uint32_t at)
{
    tn_key_map_put(&p->by_handle, p->entries[at].handle, at);
    p->counted.handles++;
    append_free(p, at);
}

/* ---- handles made and destroyed ---- */

/* Writes a new handle down. A table that gives one twice is broken: it is in the pool already. */
static tn_mem_error put_created(tn_handle_pool *p, uint32_t at, uint64_t handle)
{
    if (tn_key_map_find(&p->by_handle, handle) != TN_KEY_MAP_NONE)
        return TN_MEM_E_DRIVER;
    p->entries[at].handle = handle;
    p->entries[at].set.count = 0;
    remember(p, at);
    p->counted.created++;
    return TN_MEM_OK;
}

tn_mem_error tn_handle_pool_refill(tn_handle_pool *pool) { return tn_handle_pool_refill_some(pool, SIZE_MAX); }

tn_mem_error tn_handle_pool_refill_some(tn_handle_pool *pool, size_t most)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    for (; most > 0; most--) {
        tn_spin_lock(&pool->lock);
        uint32_t at = pool->empty;
        if (at != NONE)
            pool->empty = pool->entries[at].next;
        tn_spin_unlock(&pool->lock);
        if (at == NONE)
            return TN_MEM_OK;
        uint64_t handle = 0;
        tn_mem_error error = pool->table->create(pool->self, pool->bytes, &handle);
        tn_spin_lock(&pool->lock);
        if (error == TN_MEM_OK)
            error = put_created(pool, at, handle);
        if (error != TN_MEM_OK)
            put_empty(pool, at);
        tn_spin_unlock(&pool->lock);
        if (error != TN_MEM_OK)
            return error;
    }
    return TN_MEM_OK;
}

/* Destroys the free handle that is first. False where there is none. */
static bool destroy_one(tn_handle_pool *p, tn_mem_error *error)
{
    tn_spin_lock(&p->lock);
    uint32_t at = p->free_head;
    if (at != NONE) {
        unlink_free(p, at, NONE);
        forget(p, at);
    }
    tn_spin_unlock(&p->lock);
    if (at == NONE)
        return false;
    *error = p->table->destroy(p->self, p->entries[at].handle);
    tn_spin_lock(&p->lock);
    if (*error == TN_MEM_OK) {
        put_empty(p, at);
        p->counted.destroyed++;
    } else {
        remember(p, at);
    }
    tn_spin_unlock(&p->lock);
    return true;
}

tn_mem_error tn_handle_pool_drain(tn_handle_pool *pool)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    tn_mem_error error = TN_MEM_OK;
    while (error == TN_MEM_OK && destroy_one(pool, &error))
        ;
    return error;
}

/* ---- the pool made and unmade ---- */

static void free_tables(tn_handle_pool *p)
{
    tn_metadata metadata = p->metadata;
    if (p->by_handle.entries != NULL)
        tn_key_map_free(&p->by_handle, &metadata);
    tn_metadata_free(&metadata, p->entries, p->room * sizeof(entry));
    tn_metadata_free(&metadata, p, sizeof *p);
}

static tn_mem_error check_options(const tn_handle_pool_options *o)
{
    if (o == NULL || o->table == NULL || o->table->create == NULL || o->table->destroy == NULL || o->bytes == 0 || o->handles == 0)
        return TN_MEM_E_ARGUMENT;
    if (o->work != NULL && !tn_work_is_valid(o->work))
        return TN_MEM_E_ARGUMENT;
    return o->handles >= NONE ? TN_MEM_E_HOST_MEMORY : TN_MEM_OK;
}

static tn_mem_error make_tables(const tn_handle_pool_options *o, tn_handle_pool **made)
{
    tn_metadata metadata = tn_metadata_or_malloc(o->metadata);
    tn_handle_pool *p = metadata.resize(metadata.self, NULL, 0, sizeof *p);
    if (p == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *p = (tn_handle_pool){.bytes = o->bytes, .room = o->handles, .free_head = NONE, .free_tail = NONE, .empty = NONE,
                          .table = o->table, .self = o->self, .metadata = metadata};
    if (o->work != NULL)
        p->work = *o->work;
    p->entries = metadata.resize(metadata.self, NULL, 0, p->room * sizeof(entry)); /* fewer than 2^32 */
    if (p->entries == NULL || !tn_key_map_create(&p->by_handle, p->room, &metadata)) {
        free_tables(p);
        return TN_MEM_E_HOST_MEMORY;
    }
    for (size_t i = p->room; i-- > 0;) {
        p->entries[i] = (entry){.next = p->empty};
        p->empty = (uint32_t)i;
    }
    *made = p;
    return TN_MEM_OK;
}

tn_mem_error tn_handle_pool_create(const tn_handle_pool_options *options, tn_handle_pool **pool)
{
    tn_mem_error error = pool == NULL ? TN_MEM_E_ARGUMENT : check_options(options);
    tn_handle_pool *made = NULL;
    if (error == TN_MEM_OK)
        error = make_tables(options, &made);
    if (error != TN_MEM_OK)
        return error;
    error = tn_handle_pool_refill(made);
    if (error != TN_MEM_OK) {
        for (uint32_t at = made->free_head; at != NONE; at = made->entries[at].next)
            (void)made->table->destroy(made->self, made->entries[at].handle);
        free_tables(made);
        return error;
    }
    *pool = made;
    return TN_MEM_OK;
}

tn_mem_error tn_handle_pool_destroy(tn_handle_pool **pool)
{
    if (pool == NULL || *pool == NULL)
        return TN_MEM_E_ARGUMENT;
    if ((*pool)->counted.taken > 0)
        return TN_MEM_E_LEFTOVER;
    tn_mem_error error = tn_handle_pool_drain(*pool);
    if (error != TN_MEM_OK)
        return error;
    free_tables(*pool);
    *pool = NULL;
    return TN_MEM_OK;
}

/* ---- handles out and in ---- */

static tn_mem_error take_clean(tn_handle_pool *p, uint64_t queue, uint64_t *handle)
{
    for (uint32_t at = p->free_head, before = NONE; at != NONE; before = at, at = p->entries[at].next) {
        entry *e = &p->entries[at];
        if (e->set.count > 0 && !tn_work_set_is_ready(&e->set, &p->work, queue))
            continue;
        unlink_free(p, at, before);
        e->taken = true;
        *handle = e->handle;
        if (++p->counted.taken > p->counted.high_water)
            p->counted.high_water = p->counted.taken;
        return TN_MEM_OK;
    }
    return p->free_head != NONE ? TN_MEM_E_MUST_WAIT : TN_MEM_E_EXHAUSTED;
}

tn_mem_error tn_handle_pool_take(tn_handle_pool *pool, size_t bytes, uint64_t queue, uint64_t *handle)
{
    if (pool == NULL || handle == NULL || bytes != pool->bytes)
        return TN_MEM_E_ARGUMENT;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = take_clean(pool, queue, handle);
    pool->counted.must_waits += error == TN_MEM_E_MUST_WAIT;
    pool->counted.exhausted += error == TN_MEM_E_EXHAUSTED;
    tn_spin_unlock(&pool->lock);
    return error;
}

/* Takes the handle from who has it. */
static tn_mem_error end_taken(tn_handle_pool *p, uint64_t handle, uint32_t *at)
{
    *at = tn_key_map_find(&p->by_handle, handle);
    tn_mem_error error = *at == TN_KEY_MAP_NONE ? TN_MEM_E_FOREIGN : p->entries[*at].taken ? TN_MEM_OK : TN_MEM_E_STALE;
    p->counted.bad_handles += error != TN_MEM_OK;
    p->counted.taken -= error == TN_MEM_OK;
    return error;
}

tn_mem_error tn_handle_pool_return(tn_handle_pool *pool, uint64_t handle, const tn_work_set *uncovered)
{
    if (pool == NULL || (uncovered != NULL && uncovered->count > 0 && pool->work.table == NULL))
        return TN_MEM_E_ARGUMENT;
    uint32_t at;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = end_taken(pool, handle, &at);
    if (error == TN_MEM_OK) {
        if (uncovered != NULL)
            tn_work_set_merge(&pool->entries[at].set, &pool->work, uncovered);
        append_free(pool, at);
    }
    tn_spin_unlock(&pool->lock);
    return error;
}

tn_mem_error tn_handle_pool_leave(tn_handle_pool *pool, uint64_t handle)
{
    if (pool == NULL)
        return TN_MEM_E_ARGUMENT;
    uint32_t at;
    tn_spin_lock(&pool->lock);
    tn_mem_error error = end_taken(pool, handle, &at);
    if (error == TN_MEM_OK) {
        forget(pool, at);
        put_empty(pool, at);
        pool->counted.left++;
    }
    tn_spin_unlock(&pool->lock);
    return error;
}

void tn_handle_pool_read_stats(tn_handle_pool *pool, tn_handle_pool_stats *stats)
{
    tn_spin_lock(&pool->lock);
    *stats = pool->counted;
    stats->bytes = pool->bytes;
    tn_spin_unlock(&pool->lock);
}
