/* What `tenure record`, `tenure run` and `tenure soak` have in common: the library, the run folder, the program's environment, its run and what to say
 * about it afterwards. */
#define _GNU_SOURCE
#include "cli/record_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/record_spawn.h"
#include "cli/record_target.h"
#include "cli/run_folder.h"
#include "ledger/tn_error.h"

/* The shim takes a limit that it cannot read for none given: it has nobody to tell. Here there is one. -1 or the exit code. */
static int check_journal_limit(const char *command)
{
    enum { MAX_MIB = 1 << 30 }; /* a pebibyte */
    const char *text = getenv("TENURE_JOURNAL_MAX_MIB");
    if (!text || !*text)
        return -1;
    char *end;
    errno = 0;
    unsigned long mib = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || mib < 1 || mib > MAX_MIB)
        return cli_fail(command, "TENURE_JOURNAL_MAX_MIB is %.100s, not a whole number of MiB from 1 to %d", text, MAX_MIB);
    return -1;
}

/* -1 with the absolute path of libtenure.so; else the exit code, after a sentence. */
static int find_library(const char *command, char out[PATH_MAX])
{
    static const char *const beside[] = {"libtenure.so", "../lib/libtenure.so", "../shim/libtenure.so"};
    const char *named = getenv("TENURE_LIB");
    if (named && *named) {
        if (!realpath(named, out) || access(out, R_OK) != 0)
            return cli_fail(command, "TENURE_LIB names %s, which cannot be read: %s", named, strerror(errno));
    } else {
        char self[PATH_MAX], candidate[PATH_MAX + 32];
        ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (length < 0)
            return cli_fail(command, "/proc/self/exe cannot be read, so libtenure.so cannot be found: set TENURE_LIB");
        self[length] = 0;
        *strrchr(self, '/') = 0;
        size_t i = 0;
        for (; i < sizeof(beside) / sizeof(beside[0]); i++) {
            snprintf(candidate, sizeof(candidate), "%s/%s", self, beside[i]);
            if (realpath(candidate, out) && access(out, R_OK) == 0)
                break;
        }
        if (i == sizeof(beside) / sizeof(beside[0]))
            return cli_fail(command, "libtenure.so is neither in %s nor in ../lib or ../shim beside it: set TENURE_LIB", self);
    }
    /* LD_PRELOAD is split at blanks and colons and has no way to quote either; $ starts a loader's token. */
    if (strpbrk(out, " :$\t\n"))
        return cli_fail(command, "%s has a blank, a colon or a dollar sign in its path, which LD_PRELOAD cannot carry", out);
    return -1;
}

/* The program's environment: our library first, so that it stands in front of every other preload. */
static int set_environment(const char *library, const char *run, const tn_run_plan *plan, int linked)
{
    const char *old = getenv("LD_PRELOAD");
    char *preload = NULL;
    if (linked)
        return setenv("TENURE_RUN", run, 1) != 0 || tn_run_plan_environment(plan) != 0 ? -1 : 0;
    if (asprintf(&preload, old && *old ? "%s:%s" : "%s", library, old) < 0)
        return -1;
    /* A program built with AddressSanitizer, or a child that is, ends at once where another preload stands in front of the sanitizer's
     * library. Ours may: it takes none of the names that the sanitizer does. */
    const char *sanitizer = getenv("ASAN_OPTIONS");
    char *options = NULL;
    if (asprintf(&options, "%s%sverify_asan_link_order=0", sanitizer ? sanitizer : "", sanitizer && *sanitizer ? ":" : "") < 0) {
        free(preload);
        return -1;
    }
    int failed = setenv("LD_PRELOAD", preload, 1) != 0 || setenv("TENURE_RUN", run, 1) != 0 || tn_run_plan_environment(plan) != 0 ||
                 setenv("ASAN_OPTIONS", options, 1) != 0;
    free(preload);
    free(options);
    return failed ? -1 : 0;
}

/* One line for each thing that the record lacks. */
static void report_problems(const char *command, const tn_run_folder *folder, int covered)
{
    tn_run_summary s;
    tn_run_folder_summary(folder, &s);
    if (s.gone)
        return;
    if (s.journals == 0 && covered)
        cli_warn(command, "no CUDA call was seen, or its journal could not be made (a full disk, a file-size limit): none is in %s", folder->path);
    if (s.unreadable)
        cli_warn(command, "%u of %u journals in %s cannot be read", s.unreadable, s.journals, folder->path);
    if (s.dropped)
        cli_warn(command, "%llu event%s dropped in %u of %u journals: the figures will be too low", (unsigned long long)s.dropped,
                 s.dropped == 1 ? " was" : "s were", s.processes_dropping, s.journals);
    if (s.stopped)
        cli_warn(command, "recording stopped before the end in %u of %u journals: %s", s.stopped, s.journals,
                 tn_error_text((tn_error)s.stop_error));
}

/* NVTX asks the environment for one library to tell. A profiler's stays. */
static int set_nvtx(const tn_record_run *r, const char *library)
{
    static const char variable[] = "NVTX_INJECTION64_PATH";
    const char *there = getenv(variable);
    char path[PATH_MAX + 32];
    if (!r->nvtx)
        return -1;
    if (there && *there) {
        if (!r->quiet)
            cli_warn(r->command, "%s is set to %.200s, which stays: no NVTX marks in the record", variable, there);
        return -1;
    }
    snprintf(path, sizeof(path), "%.*s/libtenure_nvtx.so", (int)(strrchr(library, '/') - library), library);
    if (access(path, R_OK) != 0)
        return cli_fail(r->command, "--nvtx needs libtenure_nvtx.so beside libtenure.so, and %s cannot be read: %s", path, strerror(errno));
    return setenv(variable, path, 1) == 0 ? -1 : cli_fail(r->command, "no memory for the program's environment");
}

static int in_child(void *arg)
{
    return tn_watch_child(((const tn_record_run *)arg)->watch);
}

static int started(void *arg, pid_t program)
{
    return tn_watch_start(((const tn_record_run *)arg)->watch, program);
}

static int ticked(void *arg)
{
    const tn_record_run *r = arg;
    tn_watch_tick(r->watch);
    return r->tick ? r->tick(r->arg, r->watch->program) : 0;
}

int tn_record_run_command(tn_record_run *r)
{
    const char *command = r->command;
    char **argv = r->argv;
    char path[PATH_MAX], program[PATH_MAX], library[PATH_MAX], message[TN_RUN_MESSAGE];
    int error = tn_target_find(argv[0], path);
    if (error == ENOENT && !strchr(argv[0], '/'))
        return cli_fail(command, "%s: command not found", argv[0]);
    if (error == ENOENT || error == ENOTDIR)
        return cli_fail(command, "%s: %s", argv[0], strerror(error));
    if (error)
        return cli_fail(command, "%s cannot be executed: %s", argv[0], strerror(error));
    int code = check_journal_limit(command);
    if (code >= 0)
        return code;
    code = find_library(command, library);
    if (code >= 0)
        return code;
    if (r->watch->guard && !r->plan && (strcmp(r->watch->guard, "refuse") == 0 || strcmp(r->watch->guard, "abort") == 0))
        return cli_fail(command, "--guard %s needs a plan: without one every allocation is the driver's", r->watch->guard);
    code = set_nvtx(r, library);
    if (code >= 0)
        return code;
    code = r->plan ? tn_run_plan_check(r->plan, command, r->quiet, path, argv) : -1;
    if (code >= 0)
        return code;
    tn_run_folder folder;
    if (tn_run_folder_open(&folder, r->run, argv, message) != 0)
        return cli_fail(command, "%s", message);
    tn_target_cover cover = tn_target_check(path, program);
    if (cover != TN_TARGET_COVERED && !r->quiet)
        cli_warn(command, "%s %s", program, tn_target_text(cover));
    const tn_spawn_hooks hooks = {.in_child = in_child, .started = started, .arg = r,
                                  .tick = r->tick || tn_watch_wants_ticks(r->watch) ? ticked : NULL};
    snprintf(r->folder, sizeof(r->folder), "%s", folder.path);
    error = set_environment(library, folder.path, r->plan, r->watch->linked) != 0 ? ENOMEM : tn_watch_environment(r->watch);
    if (!error)
        error = tn_watch_open(r->watch, folder.path);
    if (!error) {
        error = tn_record_spawn(argv, &hooks, &r->wait_status);
        tn_watch_finish(r->watch);
    }
    if (error) {
        tn_run_folder_abandon(&folder);
        /* The program itself was found: what the kernel misses is the script's interpreter, or a program's loader. */
        if (error == ENOENT && strcmp(program, path) != 0)
            return cli_fail(command, "%s cannot be executed: its interpreter %s is not there", argv[0], program);
        if (error == ENOENT)
            return cli_fail(command, "%s cannot be executed: the loader that it names is not there", argv[0]);
        return cli_fail(command, "%s cannot be executed: %s", argv[0], strerror(error));
    }
    if (tn_run_folder_finish(&folder, r->wait_status, message) != 0 && !r->quiet)
        cli_warn(command, "%s", message);
    if (!r->quiet) {
        report_problems(command, &folder, cover == TN_TARGET_COVERED);
        if (r->plan)
            tn_run_plan_report(r->plan, command, &folder);
        tn_watch_report(r->watch, command);
    }
    return -1;
}

int tn_record_exit_code(const tn_record_run *r)
{
    return WIFSIGNALED(r->wait_status) ? 128 + WTERMSIG(r->wait_status) : WEXITSTATUS(r->wait_status);
}
