/* Sites that hold more and more: of each process and site the least that was live in each of up to 16 slices of the time in
 * which the process served (or of its whole run, where it never said that it serves). The clock is the process's count of granted
 * allocations, so that idle time does not matter, and what a program frees after its last allocation is its end and no evidence. Kept by
 * a watcher of the replay; owned by the report. One thread. */
#ifndef TENURE_REPORT_REPORT_GROWTH_H
#define TENURE_REPORT_REPORT_GROWTH_H

#include "report/report_watch.h"

typedef enum tn_growth_kind {
    TN_GROWTH_POOL = 0, /* the number of blocks stays, their sizes rise: a buffer that is replaced by larger ones */
    TN_GROWTH_LOST,     /* blocks come and are never freed: lost pointers, or something that keeps all it gets */
    TN_GROWTH_KEPT,     /* blocks come and are freed after the last allocation only: somebody knows them still */
} tn_growth_kind;

typedef struct tn_growth_site {
    uint32_t process, row;
    tn_growth_kind kind;
    int serving;              /* measured while serving; 0: over the whole run */
    uint64_t bytes, blocks;   /* backed bytes and blocks by which the least that was live rose */
    uint64_t allocs, frees;   /* meanwhile */
    uint64_t first_bytes, last_bytes; /* backed, of the first and of the last block that came meanwhile */
} tn_growth_site;

typedef struct tn_growth {
    tn_growth_site *sites; /* once the replay is over: those that grew, the largest rise first */
    size_t count;
    int serving;           /* 1 where a process served: only those that did are looked at */
    struct tn_growth_state *state;
} tn_growth;

extern const tn_watcher tn_growth_watcher;

/* "pool growth", "lost pointers", "kept blocks". */
const char *tn_growth_kind_name(tn_growth_kind kind);

#endif
