/* tenure plan RUN...: from recorded runs to a plan file. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/option_value.h"
#include "cli/plan_arithmetic.h"
#include "cli/plan_charges.h"
#include "cli/plan_names.h"
#include "planner/gap.h"
#include "planner/import_csv.h"
#include "planner/plan_check.h"
#include "planner/plan_json.h"
#include "planner/plan_text.h"
#include "planner/rules.h"

typedef struct plan_run_options {
    const char *output, *rules_path;
    tn_symbol_options symbols;
    tn_plan_options plan;
    int quiet;
    /* For the callbacks. */
    plan_names *names;
    plan_charges *charges;
    tn_rules *rules;
} plan_run_options;

/* SITE:N or none. -1: go on; else the exit code. */
static int read_sizing(const char *text, tn_plan_sizing_option *out)
{
    unsigned long long key;
    unsigned ordinal;
    int end = 0;
    *out = (tn_plan_sizing_option){.choice = TN_SIZING_NONE};
    if (strcmp(text, "none") == 0)
        return -1;
    if (strspn(text, "0123456789abcdefABCDEF") > 16 || sscanf(text, "%16llx:%9u%n", &key, &ordinal, &end) != 2 || text[end] || text[0] == '-' || ordinal == 0)
        return cli_fail("plan", "--sizing takes a site's key of up to 16 hexadecimal digits, a colon and a number from 1 on, or none, not %s", text);
    *out = (tn_plan_sizing_option){.choice = TN_SIZING_GIVEN, .key = key, .ordinal = ordinal};
    return -1;
}

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, plan_run_options *o)
{
    enum { BUDGET = 256, RULES, HEADROOM, GAP, SIZING, CLASSES, STEPS, SECONDS, DEBUG_DIR, QUIET };
    static const struct option options[] = {
        {"budget", required_argument, NULL, BUDGET}, {"rules", required_argument, NULL, RULES}, {"headroom", required_argument, NULL, HEADROOM},
        {"classes", required_argument, NULL, CLASSES}, {"gap", required_argument, NULL, GAP}, {"sizing", required_argument, NULL, SIZING},
        {"steps", required_argument, NULL, STEPS}, {"quiet", no_argument, NULL, QUIET},
        {"symbol-seconds", required_argument, NULL, SECONDS}, {"debug-dir", required_argument, NULL, DEBUG_DIR},
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0},
    };
    uint64_t n;
    int c, code = -1;
    opterr = 0;
    optind = 1;
    while (code < 0 && (c = getopt_long(argc, argv, ":ho:", options, NULL)) != -1) {
        switch (c) {
        case BUDGET:
            if ((code = cli_size("plan", "--budget", optarg, &o->plan.budget)) < 0 && o->plan.budget == 0)
                code = cli_fail("plan", "--budget 0 holds nothing");
            break;
        case RULES:
            o->rules_path = optarg;
            break;
        case HEADROOM:
            if ((code = cli_number("plan", "--headroom", optarg, 1, 1000, &n)) < 0)
                o->plan.headroom = (uint32_t)n;
            break;
        case GAP:
            if ((code = cli_size("plan", "--gap", optarg, &o->plan.gap)) < 0 && (o->plan.gap == 0 || o->plan.gap > TN_GAP_MAX))
                code = cli_fail("plan", "--gap takes 1 byte to 1 GiB");
            break;
        case SIZING:
            code = read_sizing(optarg, &o->plan.sizing);
            break;
        case CLASSES:
            if ((code = cli_number("plan", "--classes", optarg, 1, 64, &n)) < 0)
                o->plan.classes_an_octave = (uint32_t)n;
            break;
        case STEPS:
            code = cli_number("plan", "--steps", optarg, 0, UINT64_C(1) << 50, &o->plan.steps);
            break;
        case SECONDS:
            if ((code = cli_number("plan", "--symbol-seconds", optarg, 0, 1000000, &n)) < 0)
                o->symbols.seconds = (double)n;
            break;
        case DEBUG_DIR:
            o->symbols.debug_dir = optarg;
            break;
        case QUIET:
            o->quiet = 1;
            break;
        case 'o':
            o->output = optarg;
            break;
        case 'h':
            fputs(cmd_plan_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("plan", argc, argv, c);
        }
    }
    if (code < 0 && optind == argc)
        return cli_fail("plan", "RUN, --demand FILE or --dsa FILE is needed (see tenure help plan)");
    return code;
}

static void name_row(void *user, tn_plan *plan, const tn_trace *trace, uint32_t site, tn_plan_row *row)
{
    (void)trace;
    plan_names_fill(((plan_run_options *)user)->names, plan, site, row);
}

static void charge_section(void *user, tn_plan *plan, const tn_section *section, tn_plan_section *out)
{
    (void)section;
    plan_charges_fill(((plan_run_options *)user)->charges, plan, out);
}

static tn_discipline rule_of(void *user, const tn_trace *trace, uint32_t site, const char **rule)
{
    plan_run_options *o = user;
    tn_plan_row row = {.key = trace->sites[site].key, .python = trace->sites[site].python};
    tn_plan *scratch = tn_plan_new();
    if (!scratch)
        return TN_D_COUNT;
    plan_names_fill(o->names, scratch, site, &row);
    tn_discipline d = tn_rules_find(o->rules, &row, rule);
    tn_plan_free(scratch);
    return d;
}

static void room_of(void *user, const tn_trace *trace, uint32_t site, tn_room *room)
{
    plan_run_options *o = user;
    tn_plan_row row = {.key = trace->sites[site].key, .python = trace->sites[site].python};
    tn_plan *scratch = tn_plan_new();
    if (!scratch)
        return;
    plan_names_fill(o->names, scratch, site, &row);
    tn_rules_room(o->rules, &row, room);
    tn_plan_free(scratch);
}

/* Replaced at once, or not at all. */
static int write_plan(const tn_plan *plan, const char *path)
{
    if (strcmp(path, "-") == 0)
        return tn_plan_write(plan, stdout) == TN_OK ? 0 : cli_fail("plan", "standard output cannot be written");
    char *temporary = NULL;
    if (asprintf(&temporary, "%s.new.%ld", path, (long)getpid()) < 0)
        return cli_fail("plan", "no memory left");
    FILE *out = fopen(temporary, "wxe");
    int failed = out == NULL;
    if (out) {
        failed = tn_plan_write(plan, out) != TN_OK;
        failed |= fclose(out) != 0;
        failed = failed || rename(temporary, path) != 0;
    }
    int code = failed ? cli_fail("plan", "%s cannot be written: %s", path, strerror(errno)) : 0;
    if (failed && out)
        unlink(temporary);
    free(temporary);
    return code;
}

/* Rules that fit a site by name and could not decide it: docs/PLAN.md says which. */
static void tell_overruled(const tn_rules *rules, const char *path, const tn_plan *plan)
{
    enum { SHOWN = 5 };
    size_t count = 0;
    for (size_t i = 0; i < plan->section_count; i++) {
        for (size_t k = 0; k < plan->sections[i].row_count; k++) {
            const tn_plan_row *row = &plan->sections[i].rows[k];
            const char *rule;
            char words[96];
            if (tn_rules_find(rules, row, &rule) == TN_D_COUNT || row->rule || count++ >= SHOWN)
                continue;
            cli_warn("plan", "%s: the rule %s cannot be for site %016llx %s, which stays %s (%s)", path, rule, (unsigned long long)row->key,
                     tn_plan_row_words(row, words, sizeof words), tn_discipline_name(row->discipline), row->reason);
        }
    }
    if (count > SHOWN)
        cli_warn("plan", "%s: nor can rules be for %zu more sites", path, count - SHOWN);
}

/* What a plan for other requests would take. Not for records so long that a second plan is a matter of seconds. */
static void tell_headroom(const plan_run_options *o, const tn_plan *plan, const tn_trace *trace)
{
    enum { PERCENT = 100, EVENTS_MAX = 1000000, STEPS = 1000000 };
    char message[TN_PLAN_MESSAGE];
    tn_plan_options options = o->plan;
    tn_plan *larger = NULL;
    if (o->plan.headroom || plan->events > EVENTS_MAX || !plan->section_count)
        return;
    options.headroom = PERCENT;
    options.steps = STEPS;
    options.namer = NULL;
    options.charger = NULL;
    if (tn_plan_make(trace, &options, &larger, message) != TN_OK)
        return;
    uint64_t with = 0, without = 0;
    for (size_t i = 0; i < plan->section_count; i++) {
        without += plan->sections[i].total;
        for (size_t k = 0; k < plan->sections[i].charge_count; k++)
            without -= plan->sections[i].charges[k].bytes;
        with += larger->sections[i].total;
    }
    uint64_t more = with > without ? with - without : 0;
    printf("\nFor other requests than these: --headroom %d, so that twice the largest request fits, takes %llu.%llu MiB more; or tenure verify\n"
           "with other runs, which prints the rules that make them fit.\n",
           PERCENT, (unsigned long long)(more >> 20), (unsigned long long)((more & ((1u << 20) - 1)) * 10 >> 20));
    tn_plan_free(larger);
}

static int check_and_tell(const plan_run_options *o, const tn_plan *plan, const tn_trace *trace)
{
    char message[TN_PLAN_CHECK_MESSAGE];
    int code = TN_EXIT_HOLDS;
    if (tn_plan_check(plan, message) != TN_OK)
        return cli_fail("plan", "the plan does not pass its check, which is a fault of this program: %s", message);
    if (o->output && (code = write_plan(plan, o->output)) != 0)
        return code;
    if (!o->quiet && !(o->output && strcmp(o->output, "-") == 0)) {
        tn_plan_print(plan, stdout);
        tell_headroom(o, plan, trace);
    }
    for (size_t i = 0; o->rules && i < tn_rules_unused(o->rules); i++)
        cli_warn("plan", "%s: no site is as this rule says: %s", o->rules_path, tn_rules_unused_text(o->rules, i));
    if (o->rules)
        tell_overruled(o->rules, o->rules_path, plan);
    if (plan_names_cut_short(o->names))
        cli_warn("plan", "%zu frames have no names because the time for them was over; more is given by --symbol-seconds", plan_names_cut_short(o->names));
    if (tn_trace_incomplete(trace)) {
        for (size_t i = 0; i < trace->skipped_count; i++)
            cli_warn("plan", "%s", trace->skipped[i]);
        for (size_t i = 0; i < trace->process_count; i++)
            if (trace->processes[i].dropped || trace->processes[i].damage)
                cli_warn("plan", "%s: %s", trace->processes[i].name, trace->processes[i].damage ? trace->processes[i].damage : "events were dropped");
        cli_warn("plan", "what was recorded is incomplete, and so is the plan");
        code = TN_EXIT_INCONCLUSIVE;
    }
    for (size_t i = 0; plan->budget && i < plan->section_count; i++) {
        if (plan->sections[i].total <= plan->budget)
            continue;
        cli_warn("plan", "device %u needs %llu bytes, %llu more than the budget", plan->sections[i].device, (unsigned long long)plan->sections[i].total,
                 (unsigned long long)(plan->sections[i].total - plan->budget));
        if (!(o->output && strcmp(o->output, "-") == 0))
            tn_plan_arithmetic("plan", &plan->sections[i], plan->budget, stdout);
        code = TN_EXIT_FALLS_SHORT;
    }
    if (fflush(stdout) != 0)
        return cli_fail("plan", "standard output cannot be written");
    return code;
}

static tn_error open_runs(char **runs, size_t count, tn_trace **trace, char message[TN_TRACE_MESSAGE])
{
    for (size_t i = 0; i < count; i++) {
        if (!tn_import_is_csv(runs[i]))
            continue;
        if (count == 1)
            return tn_import_csv(runs[0], trace, message);
        snprintf(message, TN_TRACE_MESSAGE, "%s: a CSV file is planned by itself", runs[i]);
        return TN_E_ARGUMENT;
    }
    return tn_trace_open((const char *const *)runs, count, trace, message);
}

static int has_readings(const tn_trace *trace)
{
    for (size_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].charges)
            return 1;
    return 0;
}

static int make(plan_run_options *o, char **runs, size_t count)
{
    char message[TN_TRACE_MESSAGE];
    tn_trace *trace = NULL;
    tn_plan *plan = NULL;
    int code = TN_EXIT_USAGE;
    tn_error error = open_runs(runs, count, &trace, message);
    if (error != TN_OK) {
        cli_fail("plan", "%s", message);
        return error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
    }
    tn_trace_add_gap(trace, o->plan.gap);
    o->names = plan_names_new(trace, &o->symbols);
    if (!o->names)
        cli_fail("plan", "no memory left");
    else if (o->rules_path && tn_rules_read(o->rules_path, &o->rules, message) != TN_OK)
        cli_fail("plan", "%s", message);
    else if (has_readings(trace) && plan_charges_read((const char *const *)runs, count, &o->charges, message) != TN_OK)
        cli_fail("plan", "%s", message);
    else {
        o->plan.user = o;
        o->plan.namer = name_row;
        o->plan.charger = o->charges ? charge_section : NULL;
        o->plan.rule_of = o->rules ? rule_of : NULL;
        o->plan.room_of = o->rules ? room_of : NULL;
        error = tn_plan_make(trace, &o->plan, &plan, message);
        if (error != TN_OK) {
            cli_fail("plan", "%s", message);
            code = error == TN_E_EMPTY ? TN_EXIT_INCONCLUSIVE : TN_EXIT_USAGE;
        } else {
            code = check_and_tell(o, plan, trace);
        }
    }
    tn_plan_free(plan);
    tn_rules_free(o->rules);
    plan_charges_free(o->charges);
    plan_names_free(o->names);
    tn_trace_free(trace);
    return code;
}

int tn_cmd_plan_runs(int argc, char **argv)
{
    plan_run_options o = {.symbols = {.seconds = 60, .debug_bytes = TN_SYMBOL_DEBUG_BYTES}, .plan = {.steps = 100000000}};
    int code = parse(argc, argv, &o);
    return code >= 0 ? code : make(&o, argv + optind, (size_t)(argc - optind));
}
