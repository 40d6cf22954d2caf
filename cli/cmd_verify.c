/* tenure verify PLAN RUN...: replays runs against a plan, and says what rules would make them fit. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/option_value.h"
#include "cli/plan_names.h"
#include "planner/gap.h"
#include "planner/import_csv.h"
#include "planner/needs.h"
#include "planner/plan_json.h"
#include "planner/plan_text.h"
#include "planner/verify.h"

const char cmd_verify_help[] =
    "tenure verify PLAN RUN... [--top N] [--rules-out FILE]\n"
    "\n"
    "Replays what each RUN recorded against PLAN, a file of tenure plan, tier by tier: does every request find room, and how\n"
    "many would have to wait for earlier work? Sites are matched by key, after a rebuild by module and function. Of sites that\n"
    "do not fit it prints the rules (tenure plan --rules) that make them fit.\n"
    "\n"
    "  --top N              show N sites a run (default 20)\n"
    "  --rules-out FILE     add these rules to FILE\n"
    "  --symbol-seconds S   give up on names after S seconds (default 60)\n"
    "  --debug-dir DIR      look for separate debug files in DIR/.build-id before /usr/lib/debug/.build-id\n"
    "\n"
    "Exit code 0 where the plan holds each run; 1 where it does not, with tier, site, event and bytes of the first and the worst;\n"
    "2 for wrong arguments or files; 3 where no run is too much for it but one dropped events or has nothing that is in the plan.\n";

typedef struct verify_options {
    const char *plan, *rules_out;
    char **runs; size_t run_count;
    size_t top;
    tn_symbol_options symbols;
    plan_names *names;
} verify_options;

static int parse(int argc, char **argv, verify_options *o)
{
    enum { TOP = 256, SECONDS, DEBUG_DIR, RULES_OUT };
    static const struct option options[] = {{"top", required_argument, NULL, TOP},
                                            {"symbol-seconds", required_argument, NULL, SECONDS},
                                            {"debug-dir", required_argument, NULL, DEBUG_DIR},
                                            {"rules-out", required_argument, NULL, RULES_OUT},
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
        case RULES_OUT:
            o->rules_out = optarg;
            break;
        case 'h':
            fputs(cmd_verify_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("verify", argc, argv, c);
        }
    }
    if (optind + 2 > argc)
        return cli_fail("verify", "a plan and a run are needed (see tenure help verify)");
    o->plan = argv[optind];
    o->runs = argv + optind + 1;
    o->run_count = (size_t)(argc - optind - 1);
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

/* The exit code of one run; what it needs is joined to *needs. */
static int verify_run(verify_options *o, const tn_plan *plan, const char *path, tn_needs *needs)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *run = NULL;
    tn_verdict verdict;
    int code;
    tn_error error = tn_import_is_csv(path) ? tn_import_csv(path, &run, message) : tn_trace_open(&path, 1, &run, message);
    if (error != TN_OK) {
        cli_fail("verify", "%s", message);
        return error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
    }
    tn_trace_add_gap(run, plan->gap);
    if (tn_verify(plan, run, name_row, o, &verdict) != TN_OK) {
        code = cli_fail("verify", "no memory left to replay %s", path);
    } else {
        if (o->run_count > 1)
            printf("%s: ", path);
        tn_verdict_print(&verdict, plan, run, o->top, stdout);
        code = warn_and_judge(&verdict, run);
        if (tn_needs_join(needs, plan, &verdict) != TN_OK)
            code = cli_fail("verify", "no memory left to sum up what sites need");
        tn_verdict_free(&verdict);
    }
    plan_names_free(o->names);
    o->names = NULL;
    tn_trace_free(run);
    return code;
}

/* Wrong files before all, then what is certain. */
static int worse(int a, int b)
{
    static const int order[] = {[TN_EXIT_HOLDS] = 0, [TN_EXIT_INCONCLUSIVE] = 1, [TN_EXIT_FALLS_SHORT] = 2, [TN_EXIT_USAGE] = 3};
    return order[a] > order[b] ? a : b;
}

static int tell_needs(const verify_options *o, const tn_plan *plan, const tn_needs *needs)
{
    if (!needs->count)
        return TN_EXIT_HOLDS;
    puts("Rules that make room (tenure plan --rules FILE, with the runs that the plan was made of):");
    tn_needs_print(needs, plan, stdout);
    if (!o->rules_out)
        return TN_EXIT_HOLDS;
    FILE *out = fopen(o->rules_out, "ae");
    int failed = out == NULL;
    if (out) {
        tn_needs_print(needs, plan, out);
        failed = ferror(out) != 0;
        failed |= fclose(out) != 0;
    }
    return failed ? cli_fail("verify", "%s cannot be written: %s", o->rules_out, strerror(errno)) : TN_EXIT_HOLDS;
}

int cmd_verify(int argc, char **argv)
{
    verify_options o = {.top = 20, .symbols = {.seconds = 60, .debug_bytes = TN_SYMBOL_DEBUG_BYTES}};
    char message[TN_TRACE_MESSAGE];
    tn_plan *plan = NULL;
    tn_needs needs = {0};
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    if (tn_plan_read(o.plan, &plan, message) != TN_OK)
        return cli_fail("verify", "%s", message);
    code = TN_EXIT_HOLDS;
    for (size_t i = 0; i < o.run_count; i++)
        code = worse(code, verify_run(&o, plan, o.runs[i], &needs));
    code = worse(code, tell_needs(&o, plan, &needs));
    if (fflush(stdout) != 0)
        code = cli_fail("verify", "standard output cannot be written");
    tn_needs_free(&needs);
    tn_plan_free(plan);
    return code;
}
