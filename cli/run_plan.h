/* The plan of `tenure run` and `tenure soak --plan`: read and checked before the program starts, told to the library in the program by its environment,
 * asked after it. The command owns a tn_run_plan, and frees it by tn_run_plan_free. One thread. */
#ifndef TENURE_CLI_RUN_PLAN_H
#define TENURE_CLI_RUN_PLAN_H

#include <limits.h>

#include "cli/run_folder.h"
#include "planner/plan.h"

typedef struct tn_run_plan {
    const char *path;      /* as given; NULL: there is none */
    uint64_t budget;       /* bytes; 0: the plan's, if it has one */
    int misfit_native;     /* what does not fit the plan runs unplaced, and is a warning */
    int strict;            /* a tier that runs out refuses */
    int canary, poison, pin_regions; /* debugging options, and T1's empty regions stay; told by the environment as they are */
    const char *fill;      /* "zero" or a byte; NULL: new blocks hold what they hold */
    int free_waits;        /* a plain or pinned free waits for the device, as the driver's does */
    tn_plan *plan;         /* by tn_run_plan_open */
    char absolute[PATH_MAX];
} tn_run_plan;

/* For getopt_long; the letters are above those of record_watch.h. */
enum { TN_OPT_PLAN = 1100, TN_OPT_MISFIT, TN_OPT_BUDGET, TN_OPT_FREE_WAITS, TN_OPT_CANARY, TN_OPT_FILL, TN_OPT_POISON, TN_OPT_PIN_REGIONS };
#define TN_RUN_PLAN_OPTIONS                               \
    {"plan", required_argument, NULL, TN_OPT_PLAN},       \
    {"misfit", required_argument, NULL, TN_OPT_MISFIT},   \
    {"budget", required_argument, NULL, TN_OPT_BUDGET},   \
    {"free-waits", no_argument, NULL, TN_OPT_FREE_WAITS}, \
    {"canary", no_argument, NULL, TN_OPT_CANARY},         \
    {"fill", required_argument, NULL, TN_OPT_FILL},       \
    {"poison", no_argument, NULL, TN_OPT_POISON},         \
    {"pin-regions", no_argument, NULL, TN_OPT_PIN_REGIONS}
#define TN_RUN_PLAN_HELP \
    "  --plan PLAN          a file of tenure plan: the sites that it names are served by it, all others by the driver\n" \
    "  --misfit native      run a program or device that the plan does not fit unplaced, with a warning, where else the\n" \
    "                       program is not started\n" \
    "  --budget SIZE        what the plan must fit into (32607MiB), as into the device; else the plan's own budget, if it has one\n" \
    "  --free-waits         a plain or pinned free of a served block waits for the device, as the driver's own free does\n" \
    "  --pin-regions        memory of models that were unloaded stays with the program, for the next one that fits into it\n" \
    "  --canary             report writes past the end of served blocks, as far as something stands behind them that is no\n" \
    "                       other block's (tenure plan --gap 512: behind all)\n" \
    "  --fill zero|BYTE     what new served device blocks hold (0 to 255)\n" \
    "  --poison             freed served blocks hold 0xDE\n"

/* -1: not one of them; else 0, or the exit code after a sentence. */
int tn_run_plan_option(tn_run_plan *p, const char *command, int option, const char *value);
/* Reads the plan. -1; else the exit code, after a sentence. */
int tn_run_plan_open(tn_run_plan *p, const char *command);
void tn_run_plan_free(tn_run_plan *p);

/* Before the program starts: is the plan one for it, and does it fit the devices? `file` is what argv[0] stands for. -1; else the exit code: 2 a plan for
 * another program; 1, with the memory table on standard error, for a device that is too small or not there. */
int tn_run_plan_check(const tn_run_plan *p, const char *command, int quiet, const char *file, char **argv);
/* After it has ended: a warning where no process that used CUDA was one of the plan's, or none of these was served. */
void tn_run_plan_report(const tn_run_plan *p, const char *command, const tn_run_folder *folder);
/* Sets what the program's own library is to know; NULL: that there is no plan. 0 or an errno. */
int tn_run_plan_environment(const tn_run_plan *p);

#endif
