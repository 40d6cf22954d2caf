/* What looks on while the journals are replayed: each watcher keeps what its section of the report needs. A watcher's state
 * is a member of tn_report that it makes in begin() and gives back in drop(). All is called by the one thread of the
 * report, in the order of the table in report_watch.c. */
#ifndef TENURE_REPORT_REPORT_WATCH_H
#define TENURE_REPORT_REPORT_WATCH_H

#include "report/report_model.h"

typedef struct tn_moment { /* one event at its place in the replay */
    tn_report *report;
    uint32_t thread;       /* the journal's number of the thread that wrote the event; 0 where there is none */
    uint32_t process;      /* index in report->processes */
    uint64_t ns;           /* since the run's first process began to record, on the clock that the processes share */
    const tn_event *event; /* of type TN_EV_NONE: the process has ended; the last one of it */
    uint32_t row;          /* index in report->rows of an ALLOC, granted or refused; else TN_NO_INDEX */
} tn_moment;

typedef enum tn_change_cause {
    TN_CHANGE_CALL = 0,    /* an allocation; a free */
    TN_CHANGE_REPLACED,    /* its address was handed out again although no free was seen */
    TN_CHANGE_CONTEXT,     /* a reset or a destroyed context */
    TN_CHANGE_PROCESS_END, /* its process ended without freeing it */
} tn_change_cause;

typedef struct tn_change { /* one block that came or went */
    uint32_t row;   /* index in report->rows, which stays the same; TN_NO_INDEX: none */
    uint32_t place; /* index in report->places */
    uint8_t kind;   /* TN_KIND_* */
    int8_t sign;    /* 1 came, -1 went */
    uint8_t cause;  /* tn_change_cause */
    uint8_t tier;   /* TN_ROUTE_*: of a block that a tier serves, which costs nothing; or, with `arena`, whose memory came or went */
    uint8_t arena;  /* its `requested` is 0 */
    uint64_t addr, requested, backed;
    uint64_t born_ns; /* when the block came, as tn_moment.ns */
} tn_change;

typedef struct tn_watcher {
    uint64_t types; /* bit n: event() is called for events of type n */
    tn_error (*begin)(tn_report *report);
    tn_error (*event)(const tn_moment *moment);                          /* after the event has been replayed */
    tn_error (*change)(const tn_moment *moment, const tn_change *change); /* every block; before event() of the same event */
    tn_error (*end)(tn_report *report);                                  /* after the last event, before live bytes are summed */
    void (*drop)(tn_report *report);                                     /* also where begin() failed or was never called */
} tn_watcher;

#define TN_WATCH(type) ((uint64_t)1 << (type))

/* The replay's side. Members of a watcher may be NULL. The first error is returned. */
TN_MUST_USE tn_error tn_watch_begin(tn_report *report);
TN_MUST_USE tn_error tn_watch_event(const tn_moment *moment);
TN_MUST_USE tn_error tn_watch_change(const tn_moment *moment, const tn_change *change);
TN_MUST_USE tn_error tn_watch_end(tn_report *report);
void tn_watch_drop(tn_report *report);

#endif
