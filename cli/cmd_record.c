/* tenure record: runs a program under libtenure.so and leaves a run folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
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

const char cmd_record_help[] =
    "tenure record -o RUN [-q] -- CMD...\n"
    "\n"
    "Runs CMD with libtenure.so preloaded. Its output, input, signals and exit code are its own; a program that a\n"
    "signal ended gives 128 plus the signal's number. Every process of CMD that starts CUDA leaves a journal in RUN.\n"
    "\n"
    "  -o RUN    the run folder: made with its parents, or there and empty; nothing is overwritten\n"
    "  -q        no warnings; errors that keep CMD from starting are still printed\n"
    "\n"
    "libtenure.so is looked for beside this command, in ../lib and in ../shim; TENURE_LIB=FILE names another.\n"
    "Its path may hold no blank, colon or dollar sign. TENURE_JOURNAL_MAX_MIB=N bounds each journal: a whole number of\n"
    "MiB from 1 on (8192 unless set); what comes after is dropped and counted.\n"
    "Afterwards one line on standard error for each thing that went wrong: events dropped, recording stopped, run\n"
    "folder removed, no CUDA seen. Signals sent to this process reach CMD once; those of a terminal CMD gets itself.\n"
    "Exit code 2 when CMD was not started: not found, not executable, RUN unusable, libtenure.so missing,\n"
    "TENURE_JOURNAL_MAX_MIB no such number.\n";

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, const char **run, int *quiet)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    int c;
    while ((c = getopt_long(argc, argv, "+:ho:q", options, NULL)) != -1) {
        switch (c) {
        case 'o':
            *run = optarg;
            break;
        case 'q':
            *quiet = 1;
            break;
        case 'h':
            fputs(cmd_record_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("record", argc, argv, c);
        }
    }
    if (!*run)
        return cli_fail("record", "no run folder given: -o RUN is needed (see tenure help record)");
    if (optind == argc)
        return cli_fail("record", "no program given: tenure record -o RUN -- CMD... (see tenure help record)");
    return -1;
}

/* The shim takes a limit that it cannot read for none given: it has nobody to tell. Here there is one. -1 or the exit code. */
static int check_journal_limit(void)
{
    enum { MAX_MIB = 1 << 30 }; /* a pebibyte */
    const char *text = getenv("TENURE_JOURNAL_MAX_MIB");
    if (!text || !*text)
        return -1;
    char *end;
    errno = 0;
    unsigned long mib = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || mib < 1 || mib > MAX_MIB)
        return cli_fail("record", "TENURE_JOURNAL_MAX_MIB is %.100s, not a whole number of MiB from 1 to %d", text, MAX_MIB);
    return -1;
}

/* -1 with the absolute path of libtenure.so; else the exit code, after a sentence. */
static int find_library(char out[PATH_MAX])
{
    static const char *const beside[] = {"libtenure.so", "../lib/libtenure.so", "../shim/libtenure.so"};
    const char *named = getenv("TENURE_LIB");
    if (named && *named) {
        if (!realpath(named, out) || access(out, R_OK) != 0)
            return cli_fail("record", "TENURE_LIB names %s, which cannot be read: %s", named, strerror(errno));
    } else {
        char self[PATH_MAX], candidate[PATH_MAX + 32];
        ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (length < 0)
            return cli_fail("record", "/proc/self/exe cannot be read, so libtenure.so cannot be found: set TENURE_LIB");
        self[length] = 0;
        *strrchr(self, '/') = 0;
        size_t i = 0;
        for (; i < sizeof(beside) / sizeof(beside[0]); i++) {
            snprintf(candidate, sizeof(candidate), "%s/%s", self, beside[i]);
            if (realpath(candidate, out) && access(out, R_OK) == 0)
                break;
        }
        if (i == sizeof(beside) / sizeof(beside[0]))
            return cli_fail("record", "libtenure.so is neither in %s nor in ../lib or ../shim beside it: set TENURE_LIB", self);
    }
    /* LD_PRELOAD is split at blanks and colons and has no way to quote either; $ starts a loader's token. */
    if (strpbrk(out, " :$\t\n"))
        return cli_fail("record", "%s has a blank, a colon or a dollar sign in its path, which LD_PRELOAD cannot carry", out);
    return -1;
}

/* The program's environment: our library first, so that it stands in front of every other preload. */
static int set_environment(const char *library, const char *run)
{
    const char *old = getenv("LD_PRELOAD");
    char *preload = NULL;
    if (asprintf(&preload, old && *old ? "%s:%s" : "%s", library, old) < 0)
        return -1;
    int failed = setenv("LD_PRELOAD", preload, 1) != 0 || setenv("TENURE_RUN", run, 1) != 0 || unsetenv("TENURE_PLAN") != 0;
    free(preload);
    return failed ? -1 : 0;
}

/* One line for each thing that the record lacks. */
static void report_problems(const tn_run_folder *folder, int covered)
{
    tn_run_summary s;
    tn_run_folder_summary(folder, &s);
    if (s.gone)
        return;
    if (s.journals == 0 && covered)
        cli_warn("record", "no CUDA call was seen, or its journal could not be made (a full disk, a file-size limit): none is in %s", folder->path);
    if (s.unreadable)
        cli_warn("record", "%u of %u journals in %s cannot be read", s.unreadable, s.journals, folder->path);
    if (s.dropped)
        cli_warn("record", "%llu event%s dropped in %u of %u journals: the figures will be too low", (unsigned long long)s.dropped,
                 s.dropped == 1 ? " was" : "s were", s.processes_dropping, s.journals);
    if (s.stopped)
        cli_warn("record", "recording stopped before the end in %u of %u journals: %s", s.stopped, s.journals,
                 tn_error_text((tn_error)s.stop_error));
}

static int exit_code(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int cmd_record(int argc, char **argv)
{
    const char *run = NULL;
    int quiet = 0;
    int code = parse(argc, argv, &run, &quiet);
    if (code >= 0)
        return code;
    char **command = argv + optind;
    char path[PATH_MAX], program[PATH_MAX], library[PATH_MAX], message[TN_RUN_MESSAGE];
    int error = tn_target_find(command[0], path);
    if (error == ENOENT && !strchr(command[0], '/'))
        return cli_fail("record", "%s: command not found", command[0]);
    if (error == ENOENT || error == ENOTDIR)
        return cli_fail("record", "%s: %s", command[0], strerror(error));
    if (error)
        return cli_fail("record", "%s cannot be executed: %s", command[0], strerror(error));
    code = check_journal_limit();
    if (code >= 0)
        return code;
    code = find_library(library);
    if (code >= 0)
        return code;
    tn_run_folder folder;
    if (tn_run_folder_open(&folder, run, command, message) != 0)
        return cli_fail("record", "%s", message);
    tn_target_cover cover = tn_target_check(path, program);
    if (cover != TN_TARGET_COVERED && !quiet)
        cli_warn("record", "%s %s", program, tn_target_text(cover));
    int wait_status = 0;
    error = set_environment(library, folder.path) != 0 ? ENOMEM : tn_record_spawn(command, &wait_status);
    if (error) {
        tn_run_folder_abandon(&folder);
        /* The program itself was found: what the kernel misses is the script's interpreter, or a program's loader. */
        if (error == ENOENT && strcmp(program, path) != 0)
            return cli_fail("record", "%s cannot be executed: its interpreter %s is not there", command[0], program);
        if (error == ENOENT)
            return cli_fail("record", "%s cannot be executed: the loader that it names is not there", command[0]);
        return cli_fail("record", "%s cannot be executed: %s", command[0], strerror(error));
    }
    if (tn_run_folder_finish(&folder, wait_status, message) != 0 && !quiet)
        cli_warn("record", "%s", message);
    if (!quiet)
        report_problems(&folder, cover == TN_TARGET_COVERED);
    return exit_code(wait_status);
}
