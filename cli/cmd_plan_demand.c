/* tenure plan --demand: the arithmetic of a demand file, without a run. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/option_value.h"
#include "cli/state_folder.h"
#include "planner/memory_section.h"
#include "planner/memory_text.h"
#include "planner/plan_json.h"
#include "planner/reserve.h"

typedef struct demand_options {
    const char *demand, *charges, *plan;
    uint64_t budget;
    int has_budget, remembered, json;
} demand_options;

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, demand_options *o)
{
    enum { DEMAND = 256, BUDGET, CHARGES, REMEMBERED, JSON, PLAN };
    static const struct option options[] = {{"demand", required_argument, NULL, DEMAND},   {"budget", required_argument, NULL, BUDGET},
                                            {"charges", required_argument, NULL, CHARGES}, {"remembered", no_argument, NULL, REMEMBERED},
                                            {"json", no_argument, NULL, JSON},             {"help", no_argument, NULL, 'h'},
                                            {"plan", required_argument, NULL, PLAN},       {NULL, 0, NULL, 0}};
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
            if ((code = cli_size("plan", "--budget", optarg, &o->budget)) >= 0)
                return code;
            o->has_budget = 1;
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
        case PLAN:
            o->plan = optarg;
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
    if (o->plan && (o->charges || o->remembered))
        return cli_fail("plan", "--plan has charges of its own: neither --charges nor --remembered goes with it");
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

/* The lines of a plan that was made from runs, without the pool that its engine sized. -1: they are in *out; else the exit code. */
static int recorded_lines(const char *path, tn_memory_input *out)
{
    char message[TN_PLAN_MESSAGE], where[TN_MEMORY_NAME];
    tn_plan *plan;
    if (tn_plan_read(path, &plan, message) != TN_OK)
        return cli_fail("plan", "%s", message);
    int code = -1;
    if (plan->section_count != 1)
        code = cli_fail("plan", "%s has %zu sections, and a demand is that of one", path, plan->section_count);
    else if (!tn_memory_of_section(&plan->sections[0], true, out, where))
        code = cli_fail("plan", "%s: %s", path, where);
    tn_plan_free(plan);
    return code;
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
    static tn_memory_input recorded;
    if (o.plan && (code = recorded_lines(o.plan, &recorded)) >= 0)
        return code;
    /* TN_DEMAND_UNSET is TN_MEMORY_NO_BUDGET: both are no size that a machine has. */
    uint64_t budget = o.has_budget ? o.budget : demand.budget;
    if (o.plan)
        tn_memory_plan_around(&demand, &recorded, budget, &plan);
    else
        tn_memory_plan_demand(&demand, charges ? &measured.charges : NULL, budget, &plan);
    return print(&o, &plan);
}
