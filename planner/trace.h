/* What journals say about lifetimes, one record a block, in the order in which the blocks came. A tn_trace owns its arrays and the
 * mappings of its journals until tn_trace_free; nothing in it depends on the order in which files were given, on the clock, or on the
 * environment. Not thread-safe: one thread a trace. */
#ifndef TENURE_PLANNER_TRACE_H
#define TENURE_PLANNER_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "ledger/journal_reader.h"
#include "ledger/tn_error.h"

#define TN_TRACE_MESSAGE 1536         /* room for one sentence with a path in it */
#define TN_LIFE_OPEN UINT32_MAX       /* a position: not before the end of the process */
#define TN_TRACE_NONE UINT32_MAX      /* an index: none */
#define TN_LIFE_UNIT 512u             /* of tn_life.backed */

/* What was seen of one block. */
enum {
    TN_LF_EXPORTED = 1u << 0,     /* its memory was handed to another process; of a handle also: the program asked for it by an address */
    TN_LF_SYNC_MEMOPS = 1u << 1,  /* the program asked for synchronous copies on it */
    TN_LF_HELD = 1u << 2,         /* a graph exec held its address */
    TN_LF_IN_CAPTURE = 1u << 3,   /* taken while a capture was active: the driver's, whatever the plan says */
    TN_LF_OTHER_FREE = 1u << 4,   /* freed by a call of another family that accepts it */
    TN_LF_RESET = 1u << 5,        /* its context ended before it was freed */
    TN_LF_OTHER_FREE_STREAM = 1u << 6, /* stream-ordered, freed on another stream than it was taken on */
};

/* Positions are event numbers within the process, from 1. The memory of a plain or pinned block may serve another from `clean` on, the
 * first wait that covers what was uncovered at its free; that of a stream-ordered one from `freed` on for the stream that freed it, from a
 * join on for another stream, and from `clean` on for all. freed <= clean. */
typedef struct tn_life {
    uint64_t bytes;              /* requested */
    uint32_t backed;             /* by the driver, as modelled, in TN_LIFE_UNIT, rounded up */
    uint32_t site;               /* index in tn_trace.sites */
    uint32_t begin, freed, clean;
    uint32_t stream, free_stream; /* 0: not stream-ordered */
    uint32_t ctx;
    uint32_t detail;             /* pinned: its flags; a handle: its properties (TN_VMM_*) */
    uint8_t kind;                /* TN_KIND_* */
    uint8_t device;
    uint8_t phase, free_phase;   /* TN_PHASE_* in which it came and went */
    uint8_t first_write;         /* TN_WRITE_*, 0: none seen */
    uint8_t write_phase;
    uint8_t flags;               /* TN_LF_* */
    uint8_t thread;              /* that took it: its number in the journal, 255: that or a larger one */
} tn_life;

/* Stream `to` waited at position `at` for what stream `from` had been given up to position `upto`. */
typedef struct tn_trace_join { uint32_t at, to, from, upto; } tn_trace_join;
typedef struct tn_trace_phase { uint32_t at; uint8_t phase; } tn_trace_phase;
/* A memory query: `ordinal` counts those of its native site on that device, from 1. */
typedef struct tn_trace_query { uint64_t free_bytes, total_bytes; uint32_t at, site, thread; uint32_t ordinal; uint8_t device; } tn_trace_query;
/* The first granted request of a site in a process. */
typedef struct tn_trace_first { uint32_t site, at, thread; } tn_trace_first;

typedef struct tn_trace_process {
    tn_reader *reader;          /* NULL: imported from another format */
    const tn_journal_header *header; /* the reader's; NULL without one */
    char *name;                 /* of the journal's file, for messages */
    tn_life *lives; size_t life_count;
    tn_trace_join *joins; size_t join_count;
    tn_trace_phase *phases; size_t phase_count;
    tn_trace_query *queries; size_t query_count;
    tn_trace_first *firsts; size_t first_count;
    uint32_t events;            /* positions end here */
    uint32_t stream_end;        /* one past the largest stream number */
    uint32_t graph_execs[256];  /* by device: the most that were there at once */
    uint64_t refused;           /* allocating calls that the driver refused */
    uint64_t no_context;        /* allocating calls under a context that has no number */
    uint64_t frees_unknown;
    uint64_t charges;           /* readings of a device that belong to a call */
    uint64_t dropped;           /* events and records that the journal lost */
    const char *damage;         /* NULL, or a sentence about what could not be read */
} tn_trace_process;

/* One chain of frames; with a Python part, the pair of both. */
typedef struct tn_trace_site {
    uint64_t key, python;       /* 0: no Python part */
    uint32_t native;            /* index of the site with the same key and no Python part; its own index if it is that */
    uint32_t process;           /* whose tables name its frames */
    uint8_t flags;              /* TN_LF_* of blocks that could not be found any more, else of none */
    uint32_t id;                /* in that process's journal; 0: none */
    const tn_rec_site *record;  /* NULL: no stack */
    const tn_rec_python_site *python_record;
} tn_trace_site;

typedef struct tn_trace {
    tn_trace_process *processes; size_t process_count;
    tn_trace_site *sites; size_t site_count; /* by key, then Python key */
    char **skipped; size_t skipped_count;    /* journals of a folder that could not be read, a sentence each */
} tn_trace;

/* Opens run folders and single journals and reads all of them. On failure *out is NULL and `message` holds one sentence that names the file
 * and the place: TN_E_OPEN, TN_E_EMPTY (a folder with no journal), TN_E_FORMAT, TN_E_VERSION, TN_E_TRUNCATED, TN_E_NOMEM, TN_E_LIMIT. */
TN_MUST_USE tn_error tn_trace_open(const char *const *paths, size_t count, tn_trace **out, char message[TN_TRACE_MESSAGE]);
void tn_trace_free(tn_trace *trace);

/* 1 when a journal dropped events, was damaged or could not be read, so that the trace does not hold everything that happened. */
int tn_trace_incomplete(const tn_trace *trace);

/* ---- for those who fill a trace ---- */

/* Appends room for one more element to an array of `size`-byte elements that doubles. NULL when no memory is left. */
void *tn_trace_grow(void *array, size_t *count, size_t size);
#define TN_TRACE_PUSH(array, count) ((__typeof__(array))tn_trace_grow(&(array), &(count), sizeof(*(array))))

/* Reads the events of one of the trace's processes. `site_of` maps the journal's site ids, `site_end` of them, to the trace's; ids without a
 * record are the site of id 0. TN_E_NOMEM, TN_E_LIMIT. */
TN_MUST_USE tn_error tn_trace_replay(tn_trace *trace, tn_trace_process *process, const uint32_t *site_of, uint32_t site_end);

#endif
