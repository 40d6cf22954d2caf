/* A run folder (or one journal) turned into one report. A tn_report owns everything it holds, the open
 * journals included, until tn_report_free; nothing of the journals is copied that can be pointed at. Not
 * thread-safe: one thread a report. Nothing here asks a driver or the environment, so the same files
 * give the same bytes once their processes are gone; of one that has not said so it is looked whether it still runs. */
#ifndef TENURE_REPORT_REPORT_H
#define TENURE_REPORT_REPORT_H

#include <stdio.h>

#include "ledger/tn_error.h"

typedef struct tn_report tn_report;

#define TN_REPORT_MESSAGE 1536 /* room for one sentence with a path in it */

/* Loads PATH, a folder with *.tnj files or a single journal, and replays it.
 * On failure *out is NULL and `message` holds one sentence without a newline, fit for the user:
 *   TN_E_OPEN      missing or unreadable
 *   TN_E_EMPTY     a folder with no journal
 *   TN_E_FORMAT, TN_E_VERSION, TN_E_TRUNCATED  no journal there can be read (of several: the first one's error)
 *   TN_E_NOMEM
 * Where only some journals of a folder cannot be read, the others are reported and tn_report_warning() names
 * each bad one. `message` may not be NULL. */
TN_MUST_USE tn_error tn_report_load(const char *path, tn_report **out, char message[TN_REPORT_MESSAGE]);
typedef struct tn_report_load_options {
    const char *at; /* stop the replay at this mark: its text, its number from 1 among the run's marks, or a phase's name; NULL: the end */
    const struct tn_symbol_options *symbols; /* limits of names, report_symbol.h; NULL: the usual ones */
} tn_report_load_options;

/* The same, and TN_E_NOTFOUND where `at` never comes. The strings must outlive the report. */
TN_MUST_USE tn_error tn_report_load_with(const char *path, const tn_report_load_options *options, tn_report **out,
                                         char message[TN_REPORT_MESSAGE]);
void tn_report_free(tn_report *report);

/* 1 when the report holds everything that happened; 0 when a process dropped events or records or stopped recording, or
 * when tn_report_unread(). */
int tn_report_complete(const tn_report *report);
/* 1 when a journal or a part of one could not be read and is missing from the report. */
int tn_report_unread(const tn_report *report);
/* The i-th warning, from 0: one sentence each; NULL past the end. Also printed at the head of the text. */
const char *tn_report_warning(const tn_report *report, size_t i);

typedef enum tn_report_by { TN_BY_STACKS = 0, TN_BY_LIBRARY, TN_BY_SITE, TN_BY_KIND, TN_BY_PHASE } tn_report_by;

typedef struct tn_report_options {
    size_t top;  /* sites, or rows of the table, shown in the text; 0: none */
    tn_report_by by; /* sites with their stacks, or a table that adds up to the total */
    int full;    /* all frames of a stack, all rows of the coverage table */
} tn_report_options;

/* Writes the text: at most 100 columns, except where one name or path alone is longer. 0, or -1 when `out` failed. */
int tn_report_text(tn_report *report, const tn_report_options *options, FILE *out);
/* Writes the JSON document, sizes as 64-bit integers, and a final newline. 0, or -1 when `out` failed or no
 * memory was left; then a part of it may have been written. */
int tn_report_json(tn_report *report, FILE *out);

#endif
