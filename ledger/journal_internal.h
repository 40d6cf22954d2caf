/* What the writer's own files share; nobody else includes it. A tn_journal and its thread structures live
 * in anonymous mappings that are never given back, and that the kernel zeroes in a forked child: there every
 * call finds no header and no slot left, and does nothing. Fields say which lock guards them: `growth` for the file's
 * size, chunks and the list of threads, `records` for the open record chunk; the header is atomic or growth's. */
#ifndef TENURE_LEDGER_JOURNAL_INTERNAL_H
#define TENURE_LEDGER_JOURNAL_INTERNAL_H

#include <sys/types.h>

#include "ledger/journal.h"
#include "ledger/tn_lock.h"

#define TN_RETRY_DROPS 4096u /* a full disk is asked again after so many drops, not at each event */
#define TN_PATH_BYTES 4096u

/* Chunks that follow one another in the file and are mapped together; given out one by one, and unmapped when none of them is in use any more. */
typedef struct tn_window {
    void *map;
    size_t map_bytes;
    int64_t offset;        /* of its first chunk, in the file */
    uint32_t chunks, given_out, in_use;
    struct tn_window *next; /* among free ones */
} tn_window;

/* One chunk in use: mapped from the file, or in buffered mode a buffer that is written to it. */
typedef struct tn_chunk {
    tn_chunk_header *head; /* NULL: none */
    tn_window *window;     /* that it is mapped with; NULL: alone, by `map` */
    void *map;             /* what to unmap: starts earlier where pages are larger than 8 KiB */
    size_t map_bytes;
    int64_t offset;        /* in the file */
} tn_chunk;

struct tn_journal_thread {
    /* The owner's, without a lock. */
    tn_event *events;    /* slots of the present chunk; NULL: none */
    uint32_t left;       /* free slots at its end, atomic because a signal handler may come between; may go below 0 */
    uint32_t first;      /* first slot of the present owner in a chunk that it took over */
    uint64_t *counters;
    uint32_t number, tid;
    uint64_t sequence;
    tn_chunk chunk;      /* growth */
    uint32_t flushed;    /* buffered: so many of the chunk's events are in the file; growth */
    uint32_t unwritten;  /* buffered: so many of the others are in dropped_events already; growth */
    /* Where the counters are: a block of a counters chunk, or memory of their own until one is to be had. */
    int memory_counters;
    uint64_t counted;    /* calls in memory_counters that are already in dropped_events; growth */
    struct tn_counter_chunk *counter_chunk;
    int attached;        /* growth */
    tn_journal_thread *next_free, *next_all; /* growth */
};

typedef struct tn_counter_chunk {
    tn_chunk chunk;
    uint32_t used; /* blocks given out */
    struct tn_counter_chunk *next;
} tn_counter_chunk;

struct tn_journal {
    tn_journal_header *header; /* mapped from the file, or a buffer */
    tn_journal_os os;
    tn_lock growth, records;

    /* Growth. */
    int fd;
    dev_t dev;
    ino_t ino;
    int buffered;
    uint64_t max_bytes;
    int64_t file_end;  /* preallocated up to here (buffered: planned) */
    int64_t next_chunk;
    size_t page_bytes;
    tn_journal_thread *threads, *free_threads;
    uint32_t thread_count;
    tn_counter_chunk *counter_chunks, *spare_counter_chunk;
    tn_window *window, *free_windows; /* the one that chunks are given out from, or NULL */
    void *arena;       /* rest of the present slab of small structures */
    size_t arena_left;
    unsigned char *scratch; /* buffered: one chunk's copy while it is written */

    /* Atomic: 0 = grow freely, else the tn_error that growth met. */
    uint32_t blocked;
    uint32_t stopped;  /* for good */
    uint64_t drops_since_block;

    /* Records. */
    tn_chunk record_chunk;
    uint32_t record_used;
    uint64_t record_sequence;

    char path[TN_PATH_BYTES];
};

/* journal_os.c */
extern const tn_journal_os tn_journal_real_os;
/* Moves a descriptor of ours out of the range that programs close in loops; returns the one to use from now on. */
int tn_journal_raise_fd(int fd);
/* Makes sure that j->fd is still our file, reopening it by path where the host closed it. TN_E_OPEN if it is gone. */
tn_error tn_journal_check_fd(tn_journal *j);
tn_error tn_errno_error(int err);

/* journal_identity.c: fills host, boot_id, exe, cmdline and exe_build_id; what cannot be read stays empty. */
void tn_journal_identify(tn_journal_header *h);
/* The host name as a part of a file name. */
void tn_journal_host_name(char out[64]);
uint64_t tn_journal_random(void);

/* journal_chunk.c; all under `growth`. */
/* May growth be tried now? Counts the drop towards the next try if not. No lock. */
int tn_journal_may_grow(tn_journal *j);
tn_error tn_chunk_open(tn_journal *j, tn_chunk *c, uint32_t type, uint32_t thread, uint32_t tid, uint64_t sequence);
/* Unmaps it; a buffer is kept by *c for the next chunk. The caller has flushed a buffered one. */
void tn_chunk_retire(tn_journal *j, tn_chunk *c);
/* Buffered mode: writes p to the file; an error blocks or stops growth. */
tn_error tn_journal_write(tn_journal *j, const void *p, size_t bytes, int64_t offset);
void tn_journal_write_header(tn_journal *j);
/* Refreshes tsc_last and mono_last_ns. */
void tn_journal_clock(tn_journal *j);
void tn_clock_pair(uint64_t *tsc, uint64_t *mono_ns);
/* Zeroed memory that lives as long as the journal; NULL when there is none. */
void *tn_journal_small(tn_journal *j, size_t bytes);
/* Blocks growth (tried again later) or stops it for good, by the error's kind. */
void tn_journal_block(tn_journal *j, tn_error e);

/* journal_thread.c, under `growth`: writes the committed events and counters of a buffered thread. */
void tn_thread_flush(tn_journal *j, tn_journal_thread *t);
/* Counts as dropped what only memory remembers: calls, and buffered events that could not be written. */
void tn_thread_count_lost(tn_journal *j, tn_journal_thread *t);

#endif
