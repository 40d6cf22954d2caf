/* The fake backend: host memory with a capacity, so that all that is built on a backend can be tested without a GPU. It journals every
 * operation, failed ones too; fails the n-th on demand; fills what was released or decommitted with 0xDE and keeps it so, in quarantine,
 * so that a late write is found. The caller owns it, the backend within it is valid until it is destroyed; any thread may call. */
#ifndef TENURE_TIERS_BACKEND_HOST_H
#define TENURE_TIERS_BACKEND_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "tiers/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TN_HOST_POISON 0xDE

typedef enum tn_host_op {
    TN_HOST_ACQUIRE,
    TN_HOST_RESERVE,
    TN_HOST_COMMIT,
    TN_HOST_DECOMMIT,
    TN_HOST_RELEASE,
    TN_HOST_ANY, /* for tn_host_fail: whichever comes */
    TN_HOST_OP_COUNT
} tn_host_op;

typedef struct tn_host_options {
    size_t capacity;    /* committed bytes at most; 0: no limit */
    size_t granularity; /* of growable regions: a power of two of at least 4096; 0: 2 MiB, as on the card */
    size_t quarantine;  /* released bytes that are kept poisoned; the oldest go first; 0: none */
    bool not_growable;  /* behaves as a backend of plain allocations */
} tn_host_options;

/* One operation. `before` and `after` are the region's committed bytes, both 0 where it was refused or was not there. */
typedef struct tn_host_entry {
    uint64_t sequence; /* from 0 */
    tn_host_op op;
    tn_mem_error error;
    int phase;         /* as last said by tn_host_set_phase; 0 at first */
    const char *tag;
    uint64_t region;   /* its id; 0 where none was given */
    size_t requested, before, after;
} tn_host_entry;

typedef struct tn_host tn_host;

/* ARGUMENT: a granularity out of range. HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_host_create(const tn_host_options *options, tn_host **host);

/* Frees all, also the regions still live, and returns how many those were: 0 is a clean end. NULL is allowed. */
size_t tn_host_destroy(tn_host *host);

/* What the allocators take. A guard may be given to its own tn_backend_init with the table and the host as `self`. */
tn_backend *tn_host_backend(tn_host *host);
extern const tn_backend_table tn_host_table;

/* The `nth` call of `op` from now (1: the next) fails, once: acquire, reserve and commit with OUT_OF_MEMORY, the others with DRIVER.
 * 0 takes it back. One rule for each op and one for TN_HOST_ANY may stand at a time. */
void tn_host_fail(tn_host *host, tn_host_op op, uint64_t nth);

/* Whether growing succeeds from now on; where not, commit and reserve are OUT_OF_MEMORY until it is said again. */
void tn_host_allow_growth(tn_host *host, bool allowed);

/* What the journal says of the phase from now on. */
void tn_host_set_phase(tn_host *host, int phase);

/* How many entries there are, and a copy of one. ARGUMENT: there is none with that index. */
size_t tn_host_journal_length(tn_host *host);
TN_MEM_MUST_USE tn_mem_error tn_host_journal_entry(tn_host *host, size_t index, tn_host_entry *entry);

/* Bytes that no longer are poison, of all that should be: in quarantine, decommitted, or already let go of quarantine. */
size_t tn_host_late_writes(tn_host *host);

#ifdef __cplusplus
}
#endif

#endif
