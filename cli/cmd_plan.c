/* tenure plan: which of its ways is meant: runs, a demand file, a file of buffers. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

const char cmd_plan_help[] =
    "tenure plan RUN... [-o PLAN] [--budget SIZE] [--rules FILE] [--headroom PERCENT]\n"
    "            [--gap SIZE] [--sizing SITE:N|none]\n"
    "tenure plan --demand FILE [--budget SIZE] [--charges FILE | --remembered | --plan PLAN] [--json]\n"
    "tenure plan --remember RUN [--charges FILE]\n"
    "tenure plan --dsa FILE [-o OUT] [--steps N]\n"
    "\n"
    "Makes a plan from what was recorded: for every site the discipline that holds its own history in the least memory, and for\n"
    "each tier its capacity. Each RUN is a folder or a journal (*.tnj); of several the plan holds each. A CSV file\n"
    "(seq,op,block,bytes,site) is planned by itself. docs/PLAN.md describes the plan's file.\n"
    "\n"
    "  -o PLAN              write the plan to PLAN, which is replaced; without it only the summary is printed\n"
    "  --budget SIZE        fail where the plan needs more than SIZE (32607MiB, 24 GiB, bytes)\n"
    "  --rules FILE         lines that override the planner: a discipline, then symbol=GLOB, module=GLOB, file=GLOB or key=KEY;\n"
    "                       or room beyond what was seen, as tenure verify prints it: room size=5MiB blocks=3 apart key=KEY\n"
    "  --headroom PERCENT   for other requests than those seen: what comes with requests gets slots of one size, its largest and\n"
    "                       so much more, T2 as much more, and sites seen less than 8 times share with no other; a site of\n"
    "                       several threads gets room for each one's most at once, within twice what was seen\n"
    "  --gap SIZE           leave SIZE behind every block that is placed: a write past its end meets nothing else's, and a canary\n"
    "                       of tenure run has room behind blocks of any size (512 holds a whole one)\n"
    "  --sizing SITE:N      the N-th memory query of the site with key SITE is the one by which the program sizes its largest pool;\n"
    "                       none: no query does; without it the record tells\n"
    "  --classes N          N size classes an octave (1 to 64) for packed slots, instead of the best of several\n"
    "  --steps N            the most work to do for the offsets of a tier, in steps of a nanosecond or two (default 100000000)\n"
    "  --symbol-seconds S   give up on names, files and lines after S seconds (default 60)\n"
    "  --debug-dir DIR      look for separate debug files in DIR/.build-id before /usr/lib/debug/.build-id\n"
    "  --quiet              print no summary\n"
    "\n"
    "The same runs give the same bytes, in whatever order they are given. Exit code 0; 1 where the plan is over the budget; 2 for\n"
    "wrong arguments or files; 3 where there is no journal, or one that is incomplete (the plan is then made all the same).\n"
    "\n"
    "With --demand it sums up what an engine will be asked to hold, from a file that says so (docs/DEMAND.md): charges, T2, T1,\n"
    "T3, scratch, and the KV pool from what is left of the budget. Where that does not fit, it prints what frees how much.\n"
    "\n"
    "  --demand FILE     the demand\n"
    "  --budget SIZE     the memory to fit into, such as 32607MiB, instead of the file's\n"
    "  --charges FILE    charges from a file of measurements instead of the demand's\n"
    "  --remembered      the same from the one in the user's state folder ($XDG_STATE_HOME/tenure/charges.json)\n"
    "  --plan PLAN       all but the KV pool from a plan of recorded runs, without the pool that their engine sized\n"
    "  --json            one JSON document with exact bytes instead of the table\n"
    "\n"
    "Exit code 0 where it fits, or where there is no budget; 1 where it does not; 2 for wrong arguments or files.\n"
    "\n"
    "With --remember it keeps what a recorded run measured of its charges, in FILE or in the user's state folder. The last nine\n"
    "runs of one set-up (GPU, driver, builds of the CUDA libraries, module loading) are kept and their median counts; a run that\n"
    "failed before it served, or dropped events, changes nothing. Exit code 0; 2 for wrong arguments or files; 3 where the run\n"
    "measured nothing that may be kept.\n"
    "\n"
    "With --dsa it packs the buffers of a MiniMalloc file (id,lower,upper,size; half-open lifetimes; optionally alignment, gaps,\n"
    "hint) as low as it can, and says how near that is to the least possible.\n"
    "\n"
    "  --dsa FILE   the buffers\n"
    "  -o OUT       write the file with the column offset\n"
    "  --steps N    the most work to do (default 4000000000)\n"
    "\n"
    "The same file gives the same offsets, in whatever order its lines stand. Exit code 0, or 2 for wrong arguments or a file that\n"
    "cannot be used.\n";

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
    if (has_option(argc, argv, "--remember"))
        return tn_cmd_plan_remember(argc, argv);
    if (has_option(argc, argv, "--demand"))
        return tn_cmd_plan_demand(argc, argv);
    return tn_cmd_plan_runs(argc, argv);
}
