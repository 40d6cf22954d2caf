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
    uint64_t first_ordinal; /* of its first slot: slots are numbered through in the order of the chunks */
    uint64_t rising[(TN_EVENTS_PER_CHUNK + 63) / 64]; /* bit i: slot i holds an event that no earlier one of its thread is younger than */
} tn_event_chunk;

/* An event that is older than one before it in its thread. */
typedef struct tn_straggler {
    uint64_t tsc, ordinal;
    uint32_t thread;
    uint32_t ref; /* offset / 64 */
} tn_straggler;

/* A source of the merge: one thread's rising events, or all stragglers (thread 0 here). */
typedef struct tn_stream {
    uint64_t tsc, ordinal; /* of its next event, as thread and ref */
    uint32_t thread, ref;
    size_t chunk, chunk_end; /* of a thread: where it is, and one past its last chunk; of the stragglers: the next one, and their end */
    uint32_t slot;           /* of a thread: the next to look at */
    int straggler;
} tn_stream;

struct tn_reader {
    const unsigned char *map;
    size_t bytes;
    uint64_t chunk_count; /* whole chunks in the file */
    tn_journal_header header; /* a copy, its strings terminated */

    tn_event_chunk *event_chunks; /* by thread, sequence, offset */
    size_t event_chunk_count;
    size_t thread_count;
    tn_straggler *stragglers; /* by stamp, thread, position */
    size_t straggler_count;
    tn_stream *heap;          /* streams that have a next event, the least at the top */
    size_t heap_count;
    size_t event_count;

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

/* reader_index.c: finds the chunks, splits the events into streams, sums the counters. */
tn_error tn_reader_index(tn_reader *r);
/* reader_merge.c: makes room for the streams and goes to the first event. TN_E_NOMEM. */
tn_error tn_reader_merge_begin(tn_reader *r);
/* reader_records.c: enters the records of the chunk at `offset`. TN_E_NOMEM, else TN_OK also for damaged ones, counted. */
tn_error tn_reader_take_records(tn_reader *r, uint64_t offset);
void tn_reader_free_records(tn_reader *r);

static inline const tn_event *tn_reader_event_at(const tn_reader *r, uint32_t ref)
{
    return (const tn_event *)(r->map + (uint64_t)ref * sizeof(tn_event));
}

static inline uint64_t tn_reader_chunk_offset(uint64_t index)
{
    return TN_HEADER_BYTES + index * TN_CHUNK_BYTES;
}

#endif
