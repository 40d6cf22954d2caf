/* tenure plan --demand: the arithmetic of a demand file, without a run. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/state_folder.h"
#include "planner/memory_text.h"
#include "planner/reserve.h"
#include "planner/size_text.h"

typedef struct demand_options {
    const char *demand, *charges;
    uint64_t budget;
    int has_budget, remembered, json;
} demand_options;

static int take_budget(const char *text, demand_options *o)
{
    size_t at;
    tn_size_error error = tn_size_read(text, strlen(text), &o->budget, &at);
    if (error != TN_SIZE_OK) {
        char sentence[200];
        tn_size_explain(text, strlen(text), error, at, sentence, sizeof(sentence));
        return cli_fail("plan", "--budget: %s", sentence);
    }
    o->has_budget = 1;
    return -1;
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, demand_options *o)
{
    enum { DEMAND = 256, BUDGET, CHARGES, REMEMBERED, JSON };
    static const struct option options[] = {{"demand", required_argument, NULL, DEMAND},   {"budget", required_argument, NULL, BUDGET},
                                            {"charges", required_argument, NULL, CHARGES}, {"remembered", no_argument, NULL, REMEMBERED},
                                            {"json", no_argument, NULL, JSON},             {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int c, code;
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
        switch (c) {
        case DEMAND:
            if (o->demand)
                return cli_fail("plan", "one demand file at a time: %s is too much", optarg);
            o->demand = optarg;
            break;
        case BUDGET:
            if ((code = take_budget(optarg, o)) >= 0)
                return code;
            break;
        case CHARGES:
            o->charges = optarg;
            break;
        case REMEMBERED:
            o->remembered = 1;
            break;
        case JSON:
            o->json = 1;
            break;
        case 'h':
            fputs(cmd_plan_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("plan", argc, argv, c);
        }
    }
    if (!o->demand)
        return cli_fail("plan", "no demand file given (see tenure help plan)");
    if (optind < argc)
        return cli_fail("plan", "%s is too much: a demand file is planned without a run", argv[optind]);
    if (o->charges && o->remembered)
        return cli_fail("plan", "--charges and --remembered exclude each other");
    return -1;
}

/* The charges of the demand's device from a file of measurements. -1: they are in *out; else the exit code. */
static int measured_charges(const char *path, const tn_demand *demand, tn_reserve_answer *out)
{
    char message[TN_RESERVE_MESSAGE];
    tn_reserve *reserve;
    if (tn_reserve_load(path, &reserve, message) != TN_RESERVE_OK)
        return cli_fail("plan", "%s", message);
    tn_reserve_error error = tn_reserve_select(reserve, demand->device.gpu, demand->device.driver, demand->device.loading, out, message);
    tn_reserve_free(reserve);
    return error == TN_RESERVE_OK ? -1 : cli_fail("plan", "%s: %s (the demand's device says which is meant)", path, message);
}

static int print(const demand_options *o, const tn_memory_plan *plan)
{
    int failed;
    if (o->json) {
        json_t *json = tn_memory_json(plan);
        failed = !json || json_dumpf(json, stdout, JSON_INDENT(2)) != 0 || fputc('\n', stdout) == EOF;
        json_decref(json);
    } else {
        failed = tn_memory_text(plan, stdout);
    }
    if (fflush(stdout) != 0 || failed)
        return cli_fail("plan", "standard output cannot be written: %s", strerror(errno));
    return plan->result == TN_MEMORY_FITS ? TN_EXIT_HOLDS : TN_EXIT_FALLS_SHORT;
}

int tn_cmd_plan_demand(int argc, char **argv)
{
    demand_options o = {.demand = NULL};
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    char message[TN_DOCUMENT_MESSAGE], path[PATH_MAX];
    tn_demand demand;
    tn_reserve_answer measured;
    if (tn_demand_load(o.demand, &demand, message) != TN_DEMAND_OK)
        return cli_fail("plan", "%s", message);
    if (o.remembered && cli_state_path("charges.json", path, sizeof(path)) != 0)
        return cli_fail("plan", "neither XDG_STATE_HOME nor HOME names an absolute path: there is no state folder");
    const char *charges = o.remembered ? path : o.charges;
    if (charges && (code = measured_charges(charges, &demand, &measured)) >= 0)
        return code;
    static tn_memory_plan plan;
    /* TN_DEMAND_UNSET is TN_MEMORY_NO_BUDGET: both are no size that a machine has. */
    tn_memory_plan_demand(&demand, charges ? &measured.charges : NULL, o.has_budget ? o.budget : demand.budget, &plan);
    return print(&o, &plan);
}
