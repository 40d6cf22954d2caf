/* A census joined with what recorded runs did: which of the lines that hold an allocation call were reached. The unit is the line,
 * since that is what a line table knows. A tn_runs owns what it holds and points into its census; one thread. */
#ifndef TENURE_CENSUS_RUNS_H
#define TENURE_CENSUS_RUNS_H

#include <stdint.h>

#include "census/census.h"
#include "report/report.h"

typedef enum tn_line_state {
    TN_LINE_NEVER,    /* no recorded call came from it */
    TN_LINE_REACHED,
    TN_LINE_POSSIBLY, /* one that came from it or from another */
    TN_LINE_MACRO,    /* only calls in the body of a macro: compilers place those where the macro is used. Not judged */
    TN_LINE_STATES
} tn_line_state;

typedef struct tn_run_line { /* a source line with an allocation call */
    size_t file;             /* in census->files */
    size_t first_use, uses;  /* its calls and what stands between them: file.uses.items[first_use ...] */
    uint64_t line;
    tn_line_state state;
    uint64_t paths, allocs;  /* call paths that came through it, and their granted allocations */
    uint64_t refused;        /* requests through it that were refused */
    uint64_t peak_bytes;     /* sum of those call paths' own peaks, requested; of several runs the largest */
    uint64_t run_bytes, last_path; /* while a run is added: its sum; the number of the call path that came last */
} tn_run_line;

typedef enum tn_path_state {
    TN_CALL_PATH_JOINED,    /* at a counted line */
    TN_CALL_PATH_NO_CALL,   /* in a counted file, at no counted line */
    TN_CALL_PATH_OUTSIDE,   /* not in the source: CUDA was called from no counted file */
    TN_CALL_PATH_AMBIGUOUS, /* its file or line could be one of several */
    TN_CALL_PATH_STATES
} tn_path_state;

typedef struct tn_call_path { /* a site, the same in all runs */
    tn_path_state state;
    int has_stack, has_line; /* of the frame that called CUDA */
    uint64_t key;
    char *api, *where;       /* where: FILE:LINE, or MODULE+OFFSET and why it has no line; "" where JOINED */
    char *through;           /* OUTSIDE: the first counted line or file further out, or NULL; AMBIGUOUS: what it could be */
    uint64_t allocs, refused, peak_bytes; /* of several runs: sums, and the largest peak */
} tn_call_path;

typedef struct tn_runs {
    const tn_census *census;
    tn_run_line *lines;      /* by file and line */
    size_t line_count;
    size_t states[TN_LINE_STATES];
    tn_call_path *paths;     /* those that are not JOINED, the largest peak first */
    size_t path_count, path_room;
    uint64_t path_states[TN_CALL_PATH_STATES];
    uint64_t no_line;        /* of OUTSIDE: no stack, or no line for its innermost frame in this machine's files */
    uint64_t sequence;
    int unread, incomplete;  /* a journal could not be read; something was dropped */
} tn_runs;

/* NULL when no memory is left. */
tn_runs *tn_runs_new(const tn_census *census);
void tn_runs_free(tn_runs *runs);
/* Adds the run at `path`. TN_OK, or what tn_report_load said with its sentence in `message`. */
TN_MUST_USE tn_error tn_runs_add(tn_runs *runs, const char *path, char message[TN_REPORT_MESSAGE]);
/* After the last one: counts states, sorts. */
void tn_runs_finish(tn_runs *runs);

#endif
