/* For the backends alone: which regions a backend has given out, whatever its callers' copies say. One book per backend, with a lock of its
 * own that is never held around a driver call: an entry is opened before memory is asked for, so that keeping what was got cannot fail,
 * and claimed while a call works on it, so that a second copy of the region meets STALE and never the driver. Any thread may call. */
#ifndef TENURE_TIERS_REGION_BOOK_H
#define TENURE_TIERS_REGION_BOOK_H

#include <pthread.h>
#include <stdbool.h>

#include "tiers/backend.h"
#include "tiers/metadata.h"

typedef struct tn_book_entry {
    tn_region region;           /* as it is */
    unsigned long long address; /* what the driver gave, and of how many bytes: the base may lie within */
    size_t bytes;
    void *payload;              /* the backend's own */
    bool live;                  /* given out, and no call is at work on it */
} tn_book_entry;

typedef struct tn_book {
    pthread_mutex_t lock;
    tn_metadata metadata;
    tn_book_entry *entries; /* by rising id */
    size_t count, room;
    uint64_t next_id;
} tn_book;

void tn_book_init(tn_book *book, tn_metadata metadata);

/* Frees the book; the entries' memory and payloads are not its business. */
void tn_book_end(tn_book *book);

/* An entry that is not live yet, and its id. HOST_MEMORY. */
TN_MEM_MUST_USE tn_mem_error tn_book_open(tn_book *book, uint64_t *id);

/* Writes what stands in *entry to the entry of the same id, which exists, and makes it live. */
void tn_book_write(tn_book *book, const tn_book_entry *entry);

void tn_book_remove(tn_book *book, uint64_t id);

/* Copies the caller's region's entry and claims it until it is written or removed. STALE: there is none, or another call has it. ARGUMENT:
 * its base is another. */
TN_MEM_MUST_USE tn_mem_error tn_book_claim(tn_book *book, const tn_region *region, tn_book_entry *entry);

/* A copy of the live entry with the lowest id above `after`; false where there is none. */
bool tn_book_next(tn_book *book, uint64_t after, tn_book_entry *entry);

#endif
