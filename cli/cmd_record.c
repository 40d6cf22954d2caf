/* tenure record: runs a program under libtenure.so and leaves a run folder. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/record_run.h"
#include "cli/record_shadow.h"
#include "planner/plan_json.h"

const char cmd_record_help[] =
    "tenure record -o RUN [-q] [--serving-when T] [--planning-when T] [--mark-on REGEX] [--nvtx]\n"
    "              [--plan PLAN] -- CMD...\n"
    "\n"
    "Runs CMD with libtenure.so preloaded. Its output, input, signals and exit code are its own; a program that a\n"
    "signal ended gives 128 plus the signal's number. Every process of CMD that starts CUDA leaves a journal in RUN.\n"
    "\n"
    "  -o RUN    the run folder: made with its parents, or there and empty; nothing is overwritten\n"
    "  -q        no warnings; errors that keep CMD from starting are still printed\n"
    "  --nvtx    the program's NVTX marks and ranges go into the record, by libtenure_nvtx.so beside libtenure.so;\n"
    "            where NVTX_INJECTION64_PATH is set already, that stays and a warning says so\n"
    "  --plan PLAN  when CMD has ended, write to RUN/shadow.txt where the plan, a file of tenure plan, and what was recorded differ\n"
    TN_WATCH_HELP
    "\n"
    "libtenure.so is looked for beside this command, in ../lib and in ../shim; TENURE_LIB=FILE names another.\n"
    "Its path may hold no blank, colon or dollar sign. TENURE_JOURNAL_MAX_MIB=N bounds each journal: a whole number of\n"
    "MiB from 1 on (8192 unless set); what comes after is dropped and counted.\n"
    "ASAN_OPTIONS gets verify_asan_link_order=0, or a program with AddressSanitizer would not start behind a preload.\n"
    "Afterwards one line on standard error for each thing that went wrong: events dropped, recording stopped, run\n"
    "folder removed, no CUDA seen. Signals sent to this process reach CMD once; those of a terminal CMD gets itself.\n"
    "Exit code 2 when CMD was not started: not found, not executable, RUN unusable, libtenure.so missing,\n"
    "TENURE_JOURNAL_MAX_MIB no such number.\n";

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, tn_record_run *run, const char **plan)
{
    enum { NVTX = 256, PLAN };
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
        {"nvtx", no_argument, NULL, NVTX},
        {"plan", required_argument, NULL, PLAN},
        TN_WATCH_OPTIONS,
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    int c;
    while ((c = getopt_long(argc, argv, "+:ho:q", options, NULL)) != -1) {
        switch (c) {
        case 'o':
            run->run = optarg;
            break;
        case 'q':
            run->quiet = 1;
            break;
        case 'h':
            fputs(cmd_record_help, stdout);
            return TN_EXIT_HOLDS;
        case NVTX:
            run->nvtx = 1;
            break;
        case PLAN:
            *plan = optarg;
            break;
        default: {
            int code = tn_watch_option(run->watch, "record", c, optarg);
            if (code != 0)
                return code > 0 ? code : cli_bad_option("record", argc, argv, c);
        }
        }
    }
    if (!run->run)
        return cli_fail("record", "no run folder given: -o RUN is needed (see tenure help record)");
    if (optind == argc)
        return cli_fail("record", "no program given: tenure record -o RUN -- CMD... (see tenure help record)");
    return -1;
}

int cmd_record(int argc, char **argv)
{
    static tn_watch watch; /* outlives this call: see record_watch.h */
    tn_record_run run = {.command = "record", .watch = &watch};
    const char *plan_path = NULL;
    char message[TN_PLAN_MESSAGE];
    tn_plan *plan = NULL;
    int code = parse(argc, argv, &run, &plan_path);
    if (code >= 0)
        return code;
    if (plan_path && tn_plan_read(plan_path, &plan, message) != TN_OK)
        return cli_fail("record", "%s", message);
    run.argv = argv + optind;
    code = tn_record_run_command(&run);
    if (code < 0 && plan)
        tn_record_shadow(plan, run.folder, run.quiet);
    tn_plan_free(plan);
    return code >= 0 ? code : tn_record_exit_code(&run);
}
