/* tenure plan --dsa: packs a file of buffers, checks the placement, prints how good it is. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/option_value.h"
#include "planner/pack.h"
#include "planner/pack_check.h"
#include "planner/pack_csv.h"

/* Above all letters: these have none. */
enum { OPTION_DSA = 256, OPTION_STEPS };

typedef struct dsa_options {
    const char *in, *out;
    uint64_t steps;
} dsa_options;

/* -1: go on; else the exit code. */
static int parse(int argc, char **argv, dsa_options *o)
{
    static const struct option options[] = {{"dsa", required_argument, NULL, OPTION_DSA},
                                            {"output", required_argument, NULL, 'o'},
                                            {"steps", required_argument, NULL, OPTION_STEPS},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int c, code;
    opterr = 0;
    optind = 1;
    while ((c = getopt_long(argc, argv, ":ho:", options, NULL)) != -1) {
        switch (c) {
        case OPTION_DSA:
            if (o->in)
                return cli_fail("plan", "--dsa takes one file, not %s as well as %s", optarg, o->in);
            o->in = optarg;
            break;
        case 'o':
            o->out = optarg;
            break;
        case OPTION_STEPS:
            if ((code = cli_number("plan", "--steps", optarg, 1, UINT64_MAX, &o->steps)) >= 0)
                return code;
            break;
        case 'h':
            fputs(cmd_plan_help, stdout);
            return TN_EXIT_HOLDS;
        default:
            return cli_bad_option("plan", argc, argv, c);
        }
    }
    if (optind < argc)
        return cli_fail("plan", "%s is too much: --dsa packs one file", argv[optind]);
    return -1;
}

static void print_result(const tn_pack_csv *csv, const tn_pack_result *r)
{
    printf("buffers        %zu", csv->count);
    if (r->conflicts != SIZE_MAX)
        printf(", %zu pairs alive together", r->conflicts);
    printf("%s\n", r->parts > 1 ? ", in parts that never meet" : "");
    printf("lower bound    %" PRIu64 "\n", r->lower_bound);
    printf("height         %" PRIu64 "%s\n", r->height, r->proved ? ", proved to be the least" : "");
    printf("ratio          %.4f\n", r->lower_bound ? (double)r->height / (double)r->lower_bound : 1.0);
    printf("steps          %" PRIu64 "\n\n", r->steps);
    printf("%-18s %16s %8s\n", "placed", "height", "ratio");
    for (int m = 0; m < TN_PACK_MEMBER_COUNT; m++)
        if (r->members[m].ran)
            printf("%-18s %16" PRIu64 " %8.4f%s\n", tn_pack_member_name((tn_pack_member)m), r->members[m].height,
                   r->lower_bound ? (double)r->members[m].height / (double)r->lower_bound : 1.0,
                   m == (int)r->winner ? "  taken" : "");
}

static int write_out(const char *path, const tn_pack_csv *csv, const uint64_t *offsets)
{
    FILE *out = fopen(path, "we");
    if (!out)
        return cli_fail("plan", "%s cannot be written: %s", path, strerror(errno));
    bool good = tn_pack_csv_write(out, csv, offsets);
    int error = errno;
    if (fclose(out) != 0 && good) {
        good = false;
        error = errno;
    }
    return good ? TN_EXIT_HOLDS : cli_fail("plan", "%s cannot be written: %s", path, strerror(error));
}

static int check(const tn_pack_csv *csv, const uint64_t *offsets, const tn_pack_result *r)
{
    static const char *const wrong[] = {"", "overlaps another buffer", "is not aligned", "ends above the height",
                                        "could not be checked: no host memory is left"};
    tn_pack_fault fault = {0, 0};
    tn_pack_verdict verdict = tn_pack_check(csv->buffers, csv->count, offsets, r->height, &fault);
    if (verdict == TN_PACK_HOLDS)
        return TN_EXIT_HOLDS;
    return cli_fail("plan", "the placement is refused by its own check, which is a fault of this program: buffer %s %s", csv->names[fault.a], wrong[verdict]);
}

int tn_cmd_plan_dsa(int argc, char **argv)
{
    dsa_options o = {NULL, NULL, 0};
    int code = parse(argc, argv, &o);
    if (code >= 0)
        return code;
    tn_pack_csv csv;
    char message[TN_PACK_CSV_MESSAGE];
    if (!tn_pack_csv_read(o.in, &csv, message))
        return cli_fail("plan", "%s", message);
    tn_pack_options options = {.steps = o.steps};
    tn_pack_result result;
    size_t culprit = 0;
    uint64_t *offsets = malloc((csv.count + 1) * sizeof(*offsets));
    tn_pack_error error = offsets ? tn_pack(csv.buffers, csv.count, &options, offsets, &result, &culprit) : TN_PACK_E_NOMEM;
    if (error == TN_PACK_E_NOMEM)
        code = cli_fail("plan", "%s: %s", o.in, tn_pack_error_text(error));
    else if (error)
        code = cli_fail("plan", "%s:%zu: %s", o.in, csv.lines[culprit], tn_pack_error_text(error));
    else
        code = check(&csv, offsets, &result);
    if (code == TN_EXIT_HOLDS && o.out)
        code = write_out(o.out, &csv, offsets);
    if (code == TN_EXIT_HOLDS) {
        print_result(&csv, &result);
        if (fflush(stdout) != 0)
            code = cli_fail("plan", "standard output cannot be written");
    }
    free(offsets);
    tn_pack_csv_free(&csv);
    return code;
}
