/* tenure ctl: tells running processes their phase, or sets a mark in their journals. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/control_find.h"
#include "phaseguard/phase.h"

const char cmd_ctl_help[] =
    "tenure ctl [-w SECONDS] PID|RUN phase loading|planning|serving\n"
    "tenure ctl [-w SECONDS] PID|RUN mark TEXT\n"
    "tenure ctl PID|RUN status\n"
    "\n"
    "Says to a process that is being recorded in which phase it is, or sets a mark that the report names. RUN, a run\n"
    "folder, means all its living processes. The process is not stopped and gets no signal: it takes the command at its\n"
    "next CUDA call, or at its end, and stamps it with the time at which the command was given.\n"
    "\n"
    "  -w SECONDS   wait until every process has taken it\n"
    "\n"
    "Phases go forward only, but for serving to planning, which begins a swap; the next serving ends it.\n"
    "Exit code 0; 1 where a process would go backwards, has 63 commands waiting, or has not taken it after SECONDS;\n"
    "2 for wrong arguments or where there is no such process; 3 where RUN has no living process that records.\n";

typedef struct ctl_options {
    double wait;
    const char *target, *text;
    uint32_t kind; /* 0: status */
    int phase;
} ctl_options;

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, ctl_options *o)
{
    static const struct option options[] = {{"wait", required_argument, NULL, 'w'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    int c;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:hw:", options, NULL)) != -1) {
        char *end;
        switch (c) {
        case 'w':
            o->wait = strtod(optarg, &end);
            if (*end || end == optarg || !(o->wait >= 0 && o->wait <= 1e6))
                return cli_fail("ctl", "-w needs a number of seconds, not %s", optarg);
            break;
        case 'h':
            fputs(cmd_ctl_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("ctl", argc, argv, c);
        }
    }
    int left = argc - optind;
    const char *what = left > 1 ? argv[optind + 1] : "";
    if (left < 2)
        return cli_fail("ctl", "a process or a run folder, and what it is told, are needed (see tenure help ctl)");
    o->target = argv[optind];
    if (strcmp(what, "status") == 0 && left == 2)
        return -1;
    if (strcmp(what, "phase") == 0 && left == 3) {
        o->kind = TN_COMMAND_PHASE;
        o->phase = tn_phase_parse(argv[optind + 2]);
        return o->phase >= 0 ? -1 : cli_fail("ctl", "there is no phase %s: it is loading, planning or serving", argv[optind + 2]);
    }
    if (strcmp(what, "mark") == 0 && left == 3) {
        o->kind = TN_COMMAND_MARK;
        o->text = argv[optind + 2];
        if (strlen(o->text) >= TN_CONTROL_TEXT)
            return cli_fail("ctl", "a mark has at most %u bytes", TN_CONTROL_TEXT - 1);
        return *o->text ? -1 : cli_fail("ctl", "a mark needs a text");
    }
    return cli_fail("ctl", "%s: phase NAME, mark TEXT or status is needed (see tenure help ctl)", what);
}

static void print_status(const tn_control *b)
{
    uint64_t posted = __atomic_load_n(&b->posted, __ATOMIC_ACQUIRE), taken = __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE);
    const char *phase = tn_phase_word(__atomic_load_n(&b->phase, __ATOMIC_ACQUIRE));
    printf("pid=%u phase=%s swaps=%u waiting=%llu refused=%llu lost=%llu serving_allocations=%llu serving_repeated=%llu\n", b->pid,
           phase ? phase : "unknown", b->swaps, (unsigned long long)(posted - taken), (unsigned long long)b->refused,
           (unsigned long long)b->lost, (unsigned long long)b->serving_allocations, (unsigned long long)b->serving_repeated);
}

/* 0, or 1 after a sentence. */
static int tell(tn_control_client *c, const ctl_options *o, uint64_t tsc)
{
    uint32_t now = tn_control_phase_to_come(c);
    if (o->kind == TN_COMMAND_PHASE && tn_phase_is_backward(now, (uint32_t)o->phase)) {
        cli_fail("ctl", "process %u is in %s, and phases do not go back to %s", c->block->pid, tn_phase_word(now), tn_phase_word((uint32_t)o->phase));
        return 1;
    }
    tn_error error = tn_control_post(c, o->kind, (uint32_t)(o->phase > 0 ? o->phase : 0), TN_CAUSE_CTL, tsc, o->text);
    if (error == TN_E_NOSPACE)
        cli_fail("ctl", "process %u has made no CUDA call since %u commands", c->block->pid, TN_CONTROL_SLOTS);
    else if (error != TN_OK)
        cli_fail("ctl", "process %u cannot be told: %s", c->block->pid, tn_error_text(error));
    return error != TN_OK;
}

static int wait_taken(const tn_control_set *set, double seconds)
{
    int missing = 1;
    for (double waited = 0; missing && waited <= seconds; waited += 0.01) {
        missing = 0;
        for (size_t i = 0; i < set->count; i++) {
            const tn_control *b = set->each[i].block;
            missing += __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE) < __atomic_load_n(&b->posted, __ATOMIC_ACQUIRE);
        }
        if (missing)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    if (missing)
        cli_fail("ctl", "%d of %zu processes made no CUDA call within %g s; the command waits for the next one", missing, set->count, seconds);
    return missing != 0;
}

int cmd_ctl(int argc, char **argv)
{
    ctl_options o = {.wait = -1};
    char message[TN_CONTROL_MESSAGE], *end;
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    tn_control_set set;
    long pid = strtol(o.target, &end, 10);
    int is_pid = !*end && pid > 0;
    if ((is_pid ? tn_control_find_pid(pid, &set, message) : tn_control_find_run(o.target, &set, message)) != 0)
        return cli_fail("ctl", "%s", message);
    if (set.count == 0) {
        cli_fail("ctl", "no living process records into %s (%zu ended, %zu unreadable)", o.target, set.gone, set.unreadable);
        tn_control_set_close(&set);
        return TN_EXIT_INCONCLUSIVE;
    }
    uint64_t tsc = tn_control_stamp();
    int failed = 0;
    for (size_t i = 0; i < set.count; i++) {
        if (o.kind)
            failed |= tell(&set.each[i], &o, tsc);
        else
            print_status(set.each[i].block);
    }
    if (!failed && o.kind && o.wait >= 0)
        failed = wait_taken(&set, o.wait);
    tn_control_set_close(&set);
    return failed ? TN_EXIT_FALLS_SHORT : TN_EXIT_HOLDS;
}
