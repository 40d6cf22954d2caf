/* Records: the few variable-length facts (modules, sites, names) that events refer to by number. They share
 * one open chunk under the records lock. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "ledger/journal_internal.h"
#include "ledger/tn_sys.h"

#define ROOM (TN_CHUNK_BYTES - (uint32_t)sizeof(tn_chunk_header))

/* A chunk with room for `need` bytes. Records lock. */
static tn_error make_room(tn_journal *j, uint32_t need)
{
    if (j->record_chunk.head != NULL && j->record_used + need <= ROOM)
        return TN_OK;
    if (!tn_journal_may_grow(j)) {
        uint32_t e = __atomic_load_n(&j->blocked, __ATOMIC_RELAXED);
        return e != TN_OK ? (tn_error)e : TN_E_NOSPACE;
    }
    tn_lock_take(&j->growth);
    tn_chunk_retire(j, &j->record_chunk);
    tn_error e = tn_chunk_open(j, &j->record_chunk, TN_CHUNK_RECORDS, 0, 0, j->record_sequence);
    if (e == TN_OK && j->buffered) {
        /* Records are not left in memory: events already on disk would name sites that nobody knows. */
        e = tn_journal_write(j, j->record_chunk.head, TN_CHUNK_BYTES, j->record_chunk.offset);
        if (e != TN_OK)
            tn_chunk_retire(j, &j->record_chunk);
    }
    tn_lock_release(&j->growth);
    if (e == TN_OK) {
        j->record_sequence++;
        j->record_used = 0;
    }
    return e;
}

/* Payload first, then the type, as in a mapped file. */
static tn_error write_through(tn_journal *j, const tn_record *r, uint32_t need, uint32_t type)
{
    int64_t at = j->record_chunk.offset + ((const char *)r - (const char *)j->record_chunk.head);
    tn_lock_take(&j->growth);
    tn_error e = tn_journal_write(j, r, need, at);
    if (e == TN_OK)
        e = tn_journal_write(j, &type, sizeof type, at);
    tn_lock_release(&j->growth);
    return e;
}

tn_error tn_journal_record(tn_journal *j, uint32_t type, const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    if (j == NULL || j->header == NULL || type == 0 || (a == NULL && a_bytes > 0))
        return TN_E_ARGUMENT;
    if (b == NULL)
        b_bytes = 0;
    int saved = errno;
    tn_error e = TN_E_LIMIT;
    tn_lock_take(&j->records);
    if (a_bytes <= ROOM && b_bytes <= ROOM && sizeof(tn_record) + a_bytes + b_bytes <= ROOM) {
        uint32_t need = (uint32_t)(sizeof(tn_record) + a_bytes + b_bytes + 7) & ~7u;
        e = make_room(j, need);
        if (e == TN_OK) {
            tn_record *r = (tn_record *)((char *)(j->record_chunk.head + 1) + j->record_used);
            r->bytes = (uint32_t)(a_bytes + b_bytes);
            if (a_bytes > 0)
                memcpy(r + 1, a, a_bytes);
            if (b_bytes > 0)
                memcpy((char *)(r + 1) + a_bytes, b, b_bytes);
            if (j->buffered)
                e = write_through(j, r, need, type);
            if (e == TN_OK) {
                __atomic_store_n(&r->type, type, __ATOMIC_RELEASE);
                j->record_used += need;
            } else {
                memset(r, 0, need); /* the next record takes its place, here and in the file */
            }
        }
    }
    if (e != TN_OK) {
        __atomic_fetch_add(&j->header->dropped_records, 1, __ATOMIC_RELAXED);
        if (e != TN_E_LIMIT)
            e = TN_E_NOSPACE;
    }
    tn_lock_release(&j->records);
    errno = saved;
    return e;
}
