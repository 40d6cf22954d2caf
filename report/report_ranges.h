/* The ranges that the program named (NVTX): by text, how often, how long, and what the range's own thread allocated meanwhile. Kept by a
 * watcher of the replay; owned by the report. One thread. */
#ifndef TENURE_REPORT_REPORT_RANGES_H
#define TENURE_REPORT_REPORT_RANGES_H

#include "report/report_watch.h"

typedef struct tn_range { /* one text, over all processes; a range within one of the same text counts too */
    const char *name;     /* NULL: the text was dropped */
    uint64_t count;       /* ended ones */
    uint64_t open;        /* begun and never ended */
    uint64_t total_ns;
    uint64_t allocs, requested_bytes; /* granted, by the thread that began it */
} tn_range;

typedef struct tn_ranges {
    tn_range *each;
    size_t count;
    struct tn_open_range *open; /* all that are open now */
    size_t open_count, open_room;
    size_t room;
} tn_ranges;

extern const tn_watcher tn_ranges_watcher;

#endif
