/* What holds for every trace that could be read: a plan can be made of it, passes its check, is read as it was written, and holds the run that it
 * was made from. For the targets that read traces. */
#ifndef TENURE_FUZZ_PLANNED_H
#define TENURE_FUZZ_PLANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/plan_make.h"
#include "planner/plan_check.h"
#include "planner/plan_json.h"
#include "planner/plan_text.h"
#include "planner/verify.h"

static inline void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "must hold: %s\n", what);
    abort();
}

/* One sentence about the file, with a place or a cause. */
static inline void must_be_sentence(const char *message, const char *name)
{
    size_t length = strlen(name);
    if (strncmp(message, name, length) == 0 && message[length] == ':' && strlen(message) > length + 6 && !strchr(message, '\n'))
        return;
    fprintf(stderr, "message: %s\n", message);
    abort();
}

static inline char *planned_text(const tn_plan *plan, size_t *length)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    must(out && tn_plan_write(plan, out) == TN_OK && fclose(out) == 0, "the plan can be written");
    return text;
}

static inline void planned_again(const tn_plan *plan)
{
    char message[TN_PLAN_MESSAGE], *text, *second;
    size_t length, second_length;
    tn_plan *again;
    text = planned_text(plan, &length);
    must(tn_plan_parse(text, length, "again", &again, message) == TN_OK, message);
    second = planned_text(again, &second_length);
    must(length == second_length && memcmp(text, second, length) == 0, "what was read is written as the same");
    tn_plan_free(again);
    free(text);
    free(second);
}

static inline void planned_verify(const tn_plan *plan, const tn_trace *trace, int must_hold)
{
    tn_verdict v;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    must(out && tn_verify(plan, trace, NULL, NULL, &v) == TN_OK, "a run can be replayed");
    tn_verdict_print(&v, plan, trace, 20, out);
    tn_shadow_print(&v, plan, out);
    tn_plan_print(plan, out);
    fclose(out);
    if (must_hold && v.excesses) {
        fputs(text, stderr);
        must(0, "the plan holds the run that it was made from");
    }
    free(text);
    tn_verdict_free(&v);
}

/* `classes_an_octave`: as in tn_plan_options; the best of several costs the time of several. */
static inline void planned(const tn_trace *trace, uint32_t classes_an_octave)
{
    char message[TN_PLAN_MESSAGE];
    tn_plan_options options = {.steps = 500, .classes_an_octave = classes_an_octave};
    tn_plan *plan;
    tn_error error = tn_plan_make(trace, &options, &plan, message);
    if (error != TN_OK) {
        must(error == TN_E_EMPTY || error == TN_E_LIMIT, "a plan can be made");
        must(message[0] && !strchr(message, '\n'), "why there is no plan is a sentence");
        return;
    }
    must(tn_plan_check(plan, message) == TN_OK, message);
    planned_again(plan);
    planned_verify(plan, trace, 1);
    tn_plan_free(plan);
}

#endif
