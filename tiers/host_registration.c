#include "tiers/host_registration.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "tiers/metadata_use.h"

typedef struct entry {
    tn_registration r;
    bool busy; /* a driver call is at work on it; its range is taken all the same */
} entry;

struct tn_registrations {
    const tn_cuda *cuda;
    tn_metadata metadata;
    tn_cuda_log log;
    pthread_mutex_t lock;
    entry *entries; /* by rising base; none overlaps another */
    size_t count, room;
    uint64_t next_id;
    tn_registrations_stats stats;
};

/* The index of the first entry that ends above `address`. */
static size_t first_above(const tn_registrations *l, uintptr_t address)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const tn_registration *r = &l->entries[middle].r;
        if ((uintptr_t)r->base + (r->bytes - 1) < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static entry *find(const tn_registrations *l, const tn_registration *registration)
{
    size_t at = first_above(l, (uintptr_t)registration->base);
    if (at == l->count || l->entries[at].r.base != registration->base || l->entries[at].r.id != registration->id)
        return NULL;
    return &l->entries[at];
}

static void take_out(tn_registrations *l, entry *e)
{
    memmove(e, e + 1, (size_t)(l->entries + l->count - (e + 1)) * sizeof *e);
    l->count--;
}

tn_mem_error tn_registrations_create(const tn_cuda *cuda, const tn_metadata *metadata, tn_registrations **ledger)
{
    if (cuda == NULL || ledger == NULL)
        return TN_MEM_E_ARGUMENT;
    if (cuda->host_register == NULL || cuda->host_unregister == NULL)
        return TN_MEM_E_UNSUPPORTED;
    tn_metadata with = tn_metadata_or_malloc(metadata);
    tn_registrations *made = with.resize(with.self, NULL, 0, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    *made = (tn_registrations){.cuda = cuda, .metadata = with};
    pthread_mutex_init(&made->lock, NULL);
    *ledger = made;
    return TN_MEM_OK;
}

size_t tn_registrations_destroy(tn_registrations *ledger)
{
    if (ledger == NULL)
        return 0;
    size_t left = ledger->count;
    for (size_t i = 0; i < left; i++)
        (void)!tn_cuda_note(&ledger->log, TN_CUDA_HOST_UNREGISTER, ledger->cuda->host_unregister(ledger->entries[i].r.base));
    pthread_mutex_destroy(&ledger->lock);
    tn_metadata metadata = ledger->metadata;
    tn_metadata_free(&metadata, ledger->entries, ledger->room * sizeof *ledger->entries);
    tn_metadata_free(&metadata, ledger, sizeof *ledger);
    return left;
}

/* Takes the range, so that nobody else registers a part of it meanwhile. */
static tn_mem_error claim(tn_registrations *l, tn_registration *r)
{
    size_t at = first_above(l, (uintptr_t)r->base);
    if (at < l->count && (uintptr_t)l->entries[at].r.base <= (uintptr_t)r->base + (r->bytes - 1))
        return TN_MEM_E_REGISTERED;
    void *entries = l->entries;
    bool made = tn_metadata_grow(&l->metadata, &entries, &l->room, l->count + 1, sizeof *l->entries);
    l->entries = entries;
    if (!made)
        return TN_MEM_E_HOST_MEMORY;
    r->id = ++l->next_id;
    memmove(&l->entries[at + 1], &l->entries[at], (l->count - at) * sizeof *l->entries);
    l->entries[at] = (entry){.r = *r, .busy = true};
    l->count++;
    return TN_MEM_OK;
}

tn_mem_error tn_registrations_add(tn_registrations *ledger, void *base, size_t bytes, unsigned flags, tn_registration *registration)
{
    if (ledger == NULL || registration == NULL)
        return TN_MEM_E_ARGUMENT;
    *registration = (tn_registration){0};
    if (base == NULL || bytes == 0 || bytes - 1 > UINTPTR_MAX - (uintptr_t)base || (flags & ~(unsigned)TN_REGISTER_FLAGS) != 0)
        return TN_MEM_E_ARGUMENT;
    tn_registration wanted = {.base = base, .bytes = bytes, .flags = flags};
    pthread_mutex_lock(&ledger->lock);
    tn_mem_error error = claim(ledger, &wanted);
    ledger->stats.refused += error != TN_MEM_OK;
    pthread_mutex_unlock(&ledger->lock);
    if (error != TN_MEM_OK)
        return error;
    error = tn_cuda_note(&ledger->log, TN_CUDA_HOST_REGISTER, ledger->cuda->host_register(base, bytes, flags));
    pthread_mutex_lock(&ledger->lock);
    entry *e = find(ledger, &wanted);
    if (error == TN_MEM_OK) {
        e->busy = false;
        ledger->stats.registered++;
        ledger->stats.live++;
        ledger->stats.bytes += bytes;
        *registration = wanted;
    } else {
        take_out(ledger, e);
        ledger->stats.refused++;
    }
    pthread_mutex_unlock(&ledger->lock);
    return error;
}

tn_mem_error tn_registrations_remove(tn_registrations *ledger, tn_registration *registration)
{
    if (ledger == NULL || registration == NULL || registration->base == NULL)
        return TN_MEM_E_ARGUMENT;
    pthread_mutex_lock(&ledger->lock);
    entry *e = find(ledger, registration);
    bool known = e != NULL && !e->busy;
    if (known)
        e->busy = true;
    ledger->stats.unknown += !known;
    pthread_mutex_unlock(&ledger->lock);
    if (!known)
        return TN_MEM_E_UNREGISTERED;
    tn_mem_error error =
        tn_cuda_note(&ledger->log, TN_CUDA_HOST_UNREGISTER, ledger->cuda->host_unregister(registration->base));
    pthread_mutex_lock(&ledger->lock);
    e = find(ledger, registration);
    if (error == TN_MEM_OK) {
        ledger->stats.unregistered++;
        ledger->stats.live--;
        ledger->stats.bytes -= e->r.bytes;
        take_out(ledger, e);
        *registration = (tn_registration){0};
    } else {
        e->busy = false;
    }
    pthread_mutex_unlock(&ledger->lock);
    return error;
}

tn_mem_error tn_registrations_find(tn_registrations *ledger, const void *address, tn_registration *registration)
{
    if (ledger == NULL || registration == NULL)
        return TN_MEM_E_ARGUMENT;
    *registration = (tn_registration){0};
    pthread_mutex_lock(&ledger->lock);
    size_t at = first_above(ledger, (uintptr_t)address);
    if (at < ledger->count && (uintptr_t)ledger->entries[at].r.base <= (uintptr_t)address && !ledger->entries[at].busy)
        *registration = ledger->entries[at].r;
    pthread_mutex_unlock(&ledger->lock);
    return registration->base != NULL ? TN_MEM_OK : TN_MEM_E_UNREGISTERED;
}

tn_cuda_failure tn_registrations_failure(const tn_registrations *ledger)
{
    return tn_cuda_last_failure(&ledger->log);
}

void tn_registrations_read_stats(tn_registrations *ledger, tn_registrations_stats *stats)
{
    pthread_mutex_lock(&ledger->lock);
    *stats = ledger->stats;
    pthread_mutex_unlock(&ledger->lock);
}
