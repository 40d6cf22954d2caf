/* tenure plan --remember: what a run measured of its charges, for later plans. */
#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/remember.h"
#include "cli/state_folder.h"

int tn_cmd_plan_remember(int argc, char **argv)
{
    enum { REMEMBER = 256, CHARGES };
    static const struct option options[] = {{"remember", required_argument, NULL, REMEMBER},
                                            {"charges", required_argument, NULL, CHARGES},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    const char *run = NULL, *charges = NULL;
    char path[PATH_MAX];
    int c;
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        switch (c) {
        case REMEMBER:
            if (run)
                return cli_fail("plan", "one run at a time is remembered: %s is too much", optarg);
            run = optarg;
            break;
        case CHARGES:
            charges = optarg;
            break;
        case 'h':
            fputs(cmd_plan_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("plan", argc, argv, c);
        }
    }
    if (optind < argc)
        return cli_fail("plan", "%s is too much: one run at a time is remembered", argv[optind]);
    if (!charges) {
        if (cli_state_path("charges.json", path, sizeof(path)) != 0)
            return cli_fail("plan", "neither XDG_STATE_HOME nor HOME names an absolute path: there is no state folder");
        charges = path;
    }
    return cli_remember("plan", run, charges);
}
