/* What `tenure record` and `tenure soak` do while the program runs: look at its output, ask the triggers, tell its processes their phase and
 * marks through their control blocks. A tn_watch is the command's own, once in its life, and is not given back before it ends: a
 * probe that hangs may still look at it. Its threads are its own affair. */
#ifndef TENURE_CLI_RECORD_WATCH_H
#define TENURE_CLI_RECORD_WATCH_H

#include <limits.h>

#include "cli/control_find.h"
#include "cli/passthrough.h"
#include "cli/trigger.h"

typedef struct tn_watch {
    tn_trigger when[2];     /* to Planning, to Serving */
    int has_mark;
    regex_t mark_on;
    int pty;                /* standard output is a terminal for the program */
    const char *guard;      /* "count", "warn", "refuse", "abort", or NULL: as the environment says */
    int linked;             /* the program carries the archive (docs/WRAP.md): nothing is preloaded */
    /* From here on the watch's own. */
    char run[PATH_MAX];
    tn_passthrough passage;
    pthread_mutex_t lock;
    pthread_t prober;
    int passing, probing, stop;
    pid_t program;
    tn_control_set processes;
    uint64_t last_tsc;      /* of the last command: each has a later one, so that their order is theirs */
    uint32_t phase;         /* as far as told from here */
    uint64_t owed_tsc[2];   /* a phase that no process was there to be told; 0: none */
    uint32_t owed_cause[2];
    int fired[2];
    tn_quiet quiet;
    unsigned long long quiet_calls;
    double quiet_since;
    unsigned marks_lost, marks_early, posts_failed;
} tn_watch;

/* Options that these commands take; for getopt_long. The letters are above 255. */
enum { TN_OPT_SERVING_WHEN = 1000, TN_OPT_PLANNING_WHEN, TN_OPT_MARK_ON, TN_OPT_PTY, TN_OPT_GUARD, TN_OPT_LINKED };
#define TN_WATCH_OPTIONS                                                   \
    {"serving-when", required_argument, NULL, TN_OPT_SERVING_WHEN},        \
    {"planning-when", required_argument, NULL, TN_OPT_PLANNING_WHEN},      \
    {"mark-on", required_argument, NULL, TN_OPT_MARK_ON},                  \
    {"pty", no_argument, NULL, TN_OPT_PTY},                                \
    {"guard", required_argument, NULL, TN_OPT_GUARD},                      \
    {"linked", no_argument, NULL, TN_OPT_LINKED}
#define TN_WATCH_HELP \
    "  --serving-when T, --planning-when T   when the program is in that phase; until then it is loading:\n" \
    "       line:REGEX      it prints a line that matches (POSIX extended)\n" \
    "       port:N          it listens on TCP port N, where nothing did before\n" \
    "       http:URL        URL answers with a status of 2xx, asked every 200 ms; no https\n" \
    "       call:NAME:N     a process begins its N-th call of that CUDA function\n" \
    "       quiet:SECONDS   no call has allocated for so long, after the first one\n" \
    "       A line that brings planning back while it serves begins a swap, which the next serving ends.\n" \
    "  --mark-on REGEX      sets a mark at each line of output that matches\n" \
    "  --pty                standard output is a terminal for the program, which makes it print line by line\n" \
    "  --guard count|warn   what is done about allocations while serving: they are counted (default), or each\n" \
    "                       site is also named once on standard error; with a plan also refuse: what the plan leaves to\n" \
    "                       the driver is out of memory, or abort: the program ends there, with a backtrace\n" \
    "  --linked             CMD was linked with libtenure_wrap.a (docs/WRAP.md): nothing is preloaded\n" \
    "With line: or --mark-on the program's output goes through this command, unchanged: the program then writes to a\n" \
    "pipe, or where the output here is a terminal, to a terminal of its own. A mark is set when its line is read here, a\n" \
    "moment after it was written.\n"
/* -1: not one of them; else 0, or the exit code after a sentence. `command`: "record", "run" or "soak". */
int tn_watch_option(tn_watch *w, const char *command, int option, const char *value);

/* Sets what the program's own library is to know. 0 or an errno. */
int tn_watch_environment(const tn_watch *w);
/* Before the program is started; `run` is the run folder. 0 or an errno. */
int tn_watch_open(tn_watch *w, const char *run);
/* In the forked child; 0 or an errno. */
int tn_watch_child(const tn_watch *w);
/* In the parent, once it runs; 0 or an errno. */
int tn_watch_start(tn_watch *w, pid_t program);
/* Whether there is anything to do now and then. */
int tn_watch_wants_ticks(const tn_watch *w);
/* Now and then, on the thread that started it. */
void tn_watch_tick(tn_watch *w);
/* The program has ended, or was never started. */
void tn_watch_finish(tn_watch *w);
/* One warning for each thing that went wrong. */
void tn_watch_report(const tn_watch *w, const char *command);

/* Sets a mark in all processes of the run now. */
void tn_watch_mark(tn_watch *w, const char *text, uint32_t cause);

#endif
