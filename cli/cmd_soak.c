/* tenure soak: runs a program until it serves, has it serve, and says whether it allocated meanwhile. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/option_value.h"
#include "cli/record_run.h"
#include "report/report_soak.h"

const char cmd_soak_help[] =
    "tenure soak [-o RUN] [--plan PLAN] --serving-when T [--requests-cmd CMD [--requests N|--duration S]] [options] -- CMD...\n"
    "\n"
    "Runs CMD as tenure record does, waits until it serves, lets it serve, and counts by site what it asks of the driver\n"
    "meanwhile. A site's first allocation is told apart from repetition; a refused request and its retry are one. Once the\n"
    "requests are done, the blocks that are live are held against those at the flip to serving.\n"
    "\n"
    "  -o RUN               the run folder, as of tenure record; else one is made under TMPDIR, and named\n"
    "  --requests-cmd CMD   a shell command that sends requests and ends when they are answered; run once CMD serves\n"
    "  --requests N         how often it is run, one after the other (default 1)\n"
    "  --duration SECONDS   it is run again until so much time has passed; without --requests-cmd: how long CMD serves\n"
    "  --drain SECONDS      between the last request and the count of live blocks (default 1)\n"
    "  --drained-on REGEX   CMD prints such a line when its requests are done, which is then a mark, as of --mark-on; else its\n"
    "                       end stands for that, where it has no --requests-cmd and no --duration\n"
    "  --phase-timeout S    how long CMD may take until it serves (default 600)\n"
    "  --grace SECONDS      between SIGTERM, by which CMD is ended then, and SIGKILL (default 10)\n"
    "  --strict             first uses count too\n"
    TN_RUN_PLAN_HELP
    "  --own-peak SIZE      with --plan: what a device may hold of CMD's at its phases and marks\n"
    "  --top N              lines of each table (default 40)\n"
    "  --nvtx, -q           as of tenure record\n"
    TN_WATCH_HELP
    "\n"
    "Without --requests-cmd and --duration CMD runs until it ends by itself; its end then stands for the drain. CMD may\n"
    "also say by tenure.h or be told by tenure ctl that it serves. Its output goes where this command's goes.\n"
    "With --plan CMD is run as by tenure run, and criteria decide, one a line: requests were placed by the plan; no driver\n"
    "allocation while serving, first uses included; no spill; no dropped event; live blocks within 1 % of those at the flip;\n"
    "0.5 % of a device's memory at most in no line of its account; and --own-peak.\n"
    "Exit code 0 where it holds; 1 with the sites where a site allocated again, or holds more blocks than at the flip;\n"
    "2 for wrong arguments; 3 where CMD never served, died or ended before the requests were done, where no request succeeded,\n"
    "or where events were dropped.\n";

typedef enum soak_state { LOADING, REQUESTING, WAITING, DRAINING, STOPPING } soak_state;

typedef struct soak {
    tn_record_run run;
    tn_run_plan plan;
    tn_soak_options options;
    const char *requests_cmd;
    unsigned long requests;
    double duration, drain, phase_timeout, grace;
    /* While it runs. */
    soak_state state;
    double since;           /* when the state was entered */
    double serving_since;
    tn_control_set processes;
    pid_t request;          /* running now; 0: none */
    unsigned long done, failed;
    int stopped;            /* it was ended from here */
    int timed_out;
} soak;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- arguments */

static int parse_seconds(const char *name, const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0 && *out <= 1e7))
        return cli_fail("soak", "--%s needs a number of seconds, not %s", name, text);
    return 0;
}

static int parse_count(const char *name, const char *text, unsigned long *out)
{
    char *end;
    errno = 0;
    *out = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || *out == 0)
        return cli_fail("soak", "--%s needs a number from 1 on, not %s", name, text);
    return 0;
}

enum { REQUESTS_CMD = 256, REQUESTS, DURATION, DRAIN, PHASE_TIMEOUT, GRACE, STRICT, TOP, NVTX, OWN_PEAK, DRAINED_ON };

/* 0, or the exit code. */
static int take_option(soak *s, int option, int argc, char **argv)
{
    unsigned long top;
    int code = 0;
    switch (option) {
    case 'o':
        s->run.run = optarg;
        return 0;
    case 'q':
        s->run.quiet = 1;
        return 0;
    case REQUESTS_CMD:
        s->requests_cmd = optarg;
        return 0;
    case REQUESTS:
        return parse_count("requests", optarg, &s->requests);
    case DURATION:
        return parse_seconds("duration", optarg, &s->duration);
    case DRAIN:
        return parse_seconds("drain", optarg, &s->drain);
    case PHASE_TIMEOUT:
        return parse_seconds("phase-timeout", optarg, &s->phase_timeout);
    case GRACE:
        return parse_seconds("grace", optarg, &s->grace);
    case STRICT:
        s->options.strict = 1;
        return 0;
    case TOP:
        code = parse_count("top", optarg, &top);
        s->options.top = top;
        return code;
    case NVTX:
        s->run.nvtx = 1;
        return 0;
    case DRAINED_ON:
        code = tn_watch_option(s->run.watch, "soak", TN_OPT_MARK_ON, optarg);
        s->options.drained_on = &s->run.watch->mark_on;
        return code;
    case OWN_PEAK:
        code = cli_size("soak", "--own-peak", optarg, &s->options.peak_most);
        return code >= 0 ? code : s->options.peak_most ? 0 : cli_fail("soak", "--own-peak 0 holds nothing");
    default:
        code = tn_run_plan_option(&s->plan, "soak", option, optarg);
        if (code < 0)
            code = tn_watch_option(s->run.watch, "soak", option, optarg);
        return code >= 0 ? code : cli_bad_option("soak", argc, argv, option);
    }
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, soak *s)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {"requests-cmd", required_argument, NULL, REQUESTS_CMD},
        {"requests", required_argument, NULL, REQUESTS},
        {"duration", required_argument, NULL, DURATION},
        {"drain", required_argument, NULL, DRAIN},
        {"phase-timeout", required_argument, NULL, PHASE_TIMEOUT},
        {"grace", required_argument, NULL, GRACE},
        {"strict", no_argument, NULL, STRICT},
        {"top", required_argument, NULL, TOP},
        {"nvtx", no_argument, NULL, NVTX},
        {"own-peak", required_argument, NULL, OWN_PEAK},
        {"drained-on", required_argument, NULL, DRAINED_ON},
        TN_RUN_PLAN_OPTIONS,
        TN_WATCH_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    int c;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:ho:q", options, NULL)) != -1) {
        if (c == 'h') {
            fputs(cmd_soak_help, stdout);
            return TN_EXIT_HOLDS;
        }
        int code = take_option(s, c, argc, argv);
        if (code != 0)
            return code;
    }
    if (optind == argc)
        return cli_fail("soak", "no program given: tenure soak --serving-when T -- CMD... (see tenure help soak)");
    if (s->requests && s->duration >= 0)
        return cli_fail("soak", "--requests and --duration exclude each other");
    if (s->requests && !s->requests_cmd)
        return cli_fail("soak", "--requests needs --requests-cmd");
    if (!s->plan.path && (s->plan.misfit_native || s->plan.budget || s->options.peak_most))
        return cli_fail("soak", "--misfit, --budget and --own-peak need --plan");
    s->options.planned = s->plan.path != NULL;
    s->run.plan = s->plan.path ? &s->plan : NULL;
    s->run.argv = argv + optind;
    return -1;
}

/* A folder of our own where none was named. */
static int make_folder(char out[PATH_MAX])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, PATH_MAX, "%s/tenure-soak-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(out) ? -1 : cli_fail("soak", "no folder for the run can be made at %s: %s", out, strerror(errno));
}

/* ---- while it runs */

static void enter(soak *s, soak_state state, double now)
{
    s->state = state;
    s->since = now;
}

static int serves(soak *s)
{
    if (tn_control_refresh(s->run.folder, &s->processes) != 0)
        return 0;
    for (size_t i = 0; i < s->processes.count; i++)
        if (tn_control_phase_to_come(&s->processes.each[i]) == TN_PHASE_SERVING)
            return 1;
    return 0;
}

/* The requests' program gets no preload of ours: it is none of the recorded. Its output must not stand in the verdict. */
static pid_t start_request(const soak *s)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid > 0 ? pid : 0;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    unsetenv("LD_PRELOAD");
    unsetenv("TENURE_RUN");
    unsetenv("TENURE_PLAN");
    dup2(2, 1);
    execl("/bin/sh", "sh", "-c", s->requests_cmd, (char *)NULL);
    _exit(127);
}

static void request(soak *s, double now)
{
    int status;
    if (s->request) {
        if (waitpid(s->request, &status, WNOHANG) != s->request)
            return;
        s->request = 0;
        s->done++;
        s->failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    int enough = s->duration >= 0 ? s->done && now - s->serving_since >= s->duration : s->done >= (s->requests ? s->requests : 1);
    if (enough)
        enter(s, DRAINING, now);
    else
        s->request = start_request(s);
}

static void stop(soak *s, pid_t program, double now)
{
    s->stopped = 1;
    kill(program, SIGTERM);
    enter(s, STOPPING, now);
}

static int tick(void *arg, pid_t program)
{
    soak *s = arg;
    double now = now_seconds();
    switch (s->state) {
    case LOADING:
        if (s->since == 0)
            s->since = now;
        if (serves(s)) {
            s->serving_since = now;
            enter(s, s->requests_cmd ? REQUESTING : WAITING, now);
        } else if (now - s->since > s->phase_timeout) {
            s->timed_out = 1;
            stop(s, program, now);
        }
        break;
    case REQUESTING:
        request(s, now);
        break;
    case WAITING:
        if (s->duration >= 0 && now - s->since >= s->duration)
            enter(s, DRAINING, now);
        break;
    case DRAINING:
        if (now - s->since < s->drain)
            break;
        tn_watch_mark(s->run.watch, TN_SOAK_DRAINED, TN_CAUSE_SOAK);
        stop(s, program, now);
        break;
    case STOPPING:
        if (now - s->since >= s->grace) {
            kill(program, SIGKILL);
            s->since = now;
        }
        break;
    }
    return 0;
}

/* ---- afterwards */

/* Why nothing can be concluded; "" otherwise. */
static void say_why(const soak *s, char *out, size_t size)
{
    int status = s->run.wait_status;
    *out = 0;
    if (s->timed_out)
        snprintf(out, size, "the program did not come to serve within %g s", s->phase_timeout);
    else if (s->state == LOADING && WIFEXITED(status))
        snprintf(out, size, "the program ended with exit code %d before it was seen to serve", WEXITSTATUS(status));
    else if (WIFSIGNALED(status) && !s->stopped)
        snprintf(out, size, "the program was ended by signal %d", WTERMSIG(status));
    else if (!s->stopped && WEXITSTATUS(status) != 0)
        snprintf(out, size, "the program ended with exit code %d", WEXITSTATUS(status));
    else if (s->state == REQUESTING)
        snprintf(out, size, "the program ended before the requests were done");
    else if (s->done && s->failed == s->done)
        snprintf(out, size, "%s of the requests' command failed", s->done == 1 ? "the only run" : "every run");
}

int cmd_soak(int argc, char **argv)
{
    static tn_watch watch; /* outlives this call: see record_watch.h */
    static char folder[PATH_MAX];
    soak s = {.run = {.command = "soak", .watch = &watch, .tick = tick, .arg = &s}, .options = {.top = 40}, .duration = -1, .drain = 1, .phase_timeout = 600, .grace = 10};
    int code = parse(argc, argv, &s);
    if (code >= 0)
        return code;
    if (!s.run.run) {
        code = make_folder(folder);
        if (code >= 0)
            return code;
        s.run.run = folder;
    }
    code = s.plan.path ? tn_run_plan_open(&s.plan, "soak") : -1;
    if (code < 0)
        code = tn_record_run_command(&s.run);
    tn_run_plan_free(&s.plan);
    tn_control_set_close(&s.processes);
    if (code >= 0) {
        if (s.run.run == folder)
            rmdir(folder);
        return code;
    }
    if (s.request) {
        kill(s.request, SIGTERM);
        waitpid(s.request, NULL, 0);
    }
    if (s.failed && !s.run.quiet)
        cli_warn("soak", "%lu of %lu runs of the requests' command failed", s.failed, s.done);
    char message[TN_REPORT_MESSAGE];
    tn_report *report = NULL;
    char broken[128];
    say_why(&s, broken, sizeof(broken));
    if (*broken) {
        cli_fail("soak", "%s", broken);
        s.options.broken = broken;
    }
    tn_error error = tn_report_load(s.run.folder, &report, message);
    if (error != TN_OK) {
        cli_fail("soak", "%s", message);
        return TN_EXIT_INCONCLUSIVE;
    }
    tn_soak_verdict verdict = tn_report_soak(report, &s.options, stdout);
    tn_report_free(report);
    printf("run folder: %s\n", s.run.folder);
    if (fflush(stdout) != 0)
        return cli_fail("soak", "standard output cannot be written");
    return *broken ? TN_EXIT_INCONCLUSIVE : (int)verdict;
}
