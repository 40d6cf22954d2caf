/* What is alive, by address: one entry per live pointer or handle of the process. Owned by the process, usable by any thread, with no lock and
 * no counter shared between threads on the common way; finding and marking may be done in a signal handler that interrupted any of these
 * functions, the others not (`nested`): now and then they take a lock (ranks TN_LOCK_LEDGER, TN_LOCK_LEDGER_SLABS) for memory. Memory
 * comes from anonymous mappings of our own, never from malloc; what is resident follows the number of live entries. */
#ifndef TENURE_LEDGER_LEDGER_H
#define TENURE_LEDGER_LEDGER_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/tn_error.h"

/* Which space a number lives in: addresses (device and host share one under UVA), and the handles that may collide with them.
 * VMM handles and arrays are numbers, not ranges: an entry covers its own number only, whatever its bytes. */
typedef enum tn_space { TN_SPACE_ADDRESS = 0, TN_SPACE_VMM_HANDLE, TN_SPACE_ARRAY, TN_SPACE_MAPPING, TN_SPACE_RESERVATION, TN_SPACE_COUNT } tn_space;

typedef struct tn_entry {
    uint64_t addr, bytes, backed;
    uint32_t site, ctx, stream;
    uint8_t kind, device, first_write /* TN_WRITE_*, 0 = none seen */, phase;
    uint64_t extra; /* pool handle, host flags, pitch ... as in TN_EV_ALLOC.aux2 */
    uint64_t tsc;
} tn_entry;

/* Makes the ledger ready; once, before any other call. */
TN_MUST_USE tn_error tn_ledger_init(void);
/* O(1). Of the calls that grow or shrink the tables each does a small part, some microseconds. An entry already at that start is replaced (its free was made where nobody saw it) and copied to *replaced if not NULL; returns 1
 * then, else 0; -1 when no memory is left (the block is then unknown to the ledger). bytes 0 is legal and covers one byte. */
int tn_ledger_insert(tn_space space, const tn_entry *e, tn_entry *replaced);
/* The same where no entry can start there, since whoever hands the address out knows that nobody has it: a look-up is saved. 0, or -1. */
int tn_ledger_insert_new(tn_space space, const tn_entry *e) __attribute__((hot));
/* Removes the entry that STARTS at addr. 1 and *out (may be NULL) filled, or 0; of calls at the same time for one entry one gets it. O(1). */
int tn_ledger_remove(tn_space space, uint64_t addr, tn_entry *out) __attribute__((hot));
/* The entry whose range holds addr (start or interior). 1 and *out (may be NULL) filled, or 0. O(1). Where entries overlap, because a
 * free was made where nobody saw it, one that starts at addr wins, then the one of the smaller size class. */
int tn_ledger_find(tn_space space, uint64_t addr, tn_entry *out);
/* The same, and where one is found it is kept in *where, as it is now: of its life and its first write. Not in the mapping space. */
typedef struct tn_written { uint64_t start, bytes; const uint64_t *state; uint64_t value; } tn_written;
int tn_ledger_find_at(tn_space space, uint64_t addr, tn_entry *out, tn_written *where);
/* Sets first_write of the block or, where no block holds addr, of the mapping that does, if it was 0; returns 1 with the entry when this
 * call set it, else 0. The ten-thousandth copy to a block costs one look-up (some 20 ns while it is in the cache) and no store to it. */
int tn_ledger_mark_write(uint64_t addr, uint8_t write, tn_entry *out);
/* The same; where a block is found it is kept in *where, as one that has been written. */
int tn_ledger_mark_write_at(uint64_t addr, uint8_t write, tn_entry *out, tn_written *where);
/* Whether `addr` lies in that block and it is still the same one: two cache lines in place of a look-up's ten. All zero: in none. */
static inline int tn_ledger_is_written(const tn_written *w, uint64_t addr)
{
    return addr - w->start < w->bytes && __atomic_load_n(w->state, __ATOMIC_ACQUIRE) == w->value;
}
/* Drops every entry for which drop(entry, arg) says true (context destroyed, device reset); calls gone(entry, arg) for each that this call
 * removed, if not NULL. No lock is held around either. Time goes with the number of entries that were ever alive at once. Entries that come or
 * go meanwhile may or may not be seen. */
void tn_ledger_sweep(int (*drop)(const tn_entry *, void *), void (*gone)(const tn_entry *, void *), void *arg);
/* At the end of a thread that has removed: gives back the few nodes that it kept for blocks to come again. Not in a signal handler. */
void tn_ledger_thread_ends(void);
/* Looks at all of them: for tests. */
size_t tn_ledger_count(void);

#endif
