/* What the reader's own files share; nobody else includes it. Everything belongs to the tn_reader and lives
 * until tn_reader_close; tables hold pointers into its mapping of the file, each checked when it was entered. */
#ifndef TENURE_LEDGER_READER_INTERNAL_H
#define TENURE_LEDGER_READER_INTERNAL_H

#include "ledger/journal_reader.h"

/* Ids are given out one by one from a small number; one beyond this comes from damage. */
#define TN_ID_MAX ((uint32_t)1 << 24)

/* Record payloads by id. */
typedef struct tn_table {
    const void **at; /* NULL: no such id */
    uint32_t end;    /* one past the largest id */
    uint32_t room;
} tn_table;

typedef struct tn_event_chunk {
    uint64_t offset, sequence;
    uint32_t thread;
} tn_event_chunk;

struct tn_reader {
    const unsigned char *map;
    size_t bytes;
    uint64_t chunk_count; /* whole chunks in the file */
    tn_journal_header header; /* a copy, its strings terminated */

    tn_event_chunk *event_chunks; /* by thread, sequence, offset */
    size_t event_chunk_count;
    size_t thread_count;
    uint32_t *order;      /* events in order, as offset / 64 */
    size_t event_count, cursor;

    tn_table modules, sites, apis, devices, strings, pythons, python_sites;
    const tn_rec_coverage **coverage;
    size_t coverage_count, coverage_room;
    uint64_t counters[TN_COUNTERS];

    double ns_per_tick;
    /* Damage, counted while reading; made into the sentence at the end. */
    uint64_t tail_bytes, bad_chunks, bad_records, bad_events;
    int no_clock;
    char damage[256];
};

/* reader_index.c: finds the chunks, orders the events, sums the counters. */
tn_error tn_reader_index(tn_reader *r);
/* reader_records.c: enters the records of the chunk at `offset`. TN_E_NOMEM, else TN_OK also for damaged ones, counted. */
tn_error tn_reader_take_records(tn_reader *r, uint64_t offset);
void tn_reader_free_records(tn_reader *r);

static inline uint64_t tn_reader_chunk_offset(uint64_t index)
{
    return TN_HEADER_BYTES + index * TN_CHUNK_BYTES;
}

#endif
