#include "tiers/backend.h"

#include <stdbool.h>

#include "tiers/seam_use.h"
#include "tiers/size.h"

/* Counters are atomic one by one: a backend's call takes microseconds and runs under no lock of ours. */
#define ADD(counter, n) __atomic_fetch_add(&(counter), (n), __ATOMIC_RELAXED)
#define SUBTRACT(counter, n) __atomic_fetch_sub(&(counter), (n), __ATOMIC_RELAXED)
#define READ(counter) __atomic_load_n(&(counter), __ATOMIC_RELAXED)

static void count_live(tn_backend *backend, size_t before, size_t after)
{
    if (after < before) {
        SUBTRACT(backend->stats.live, before - after);
        return;
    }
    size_t live = ADD(backend->stats.live, after - before) + (after - before);
    size_t peak = READ(backend->stats.peak);
    /* Beyond all memory while another thread's release takes out what a copy says, before it is found stale: no peak. */
    while (live > peak && live <= TN_BYTES_MAX &&
           !__atomic_compare_exchange_n(&backend->stats.peak, &peak, live, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static tn_mem_error refuse(tn_backend *backend, tn_mem_error error)
{
    ADD(backend->stats.refused, 1);
    return error;
}

static tn_mem_error ask_guard(tn_backend *backend, const char *tag, size_t bytes)
{
    tn_mem_error error = TN_MEM_OK;
    if (backend->guard.may_acquire != NULL)
        error = backend->guard.may_acquire(backend->guard.self, tag, bytes);
    const tn_seam *seam = tn_seam_now();
    if (error == TN_MEM_OK && seam != NULL)
        error = seam->may_acquire(seam->self, backend, tag, bytes);
    return error;
}

static size_t rounded(const tn_backend *backend, size_t reserve, size_t bytes)
{
    return backend->table->rounded != NULL && bytes > 0 ? backend->table->rounded(backend->self, reserve, bytes) : bytes;
}

static tn_mem_error check_request(size_t bytes, size_t *alignment, const char *tag)
{
    if (*alignment == 0)
        *alignment = TN_ALIGNMENT_DEFAULT;
    if (bytes == 0 || tag == NULL || !tn_is_power_of_two(*alignment) || *alignment > TN_ALIGNMENT_MAX)
        return TN_MEM_E_ARGUMENT;
    return bytes > TN_BYTES_MAX ? TN_MEM_E_OUT_OF_MEMORY : TN_MEM_OK;
}

static bool grows(const tn_backend *backend)
{
    return backend->table->reserve != NULL;
}

tn_mem_error tn_backend_init(tn_backend *backend, const tn_backend_table *table, void *self, const tn_backend_guard *guard)
{
    if (backend == NULL || table == NULL || table->acquire == NULL || table->release == NULL || table->capacity == NULL)
        return TN_MEM_E_ARGUMENT;
    if ((table->reserve == NULL) != (table->commit == NULL) || (table->reserve == NULL) != (table->decommit == NULL))
        return TN_MEM_E_ARGUMENT;
    *backend = (tn_backend){.table = table, .self = self};
    if (guard != NULL)
        backend->guard = *guard;
    return TN_MEM_OK;
}

static void count_acquired(tn_backend *backend, const tn_region *region)
{
    ADD(backend->stats.acquires, 1);
    ADD(backend->stats.reserved, region->reserved);
    count_live(backend, 0, region->committed);
    TN_SEAM(acquired, backend, region);
}

tn_mem_error tn_backend_acquire(tn_backend *backend, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    if (backend == NULL || region == NULL)
        return TN_MEM_E_ARGUMENT;
    *region = (tn_region){0};
    tn_mem_error error = check_request(bytes, &alignment, tag);
    if (error == TN_MEM_OK)
        error = ask_guard(backend, tag, rounded(backend, 0, bytes));
    if (error != TN_MEM_OK)
        return refuse(backend, error);
    tn_region got = {0};
    error = backend->table->acquire(backend->self, bytes, alignment, tag, &got);
    if (error != TN_MEM_OK)
        return refuse(backend, error);
    *region = got;
    count_acquired(backend, region);
    return TN_MEM_OK;
}

tn_mem_error tn_backend_acquire_growable(tn_backend *backend, size_t reserve, size_t initial, size_t alignment, const char *tag,
                                         tn_region *region)
{
    if (backend == NULL || region == NULL)
        return TN_MEM_E_ARGUMENT;
    *region = (tn_region){0};
    tn_mem_error error = check_request(reserve, &alignment, tag);
    if (error == TN_MEM_OK && initial > reserve)
        error = TN_MEM_E_ARGUMENT;
    if (error == TN_MEM_OK && !grows(backend))
        error = TN_MEM_E_NOT_GROWABLE;
    if (error == TN_MEM_OK)
        error = ask_guard(backend, tag, rounded(backend, reserve, initial));
    if (error != TN_MEM_OK)
        return refuse(backend, error);
    tn_region got = {0};
    error = backend->table->reserve(backend->self, reserve, initial, alignment, tag, &got);
    if (error != TN_MEM_OK)
        return refuse(backend, error);
    *region = got;
    count_acquired(backend, region);
    return TN_MEM_OK;
}

tn_mem_error tn_backend_commit(tn_backend *backend, tn_region *region, size_t bytes)
{
    if (backend == NULL || region == NULL)
        return TN_MEM_E_ARGUMENT;
    if (region->base == NULL || bytes > region->reserved)
        return refuse(backend, TN_MEM_E_ARGUMENT);
    size_t before = region->committed;
    if (bytes <= before) {
        tn_mem_error error = backend->table->needed != NULL ? backend->table->needed(backend->self, region, bytes) : TN_MEM_OK;
        return error == TN_MEM_OK ? error : refuse(backend, error);
    }
    if (!grows(backend))
        return refuse(backend, TN_MEM_E_NOT_GROWABLE);
    tn_mem_error error = ask_guard(backend, region->tag, rounded(backend, region->reserved, bytes) - before);
    if (error == TN_MEM_OK)
        error = backend->table->commit(backend->self, region, bytes);
    if (error != TN_MEM_OK)
        return refuse(backend, error);
    ADD(backend->stats.commits, 1);
    count_live(backend, before, region->committed);
    TN_SEAM(resized, backend, region, before);
    return TN_MEM_OK;
}

tn_mem_error tn_backend_decommit(tn_backend *backend, tn_region *region, size_t bytes)
{
    if (backend == NULL || region == NULL)
        return TN_MEM_E_ARGUMENT;
    if (region->base == NULL || bytes > region->committed)
        return refuse(backend, TN_MEM_E_ARGUMENT);
    size_t before = region->committed;
    if (bytes == before)
        return TN_MEM_OK;
    if (!grows(backend))
        return refuse(backend, TN_MEM_E_NOT_GROWABLE);
    tn_mem_error error = backend->table->decommit(backend->self, region, bytes);
    count_live(backend, before, region->committed); /* also after an error that could not be undone */
    if (region->committed != before)
        TN_SEAM(resized, backend, region, before);
    if (error != TN_MEM_OK)
        return refuse(backend, error);
    ADD(backend->stats.decommits, 1);
    return TN_MEM_OK;
}

tn_mem_error tn_backend_release(tn_backend *backend, tn_region *region)
{
    if (backend == NULL || region == NULL)
        return TN_MEM_E_ARGUMENT;
    if (region->base == NULL)
        return refuse(backend, TN_MEM_E_ARGUMENT);
    /* Taken out first: another thread may be given this memory before the call returns, and the peak must not hold it twice. */
    SUBTRACT(backend->stats.reserved, region->reserved);
    SUBTRACT(backend->stats.live, region->committed);
    TN_SEAM(releasing, backend, region);
    tn_mem_error error = backend->table->release(backend->self, region);
    if (error != TN_MEM_OK) {
        ADD(backend->stats.reserved, region->reserved);
        ADD(backend->stats.live, region->committed);
        if (error != TN_MEM_E_STALE) /* of what is stale nothing is there to be kept */
            TN_SEAM(kept, backend, region);
        return refuse(backend, error);
    }
    ADD(backend->stats.releases, 1);
    *region = (tn_region){0};
    return TN_MEM_OK;
}

void tn_backend_read_stats(const tn_backend *backend, tn_backend_stats *stats)
{
    *stats = (tn_backend_stats){
        .live = READ(backend->stats.live),
        .peak = READ(backend->stats.peak),
        .reserved = READ(backend->stats.reserved),
        .capacity = backend->table->capacity(backend->self),
        .acquires = READ(backend->stats.acquires),
        .releases = READ(backend->stats.releases),
        .commits = READ(backend->stats.commits),
        .decommits = READ(backend->stats.decommits),
        .refused = READ(backend->stats.refused),
    };
}
