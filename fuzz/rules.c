/* Fuzzing files of rules: what is refused has one sentence with the file's name and the line; what is taken decides the same for a site each time, and
 * each rule has either been used or is listed.
 * sources: planner/rules.c planner/discipline.c planner/text_file.c planner/trace.c planner/trace_index.c planner/trace_marks.c planner/trace_replay.c ledger/journal_reader.c ledger/reader_*.c ledger/tn_error.c */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "rules: %s\n", what);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_plan_frame frames[] = {{.module = "libkv.so", .function = "kv_grow", .file = "src/kv.c", .line = 9}, {.module = "engine"},
                                     {.function = "main", .file = "main.c"}};
    static const tn_plan_row rows[] = {{.key = 0xab, .frames = frames, .frame_count = 3}, {.key = 1}, {.key = UINT64_MAX, .frames = frames + 2, .frame_count = 1}};
    char message[TN_PLAN_MESSAGE] = "";
    tn_rules *rules;
    if (tn_rules_parse((const char *)data, size, "f.rules", &rules, message) != TN_OK) {
        must(!rules && strncmp(message, "f.rules:", 8) == 0 && message[8] >= '1' && message[8] <= '9', "no file and line");
        must(!strchr(message, '\n') && strlen(message) > 12, "no one sentence");
        return 0;
    }
    size_t unused = tn_rules_unused(rules);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *rule = NULL, *again = NULL;
        tn_discipline d = tn_rules_find(rules, &rows[i], &rule);
        must(tn_rules_find(rules, &rows[i], &again) == d && again == rule, "another answer the second time");
        must(d == TN_D_COUNT || (rule && strncmp(rule, tn_discipline_name(d), strlen(tn_discipline_name(d))) == 0), "the rule is not the answer's");
    }
    must(tn_rules_unused(rules) <= unused, "a used rule is unused");
    for (size_t i = 0; i < tn_rules_unused(rules); i++)
        must(tn_rules_unused_text(rules, i) != NULL, "an unused rule has no text");
    must(tn_rules_unused_text(rules, tn_rules_unused(rules)) == NULL, "there are more unused rules than are counted");
    tn_rules_free(rules);
    return 0;
}
