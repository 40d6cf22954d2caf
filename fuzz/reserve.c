/* Fuzzing files of remembered charges: what is refused has one sentence; what is taken is written, read again and written as the same, and
 * takes a measurement more.
 * sources: planner/reserve*.c planner/charge.c planner/text_file.c
 * libraries: -ljansson */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/reserve_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "reserve: %s\n", what);
    abort();
}

static char *write_and_read(tn_reserve **reserve, const char *before)
{
    char message[TN_RESERVE_MESSAGE];
    char *text = tn_reserve_text(*reserve);
    tn_reserve_free(*reserve);
    must(text != NULL, "it cannot be written");
    must(!before || strcmp(before, text) == 0, "written again it differs");
    must(tn_reserve_parse("again", text, strlen(text), reserve, message) == TN_RESERVE_OK, "what was written cannot be read");
    return text;
}

static void add_one(tn_reserve *reserve)
{
    tn_reserve_entry entry = {.gpu = "G", .driver = "1", .loading = "lazy", .libraries = calloc(1, TN_RESERVE_TEXT)};
    tn_reserve_measured measured = {.run = "r", .date = "9999", .charges.bytes[TN_CLAIM_CONTEXT] = 5};
    tn_reserve_key key = {"G", "1", "lazy", NULL, 0};
    tn_reserve_answer answer;
    must(entry.libraries != NULL, "no memory");
    tn_reserve_add(reserve, &entry, &measured);
    must(reserve->entry_count <= TN_RESERVE_ENTRIES, "there is an entry too many");
    must(tn_reserve_find(reserve, &key, &answer) == TN_RESERVE_OK, "what was added is not there");
    must(answer.measurements >= 1 && answer.measurements <= TN_RESERVE_KEPT, "another number is kept");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char message[TN_RESERVE_MESSAGE] = "";
    tn_reserve *reserve;
    if (tn_reserve_parse("f.json", data, size, &reserve, message) != TN_RESERVE_OK) {
        must(!reserve && strncmp(message, "f.json: ", 8) == 0 && !strchr(message, '\n') && strlen(message) > 12, "no one sentence");
        return 0;
    }
    char *first = write_and_read(&reserve, NULL), *second = write_and_read(&reserve, first);
    free(first);
    free(second);
    add_one(reserve);
    tn_reserve_free(reserve);
    return 0;
}
