/* tenure plan: which of its ways is meant. Plans are not made from runs yet. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const char cmd_plan_help[] =
    "tenure plan --demand FILE [--budget SIZE] [--charges FILE | --remembered] [--json]\n"
    "tenure plan --dsa FILE [-o OUT] [--steps N]\n"
    "\n"
    "With --demand it sums up what an engine will be asked to hold, from a file that says so (docs/DEMAND.md): charges, T2, T1,\n"
    "T3, scratch, and the KV pool from what is left of the budget. Where that does not fit, it prints what frees how much.\n"
    "\n"
    "  --demand FILE     the demand\n"
    "  --budget SIZE     the memory to fit into, such as 32607MiB, instead of the file's\n"
    "  --charges FILE    charges from a file of measurements instead of the demand's\n"
    "  --remembered      the same from the one in the user's state folder ($XDG_STATE_HOME/tenure/charges.json)\n"
    "  --json            one JSON document with exact bytes instead of the table\n"
    "\n"
    "Exit code 0 where it fits, or where there is no budget; 1 where it does not; 2 for wrong arguments or files.\n"
    "\n"
    "With --dsa it packs the buffers of a MiniMalloc file (id,lower,upper,size; half-open lifetimes; optionally alignment, gaps,\n"
    "hint) as low as it can, and says how near that is to the least possible.\n"
    "\n"
    "  --dsa FILE   the buffers\n"
    "  -o OUT       write the file with the column offset\n"
    "  --steps N    the most work to do, in steps of a nanosecond or two (default 4000000000)\n"
    "\n"
    "The same file gives the same offsets everywhere, in whatever order its lines stand. Exit code 0, or 2 for wrong\n"
    "arguments or a file that cannot be used.\n";

static int has_option(int argc, char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; k++)
        if (strncmp(argv[k], name, length) == 0 && (argv[k][length] == 0 || argv[k][length] == '='))
            return 1;
    return 0;
}

int cmd_plan(int argc, char **argv)
{
    if (has_option(argc, argv, "--dsa"))
        return tn_cmd_plan_dsa(argc, argv);
    if (has_option(argc, argv, "--demand"))
        return tn_cmd_plan_demand(argc, argv);
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(cmd_plan_help, stdout);
        return TN_EXIT_HOLDS;
    }
    return cli_fail("plan", "--demand FILE or --dsa FILE is needed: plans are not made from runs yet (see tenure help plan)");
}
