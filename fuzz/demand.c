/* Fuzzing demand files: what is refused has one sentence with the file's name; what is taken is planned the same twice, within its
 * budget, and printed.
 * sources: planner/demand*.c planner/document.c planner/nearest.c planner/dtype.c planner/charge.c planner/size_text.c planner/text_file.c planner/memory*.c
 * libraries: -lyaml -ljansson */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/memory_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "demand: %s\n", what);
    abort();
}

static void check_plan(const tn_memory_plan *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->line_count; i++)
        must(!__builtin_add_overflow(sum, p->lines[i].bytes, &sum), "lines overflow");
    must(sum == p->total, "the lines do not add up");
    must(p->total <= INT64_MAX, "the total is no signed integer");
    must(p->kv.blocks <= p->wanted_blocks, "the pool has more than can be reached");
    if (p->budget == TN_MEMORY_NO_BUDGET)
        must(p->result == TN_MEMORY_FITS, "without a budget it does not fit");
    else
        must((p->result == TN_MEMORY_FITS) == (p->total <= p->budget), "the result is not what the figures say");
}

static void write(const tn_memory_plan *p)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    must(out && tn_memory_text(p, out) == 0, "it cannot be printed");
    fclose(out);
    free(text);
    json_t *json = tn_memory_json(p);
    must(json != NULL, "there is no JSON");
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_demand demand;
    static tn_memory_plan plan, again;
    char message[TN_DOCUMENT_MESSAGE] = "";
    if (tn_demand_parse("f.yaml", data, size, &demand, message) != TN_DEMAND_OK) {
        must(strncmp(message, "f.yaml: ", 8) == 0 && !strchr(message, '\n') && strlen(message) > 12, "no one sentence");
        return 0;
    }
    memset(&again, 0x55, sizeof(again));
    tn_memory_plan_demand(&demand, NULL, demand.budget, &plan);
    tn_memory_plan_demand(&demand, NULL, demand.budget, &again);
    must(memcmp(&plan, &again, sizeof(plan)) == 0, "a second plan differs");
    write(&plan);
    if (plan.result != TN_MEMORY_TOO_LARGE)
        check_plan(&plan);
    /* With its least as the budget it fits, with a byte less it does not. */
    if (plan.result == TN_MEMORY_FITS || plan.result == TN_MEMORY_TOO_LARGE)
        return 0;
    tn_memory_plan_demand(&demand, NULL, plan.total, &again);
    must(again.result == TN_MEMORY_FITS && again.total == plan.total, "the least is not enough");
    tn_memory_plan_demand(&demand, NULL, plan.total - 1, &again);
    must(again.result != TN_MEMORY_FITS, "less than the least is enough");
    return 0;
}
