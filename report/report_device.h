/* Where a device's memory went: a model of what blocks cost there, charges from the journals' readings, and what is left over. Kept by
 * a watcher while the journals are replayed (report_device.c); a report owns it; one thread. All figures are those of one reading, in which
 * the sum of all lines plus `unattributed` is `own_used`, exactly, whatever sign the rest has. */
#ifndef TENURE_REPORT_REPORT_DEVICE_H
#define TENURE_REPORT_REPORT_DEVICE_H

#include "report/report_model.h"
#include "report/report_watch.h"

/* What a line is. Blocks are the program's and its libraries' own allocations; the rest belongs to no allocation. */
typedef enum tn_line_kind {
    TN_LINE_BLOCKS = 0,
    TN_LINE_ARENAS,       /* memory of the tiers that serve by a plan; what they serve costs nothing more */
    TN_LINE_SHARED,       /* rest of 2 MiB that small blocks share */
    TN_LINE_POOL_SLACK,   /* reserved by stream-ordered pools, not used */
    TN_LINE_GRAPH_MEMORY, /* reserved for graphs' memory nodes */
    TN_LINE_CONTEXT, TN_LINE_MODULE, TN_LINE_LAUNCH, TN_LINE_STREAM, TN_LINE_EVENT, TN_LINE_GRAPH, TN_LINE_LIMIT, TN_LINE_MANAGED,
    TN_LINE_FIRST_USE, TN_LINE_PEER, TN_LINE_PINNED, TN_LINE_ARRAY,
    TN_LINE_GROWTH,       /* seen in a call that waits; nothing of the above explains it */
    TN_LINE_KINDS
} tn_line_kind;
const char *tn_line_kind_name(tn_line_kind kind); /* as in the JSON's charges{} */

typedef struct tn_line {
    uint8_t kind;      /* tn_line_kind */
    uint32_t site;     /* index in report->sites, or TN_NO_INDEX */
    uint32_t row;      /* of TN_LINE_BLOCKS: index in report->rows while the replay runs; else TN_NO_INDEX */
    uint32_t process;
    uint64_t handle;   /* of a pool's line: the pool */
    int64_t bytes;
    int64_t undo;      /* what changed since the last reading */
} tn_line;

typedef struct tn_reading_view { /* the device at one quiet reading */
    uint64_t at_ns;         /* since the run began */
    uint32_t cause;         /* TN_READ_*; 0: a reading around a call */
    const char *label;      /* of a mark or phase; NULL: none. Points into a journal, or constant */
    uint32_t process;
    int64_t used, own_used, accounted, unattributed;
    int64_t kinds[TN_LINE_KINDS];
    int64_t pool_reserved, pool_used;
} tn_reading_view;

typedef struct tn_device_account { /* of one place */
    int has_readings, has_baseline;
    int context_and_baseline;  /* there was no NVML: the context's line holds what was there before */
    int64_t baseline;
    int64_t neighbours, neighbours_then; /* last and first figure of others' bytes; meaningful with has_neighbours */
    int has_neighbours;
    tn_line *lines; size_t line_count;
    tn_reading_view last;      /* the end: the last quiet reading */
    tn_reading_view *marks; size_t mark_count; /* readings at phases and marks, in order */
    uint64_t readings, unquiet; /* quiet ones; others, which say nothing exact */
    int64_t worst_unattributed; /* of all quiet readings: the largest by amount, with its sign */
    uint64_t worst_ns;
} tn_device_account;

/* NULL where no reading of that device is in the journals. */
const tn_device_account *tn_device_account_of(const tn_report *report, uint32_t place);
/* Bytes of the account's lines at the last reading; sums over kinds and owners are the caller's. */
static inline int64_t tn_line_bytes(const tn_line *line) { return line->bytes - line->undo; }

extern const tn_watcher tn_device_watcher;

#endif
