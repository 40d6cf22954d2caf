/* The program's standard output and error on their way through this command, so that its lines can be looked at: byte for byte, in order,
 * a stream each. A stream that is a terminal here is one for the program too (a pseudo-terminal), any other one is a pipe; where both
 * are the same thing here they share one, so that they do not overtake each other. One tn_passthrough a program; its threads call
 * `line` at the same time. */
#ifndef TENURE_CLI_PASSTHROUGH_H
#define TENURE_CLI_PASSTHROUGH_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TN_LINE_BYTES 8192 /* longer lines are looked at in parts */

/* One line, without its end; `tsc` is when it was read, on the stamp counter. */
typedef void (*tn_line_fn)(void *arg, const char *line, uint64_t tsc);

typedef struct tn_passage {
    int program;   /* the program's end; -1: this stream is left alone */
    int here;      /* ours */
    int to;        /* 1 or 2 */
    int both;      /* standard error goes this way too */
    int is_tty;
    int at_end;    /* all that was written has been passed on */
    struct tn_passthrough *of;
    pthread_t thread;
    int running;
    size_t used;
    char line[TN_LINE_BYTES];
} tn_passage;

typedef struct tn_passthrough {
    tn_passage each[2];
    int stop[2];   /* a pipe that says: pass on what is there and no more */
    int pty;       /* a pseudo-terminal even where this end is none */
    tn_line_fn line;
    void *arg;
} tn_passthrough;

/* Makes pipes and pseudo-terminals. 0 or an errno, with nothing left behind. */
int tn_passthrough_open(tn_passthrough *p, int pty, tn_line_fn line, void *arg);
/* In the forked child, before exec. Only calls that are safe there. 0 or an errno. */
int tn_passthrough_child(const tn_passthrough *p);
/* In the parent: closes the program's ends and starts passing on. 0 or an errno. */
int tn_passthrough_start(tn_passthrough *p);
/* The program has been started or not: gives a terminal's new size on; now and then. */
void tn_passthrough_tick(tn_passthrough *p, pid_t program);
/* The program has ended: passes on what it wrote. What its children still write goes on through a process of its own that
 * stays behind until they are done, as they would have gone on natively. */
void tn_passthrough_finish(tn_passthrough *p);

#endif
