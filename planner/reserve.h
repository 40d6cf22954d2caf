/* Measured charges, remembered between runs: for each set-up (GPU model, driver, builds of cudart and the libraries, loading mode) the last
 * measurements, in one small JSON file. A tn_reserve owns what it has read until tn_reserve_free; one thread at a time. Processes may
 * remember at once: writers take turns by a lock file, readers always see a whole file. No clock: dates come from the caller. */
#ifndef TENURE_PLANNER_RESERVE_H
#define TENURE_PLANNER_RESERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/charge.h"

#define TN_RESERVE_SCHEMA "tenure-charges/1"

enum {
    TN_RESERVE_KEPT = 9,     /* measurements of one set-up; the oldest goes */
    TN_RESERVE_ENTRIES = 256,/* set-ups; the one not measured for longest goes */
    TN_RESERVE_TEXT = 128,   /* of a name, with its end */
    TN_RESERVE_MESSAGE = 1024
};

typedef enum tn_reserve_error {
    TN_RESERVE_OK = 0,
    TN_RESERVE_ABSENT,     /* there is no such file yet */
    TN_RESERVE_READ,       /* it cannot be read */
    TN_RESERVE_CORRUPT,    /* it is no such file, or one with a value that cannot be; it is left as it is */
    TN_RESERVE_VERSION,    /* of another version */
    TN_RESERVE_LOCKED,     /* another process has held the lock for five seconds */
    TN_RESERVE_WRITE,      /* it cannot be written; what was there is still there */
    TN_RESERVE_REFUSED,    /* the measurement is of a failed run, or says nothing, or a name in it is too long */
    TN_RESERVE_NOT_FOUND,  /* no measurement of that set-up */
    TN_RESERVE_SEVERAL,    /* several set-ups answer to what was asked */
    TN_RESERVE_NOMEM
} tn_reserve_error;

typedef struct tn_reserve tn_reserve;

/* A set-up. `libraries`: one text for cudart and for each library, its name and build-id; in any order. */
typedef struct tn_reserve_key {
    const char *gpu, *driver, *loading;
    const char *const *libraries;
    size_t library_count;
} tn_reserve_key;

typedef struct tn_measurement {
    const char *run;   /* names the run: a run that is measured twice counts once, as it was measured last */
    const char *date;  /* "2026-11-30" */
    bool complete;     /* the run came to its end, its readings reached the phase they stand for, and no event was dropped */
    tn_charges charges;
} tn_measurement;

typedef struct tn_reserve_answer {
    tn_charges charges;               /* of each kind the median of the kept measurements, of an even number the larger of the middle two */
    size_t measurements;
    char date[TN_RESERVE_TEXT];       /* of the newest */
    char gpu[TN_RESERVE_TEXT], driver[TN_RESERVE_TEXT], loading[TN_RESERVE_TEXT];
} tn_reserve_answer;

/* Reads the file. On failure *out is NULL and `message` one sentence without a full stop that names the file and the place. */
tn_reserve_error tn_reserve_load(const char *path, tn_reserve **out, char message[TN_RESERVE_MESSAGE]);
/* The same from memory. */
tn_reserve_error tn_reserve_parse(const char *name, const void *bytes, size_t length, tn_reserve **out, char message[TN_RESERVE_MESSAGE]);
void tn_reserve_free(tn_reserve *reserve);

/* The set-up's charges. TN_RESERVE_NOT_FOUND leaves *out and writes no message. */
tn_reserve_error tn_reserve_find(const tn_reserve *reserve, const tn_reserve_key *key, tn_reserve_answer *out);

/* The charges of the one set-up that has these names; an empty or NULL one is not asked for. Of several it is TN_RESERVE_SEVERAL, with what
 * they are in `message`. */
tn_reserve_error tn_reserve_select(const tn_reserve *reserve, const char *gpu, const char *driver, const char *loading,
                                   tn_reserve_answer *out, char message[TN_RESERVE_MESSAGE]);

/* Adds a measurement to the file `path`, which need not exist, nor its folder (made with mode 0700): takes the lock "PATH.lock", reads, adds,
 * writes "PATH.new", syncs it and renames it. Either all of it happens or the file stays as it was. A measurement that is not complete, or
 * without a byte in it, is refused: a failed run changes nothing. `message` as above. */
tn_reserve_error tn_reserve_remember(const char *path, const tn_reserve_key *key, const tn_measurement *measurement,
                                     char message[TN_RESERVE_MESSAGE]);

#endif
