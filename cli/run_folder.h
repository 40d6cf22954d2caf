/* The folder that one recorded run fills: made before the program starts, described by run.json, looked at once
 * more when the program has ended. A tn_run_folder owns its strings until tn_run_folder_close; it never removes or
 * replaces a file that it did not make. */
#ifndef TENURE_CLI_RUN_FOLDER_H
#define TENURE_CLI_RUN_FOLDER_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "ledger/journal_format.h"

typedef struct tn_run_folder {
    char path[PATH_MAX]; /* absolute */
    int made;            /* the folder was made by us, not found empty */
    dev_t dev;
    ino_t ino;
    char **command;      /* borrowed, NULL-terminated */
    uint64_t start_ns;   /* CLOCK_REALTIME */
} tn_run_folder;

#define TN_RUN_MESSAGE (PATH_MAX + 256)

/* Makes the folder (and missing parents), or takes one that is empty, and writes run.json. 0; or -1 with one
 * sentence in message, and nothing changed. */
int tn_run_folder_open(tn_run_folder *folder, const char *path, char **command, char message[TN_RUN_MESSAGE]);
/* Takes back what opening made: run.json, and the folder if it was made. For a program that never started. */
void tn_run_folder_abandon(tn_run_folder *folder);
/* Writes the end into run.json: wait_status as waitpid gives it. 0, or -1 with a sentence. */
int tn_run_folder_finish(tn_run_folder *folder, int wait_status, char message[TN_RUN_MESSAGE]);

typedef struct tn_run_summary {
    int gone;            /* the folder is no longer there */
    unsigned journals, unreadable, stopped, processes_dropping;
    uint32_t stop_error; /* of the first that stopped */
    uint64_t dropped;    /* events and records */
} tn_run_summary;
/* The paths and headers of all journals of the run, one after the other; a header is NULL for one that cannot be read. -1: the folder is no longer there. */
int tn_run_folder_each(const tn_run_folder *folder, void (*see)(void *arg, const char *path, const tn_journal_header *header), void *arg);
/* The sum of them. */
void tn_run_folder_summary(const tn_run_folder *folder, tn_run_summary *out);

#endif
