/* tenure plan. Today it packs files of buffers; plans are not made from runs yet. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const char cmd_plan_help[] =
    "tenure plan --dsa FILE [-o OUT] [--steps N]\n"
    "\n"
    "Packs the buffers of a MiniMalloc file (id,lower,upper,size; half-open lifetimes; optionally alignment, gaps, hint)\n"
    "as low as it can, and says how near that is to the least possible.\n"
    "\n"
    "  --dsa FILE   the buffers\n"
    "  -o OUT       write the file with the column offset\n"
    "  --steps N    the most work to do, in steps of a nanosecond or two (default 4000000000)\n"
    "\n"
    "The same file gives the same offsets everywhere, in whatever order its lines stand. Exit code 0, or 2 for wrong\n"
    "arguments or a file that cannot be used.\n";

int cmd_plan(int argc, char **argv)
{
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; k++)
        if (strcmp(argv[k], "--dsa") == 0 || strncmp(argv[k], "--dsa=", 6) == 0)
            return tn_cmd_plan_dsa(argc, argv);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(cmd_plan_help, stdout);
        return TN_EXIT_HOLDS;
    }
    return cli_fail("plan", "--dsa FILE is needed: plans are not made from runs yet (see tenure help plan)");
}
