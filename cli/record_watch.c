/* Triggers and marks while a program runs. */
#define _GNU_SOURCE
#include "cli/record_watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/control_find.h"
#include "phaseguard/phase.h"

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int tn_watch_option(tn_watch *w, const char *command, int option, const char *value)
{
    static const char *const guards[] = {"count", "warn", "refuse", "abort"};
    char message[TN_TRIGGER_MESSAGE];
    if (option == TN_OPT_SERVING_WHEN || option == TN_OPT_PLANNING_WHEN) {
        tn_trigger *t = &w->when[option == TN_OPT_SERVING_WHEN];
        if (t->type)
            return cli_fail(command, "one trigger a phase: there are two for %s", option == TN_OPT_SERVING_WHEN ? "serving" : "planning");
        return tn_trigger_parse(value, t, message) == 0 ? 0 : cli_fail(command, "%s", message);
    }
    if (option == TN_OPT_MARK_ON) {
        if (w->has_mark)
            return cli_fail(command, "one --mark-on: a regular expression may hold several, A|B");
        if (tn_trigger_regex(value, &w->mark_on, message) != 0)
            return cli_fail(command, "%s", message);
        w->has_mark = 1;
        return 0;
    }
    if (option == TN_OPT_PTY) {
        w->pty = 1;
        return 0;
    }
    if (option == TN_OPT_GUARD) {
        w->guard = value;
        for (size_t i = 0; i < sizeof(guards) / sizeof(guards[0]); i++)
            if (strcmp(value, guards[i]) == 0)
                return 0;
        return cli_fail(command, "--guard takes count, warn, refuse or abort, not %s", value);
    }
    if (option == TN_OPT_LINKED) {
        w->linked = 1;
        return 0;
    }
    return -1;
}

int tn_watch_environment(const tn_watch *w)
{
    static const char *const names[2] = {"TENURE_PLANNING_CALL", "TENURE_SERVING_CALL"};
    int failed = w->guard ? setenv("TENURE_GUARD", w->guard, 1) : 0;
    for (int i = 0; i < 2; i++)
        failed |= w->when[i].type == TN_TRIGGER_CALL ? setenv(names[i], w->when[i].call, 1) : unsetenv(names[i]);
    return failed ? ENOMEM : 0;
}

/* ---- telling the processes */

/* Puts a command into every process of the run: how many were told. Under the lock. */
static size_t post(tn_watch *w, uint32_t kind, uint32_t value, uint32_t cause, uint64_t tsc, const char *text)
{
    size_t told = 0;
    if (tn_control_refresh(w->run, &w->processes) != 0)
        return 0;
    if (tsc <= w->last_tsc)
        tsc = w->last_tsc + 1;
    w->last_tsc = tsc;
    for (size_t i = 0; i < w->processes.count; i++) {
        tn_error error = tn_control_post(&w->processes.each[i], kind, value, cause, tsc, text);
        told += error == TN_OK || error == TN_E_NOSPACE;
        if (error == TN_E_NOSPACE && kind == TN_COMMAND_MARK)
            w->marks_lost++;
        else if (error != TN_OK)
            w->posts_failed++;
    }
    return told;
}

static void fire(tn_watch *w, int which, uint32_t cause, uint64_t tsc)
{
    uint32_t to = which ? TN_PHASE_SERVING : TN_PHASE_PLANNING;
    pthread_mutex_lock(&w->lock);
    if (to != w->phase && !tn_phase_is_backward(w->phase, to)) {
        w->phase = to;
        if (!post(w, TN_COMMAND_PHASE, to, cause, tsc, NULL)) {
            w->owed_tsc[which] = tsc;
            w->owed_cause[which] = cause;
        }
    }
    pthread_mutex_unlock(&w->lock);
}

/* A line may come before the program's first CUDA call; the process is told as soon as there is one. */
static void pay(tn_watch *w)
{
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < 2; i++)
        if (w->owed_tsc[i] && post(w, TN_COMMAND_PHASE, i ? TN_PHASE_SERVING : TN_PHASE_PLANNING, w->owed_cause[i], w->owed_tsc[i], NULL))
            w->owed_tsc[i] = 0;
    pthread_mutex_unlock(&w->lock);
}

static void mark_at(tn_watch *w, const char *text, uint32_t cause, uint64_t tsc)
{
    pthread_mutex_lock(&w->lock);
    w->marks_early += post(w, TN_COMMAND_MARK, 0, cause, tsc, text) == 0;
    pthread_mutex_unlock(&w->lock);
}

void tn_watch_mark(tn_watch *w, const char *text, uint32_t cause)
{
    mark_at(w, text, cause, tn_control_stamp());
}

static void see_line(void *arg, const char *line, uint64_t tsc)
{
    tn_watch *w = arg;
    if (w->has_mark && regexec(&w->mark_on, line, 0, NULL, 0) == 0)
        mark_at(w, line, TN_CAUSE_LINE, tsc);
    for (int i = 0; i < 2; i++)
        if (w->when[i].type == TN_TRIGGER_LINE && regexec(&w->when[i].regex, line, 0, NULL, 0) == 0)
            fire(w, i, TN_CAUSE_LINE, tsc);
}

/* ---- asking the triggers */

static int is_quiet(tn_watch *w, double seconds, double now)
{
    unsigned long long calls = tn_quiet_calls(&w->quiet, w->run);
    if (calls != w->quiet_calls) {
        w->quiet_calls = calls;
        w->quiet_since = now;
    }
    return calls > 0 && now - w->quiet_since >= seconds;
}

static void probe(tn_watch *w, int which, double now, double *http_next)
{
    const tn_trigger *t = &w->when[which];
    uint64_t tsc = tn_control_stamp();
    switch (t->type) {
    case TN_TRIGGER_PORT:
        if (!w->fired[which] && tn_port_listens(t, w->program)) {
            w->fired[which] = 1;
            fire(w, which, TN_CAUSE_PORT, tsc);
        }
        break;
    case TN_TRIGGER_HTTP:
        if (!w->fired[which] && now >= *http_next) {
            *http_next = now + 0.2;
            if (tn_http_answers(t)) {
                w->fired[which] = 1;
                fire(w, which, TN_CAUSE_HTTP, tsc);
            }
        }
        break;
    case TN_TRIGGER_QUIET:
        if (is_quiet(w, t->seconds, now))
            fire(w, which, TN_CAUSE_QUIET, tsc);
        break;
    default:
        break;
    }
}

static void *probes(void *arg)
{
    tn_watch *w = arg;
    double http_next[2] = {0, 0};
    while (!__atomic_load_n(&w->stop, __ATOMIC_ACQUIRE)) {
        double now = now_seconds();
        pay(w);
        for (int i = 0; i < 2; i++)
            probe(w, i, now, &http_next[i]);
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return NULL;
}

/* ---- the run */

int tn_watch_open(tn_watch *w, const char *run)
{
    snprintf(w->run, sizeof(w->run), "%s", run);
    pthread_mutex_init(&w->lock, NULL);
    w->quiet_since = now_seconds();
    for (int i = 0; i < 2; i++)
        if (w->when[i].type == TN_TRIGGER_PORT)
            tn_port_begin(&w->when[i]);
    w->passing = tn_watch_wants_ticks(w);
    return w->passing ? tn_passthrough_open(&w->passage, w->pty, see_line, w) : 0;
}

int tn_watch_child(const tn_watch *w)
{
    return w->passing ? tn_passthrough_child(&w->passage) : 0;
}

int tn_watch_start(tn_watch *w, pid_t program)
{
    int error = 0;
    w->program = program;
    if (w->passing)
        error = tn_passthrough_start(&w->passage);
    int any = (w->when[0].type && w->when[0].type != TN_TRIGGER_CALL) || (w->when[1].type && w->when[1].type != TN_TRIGGER_CALL);
    if (!error && any) {
        error = pthread_create(&w->prober, NULL, probes, w);
        w->probing = !error;
    }
    return error;
}

int tn_watch_wants_ticks(const tn_watch *w)
{
    return w->pty || w->has_mark || w->when[0].type == TN_TRIGGER_LINE || w->when[1].type == TN_TRIGGER_LINE;
}

void tn_watch_tick(tn_watch *w)
{
    if (w->passing)
        tn_passthrough_tick(&w->passage, w->program);
}

void tn_watch_finish(tn_watch *w)
{
    __atomic_store_n(&w->stop, 1, __ATOMIC_RELEASE);
    /* An HTTP probe may hang for a second; the program's exit code is not to wait for it. */
    if (w->probing && w->when[0].type != TN_TRIGGER_HTTP && w->when[1].type != TN_TRIGGER_HTTP) {
        pthread_join(w->prober, NULL);
        tn_quiet_free(&w->quiet);
    }
    w->probing = 0;
    if (w->passing)
        tn_passthrough_finish(&w->passage);
    w->passing = 0;
}

void tn_watch_report(const tn_watch *w, const char *command)
{
    static const char *const phases[2] = {"planning", "serving"};
    for (int i = 0; i < 2; i++)
        if (w->owed_tsc[i])
            cli_warn(command, "the trigger for %s came, but no process made a CUDA call after it", phases[i]);
    if (w->marks_early)
        cli_warn(command, "%u mark%s before the first CUDA call of a process, or after its end: not in the record", w->marks_early,
                 w->marks_early == 1 ? " was" : "s were");
    if (w->marks_lost)
        cli_warn(command, "%u mark%s lost: a process made no CUDA call in between, and no more than 63 can wait", w->marks_lost,
                 w->marks_lost == 1 ? " was" : "s were");
    if (w->posts_failed)
        cli_warn(command, "%u command%s could not be given to a process", w->posts_failed, w->posts_failed == 1 ? "" : "s");
}
