/* tenure verify PLAN RUN: replays a run against a plan. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/option_value.h"
#include "cli/plan_names.h"
#include "planner/import_csv.h"
#include "planner/plan_json.h"
#include "planner/plan_text.h"
#include "planner/verify.h"

const char cmd_verify_help[] =
    "tenure verify PLAN RUN [--top N]\n"
    "\n"
    "Replays what RUN recorded against PLAN, a file of tenure plan, tier by tier: does every request find room, and how many\n"
    "would have to wait for earlier work? Sites are matched by key, after a rebuild by module and function.\n"
    "\n"
    "  --top N              show N sites (default 20)\n"
    "  --symbol-seconds S   give up on names after S seconds (default 60)\n"
    "  --debug-dir DIR      look for separate debug files in DIR/.build-id before /usr/lib/debug/.build-id\n"
    "\n"
    "Exit code 0 where the plan holds; 1 where it does not, with tier, site, event and bytes of the first and the worst; 2 for\n"
    "wrong arguments or files; 3 where the run dropped events or nothing of it is in the plan.\n";

typedef struct verify_options {
    const char *plan, *run;
    size_t top;
    tn_symbol_options symbols;
    plan_names *names;
} verify_options;

static int parse(int argc, char **argv, verify_options *o)
{
    enum { TOP = 256, SECONDS, DEBUG_DIR };
    static const struct option options[] = {{"top", required_argument, NULL, TOP},
                                            {"symbol-seconds", required_argument, NULL, SECONDS},
                                            {"debug-dir", required_argument, NULL, DEBUG_DIR},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    uint64_t n;
    int c, code;
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        switch (c) {
        case TOP:
        case SECONDS:
            code = cli_number("verify", c == TOP ? "--top" : "--symbol-seconds", optarg, 0, c == TOP ? SIZE_MAX : 1000000, &n);
            if (code >= 0)
                return code;
            if (c == TOP)
                o->top = n;
            else
                o->symbols.seconds = (double)n;
            break;
        case DEBUG_DIR:
            o->symbols.debug_dir = optarg;
            break;
        case 'h':
            fputs(cmd_verify_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("verify", argc, argv, c);
        }
    }
    if (optind + 2 != argc)
        return cli_fail("verify", optind + 2 > argc ? "a plan and a run are needed (see tenure help verify)" : "one plan and one run: %s is too much",
                        argv[argc - 1]);
    o->plan = argv[optind];
    o->run = argv[optind + 1];
    return -1;
}

static void name_row(void *user, tn_plan *plan, const tn_trace *trace, uint32_t site, tn_plan_row *row)
{
    verify_options *o = user;
    if (!o->names)
        o->names = plan_names_new(trace, &o->symbols); /* keys mostly suffice, and then nothing is looked up */
    if (o->names)
        plan_names_fill(o->names, plan, site, row);
}

/* What standard output has no line for. */
static int warn_and_judge(const tn_verdict *v, const tn_trace *run)
{
    static const int codes[] = {[TN_PLAN_HOLDS] = TN_EXIT_HOLDS, [TN_PLAN_FALLS_SHORT] = TN_EXIT_FALLS_SHORT, [TN_PLAN_UNCERTAIN] = TN_EXIT_INCONCLUSIVE};
    for (size_t i = 0; i < run->skipped_count; i++)
        cli_warn("verify", "%s", run->skipped[i]);
    if (v->incomplete)
        cli_warn("verify", "the run is incomplete: events were dropped or cannot be read, so it cannot be said whether the plan holds");
    else if (v->by_key + v->by_name == 0)
        cli_warn("verify", "no site of this run is in the plan");
    return codes[tn_verdict_judge(v)];
}

int cmd_verify(int argc, char **argv)
{
    verify_options o = {.top = 20, .symbols = {.seconds = 60, .debug_bytes = TN_SYMBOL_DEBUG_BYTES}};
    char message[TN_TRACE_MESSAGE];
    tn_plan *plan = NULL;
    tn_trace *run = NULL;
    tn_verdict verdict;
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    if (tn_plan_read(o.plan, &plan, message) != TN_OK)
        return cli_fail("verify", "%s", message);
    tn_error error = tn_import_is_csv(o.run) ? tn_import_csv(o.run, &run, message) : tn_trace_open(&o.run, 1, &run, message);
    if (error != TN_OK) {
        cli_fail("verify", "%s", message);
        code = error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
    } else if (tn_verify(plan, run, name_row, &o, &verdict) != TN_OK) {
        code = cli_fail("verify", "no memory left to replay %s", o.run);
    } else {
        tn_verdict_print(&verdict, plan, run, o.top, stdout);
        code = warn_and_judge(&verdict, run);
        tn_verdict_free(&verdict);
        if (fflush(stdout) != 0)
            code = cli_fail("verify", "standard output cannot be written");
    }
    plan_names_free(o.names);
    tn_trace_free(run);
    tn_plan_free(plan);
    return code;
}
