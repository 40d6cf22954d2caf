#define _GNU_SOURCE
#include "tiers/backend_host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tiers/size.h"

#define PAGE ((size_t)4096)

typedef struct node {
    struct node *next;
    tn_region region; /* as it is, whatever the caller's copy says */
    size_t touched;   /* from base: what was ever committed, and is poison above `committed` */
    void *mapping;
    size_t mapping_bytes;
    bool growable;
} node;

struct tn_host {
    tn_backend backend;
    tn_host_options options;
    pthread_mutex_t lock;
    node *live;
    node *quarantine, **quarantine_end; /* the oldest first */
    size_t quarantined, live_bytes, late_writes;
    uint64_t fail_after[TN_HOST_OP_COUNT]; /* 0: no rule */
    uint64_t next_id;
    bool growth_refused;
    int phase;
    tn_host_entry *journal;
    size_t journal_length, journal_room;
};

/* Room for the entry is made before anything is done, so that no operation can happen without one. */
static bool journal_has_room(tn_host *host)
{
    if (host->journal_length < host->journal_room)
        return true;
    size_t room = host->journal_room == 0 ? 64 : host->journal_room * 2;
    tn_host_entry *journal = realloc(host->journal, room * sizeof *journal);
    if (journal == NULL)
        return false;
    host->journal = journal;
    host->journal_room = room;
    return true;
}

static void write_entry(tn_host *host, tn_host_entry entry)
{
    entry.sequence = host->journal_length;
    entry.phase = host->phase;
    host->journal[host->journal_length++] = entry;
}

static bool rule_strikes(tn_host *host, tn_host_op op)
{
    return host->fail_after[op] != 0 && --host->fail_after[op] == 0;
}

static bool fails(tn_host *host, tn_host_op op)
{
    /* Both rules count every call, so neither may be skipped. */
    bool own = rule_strikes(host, op), any = rule_strikes(host, TN_HOST_ANY);
    return own || any;
}

static size_t count_changed(const unsigned char *p, size_t bytes)
{
    size_t changed = 0;
    for (size_t i = 0; i < bytes; i++)
        changed += p[i] != TN_HOST_POISON;
    return changed;
}

static size_t late_writes_of(const node *n)
{
    return count_changed((const unsigned char *)n->region.base + n->region.committed, n->touched - n->region.committed);
}

static void unmap(node *n)
{
    munmap(n->mapping, n->mapping_bytes);
    free(n);
}

static void let_oldest_go(tn_host *host)
{
    node *n = host->quarantine;
    host->quarantine = n->next;
    if (host->quarantine == NULL)
        host->quarantine_end = &host->quarantine;
    host->quarantined -= n->touched;
    host->late_writes += late_writes_of(n);
    unmap(n);
}

static node **find(tn_host *host, uint64_t id)
{
    node **at = &host->live;
    while (*at != NULL && (*at)->region.id != id)
        at = &(*at)->next;
    return at;
}

static bool fits(const tn_host *host, size_t more)
{
    size_t limit = host->options.capacity == 0 ? SIZE_MAX : host->options.capacity;
    return more <= limit - host->live_bytes;
}

static tn_mem_error map_node(size_t bytes, size_t alignment, node **made)
{
    size_t mapping_bytes;
    if (!tn_size_add(bytes, alignment > PAGE ? alignment : 0, &mapping_bytes) ||
        !tn_size_align_up(mapping_bytes, PAGE, &mapping_bytes))
        return TN_MEM_E_OUT_OF_MEMORY;
    node *n = calloc(1, sizeof *n);
    if (n == NULL)
        return TN_MEM_E_HOST_MEMORY;
    n->mapping_bytes = mapping_bytes;
    n->mapping = mmap(NULL, mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (n->mapping == MAP_FAILED) {
        free(n);
        return TN_MEM_E_OUT_OF_MEMORY;
    }
    uintptr_t base = ((uintptr_t)n->mapping + alignment - 1) & ~(uintptr_t)(alignment - 1);
    n->region.base = (char *)n->mapping + (base - (uintptr_t)n->mapping);
    *made = n;
    return TN_MEM_OK;
}

static tn_mem_error make_region(tn_host *host, size_t reserve, size_t initial, size_t alignment, const char *tag, bool growable,
                                tn_region *region)
{
    if (growable && (!tn_size_align_up(reserve, host->options.granularity, &reserve) ||
                     !tn_size_align_up(initial, host->options.granularity, &initial)))
        return TN_MEM_E_OUT_OF_MEMORY;
    if (!fits(host, initial))
        return TN_MEM_E_OUT_OF_MEMORY;
    node *n = NULL;
    tn_mem_error error = map_node(reserve, alignment, &n);
    if (error != TN_MEM_OK)
        return error;
    n->region.reserved = reserve;
    n->region.committed = initial;
    n->region.tag = tag;
    n->region.id = ++host->next_id;
    n->touched = initial;
    n->growable = growable;
    n->next = host->live;
    host->live = n;
    host->live_bytes += initial;
    *region = n->region;
    return TN_MEM_OK;
}

static tn_mem_error acquire_op(tn_host *host, tn_host_op op, size_t reserve, size_t initial, size_t alignment, const char *tag,
                               tn_region *region)
{
    pthread_mutex_lock(&host->lock);
    tn_mem_error error = TN_MEM_E_HOST_MEMORY;
    if (journal_has_room(host)) {
        bool growable = op == TN_HOST_RESERVE;
        if (fails(host, op) || (growable && host->growth_refused))
            error = TN_MEM_E_OUT_OF_MEMORY;
        else
            error = make_region(host, reserve, initial, alignment, tag, growable, region);
        write_entry(host, (tn_host_entry){.op = op, .error = error, .tag = tag, .requested = reserve,
                                          .region = error == TN_MEM_OK ? region->id : 0,
                                          .after = error == TN_MEM_OK ? region->committed : 0});
    }
    pthread_mutex_unlock(&host->lock);
    return error;
}

static tn_mem_error host_acquire(void *self, size_t bytes, size_t alignment, const char *tag, tn_region *region)
{
    return acquire_op(self, TN_HOST_ACQUIRE, bytes, bytes, alignment, tag, region);
}

static tn_mem_error host_reserve(void *self, size_t reserve, size_t initial, size_t alignment, const char *tag, tn_region *region)
{
    return acquire_op(self, TN_HOST_RESERVE, reserve, initial, alignment, tag, region);
}

static tn_mem_error commit_node(tn_host *host, node *n, size_t bytes)
{
    if (!n->growable)
        return TN_MEM_E_NOT_GROWABLE;
    size_t committed = n->region.committed;
    if (!tn_size_align_up(bytes, host->options.granularity, &bytes) || host->growth_refused || !fits(host, bytes - committed))
        return TN_MEM_E_OUT_OF_MEMORY;
    if (bytes > n->touched) {
        host->late_writes += late_writes_of(n);
        n->touched = bytes;
    } else {
        host->late_writes += count_changed((unsigned char *)n->region.base + committed, bytes - committed);
    }
    host->live_bytes += bytes - committed;
    n->region.committed = bytes;
    return TN_MEM_OK;
}

static void shrink_node(tn_host *host, node *n, size_t bytes)
{
    memset((char *)n->region.base + bytes, TN_HOST_POISON, n->region.committed - bytes);
    host->live_bytes -= n->region.committed - bytes;
    n->region.committed = bytes;
}

static tn_mem_error decommit_node(tn_host *host, node *n, size_t bytes)
{
    if (!n->growable)
        return TN_MEM_E_NOT_GROWABLE;
    /* Cannot overflow: what is committed is a multiple of the granularity and no less. */
    size_t kept = (bytes + host->options.granularity - 1) & ~(host->options.granularity - 1);
    shrink_node(host, n, kept);
    return TN_MEM_OK;
}

static void release_node(tn_host *host, node **at)
{
    node *n = *at;
    *at = n->next;
    n->next = NULL;
    shrink_node(host, n, 0);
    *host->quarantine_end = n;
    host->quarantine_end = &n->next;
    host->quarantined += n->touched;
    while (host->quarantined > host->options.quarantine)
        let_oldest_go(host);
}

static tn_mem_error region_op(tn_host *host, tn_host_op op, tn_region *region, size_t bytes)
{
    pthread_mutex_lock(&host->lock);
    tn_mem_error error = TN_MEM_E_HOST_MEMORY;
    if (journal_has_room(host)) {
        node **at = find(host, region->id);
        size_t before = *at != NULL ? (*at)->region.committed : 0;
        size_t after = before;
        if (*at == NULL)
            error = TN_MEM_E_STALE;
        else if ((*at)->region.base != region->base)
            error = TN_MEM_E_ARGUMENT;
        else if (fails(host, op))
            error = op == TN_HOST_COMMIT ? TN_MEM_E_OUT_OF_MEMORY : TN_MEM_E_DRIVER;
        else if (op == TN_HOST_COMMIT)
            error = commit_node(host, *at, bytes);
        else if (op == TN_HOST_DECOMMIT)
            error = decommit_node(host, *at, bytes);
        else
            error = TN_MEM_OK;
        if (error == TN_MEM_OK && op == TN_HOST_RELEASE) {
            release_node(host, at);
            after = 0;
        } else if (error == TN_MEM_OK) {
            after = region->committed = (*at)->region.committed;
        }
        if (error != TN_MEM_OK)
            before = after = 0;
        write_entry(host, (tn_host_entry){.op = op, .error = error, .tag = region->tag, .region = region->id,
                                          .requested = bytes, .before = before, .after = after});
    }
    pthread_mutex_unlock(&host->lock);
    return error;
}

static tn_mem_error host_commit(void *self, tn_region *region, size_t bytes)
{
    return region_op(self, TN_HOST_COMMIT, region, bytes);
}

static tn_mem_error host_decommit(void *self, tn_region *region, size_t bytes)
{
    return region_op(self, TN_HOST_DECOMMIT, region, bytes);
}

static tn_mem_error host_release(void *self, tn_region *region)
{
    return region_op(self, TN_HOST_RELEASE, region, 0);
}

static size_t host_capacity(void *self)
{
    const tn_host *host = self;
    return host->options.capacity == 0 ? SIZE_MAX : host->options.capacity;
}

static size_t host_rounded(void *self, size_t reserve, size_t bytes)
{
    const tn_host *host = self;
    size_t up;
    return reserve > 0 && tn_size_align_up(bytes, host->options.granularity, &up) ? up : bytes;
}

const tn_backend_table tn_host_table = {
    .acquire = host_acquire,
    .reserve = host_reserve,
    .commit = host_commit,
    .decommit = host_decommit,
    .release = host_release,
    .capacity = host_capacity,
    .rounded = host_rounded,
};

static const tn_backend_table plain_table = {
    .acquire = host_acquire,
    .release = host_release,
    .capacity = host_capacity,
};

tn_mem_error tn_host_create(const tn_host_options *options, tn_host **host)
{
    if (options == NULL || host == NULL)
        return TN_MEM_E_ARGUMENT;
    size_t granularity = options->granularity == 0 ? (size_t)2 << 20 : options->granularity;
    if (!tn_is_power_of_two(granularity) || granularity < PAGE)
        return TN_MEM_E_ARGUMENT;
    tn_host *made = calloc(1, sizeof *made);
    if (made == NULL)
        return TN_MEM_E_HOST_MEMORY;
    made->options = *options;
    made->options.granularity = granularity;
    made->quarantine_end = &made->quarantine;
    pthread_mutex_init(&made->lock, NULL);
    tn_mem_error error = tn_backend_init(&made->backend, options->not_growable ? &plain_table : &tn_host_table, made, NULL);
    if (error != TN_MEM_OK) {
        free(made);
        return error;
    }
    *host = made;
    return TN_MEM_OK;
}

size_t tn_host_destroy(tn_host *host)
{
    if (host == NULL)
        return 0;
    size_t leaked = 0;
    while (host->quarantine != NULL)
        let_oldest_go(host);
    for (node *n = host->live; n != NULL; leaked++) {
        node *next = n->next;
        unmap(n);
        n = next;
    }
    pthread_mutex_destroy(&host->lock);
    free(host->journal);
    free(host);
    return leaked;
}

tn_backend *tn_host_backend(tn_host *host)
{
    return &host->backend;
}

void tn_host_fail(tn_host *host, tn_host_op op, uint64_t nth)
{
    pthread_mutex_lock(&host->lock);
    if ((unsigned)op < TN_HOST_OP_COUNT)
        host->fail_after[op] = nth;
    pthread_mutex_unlock(&host->lock);
}

void tn_host_allow_growth(tn_host *host, bool allowed)
{
    pthread_mutex_lock(&host->lock);
    host->growth_refused = !allowed;
    pthread_mutex_unlock(&host->lock);
}

void tn_host_set_phase(tn_host *host, int phase)
{
    pthread_mutex_lock(&host->lock);
    host->phase = phase;
    pthread_mutex_unlock(&host->lock);
}

size_t tn_host_journal_length(tn_host *host)
{
    pthread_mutex_lock(&host->lock);
    size_t length = host->journal_length;
    pthread_mutex_unlock(&host->lock);
    return length;
}

tn_mem_error tn_host_journal_entry(tn_host *host, size_t index, tn_host_entry *entry)
{
    pthread_mutex_lock(&host->lock);
    tn_mem_error error = index < host->journal_length ? TN_MEM_OK : TN_MEM_E_ARGUMENT;
    if (error == TN_MEM_OK)
        *entry = host->journal[index];
    pthread_mutex_unlock(&host->lock);
    return error;
}

size_t tn_host_late_writes(tn_host *host)
{
    pthread_mutex_lock(&host->lock);
    size_t bytes = host->late_writes;
    for (const node *n = host->live; n != NULL; n = n->next)
        bytes += late_writes_of(n);
    for (const node *n = host->quarantine; n != NULL; n = n->next)
        bytes += late_writes_of(n);
    pthread_mutex_unlock(&host->lock);
    return bytes;
}
