/* One recorded run of a program, from its command line to its end. The caller owns the strings and the watch. */
#ifndef TENURE_CLI_RECORD_RUN_H
#define TENURE_CLI_RECORD_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "cli/record_watch.h"
#include "cli/run_plan.h"

typedef struct tn_record_run {
    const char *command;  /* whose messages these are: "record", "run", "soak" */
    const char *run;      /* the run folder as given */
    char **argv;          /* the program; ends with NULL */
    int quiet;            /* no warnings */
    int nvtx;             /* the program's NVTX calls are recorded */
    tn_watch *watch;
    const tn_run_plan *plan; /* opened; NULL: nothing is placed */
    int (*tick)(void *arg, pid_t program); /* may be NULL; about every 20 ms while it runs. Returns 1 to have no more */
    void *arg;
    /* Filled in. */
    char folder[PATH_MAX]; /* absolute */
    int wait_status;
} tn_record_run;

/* Runs it. -1 when it ran, however it ended; else the exit code of the command, after a sentence, and nothing of it ran. */
int tn_record_run_command(tn_record_run *r);

/* The program's own exit code; 128 and the signal's number where one ended it. */
int tn_record_exit_code(const tn_record_run *r);

#endif
