/* What moves a recorded run to its next phase: a line of output, a port, an HTTP answer, the n-th call of a function, quiet. A tn_trigger
 * owns what its parts point to until tn_trigger_free. Parsing and probing are apart: probes are asked again and again by one thread. */
#ifndef TENURE_CLI_TRIGGER_H
#define TENURE_CLI_TRIGGER_H

#include <regex.h>
#include <stddef.h>
#include <sys/types.h>

typedef enum tn_trigger_type {
    TN_TRIGGER_NONE = 0,
    TN_TRIGGER_LINE,  /* line:REGEX, POSIX extended, of what the program prints */
    TN_TRIGGER_PORT,  /* port:N listens, and did not when the program was started */
    TN_TRIGGER_HTTP,  /* http:HOST[:PORT]/PATH or http://... answers 2xx */
    TN_TRIGGER_CALL,  /* call:NAME:N, the n-th call of it in a process */
    TN_TRIGGER_QUIET, /* quiet:SECONDS without a call that allocates, after there was one */
} tn_trigger_type;

#define TN_OLD_LISTENERS 16
typedef struct tn_trigger {
    tn_trigger_type type;
    regex_t regex;
    unsigned port;
    char host[256], service[8], path[1024];
    char call[160]; /* NAME:N */
    double seconds;
    unsigned long old_listeners[TN_OLD_LISTENERS]; /* socket inodes that listened on the port before */
} tn_trigger;

#define TN_TRIGGER_MESSAGE 512

/* 0, or -1 with a sentence. */
int tn_trigger_parse(const char *text, tn_trigger *out, char message[TN_TRIGGER_MESSAGE]);
void tn_trigger_free(tn_trigger *t);
/* A regular expression, with the same kind of sentence. */
int tn_trigger_regex(const char *text, regex_t *out, char message[TN_TRIGGER_MESSAGE]);

/* Notes what listens already, before the program is started. */
void tn_port_begin(tn_trigger *t);
/* 1 where something new listens on the port in the program's own network; `pid` is the program's, 0 for this process. */
int tn_port_listens(const tn_trigger *t, pid_t pid);

/* One request; waits a second at most for each step. 1 where the answer's status was 2xx. */
int tn_http_answers(const tn_trigger *t);

/* Looks at the journals of a run as they grow. Zeroed memory, then tn_quiet_free. */
typedef struct tn_quiet {
    struct tn_quiet_journal *journals;
    size_t count;
} tn_quiet;
/* How many calls that allocate the journals of the run have counted so far. */
unsigned long long tn_quiet_calls(tn_quiet *q, const char *run);
void tn_quiet_free(tn_quiet *q);

#endif
