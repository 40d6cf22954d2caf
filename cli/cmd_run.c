/* tenure run: runs a program whose memory is placed by a plan, and leaves a run folder. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/record_run.h"

const char cmd_run_help[] =
    "tenure run --plan PLAN -o RUN [-q] [--misfit native] [--strict] [--budget SIZE] [--serving-when T] [options] -- CMD...\n"
    "\n"
    "Runs CMD as tenure record does, with its planned allocations served from the tiers of PLAN. Every process of CMD that\n"
    "the plan names, by the executable's build-id and the script of an interpreter, has tiers of its own, acquired at its\n"
    "first planned call; all other processes, and all sites that the plan does not name, are the driver's.\n"
    "\n"
    TN_RUN_PLAN_HELP
    "  --strict             a request for which a tier has no room is refused; else the driver serves it, and it is counted\n"
    "  -o RUN, -q, --nvtx   as of tenure record\n"
    TN_WATCH_HELP
    "\n"
    "Before CMD starts, the plan is checked, the program held against it, and its total against the device. CMD may be a\n"
    "launcher (a shell, env, mpirun), which is let through; it is refused where the plan has another build of an executable of\n"
    "that name, or where it uses CUDA itself and the plan does not name it.\n"
    "\n"
    "Exit code: CMD's own. 1 with the memory table where the plan does not fit the device or the budget; 2 where the plan is\n"
    "damaged or for another program, or for wrong arguments, as of tenure record. In these cases CMD was not started.\n";

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, tn_record_run *run, tn_run_plan *plan)
{
    enum { NVTX = 256, STRICT };
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"quiet", no_argument, NULL, 'q'},   {"help", no_argument, NULL, 'h'},
        {"nvtx", no_argument, NULL, NVTX},        {"strict", no_argument, NULL, STRICT}, TN_RUN_PLAN_OPTIONS,
        TN_WATCH_OPTIONS,                         {NULL, 0, NULL, 0},
    };
    int c;
    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:ho:q", options, NULL)) != -1) {
        int code = 0;
        switch (c) {
        case 'o':
            run->run = optarg;
            break;
        case 'q':
            run->quiet = 1;
            break;
        case 'h':
            fputs(cmd_run_help, stdout);
            return TN_EXIT_HOLDS;
        case NVTX:
            run->nvtx = 1;
            break;
        case STRICT:
            plan->strict = 1;
            break;
        default:
            code = tn_run_plan_option(plan, "run", c, optarg);
            if (code < 0)
                code = tn_watch_option(run->watch, "run", c, optarg);
            if (code < 0)
                code = cli_bad_option("run", argc, argv, c);
        }
        if (code > 0)
            return code;
    }
    if (!plan->path)
        return cli_fail("run", "no plan given: --plan PLAN is needed; to run without one is tenure record (see tenure help run)");
    if (!run->run)
        return cli_fail("run", "no run folder given: -o RUN is needed (see tenure help run)");
    if (optind == argc)
        return cli_fail("run", "no program given: tenure run --plan PLAN -o RUN -- CMD... (see tenure help run)");
    run->argv = argv + optind;
    return -1;
}

int cmd_run(int argc, char **argv)
{
    static tn_watch watch; /* outlives this call: see record_watch.h */
    static tn_run_plan plan;
    tn_record_run run = {.command = "run", .watch = &watch, .plan = &plan};
    int code = parse(argc, argv, &run, &plan);
    if (code < 0)
        code = tn_run_plan_open(&plan, "run");
    if (code < 0)
        code = tn_record_run_command(&run);
    tn_run_plan_free(&plan);
    return code >= 0 ? code : tn_record_exit_code(&run);
}
